package connector_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"qm/edge/connector"
	"qm/internal/testenv"
)

// program is the path of a site's source.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "testdata", "connectors", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func jsonText(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// behindProxy dresses a request as a proxy on this machine would, and gives the connector's options along.
func behindProxy(t *testing.T) func(http.Header, vectorRequest, map[string]any) {
	return func(h http.Header, r vectorRequest, options map[string]any) {
		options["trustedProxies"] = orElse(options["trustedProxies"], []string{"127.0.0.1"})
		h.Set("X-Forwarded-For", "198.51.100.66, "+r.Remote) // what the visitor claims, and what the proxy saw
		h.Set("X-Test-Options", jsonText(t, options))
	}
}

// TestNode puts a node:http server and an Express one behind the connector.
//
// Proves: connectors
func TestNode(t *testing.T) {
	folder := install(t, "node")
	for _, kind := range []string{"http", "express"} {
		t.Run(kind, func(t *testing.T) {
			env := map[string]string{"QM_EXPRESS": filepath.Dir(testenv.NPM(t, "express"))}
			address, _ := start(t, env, testenv.Node(t), program(t, "node/site.mjs"), kind, folder)
			s := site{address: address, dress: behindProxy(t)}
			t.Run("vectors", s.conform)
			t.Run("walk", s.walk)
			t.Run("whom it believes", func(t *testing.T) {
				s.believes(t, func(proxies ...string) map[string]any {
					return map[string]any{"trustedProxies": append([]string{}, proxies...)}
				})
			})
		})
	}
}

// orElse is a value, or another where there is none.
func orElse(value, none any) any {
	if value == nil {
		return none
	}
	return value
}

// believes checks whom a connector behind proxies believes for the visitor's address and scheme. trust makes its option of a list.
func (s site) believes(t *testing.T, trust func(proxies ...string) map[string]any) {
	for _, c := range []struct {
		name, forwarded string // what stands in X-Forwarded-For beside the claim 198.51.100.66
		trusted         []string
		ip, scheme      string
	}{
		{"nobody is trusted", "203.0.113.7", nil, "127.0.0.1", "http"},
		{"another is trusted", "203.0.113.7", []string{"10.0.0.0/8"}, "127.0.0.1", "http"},
		{"one proxy", "203.0.113.7", []string{"127.0.0.1/32"}, "203.0.113.7", "https"},
		{"two proxies", "203.0.113.7, 10.1.2.3", []string{"127.0.0.0/8", "10.0.0.0/9"}, "203.0.113.7", "https"},
		{"a network that ends before", "203.0.113.7, 10.200.2.3", []string{"127.0.0.0/8", "10.0.0.0/9"}, "10.200.2.3", "https"},
		{"IPv6", "2001:db8::7, 2001:db8:ffff::1", []string{"127.0.0.1", "2001:db8:ffff::/48"}, "2001:db8::7", "https"},
		{"a port", "203.0.113.7:4711", []string{"127.0.0.1"}, "203.0.113.7", "https"},
		{"no address", "unknown", []string{"127.0.0.1"}, "", "https"},
	} {
		var asked url.Values
		queue := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = r.URL.Query()
			_, _ = w.Write([]byte(`{"action":"pass","reason":"session"}`))
		}))
		options := map[string]any{"roomId": "rm1", "server": queue.URL, "publicKey": "k", "fail": "closed", "timeoutMs": 30_000}
		maps.Copy(options, trust(c.trusted...))
		r := vectorRequest{Method: http.MethodGet, URL: "https://shop.example/sale", Remote: c.forwarded}
		got, body := s.send(t, r, options)
		queue.Close() // and so the handler has ended
		if got.StatusCode != http.StatusOK || asked.Get("ip") != c.ip || asked.Get("url") != c.scheme+"://shop.example/sale" {
			t.Errorf("%s: asked for %v: %d %s", c.name, asked, got.StatusCode, body)
		}
	}
}

// TestNodeStartsWithADoorOnly: an option that is missing or wrong stops the site's start with a sentence that names it.
func TestNodeStartsWithADoorOnly(t *testing.T) {
	folder := install(t, "node")
	good := map[string]any{"roomId": "rm1", "server": "https://queue.example"}
	names, cases := []string{}, []map[string]any{}
	for name, values := range map[string][]any{
		"roomId": {nil, "", "RM1", 5}, "server": {nil, "queue.example", "ftp://queue.example", "https://queue.example/?a"},
		"publicKey": {"a b", 5}, "fail": {"maybe", true}, "timeoutMs": {0, -1, 30_001, "soon"},
		"origin": {"shop.example", "https://shop.example/"}, "trustedProxies": {[]string{"localhost"}, []string{"10.0.0.0/33"}, []string{"10.0.0.0/"}},
	} {
		for _, value := range values {
			wrong := maps.Clone(good)
			wrong[name] = value
			names, cases = append(names, name), append(cases, wrong)
		}
	}
	const program = `const [folder, good, cases] = process.argv.slice(1);
const { createConnector } = await import('file://' + folder + '/qm-connector.mjs');
createConnector(JSON.parse(good));
console.log(JSON.stringify(JSON.parse(cases).map((options) => {
  try { createConnector(options); return 'made'; } catch (e) { return e.name + ': ' + e.message; }
})));`
	out, err := exec.Command(testenv.Node(t), "--input-type=module", "-e", program, folder, jsonText(t, good), jsonText(t, cases)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var said []string
	if err := json.Unmarshal(out, &said); err != nil || len(said) != len(cases) {
		t.Fatalf("%s: %v", out, err)
	}
	for i, name := range names {
		if !strings.HasPrefix(said[i], "TypeError: qm-connector: "+name) {
			t.Errorf("%v: %s", cases[i], said[i])
		}
	}
}

// TestPackageNamesItsVersion: npm reads package.json, the registry and the install check connector.json, WordPress the plugin's own head.
func TestPackageNamesItsVersion(t *testing.T) {
	for name, file := range map[string]string{"node": "package.json", "wordpress": "queue-manager.php", "worker": "connector.json"} {
		m, _ := connector.Named(name)
		text, err := os.ReadFile(filepath.Join(install(t, name), file))
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`(?m)^[ *"]+[Vv]ersion"?:\s+"?` + regexp.QuoteMeta(m.Version) + `"?,?$`).Match(text) {
			t.Errorf("%s of %s does not say %s", file, name, m.Version)
		}
	}
}
