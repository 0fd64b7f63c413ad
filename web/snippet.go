package web

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"

	"github.com/tdewolff/minify/v2"
	"github.com/tdewolff/minify/v2/js"
)

//go:embed snippet/qm.js
var snippetSource []byte

var snippet, snippetTag = mustShrinkSnippet()

// snippetYear is the ECMAScript edition that the script tag is written in. The
// shrinker must not make it newer: it runs in every visitor's browser, and one
// that cannot read it would see the site without a line.
const snippetYear = 2019

func mustShrinkSnippet() (body []byte, etag string) {
	m := minify.New()
	var out bytes.Buffer
	if err := (&js.Minifier{Version: snippetYear}).Minify(m, &out, bytes.NewReader(snippetSource), nil); err != nil {
		panic(fmt.Sprintf("web: shrink snippet/qm.js: %v", err))
	}
	sum := sha256.Sum256(out.Bytes())
	return out.Bytes(), `"` + base64.RawURLEncoding.EncodeToString(sum[:])[:22] + `"`
}

// SnippetCacheControl is the Cache-Control of the script tag: its address never
// changes (seed 004, Versioning policy), so a browser asks again after five
// minutes, and meanwhile shows what it has.
const SnippetCacheControl = "public, max-age=300, stale-while-revalidate=86400"

// Snippet returns the script tag (/snippet/qm.js) and its entity tag with the
// quotes. The body is shared: do not write to it.
func Snippet() (body []byte, etag string) { return snippet, snippetTag }
