package httpapi

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"testing"

	"qm/web"
)

// A file is packed for who takes it so, and for nobody else; either way it is the same file.
func TestAssetsArePacked(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		path := web.AssetPath("waiting.js")
		want, _, _ := web.Asset(path)
		for accept, packed := range map[string]bool{
			"gzip, deflate, br, zstd": true, "br;q=1.0, GZIP;q=0.5": true, "gzip;q=0.001": true,
			"": false, "identity": false, "gzip;q=0": false, "gzip; q=0.000, br": false, "x-gzip-not": false,
		} {
			for _, method := range []string{"GET", "HEAD"} {
				b := w.browser("203.0.113.1")
				b.headers["Accept-Encoding"] = accept
				a := b.do(method, path, "")
				if a.status != http.StatusOK || (a.header.Get("Content-Encoding") == "gzip") != packed || a.header.Get("Vary") != "Accept-Encoding" {
					w.Fatalf("%s %q: %d %v", method, accept, a.status, a.header)
				}
				body := []byte(a.body)
				if method == "HEAD" {
					if len(body) != 0 || a.header.Get("Content-Length") == "" {
						w.Errorf("HEAD %q: %d bytes, %v", accept, len(body), a.header)
					}
					continue
				}
				if packed {
					z, err := gzip.NewReader(bytes.NewReader(body))
					if err != nil {
						w.Fatal(err)
					}
					if body, err = io.ReadAll(z); err != nil {
						w.Fatal(err)
					}
				}
				if !bytes.Equal(body, want) {
					w.Errorf("%q gets another file: %d bytes, not %d", accept, len(body), len(want))
				}
			}
		}
	})
}
