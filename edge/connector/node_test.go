package connector_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"testing"

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
		options["trustedProxies"] = []string{"127.0.0.1"}
		h.Set("X-Forwarded-For", "198.51.100.66, "+r.Remote) // what the visitor claims, and what the proxy saw
		h.Set("X-Test-Options", jsonText(t, options))
	}
}

// TestNode runs the vectors through a node:http server and through Express.
func TestNode(t *testing.T) {
	folder := install(t, "node")
	for _, kind := range []string{"http", "express"} {
		t.Run(kind, func(t *testing.T) {
			env := map[string]string{"QM_EXPRESS": filepath.Dir(testenv.NPM(t, "express"))}
			address, _ := start(t, env, testenv.Node(t), program(t, "node/site.mjs"), kind, folder)
			site{address: address, dress: behindProxy(t)}.conform(t)
		})
	}
}
