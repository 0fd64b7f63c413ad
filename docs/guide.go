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

//go:embed INTEGRATION.md OPERATIONS.md performance.md design/*.md th/*.md page.html page.css contract.txt progress.json
var files embed.FS

// guides are the pages at /docs by name, in the order in which they are listed; the first is /docs itself.
var guides = []struct {
	name, file string
	title      map[string]string // by language
}{
	{"integration", "INTEGRATION.md", map[string]string{"en": "Integration", "th": "การเชื่อมต่อ"}},
	{"operations", "OPERATIONS.md", map[string]string{"en": "Operations", "th": "การปฏิบัติการ"}},
	{"architecture", "design/architecture.md", map[string]string{"en": "Architecture", "th": "สถาปัตยกรรม"}},
	{"invariants", "design/invariants.md", map[string]string{"en": "Invariants", "th": "ข้อยืนยง"}},
	{"gotchas", "design/gotchas.md", map[string]string{"en": "Gotchas", "th": "ข้อควรระวัง"}},
	{"performance", "performance.md", map[string]string{"en": "Performance", "th": "สมรรถนะ"}},
}

// edition is the guides in one language. Its files lie in a folder by the names of the English ones; a guide without such a file is shown in English.
type edition struct {
	Lang, Name                                                          string
	folder                                                              string // "" is that of the English guides
	Skip, Guides, Contents, Languages, Progress, Reference, Table, Only string
}

// editions are the languages of the guides; the first has all of them.
var editions = []edition{
	{Lang: "en", Name: "English", Skip: "To the text", Guides: "Guides", Contents: "On this page", Languages: "Language", Progress: "Progress", Reference: "Reference", Table: "Table %d"},
	{Lang: "th", Name: "ภาษาไทย", folder: "th/", Skip: "ไปยังเนื้อหา", Guides: "คู่มือ", Contents: "ในหน้านี้", Languages: "ภาษา", Progress: "ความคืบหน้า", Reference: "เอกสารอ้างอิง", Table: "ตารางที่ %d", Only: " (ภาษาอังกฤษ)"},
}

// Policy is the Content-Security-Policy of the guides: no script, and no style but their own.
var Policy string

// pages are the guides as HTML, by what follows /docs/ in their address: "integration", "th/integration"; "" and "th" are the first of an
// edition. progressPage is the one at /progress.
var pages, progressPage = render()

// Guide is the page of a name such as "operations" or, in Thai, "th/operations"; "" and "th" are the first one. ok is false when there is none.
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
	for _, e := range editions {
		for i, g := range guides {
			if !e.has(g.file) {
				continue
			}
			source := must(files.ReadFile(e.folder + g.file))
			tree := markdown.Parser().Parse(text.NewReader(source))
			if e.folder != "" {
				identify(tree, markdown.Parser().Parse(text.NewReader(must(files.ReadFile(g.file)))), e.folder+g.file)
			}
			contents := arrange(tree, source, e.folder+g.file)
			var body, page bytes.Buffer
			if err := markdown.Renderer().Render(&body, source, tree); err != nil {
				panic(fmt.Sprintf("docs: render %s: %v", e.folder+g.file, err))
			}
			data := map[string]any{
				"In": e, "Title": g.title[e.Lang], "Style": template.CSS(style), "Contents": contents, "Body": template.HTML(scrolling(body.String(), e.Table)),
				"Guides": links(e, g.name), "Others": others(e, g.name, g.file), "Alternates": alternates(g.name, g.file),
			}
			if err := layout.Execute(&page, data); err != nil {
				panic(fmt.Sprintf("docs: lay out %s: %v", e.folder+g.file, err))
			}
			out[e.folder+g.name] = page.Bytes()
			if i == 0 {
				out[strings.TrimSuffix(e.folder, "/")] = page.Bytes()
			}
		}
	}
	out["reference"] = reference(layout, style)
	return out, progress(layout, style)
}

// lay lays out a page in English that is made of something else than a guide.
func lay(layout *template.Template, style []byte, title, name string, contents []heading, body string) []byte {
	english := editions[0]
	var page bytes.Buffer
	err := layout.Execute(&page, map[string]any{
		"In": english, "Title": title, "Style": template.CSS(style), "Contents": contents, "Body": template.HTML(scrolling(body, english.Table)),
		"Guides": links(english, name),
	})
	if err != nil {
		panic(fmt.Sprintf("docs: lay out %s: %v", title, err))
	}
	return page.Bytes()
}

// has reports whether a guide is there in the edition's language.
func (e edition) has(file string) bool {
	f, err := files.Open(e.folder + file)
	if err == nil {
		_ = f.Close()
	}
	return err == nil
}

// identify gives the headings of a translation the ids of the English ones, so that a link to a section holds in every language.
func identify(tree, english ast.Node, file string) {
	ids, own := headings(english), headings(tree)
	if len(ids) != len(own) {
		panic(fmt.Sprintf("docs: %s has %d headings, the English guide %d", file, len(own), len(ids)))
	}
	for i, h := range own {
		id, _ := ids[i].AttributeString("id")
		h.SetAttributeString("id", id)
	}
}

func headings(tree ast.Node) (list []*ast.Heading) {
	_ = ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if h, ok := n.(*ast.Heading); ok && entering {
			list = append(list, h)
		}
		return ast.WalkContinue, nil
	})
	return list
}

// scrolling lets a wide table or a long line scroll by itself, where the keyboard reaches it too.
func scrolling(body, label string) string {
	body = strings.NewReplacer("</table>", "</table></div>", "<pre>", `<pre tabindex="0">`, "<th></th>", "<td></td>").Replace(body)
	var b strings.Builder
	for i := 1; ; i++ {
		before, after, found := strings.Cut(body, "<table>")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		fmt.Fprintf(&b, `<div class="table" tabindex="0" role="region" aria-label="%s"><table>`, fmt.Sprintf(label, i))
		body = after
	}
}

type link struct {
	Address, Title, Lang string
	Here                 bool
}

// links are all guides, each in the edition's language where it is there, else in English, which its title then says.
func links(e edition, here string) (list []link) {
	for _, g := range guides {
		to := link{"/docs/" + e.folder + g.name, g.title[e.Lang], e.Lang, g.name == here}
		if !e.has(g.file) {
			to.Address, to.Title, to.Lang = "/docs/"+g.name, to.Title+e.Only, editions[0].Lang
		}
		list = append(list, to)
	}
	return list
}

// others lead to the same guide in the other languages, or to the first one where there is none.
func others(here edition, name, file string) (list []link) {
	for _, e := range editions {
		to := link{Address: "/docs/" + e.folder + name, Title: e.Name, Lang: e.Lang}
		if !e.has(file) {
			to.Address = "/docs/" + strings.TrimSuffix(e.folder, "/")
		}
		if e.Lang != here.Lang {
			list = append(list, to)
		}
	}
	return list
}

// alternates are the languages that a guide is there in, its own included; none when it has one alone.
func alternates(name, file string) (list []link) {
	for _, e := range editions {
		if e.has(file) {
			list = append(list, link{Address: "/docs/" + e.folder + name, Lang: e.Lang})
		}
	}
	if len(list) == 1 {
		return nil
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
	if target == "openapi.json" {
		return "/docs/reference"
	}
	if fragment != "" {
		fragment = "#" + fragment
	}
	for _, e := range editions {
		for _, g := range guides {
			if e.folder+g.file == target {
				return "/docs/" + e.folder + g.name + fragment
			}
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
