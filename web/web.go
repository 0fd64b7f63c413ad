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
	"html/template"
)

//go:embed *.html *.css *.js *.svg locales/*.json console
var files embed.FS

var pages = template.Must(template.ParseFS(files, "*.html", "console/*.html"))

// Policy returns the Content-Security-Policy of a page in these colours.
// Everything comes from this server, except the brand's logo, which may come
// from any https address. Only the colours are inline, allowed by their hash.
func Policy(b Branding) string { return policy(b, "script-src 'self'; connect-src 'self'") }

// PreviewPolicy is the policy of a waiting page that is only looked at: it runs
// no script, asks for nothing, and leads nowhere.
func PreviewPolicy(b Branding) string { return policy(b, "sandbox") }

// ConsolePolicy is the policy of the console, which shows previews in a frame.
func ConsolePolicy() string {
	return policy(Branding{}, "script-src 'self'; connect-src 'self'; frame-src 'self'")
}

func policy(b Branding, more string) string {
	sum := sha256.Sum256([]byte(b.colours()))
	return "default-src 'none'; " + more + "; style-src 'self' 'sha256-" +
		base64.StdEncoding.EncodeToString(sum[:]) +
		"'; img-src 'self' https:; base-uri 'none'; form-action 'self'; frame-ancestors 'self'"
}
