package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"qm/edge/connector"
)

// Proves: registry
func TestTheRegistryNamesWhatThisServerHandsOut(t *testing.T) {
	inMemory(t, Options{PublicURL: "https://queue.shop.example"}, func(w *world) {
		b := w.browser("198.51.100.1")
		got := b.get("/api/v1/connectors?roomId=rm1").want(t, 200, "")
		list := got.json["connectors"].([]any)
		if len(list) != len(connector.All())+1 {
			t.Fatalf("%d connectors: %s", len(list), got.body)
		}
		vectors := got.json["vectors"].(map[string]any)
		vectors["kind"], vectors["name"] = "json", "vectors"
		for _, each := range append(list, vectors) {
			c := each.(map[string]any)
			path, ours := strings.CutPrefix(c["download"].(string), "https://queue.shop.example")
			if !ours {
				t.Errorf("%v is handed out elsewhere: %v", c["name"], c["download"])
			}
			file := b.get(path)
			sum := sha256.Sum256([]byte(file.body))
			if file.status != 200 || c["sha256"] != hex.EncodeToString(sum[:]) || c["integrity"] != "sha256-"+base64.StdEncoding.EncodeToString(sum[:]) || c["size"] != float64(len(file.body)) {
				t.Errorf("%s answers %d and %d bytes, which is not what the registry says: %v", path, file.status, len(file.body), c)
			}
			kind := map[string]string{"js": "text/javascript; charset=utf-8", "tgz": "application/gzip", "zip": "application/zip", "json": "application/json; charset=utf-8"}[c["kind"].(string)]
			tag := file.header.Get("Etag")
			if file.header.Get("Content-Type") != kind || file.header.Get("Cache-Control") != "no-cache" || len(tag) < 20 || file.header.Get("Access-Control-Allow-Origin") != "*" {
				t.Errorf("%s answers %v", path, file.header)
			}
			if c["name"] != "vectors" && c["kind"] != "js" && !strings.Contains(file.header.Get("Content-Disposition"), c["name"].(string)+"-"+c["version"].(string)+".") {
				t.Errorf("%s is saved as %q", path, file.header.Get("Content-Disposition"))
			}
			again := w.browser("198.51.100.2")
			again.headers["If-None-Match"] = "W/" + tag
			if got := again.get(path); got.status != 304 || got.body != "" || got.header.Get("Etag") != tag {
				t.Errorf("%s asked again answers %d with %d bytes", path, got.status, len(got.body))
			}
			if head := b.do("HEAD", path, ""); head.status != 200 || head.body != "" || head.header.Get("Etag") != tag {
				t.Errorf("HEAD %s answers %d", path, head.status)
			}
			for _, command := range []string{"install", "upgrade", "verify"} {
				text, _ := c[command].(string)
				if c["name"] != "vectors" && text == "" || strings.ContainsAny(text, "{}") && strings.Contains(text, "{server}") || strings.Contains(text, "{roomId}") || strings.Contains(text, "{version}") {
					t.Errorf("%v: %s is %q", c["name"], command, text)
				}
			}
			if v, _ := c["verify"].(string); c["name"] != "vectors" && !strings.Contains(got.body, "rm1") {
				t.Errorf("no command names the room: %q", v)
			}
		}
		b.get("/api/v1/connectors?roomId=R").want(t, 400, "invalid_room_id")
		b.get("/api/v1/connectors?roomId=rm1&roomId=rm2").want(t, 400, "duplicate_parameter")
		if got := b.get("/api/v1/connectors"); !strings.Contains(got.body, exampleRoom) {
			t.Errorf("without a room the commands say %s", got.body)
		}
		for _, path := range []string{"/connectors/nothing/latest.tgz", "/connectors/go/latest.zip", "/connectors/go/latest.exe", "/connectors/go/", "/connectors/go", "/connectors/", "/connectors/../latest.tgz", "/connectors//latest.tgz"} {
			if got := b.raw("GET", path); got.status != 404 {
				t.Errorf("%s answers %d", path, got.status)
			}
		}
	})
}

func TestTheRegistrySharesTheAllowanceOfChecks(t *testing.T) {
	inMemory(t, Options{CheckLimitPerMin: 3}, func(w *world) {
		w.room("rm1", 60, "")
		b := w.browser("198.51.100.1")
		b.get("/api/v1/connectors").want(t, 200, "")
		b.get("/api/v1/check?roomId=rm1").want(t, 200, "")
		b.get("/connectors/vectors.json").want(t, 200, "")
		for _, path := range []string{"/api/v1/connectors", "/api/connectors/wordpress/update", "/connectors/vectors.json", "/connectors/go/latest.tgz", "/api/v1/verify?roomId=rm1"} {
			b.get(path).want(t, 429, "rate_limited")
		}
	})
}

func TestVerifyKnowsTheConnector(t *testing.T) {
	inMemory(t, Options{PublicURL: "https://queue.shop.example"}, func(w *world) {
		w.room("rm1", 60, "")
		b := w.browser("198.51.100.1")
		newest := connector.All()[0]
		for version, want := range map[string]string{
			newest.Version: "pass", "0.0.1": "warn", "999.0.0": "info", "": "info", "1.0": "info", "1.0.0-x": "info", "v1.0.0": "info", "1.0.0.0": "info", "-1.0.0": "info", "1.0.99999999999999999999": "info",
		} {
			got := b.verify("roomId=rm1&connector="+newest.Name+"&version="+version).finds(t, true, "connector="+want)
			_, c := got.found("connector")
			if fix, _ := c["fix"].(string); (want == "warn") != strings.Contains(fix, "https://queue.shop.example/connectors/") {
				t.Errorf("version %q is told %v", version, c)
			}
		}
		b.verify("roomId=rm1&connector=homemade&version=1.0.0").finds(t, true, "connector=info")
		b.verify("roomId=rm1").finds(t, true, "connector=")
	})
}
