package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"qm/web"
)

// The script tag is at one address for ever, is asked for again after minutes, and may be loaded by any page.
func TestTheScriptTagIsServed(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		b := w.browser("198.51.100.1")
		body, etag := web.Snippet()
		got := b.get("/snippet/qm.js").want(t, http.StatusOK, "")
		if got.body != string(body) || got.header.Get("Content-Type") != "text/javascript; charset=utf-8" || got.header.Get("ETag") != etag ||
			got.header.Get("Cache-Control") != web.SnippetCacheControl || !strings.HasPrefix(web.SnippetCacheControl, "public, max-age=300") ||
			got.header.Get("Access-Control-Allow-Origin") != "*" || got.header.Get("Cross-Origin-Resource-Policy") != "cross-origin" ||
			got.header.Get("X-Content-Type-Options") != "nosniff" || got.header.Get("Set-Cookie") != "" {
			t.Errorf("%d bytes with %v", len(got.body), got.header)
		}
		if head := b.do("HEAD", "/snippet/qm.js", "").want(t, http.StatusOK, ""); head.body != "" || head.header.Get("ETag") != etag {
			t.Errorf("HEAD: %q %v", head.body, head.header)
		}
		for header, status := range map[string]int{etag: 304, "W/" + etag: 304, `"x", ` + etag: 304, "*": 304, `"x"`: 200, etag[:5]: 200} {
			b.headers["If-None-Match"] = header
			again := b.get("/snippet/qm.js").want(t, status, "")
			if (again.body == "") != (status == 304) || again.header.Get("ETag") != etag || again.header.Get("Cache-Control") != web.SnippetCacheControl {
				t.Errorf("If-None-Match %s: %d bytes, %v", header, len(again.body), again.header)
			}
		}
		delete(b.headers, "If-None-Match")
		if no := b.post("/snippet/qm.js", "{}").want(t, http.StatusMethodNotAllowed, "method_not_allowed"); no.header.Get("Allow") != "GET, HEAD, OPTIONS" {
			t.Errorf("Allow: %s", no.header.Get("Allow"))
		}
		b.do("OPTIONS", "/snippet/qm.js", "").want(t, http.StatusNoContent, "")
		for _, path := range []string{"/snippet/", "/snippet/qm.js/", "/snippet/qm.css", "/snippet/..%2Fweb.go"} {
			if a := b.get(path); a.status != http.StatusNotFound || a.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: %d %v", path, a.status, a.header)
			}
		}
	})
}

// What a browser may ask across origins is what the answer then lets it read (seed 004, Versioning policy).
//
// Proves: cors
func TestThePreflightOfADoorKeyDecidesAsTheCheck(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, `,"returnOrigins":["https://a.example"],"tagOrigins":["https://b.example"]`)
		for origin, reads := range map[string]bool{
			"https://shop.example": true, "https://b.example": true, "https://a.example": false, "https://shop.example.evil.example": false, "null": false,
		} {
			for _, path := range []string{"/api/v1/check?roomId=rm1", "/api/check?roomId=rm1&url=https%3A%2F%2Fshop.example%2F"} {
				b := w.browser("198.51.100.2")
				b.headers["Origin"] = origin
				b.headers["Access-Control-Request-Method"] = "GET"
				b.headers["Access-Control-Request-Headers"] = "x-qm-session"
				asked := b.do("OPTIONS", path, "")
				delete(b.headers, "Access-Control-Request-Method")
				delete(b.headers, "Access-Control-Request-Headers")
				got := b.get(path)
				want := ""
				if reads {
					want = origin
				}
				if a, g := asked.header.Get("Access-Control-Allow-Origin"), got.header.Get("Access-Control-Allow-Origin"); a != want || g != want {
					t.Errorf("%s from %s: OPTIONS allows %q, GET %q", path, origin, a, g)
				}
				if reads != strings.Contains(strings.ToLower(asked.header.Get("Access-Control-Allow-Headers")), "x-qm-session") {
					t.Errorf("%s from %s: headers %q", path, origin, asked.header.Get("Access-Control-Allow-Headers"))
				}
				if got.header.Get("Vary") != "Origin" || asked.header.Get("Vary") != "Origin" {
					t.Errorf("%s: Vary %q and %q", path, asked.header.Get("Vary"), got.header.Get("Vary"))
				}
			}
		}
	})
}
