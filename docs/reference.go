package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
)

// The reference is the page at /docs/reference: the OpenAPI document for people. All of it is made of openapi.json, save these few words.
var referenceBody = template.Must(template.New("reference").Parse(`
{{- define "members"}}{{range $i, $rows := .}}{{if $i}}<p>or</p>
{{end}}<table><thead><tr><th>member</th><th>type</th><th>meaning</th></tr></thead><tbody>
{{range $rows}}<tr><td><code>{{.Name}}</code>{{with .Note}}<br>{{.}}{{end}}</td><td>{{.Type}}</td><td>{{.Text}}</td></tr>
{{end}}</tbody></table>
{{end}}{{end}}
{{- define "content"}}{{with .Text}}<p>{{.}}</p>
{{end}}{{template "members" .Variants}}{{range .Examples}}<p>Example{{with .Title}}: {{.}}{{end}}</p>
<pre><code>{{.Text}}</code></pre>
{{end}}{{end -}}
<h1>Reference</h1>
{{.Text}}
<p>This page is made from <a href="/api/v1/openapi.json">the OpenAPI document</a> of this build.</p>
{{range .Tags}}<h2 id="{{.ID}}">{{.Title}}</h2>
{{.Text}}
{{range .Operations}}<section id="{{.ID}}">
<h3>{{.Summary}}</h3>
<p><code>{{.Method}} {{.Path}}</code></p>
{{.Text}}
{{with .Keys}}<p>Goes with it: {{.}}.</p>
{{end}}{{with .Parameters}}<h4>Parameters</h4>
<table><thead><tr><th>parameter</th><th>type</th><th>meaning</th></tr></thead><tbody>
{{range .}}<tr><td><code>{{.Name}}</code><br>{{.Note}}</td><td>{{.Type}}</td><td>{{.Text}}</td></tr>
{{end}}</tbody></table>
{{end}}{{with .Request}}<h4>Request body</h4>
{{.Text}}
{{range .Contents}}<p><code>{{.Media}}</code></p>
{{template "content" .}}{{end}}{{end}}<h4>Answers</h4>
<table><thead><tr><th>status</th><th>meaning</th><th>codes</th></tr></thead><tbody>
{{range .Answers}}<tr id="{{.ID}}"><td><a href="#{{.ID}}">{{.Status}}</a></td><td>{{.Text}}{{with .Headers}}<br>{{.}}{{end}}</td><td>{{range .Codes}}<code>{{.}}</code> {{end}}</td></tr>
{{end}}</tbody></table>
{{range $a := .Answers}}{{range .Contents}}<h4>Body of {{$a.Status}}: {{.Media}}</h4>
{{template "content" .}}{{end}}{{end}}</section>
{{end}}{{end}}<h2 id="refusals">Refusals</h2>
{{.Refusal}}
{{template "members" .Refused}}<h2 id="headers">Headers</h2>
<table><thead><tr><th>header</th><th>type</th><th>meaning</th></tr></thead><tbody>
{{range .Headers}}<tr id="{{.ID}}"><td>{{range .Names}}<code>{{.}}</code> {{end}}</td><td>{{.Type}}</td><td>{{.Text}}</td></tr>
{{end}}</tbody></table>
<h2 id="keys">Cookies and keys</h2>
<table><thead><tr><th>name</th><th>where</th><th>meaning</th></tr></thead><tbody>
{{range .Keys}}<tr id="{{.ID}}"><td><code>{{.Name}}</code></td><td>{{.Note}}</td><td>{{.Text}}</td></tr>
{{end}}</tbody></table>
`))

type (
	// row is a line of a table: a member, a parameter, a header or a key.
	row struct {
		ID, Name, Note string
		Names          []string // of a header, which may go by several
		Type, Text     template.HTML
	}
	example struct{ Title, Text string }
	content struct {
		Media    string
		Text     template.HTML // what is to be said of a body without members
		Variants [][]row       // the members of each shape that the body may have
		Examples []example
	}
	message struct {
		ID, Status string
		Text       template.HTML
		Headers    template.HTML
		Codes      []string
		Contents   []content // save a plain refusal, which has one section for all
	}
	operation struct {
		ID, Method, Path, Summary string
		Text, Keys                template.HTML
		Parameters                []row
		Request                   *message
		Answers                   []message
	}
	tag struct {
		ID, Title  string
		Text       template.HTML
		Operations []operation
	}
)

// methods are what an OpenAPI path may have beside its other members.
var methods = []string{"get", "head", "post", "put", "patch", "delete", "options", "trace"}

// specification is the document on its way to be a page.
type specification struct {
	root     *node
	markdown goldmark.Markdown
	headers  map[string][]string // the names that answers give a header of the components
}

// reference is the page at /docs/reference, laid out as the guides are, in English.
func reference(layout *template.Template, style []byte) []byte {
	s := &specification{root: parse(OpenAPI), markdown: goldmark.New(), headers: make(map[string][]string)}
	tags := s.tags()
	var contents []heading
	for _, t := range tags {
		for _, o := range t.Operations {
			contents = append(contents, heading{o.ID, o.Summary})
		}
	}
	contents = append(contents, heading{"refusals", "Refusals"}, heading{"headers", "Headers"}, heading{"keys", "Cookies and keys"})
	refusal := s.root.at("components", "schemas", "Problem")
	var body bytes.Buffer
	err := referenceBody.Execute(&body, map[string]any{
		"Text": s.prose(s.root.at("info", "description").text), "Tags": tags, "Refusal": s.prose(refusal.at("description").text), "Refused": s.variants(refusal),
		"Headers": s.headerRows(), "Keys": s.keyRows(),
	})
	if err != nil {
		panic(fmt.Sprintf("docs: reference: %v", err))
	}
	return lay(layout, style, "Reference", "reference", contents, body.String())
}

// tags are all operations under the first of their tags, in the order of the document.
func (s *specification) tags() (list []tag) {
	at := make(map[string]int)
	for i, t := range s.root.at("tags").items {
		name := t.at("name").text
		at[name] = i
		list = append(list, tag{ID: "tag-" + strings.ReplaceAll(strings.ToLower(name), " ", "-"), Title: name, Text: s.prose(t.at("description").text)})
	}
	for _, path := range s.root.at("paths").keys {
		item := s.root.at("paths", path)
		for _, method := range item.keys {
			if slices.Contains(methods, method) {
				o := item.at(method)
				i := at[o.at("tags").items[0].text]
				list[i].Operations = append(list[i].Operations, s.operation(path, method, item))
			}
		}
	}
	return list
}

func (s *specification) operation(path, method string, item *node) operation {
	n := item.at(method)
	servers := s.root.at("servers")
	if own := item.at("servers"); own.there() {
		servers = own
	}
	base := strings.TrimSuffix(servers.items[0].at("url").text, "/")
	o := operation{
		ID: n.at("operationId").text, Method: strings.ToUpper(method), Path: base + path, Summary: n.at("summary").text,
		Text: s.prose(n.at("description").text), Keys: s.keys(n.at("security")),
	}
	for _, p := range slices.Concat(item.at("parameters").items, n.at("parameters").items) {
		p = p.resolve(s.root)
		schema := p.at("schema").resolve(s.root)
		r := row{Name: p.at("name").text, Note: p.at("in").text, Type: s.kind(schema), Text: s.meaning(merge(schema, p))}
		if string(p.at("required").raw) == "true" {
			r.Note += ", required"
		}
		o.Parameters = append(o.Parameters, r)
	}
	if b := n.at("requestBody").resolve(s.root); b.there() {
		o.Request = &message{Text: s.prose(b.at("description").text), Contents: s.contents(b)}
	}
	for _, status := range n.at("responses").keys {
		r := n.at("responses", status).resolve(s.root)
		a := message{ID: o.ID + "-" + status, Status: status, Text: s.line(r.at("description").text), Headers: s.headersOf(r), Contents: s.contents(r)}
		for _, media := range r.at("content").keys {
			a.Codes = append(a.Codes, s.codes(r.at("content", media, "schema"))...)
		}
		o.Answers = append(o.Answers, a)
	}
	return o
}

// codes are the values that the member code of a body may have.
func (s *specification) codes(schema *node) []string {
	code := schema.resolve(s.root).at("properties", "code").resolve(s.root)
	return slices.Concat(code.at("enum").words(), code.at("const").words())
}

// contents are the bodies of a request or an answer.
func (s *specification) contents(n *node) (list []content) {
	for _, media := range n.at("content").keys {
		m := n.at("content", media)
		if m.at("schema").named() == "Problem" && !m.at("example").there() && !m.at("examples").there() {
			continue
		}
		c := content{Media: media, Variants: s.variants(m.at("schema"))}
		if c.Variants == nil {
			c.Text = s.meaning(m.at("schema").resolve(s.root))
		}
		if e := m.at("example"); e.there() {
			c.Examples = append(c.Examples, example{Text: indented(e)})
		}
		for _, name := range m.at("examples").keys {
			e := m.at("examples", name).resolve(s.root)
			c.Examples = append(c.Examples, example{Title: e.at("summary").text, Text: indented(e.at("value"))})
		}
		list = append(list, c)
	}
	return list
}

// indented is an example as people read it: a text as it is, anything else as JSON.
func indented(n *node) string {
	if n.text != "" {
		return n.text
	}
	var b bytes.Buffer
	if err := json.Indent(&b, n.raw, "", "  "); err != nil {
		panic(fmt.Sprintf("docs: openapi.json: %v", err))
	}
	return b.String()
}

// variants are the members of each shape that a schema allows, those of their own members too: "work.bits", "checks[].id".
func (s *specification) variants(schema *node) (list [][]row) {
	schema = schema.resolve(s.root)
	shapes := schema.at("oneOf").items
	if shapes == nil {
		shapes = []*node{schema}
	}
	for _, shape := range shapes {
		shape = shape.resolve(s.root)
		if rows := s.rows("", shape); len(rows) > 0 {
			list = append(list, rows)
		}
	}
	return list
}

func (s *specification) rows(prefix string, schema *node) (list []row) {
	if items := schema.at("items"); items.there() {
		list = append(list, s.rows(prefix+"[]", items.resolve(s.root))...)
	}
	if other := schema.at("additionalProperties"); other.members != nil {
		list = append(list, s.rows(joined(prefix, "<name>"), other.resolve(s.root))...)
	}
	required := schema.at("required").words()
	for _, name := range schema.at("properties").keys {
		member := schema.at("properties", name).resolve(s.root)
		r := row{Name: joined(prefix, name), Type: s.kind(member), Text: s.meaning(member)}
		if slices.Contains(required, name) {
			r.Note = "required"
		}
		list = append(append(list, r), s.rows(r.Name, member)...)
	}
	return list
}

func joined(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}

// kind says what values a schema allows. A keyword that it has no words for is shown as it is written.
func (s *specification) kind(schema *node) template.HTML {
	var rules []string
	say := func(format string, values ...any) { rules = append(rules, fmt.Sprintf(format, values...)) }
	if types := schema.at("type").words(); len(types) > 0 {
		say("%s", strings.Join(types, " or "))
	}
	for _, key := range schema.keys {
		v := schema.at(key)
		switch key {
		case "type", "description", "example", "properties", "required", "oneOf", "contentMediaType":
		case "enum":
			say("one of `%s`", strings.Join(v.words(), "`, `"))
		case "const":
			say("`%s`", v.word())
		case "minimum":
			say("at least %s", v.raw)
		case "maximum":
			say("at most %s", v.raw)
		case "minLength":
			say("%s characters or more", v.raw)
		case "maxLength":
			say("%s characters or fewer", v.raw)
		case "minItems":
			say("%s items or more", v.raw)
		case "maxItems":
			say("%s items or fewer", v.raw)
		case "pattern":
			say("as `%s`", v.text)
		case "format":
			say("%s", v.text)
		case "items":
			say("each %s", s.typeOf(v))
		case "additionalProperties":
			say("each member %s", s.typeOf(v))
		default:
			say("%s `%s`", key, v.raw)
		}
	}
	return s.line(strings.Join(rules, "; "))
}

// typeOf is the bare type of a schema.
func (s *specification) typeOf(schema *node) string {
	if schema.members == nil {
		return string(schema.raw)
	}
	return strings.Join(schema.resolve(s.root).at("type").words(), " or ")
}

// meaning is a description with its example.
func (s *specification) meaning(n *node) template.HTML {
	text := n.at("description").text
	if e := n.at("example"); e.there() {
		text += " For example `" + e.word() + "`."
	}
	return s.line(strings.TrimSpace(text))
}

// headersOf are the headers of an answer: those that many answers have have a section of their own.
func (s *specification) headersOf(response *node) template.HTML {
	var list []string
	for _, name := range response.at("headers").keys {
		h := response.at("headers", name)
		if ref := h.named(); ref != "" {
			if !slices.Contains(s.headers[ref], name) {
				s.headers[ref] = append(s.headers[ref], name)
			}
			list = append(list, fmt.Sprintf("[`%s`](#header-%s)", name, ref))
			continue
		}
		schema := h.at("schema").resolve(s.root)
		list = append(list, strings.TrimSuffix(fmt.Sprintf("`%s`: %s", name, merge(schema, h).at("description").text), ": "))
	}
	if list == nil {
		return ""
	}
	return s.line("With " + strings.Join(list, ", "))
}

// headerRows are the headers of the components, by the names that answers gave them: tags comes before.
func (s *specification) headerRows() (list []row) {
	all := s.root.at("components", "headers")
	for _, id := range all.keys {
		h := all.at(id)
		schema := h.at("schema").resolve(s.root)
		list = append(list, row{ID: "header-" + id, Names: s.headers[id], Type: s.kind(schema), Text: s.meaning(merge(schema, h))})
	}
	return list
}

// keys are the ways in which a caller may show who it is; "" when it need not and cannot.
func (s *specification) keys(security *node) template.HTML {
	var ways []string
	for _, way := range security.items {
		var together []string
		for _, id := range way.keys {
			k := s.root.at("components", "securitySchemes", id)
			name, where := keyOf(k)
			together = append(together, fmt.Sprintf("[`%s`](#key-%s) (%s)", name, id, where))
		}
		if together == nil {
			together = []string{"nothing"}
		}
		ways = append(ways, strings.Join(together, " and "))
	}
	return s.line(strings.Join(ways, ", or "))
}

func keyOf(k *node) (name, where string) {
	if k.at("type").text == "http" {
		return "Authorization", k.at("scheme").text
	}
	return k.at("name").text, k.at("in").text
}

func (s *specification) keyRows() (list []row) {
	all := s.root.at("components", "securitySchemes")
	for _, id := range all.keys {
		name, where := keyOf(all.at(id))
		list = append(list, row{ID: "key-" + id, Name: name, Note: where, Text: s.meaning(all.at(id))})
	}
	return list
}

// prose is a text of the document, which is Markdown.
func (s *specification) prose(source string) template.HTML {
	var b bytes.Buffer
	if err := s.markdown.Convert([]byte(source), &b); err != nil {
		panic(fmt.Sprintf("docs: openapi.json: %v", err))
	}
	return template.HTML(b.String())
}

// line is a text of one paragraph, without the paragraph.
func (s *specification) line(source string) template.HTML {
	out := strings.TrimSpace(string(s.prose(source)))
	if strings.Count(out, "<p>") != 1 {
		return template.HTML(out)
	}
	return template.HTML(strings.TrimSuffix(strings.TrimPrefix(out, "<p>"), "</p>"))
}
