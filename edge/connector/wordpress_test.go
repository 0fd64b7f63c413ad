package connector_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"qm/internal/testenv"
)

// startWordPress runs a WordPress site with the plugin until the test ends. Its settings are in the file options.
func startWordPress(t *testing.T) (address, options string, said *output) {
	t.Helper()
	folder := install(t, "wordpress")
	options = filepath.Join(t.TempDir(), "options.json")
	if err := os.WriteFile(options, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	address, said = start(t, map[string]string{
		"QM_PLUGIN": folder, "QM_SITE_OPTIONS": options, "QM_SITE_HOME": "https://shop.example", "PHP_CLI_SERVER_WORKERS": "6",
	}, testenv.PHP(t), "-d", "display_errors=stderr", "-d", "error_reporting=-1", "-S", "127.0.0.1:0", program(t, "wordpress/site.php"))
	return address, options, said
}

// TestWordPress runs the vectors through the plugin.
func TestWordPress(t *testing.T) {
	address, _, _ := startWordPress(t)
	site{
		address: address,
		dress: func(h http.Header, r vectorRequest, options map[string]any) {
			seconds := "30"
			if ms := fmt.Sprint(options["timeoutMs"]); ms != "30000" {
				seconds = "1" // the least that WordPress knows
			}
			h.Set("X-Forwarded-For", "198.51.100.66, "+r.Remote)
			h.Set("X-Test-Options", jsonText(t, map[string]any{
				"room": options["roomId"], "base": options["server"], "key": options["publicKey"], "fail": options["fail"],
				"timeout": seconds, "proxies": "127.0.0.1", "editors": true,
			}))
		},
	}.conform(t)
}
