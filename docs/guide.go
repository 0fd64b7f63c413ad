package docs

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

//go:embed INTEGRATION.md OPERATIONS.md performance.md design/*.md page.html page.css contract.txt progress.json
var files embed.FS

// guides are the pages at /docs by name, in the order in which they are listed; the first is /docs itself.
var guides = []struct{ name, file, title string }{
	{"integration", "INTEGRATION.md", "Integration"}, {"operations", "OPERATIONS.md", "Operations"}, {"architecture", "design/architecture.md", "Architecture"},
	{"invariants", "design/invariants.md", "Invariants"}, {"gotchas", "design/gotchas.md", "Gotchas"}, {"performance", "performance.md", "Performance"},
}

// Policy is the Content-Security-Policy of the guides: no script, and no style but their own.
var Policy string

// pages are the guides as HTML, by name; "" is the first. progressPage is the one at /progress.
var pages, progressPage = render()

// Guide is the page of a name, "" for the first one; ok is false when there is none.
func Guide(name string) (page []byte, ok bool) {
	page, ok = pages[name]
	return page, ok
}

type heading struct{ ID, Text string }

// render makes all pages. What is embedded cannot be wrong at run time only: the tests render the same.
func render() (out map[string][]byte, progressPage []byte) {
	style := must(files.ReadFile("page.css"))
	sum := sha256.Sum256(style)
	Policy = "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
	layout := template.Must(template.ParseFS(files, "page.html"))
	markdown := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(html.WithXHTML()))
	out = make(map[string][]byte)
	for _, g := range guides {
		source := must(files.ReadFile(g.file))
		tree := markdown.Parser().Parse(text.NewReader(source))
		contents := arrange(tree, source, g.file)
		var body, page bytes.Buffer
		if err := markdown.Renderer().Render(&body, source, tree); err != nil {
			panic(fmt.Sprintf("docs: render %s: %v", g.file, err))
		}
		data := map[string]any{
			"Title": g.title, "Style": template.CSS(style), "Contents": contents, "Body": template.HTML(scrolling(body.String())), "Guides": links(g.name),
		}
		if err := layout.Execute(&page, data); err != nil {
			panic(fmt.Sprintf("docs: lay out %s: %v", g.file, err))
		}
		out[g.name] = page.Bytes()
	}
	out[""] = out[guides[0].name]
	return out, progress(layout, style)
}

// scrolling lets a wide table or a long line scroll by itself, where the keyboard reaches it too.
func scrolling(body string) string {
	body = strings.NewReplacer("</table>", "</table></div>", "<pre>", `<pre tabindex="0">`, "<th></th>", "<td></td>").Replace(body)
	var b strings.Builder
	for i := 1; ; i++ {
		before, after, found := strings.Cut(body, "<table>")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		fmt.Fprintf(&b, `<div class="table" tabindex="0" role="region" aria-label="Table %d"><table>`, i)
		body = after
	}
}

type link struct {
	Name, Title string
	Here        bool
}

func links(here string) (list []link) {
	for _, g := range guides {
		list = append(list, link{g.name, g.title, g.name == here})
	}
	return list
}

// arrange turns links between the guides' files into links between their pages, and lists the sections.
func arrange(tree ast.Node, source []byte, file string) (contents []heading) {
	_ = ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Heading:
			if id, ok := n.AttributeString("id"); ok && entering && n.Level == 2 {
				contents = append(contents, heading{string(id.([]byte)), plain(n, source)})
			}
		case *ast.Link:
			if entering {
				n.Destination = []byte(address(string(n.Destination), file))
			}
		}
		return ast.WalkContinue, nil
	})
	return contents
}

// plain is the text of a node.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// address is where a link of a file leads among the pages. What is no guide is a file of the source, which the server does not carry.
func address(to, file string) string {
	if strings.Contains(to, "://") || strings.HasPrefix(to, "#") || strings.HasPrefix(to, "/") {
		return to
	}
	target, fragment, _ := strings.Cut(to, "#")
	target = path.Join(path.Dir(file), target)
	for _, g := range guides {
		if g.file == target {
			if fragment != "" {
				fragment = "#" + fragment
			}
			return "/docs/" + g.name + fragment
		}
	}
	return to
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(fmt.Sprintf("docs: %v", err))
	}
	return b
}
