// Package web holds the pages that people see: the waiting page, the console,
// the page behind the demo room, and the pages that say why there is nothing
// to wait for. They are native ES modules and CSS without a build step,
// embedded in the binary.
//
// The package renders and knows nothing of rooms: what a page shows comes in a
// struct ([WaitingPage], [NoticePage], [DemoPage]). Rendering never fails on
// the content of such a struct; an error means that the writer failed.
//
// Every page can be served under the strict policy that [Policy] returns: no
// inline script, and one inline style sheet (the brand's colours) by its hash.
package web

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"path"
	"strings"
)

//go:embed *.html *.css *.js *.svg locales/*.json
var files embed.FS

var pages = template.Must(template.ParseFS(files, "*.html"))

// asset is one embedded file as it is served.
type asset struct {
	path        string // "/assets/waiting-<hash>.css"
	body        []byte
	contentType string
}

// The assets by file name ("waiting.css") and by path; written once, at start.
var byName, byPath = loadAssets()

func loadAssets() (map[string]asset, map[string]asset) {
	names, paths := map[string]asset{}, map[string]asset{}
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(fmt.Sprintf("web: read embedded files: %v", err))
	}
	types := map[string]string{
		".css": "text/css; charset=utf-8",
		".js":  "text/javascript; charset=utf-8",
		".svg": "image/svg+xml",
	}
	for _, e := range entries {
		ext := path.Ext(e.Name())
		contentType, ok := types[ext]
		if !ok {
			continue
		}
		body, err := files.ReadFile(e.Name())
		if err != nil {
			panic(fmt.Sprintf("web: read embedded %s: %v", e.Name(), err))
		}
		sum := sha256.Sum256(body)
		a := asset{
			path: fmt.Sprintf("/assets/%s-%s%s", strings.TrimSuffix(e.Name(), ext),
				base64.RawURLEncoding.EncodeToString(sum[:])[:22], ext),
			body:        body,
			contentType: contentType,
		}
		names[e.Name()], paths[a.path] = a, a
	}
	return names, paths
}

// Asset returns the file behind a path such as "/assets/waiting-<hash>.css",
// where <hash> is the first 22 characters of the base64url SHA-256 of the file
// (seed 004, Visitor). A path that names no file of this build answers
// ok == false, never a file of another hash. Serve what it returns with
// [AssetCacheControl]. On an inline host, strip "/__qm" first. The body is
// shared: do not write to it.
func Asset(path string) (body []byte, contentType string, ok bool) {
	a, ok := byPath[path]
	return a.body, a.contentType, ok
}

// AssetCacheControl is the Cache-Control of an asset: its path changes when
// its content does. Everything else here is no-store.
const AssetCacheControl = "public, max-age=31536000, immutable"

// AssetPath returns the path at which the named file ("waiting.css") of this
// build is served, or "" for a name that is no asset.
func AssetPath(name string) string { return byName[name].path }

// Policy returns the Content-Security-Policy of a page in these colours.
// Everything comes from this server, except the brand's logo, which may come
// from any https address. Only the colours are inline, allowed by their hash.
func Policy(b Branding) string {
	sum := sha256.Sum256([]byte(b.colours()))
	return "default-src 'none'; script-src 'self'; style-src 'self' 'sha256-" +
		base64.StdEncoding.EncodeToString(sum[:]) +
		"'; connect-src 'self'; img-src 'self' https: data:; base-uri 'none'; form-action 'self'; frame-ancestors 'self'"
}
