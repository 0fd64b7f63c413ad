package connector_test

import (
	"net/http"
	"testing"

	"qm/internal/testenv"
)

// TestWorker runs the vectors through workerd.
func TestWorker(t *testing.T) {
	folder := install(t, "worker")
	env := map[string]string{"QM_MINIFLARE": testenv.NPM(t, "miniflare")}
	address, _ := start(t, env, testenv.Node(t), program(t, "worker/site.mjs"), folder)
	site{
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
	}.conform(t)
}
