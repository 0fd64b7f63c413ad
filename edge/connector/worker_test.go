package connector_test

import (
	"net/http"
	"strings"
	"testing"

	"qm/internal/testenv"
)

// TestWorker puts a site behind the connector in workerd.
//
// Proves: connectors
func TestWorker(t *testing.T) {
	folder := install(t, "worker")
	env := map[string]string{"QM_MINIFLARE": testenv.NPM(t, "miniflare")}
	address, _ := start(t, env, testenv.Node(t), program(t, "worker/site.mjs"), folder)
	s := site{
		address: address,
		dress: func(h http.Header, r vectorRequest, options map[string]any) {
			h.Set("MF-Original-URL", r.URL)
			h.Set("CF-Connecting-IP", r.Remote)
			h.Set("X-Test-Site", "1")
			h.Set("X-Test-Options", jsonText(t, map[string]any{
				"QM_ROOM_ID": options["roomId"], "QM_SERVER": options["server"], "QM_PUBLIC_KEY": options["publicKey"],
				"QM_FAIL": options["fail"], "QM_TIMEOUT_MS": options["timeoutMs"],
			}))
		},
		not: map[string]string{
			"dot segments and double slashes stay": "Workers know an address as a URL, which has none",
		},
	}
	t.Run("vectors", s.conform)
	t.Run("walk", s.walk)
	t.Run("a variable that is missing serves nobody", func(t *testing.T) {
		options := map[string]any{"roomId": "", "server": "https://queue.example", "publicKey": "", "fail": "open", "timeoutMs": 1000}
		got, body := s.send(t, vectorRequest{Method: http.MethodGet, URL: "https://shop.example/"}, options)
		if got.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "roomId") || strings.Contains(body, "reached") {
			t.Errorf("%d %s", got.StatusCode, body)
		}
	})
}
