package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"strings"
)

// clause is one line of what the contracts ask for.
type clause struct {
	Section, ID, Text string
	Tests             []string // that name it, as "package.Test"; none: nothing proves it
}

// clauses are the lines of contract.txt with the tests of progress.json, which a test makes of the sources.
func clauses() (list []clause) {
	var proofs map[string][]string
	if err := json.Unmarshal(must(files.ReadFile("progress.json")), &proofs); err != nil {
		panic(fmt.Sprintf("docs: progress.json: %v", err))
	}
	section := ""
	for line := range strings.Lines(string(must(files.ReadFile("contract.txt")))) {
		line = strings.TrimSpace(line)
		switch title, isSection := strings.CutPrefix(line, "== "); {
		case isSection:
			section = title
		case line == "" || strings.HasPrefix(line, "#"):
		default:
			id, text, found := strings.Cut(line, ": ")
			if !found || section == "" {
				panic(fmt.Sprintf("docs: contract.txt: %q", line))
			}
			list = append(list, clause{section, id, text, proofs[id]})
		}
	}
	return list
}

var progressBody = template.Must(template.New("progress").Parse(`<h1>Progress</h1>
<p>What the contracts ask for, line by line, and the tests of this build that prove it. The list of tests is made from their sources; <code>make test</code> runs all of them. {{.Proved}} of {{.All}} lines have a test. A line
without one is marked: it is not there, or nothing shows that it is.</p>
{{range .Sections}}<h2 id="{{.ID}}">{{.Title}}</h2>
<table><thead><tr><th>asked for</th><th>proved by</th></tr></thead><tbody>
{{range .Clauses}}<tr><td id="{{.ID}}">{{.Text}}</td><td>{{range .Tests}}<code>{{.}}</code> {{else}}<strong>not proved yet</strong>{{end}}</td></tr>
{{end}}</tbody></table>
{{end}}`))

type progressSection struct {
	ID, Title string
	Clauses   []clause
}

// progress is the page at /progress (seed 004: GET /progress), laid out as the guides are, in English.
func progress(layout *template.Template, style []byte) []byte {
	var data struct {
		Proved, All int
		Sections    []progressSection
	}
	var contents []heading
	for _, c := range clauses() {
		data.All++
		if len(c.Tests) > 0 {
			data.Proved++
		}
		if n := len(data.Sections); n == 0 || data.Sections[n-1].Title != c.Section {
			s := progressSection{ID: fmt.Sprintf("section-%d", n+1), Title: c.Section}
			data.Sections, contents = append(data.Sections, s), append(contents, heading{s.ID, s.Title})
		}
		last := &data.Sections[len(data.Sections)-1]
		last.Clauses = append(last.Clauses, c)
	}
	var body bytes.Buffer
	if err := progressBody.Execute(&body, data); err != nil {
		panic(fmt.Sprintf("docs: progress: %v", err))
	}
	return lay(layout, style, "Progress", "", contents, body.String())
}

// Progress is the page of what this build implements of each contract.
func Progress() []byte { return progressPage }
