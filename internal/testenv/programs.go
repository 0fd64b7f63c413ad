package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Chromium returns the path of Chromium: of its headless shell where there is one, which is the same engine without the windows
// around it and takes half of the time.
func Chromium(t testing.TB) string {
	t.Helper()
	return program(t, append([]string{"chromium-headless-shell"}, browsers...)...)
}

// WholeChromium returns the path of Chromium with all of the browser, for what a visitor has set in it.
func WholeChromium(t testing.TB) string { t.Helper(); return program(t, browsers...) }

var browsers = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// Nginx returns the path of nginx.
func Nginx(t testing.TB) string { t.Helper(); return program(t, "nginx", "/usr/sbin/nginx") }

// Caddy returns the path of Caddy.
func Caddy(t testing.TB) string { t.Helper(); return program(t, "caddy") }

// Node returns the path of Node.js, 18 or newer.
func Node(t testing.TB) string { t.Helper(); return program(t, "node", "nodejs") }

// PHP returns the path of PHP's command line.
func PHP(t testing.TB) string { t.Helper(); return program(t, "php") }

// Promtool returns the path of Prometheus's promtool.
func Promtool(t testing.TB) string { t.Helper(); return program(t, "promtool") }

// program finds the first of these names that there is.
func program(t testing.TB, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatalf("testenv: no %s found: run scripts/deps.sh as root, or put it on PATH", names[0])
	return ""
}

// NPM returns the path of a file or directory of the packages that testdata/npm/package.json names, such
// as NPM(t, "axe-core/axe.min.js").
func NPM(t testing.TB, path string) string {
	t.Helper()
	dir, err := os.Getwd() // go test runs in the package's own directory
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		above := filepath.Dir(dir)
		if above == dir {
			t.Fatal("testenv: the test does not run inside the module")
		}
		dir = above
	}
	found := filepath.Join(dir, "testdata", "npm", "node_modules", filepath.FromSlash(path))
	if _, err := os.Stat(found); err != nil {
		t.Fatalf("testenv: %v: run scripts/deps.sh, or npm ci in testdata/npm", err)
	}
	return found
}

// Axe returns the source of axe-core, which finds what a page hides from people who use it otherwise.
func Axe(t testing.TB) string {
	t.Helper()
	source, err := os.ReadFile(NPM(t, "axe-core/axe.min.js"))
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	return string(source)
}
