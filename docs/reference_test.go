package docs_test

import (
	"encoding/json"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"

	"qm/docs"
)

type described struct {
	ID          string `json:"operationId"`
	Summary     string
	Parameters  []struct{ Name string }
	RequestBody struct {
		Content map[string]struct {
			Schema struct {
				Properties map[string]any
			}
		}
	}
	Responses map[string]json.RawMessage
}

// Every operation of the document is on the page with its address, and each of its answers in its section.
//
// Proves: docs
func TestTheReferenceHasEveryOperationAndAnswer(t *testing.T) {
	var document struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct {
			Responses map[string]map[string]any
		}
	}
	if err := json.Unmarshal(docs.OpenAPI, &document); err != nil {
		t.Fatal(err)
	}
	page := referencePage(t)
	operations, answers := 0, 0
	for path, item := range document.Paths {
		base := "/api/v1"
		if item["servers"] != nil {
			base = ""
		}
		for method, raw := range item {
			if method == "servers" {
				continue
			}
			var o described
			if err := json.Unmarshal(raw, &o); err != nil {
				t.Fatal(err)
			}
			operations++
			_, section, found := strings.Cut(page, `<section id="`+o.ID+`">`)
			section, _, closed := strings.Cut(section, "</section>")
			if !found || !closed {
				t.Errorf("%s has no section", o.ID)
				continue
			}
			want := []string{"<h3>" + html.EscapeString(o.Summary) + "</h3>", "<code>" + strings.ToUpper(method) + " " + base + path + "</code>"}
			for _, p := range o.Parameters {
				if p.Name != "" {
					want = append(want, "<td><code>"+p.Name+"</code>")
				}
			}
			for _, content := range o.RequestBody.Content {
				for member := range content.Schema.Properties {
					want = append(want, "<td><code>"+member+"</code>")
				}
			}
			for status, raw := range o.Responses {
				answers++
				want = append(want, `<tr id="`+o.ID+"-"+status+`">`)
				for _, c := range codesOf(t, raw, document.Components.Responses) {
					want = append(want, "<code>"+c+"</code>")
				}
			}
			for _, w := range want {
				if !strings.Contains(section, w) {
					t.Errorf("the section of %s has no %s", o.ID, w)
				}
			}
		}
	}
	if operations < 20 || answers < 100 {
		t.Errorf("only %d operations with %d answers were looked at", operations, answers)
	}
}

// codesOf are the codes that an answer names, wherever it does: its own or those of the component that it refers to.
func codesOf(t *testing.T, raw json.RawMessage, components map[string]map[string]any) (codes []string) {
	t.Helper()
	var answer map[string]any
	if err := json.Unmarshal(raw, &answer); err != nil {
		t.Fatal(err)
	}
	if ref, ok := answer["$ref"].(string); ok {
		answer = components[strings.TrimPrefix(ref, "#/components/responses/")]
	}
	var walk func(v any)
	walk = func(v any) {
		m, _ := v.(map[string]any)
		for key, v := range m {
			if code, ok := v.(map[string]any); ok && key == "code" {
				list, _ := code["enum"].([]any)
				for _, c := range list {
					codes = append(codes, c.(string))
				}
			}
			walk(v)
		}
	}
	walk(answer)
	return codes
}

// References are followed, deep ones too, and what stands beside them holds.
func TestTheReferenceFollowsReferences(t *testing.T) {
	page := referencePage(t)
	_, join, _ := strings.Cut(page, `<section id="join">`)
	join, _, _ = strings.Cut(join, "</section>")
	for _, want := range []string{
		"<td><code>ahead</code><br>required</td>", // of Place, which Joined refers to
		"<td><code>token</code><br>required</td>", // required by Joined alone
		"<td><code>notify.emailMasked</code>",     // of Statement, in Place
		"&#34;roomId&#34;: &#34;sale&#34;",        // the example of the request
		"<p>Example: In line</p>",                 // and one of several of the answer
	} {
		if !strings.Contains(join, want) {
			t.Errorf("join has no %s", want)
		}
	}
	_, status, _ := strings.Cut(page, `<section id="status">`)
	status, _, _ = strings.Cut(status, "</section>")
	if place, gone := strings.Index(status, "<code>position</code>"), strings.Index(status, "<code>expired</code>"); place < 0 || gone < place || !strings.Contains(status[place:gone], "<p>or</p>") {
		t.Error("status does not show both of its shapes")
	}
	if strings.Contains(page, "$ref") {
		t.Error("a reference is shown rather than followed")
	}
}

// Every anchor is there once, so that an address leads to one place.
func TestAnchorsOfTheReferenceAreUnique(t *testing.T) {
	var ids []string
	for _, m := range regexp.MustCompile(`\sid="([^"]+)"`).FindAllStringSubmatch(referencePage(t), -1) {
		if slices.Contains(ids, m[1]) {
			t.Errorf("the anchor %s is there twice", m[1])
		}
		ids = append(ids, m[1])
	}
	if len(ids) < 150 {
		t.Errorf("only %d anchors were found", len(ids))
	}
}

// The page needs no script, and the guides lead to it.
func TestTheReferenceIsAPageLikeTheGuides(t *testing.T) {
	if strings.Contains(referencePage(t), "<script") {
		t.Error("the page has a script")
	}
	index, _ := docs.Guide("")
	body := string(index[strings.Index(string(index), "<main"):])
	if !strings.Contains(string(index), `<a href="/docs/reference">Reference</a>`) || !strings.Contains(body, `href="/docs/reference"`) {
		t.Error("the first guide does not lead to the reference, in its header and its text")
	}
}

func referencePage(t *testing.T) string {
	t.Helper()
	page, ok := docs.Guide("reference")
	if !ok {
		t.Fatal("there is no reference")
	}
	return string(page)
}
