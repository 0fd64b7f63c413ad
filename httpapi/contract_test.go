package httpapi

import (
	"context"
	"encoding/json"
	"maps"
	"mime"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"qm/docs"
)

// contract is docs/openapi.json, to which the running server is held.
type contract struct {
	doc *openapi3.T
	mu  sync.Mutex
	ok  map[string]bool // bodies that were found valid, by schema
}

var contractOnce = sync.OnceValues(func() (*contract, error) {
	var raw map[string]any
	if err := json.Unmarshal(docs.OpenAPI, &raw); err != nil {
		return nil, err
	}
	// Who reads the document is told to ignore what they do not know. The server itself may not say anything that is not in it.
	for _, s := range raw["components"].(map[string]any)["schemas"].(map[string]any) {
		if o := s.(map[string]any); o["properties"] != nil && o["$ref"] == nil {
			o["additionalProperties"] = false
		}
	}
	closed, err := json.Marshal(raw)
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(closed)
	if err != nil {
		return nil, err
	}
	return &contract{doc: doc, ok: map[string]bool{}}, doc.Validate(context.Background())
})

func theContract(t *testing.T) *contract {
	t.Helper()
	c, err := contractOnce()
	if err != nil {
		t.Fatalf("docs/openapi.json: %v", err)
	}
	return c
}

// bare reports a path without a version in its address.
func bare(item *openapi3.PathItem) bool { return len(item.Servers) > 0 }

// find is the path of the document that an address belongs to; "" for none.
func (c *contract) find(address string) string {
	versioned := false
	for _, prefix := range []string{"/api/v1/", "/api/"} {
		if rest, ok := strings.CutPrefix(address, prefix); ok {
			address, versioned = "/"+rest, true
			break
		}
	}
	if !versioned {
		switch { // the aliases, which the document names in words
		case address == "/events":
			versioned = true
		case strings.HasPrefix(address, "/__qm/assets/"):
			address = strings.TrimPrefix(address, "/__qm")
		}
	}
	best := ""
	for path, item := range c.doc.Paths.Map() {
		if bare(item) == !versioned && fits(path, address) && (best == "" || strings.Count(path, "{") < strings.Count(best, "{")) {
			best = path
		}
	}
	return best
}

// fits reports whether an address is one of a path with variables.
func fits(path, address string) bool {
	want, given := strings.Split(path, "/"), strings.Split(address, "/")
	return slices.EqualFunc(want, given, func(w, g string) bool { return w == g || strings.HasPrefix(w, "{") && g != "" })
}

// answered finds the description of an answer, and checks the answer against it.
func (c *contract) answered(t *testing.T, what, method, address string, rec *httptest.ResponseRecorder) (path string) {
	t.Helper()
	if path = c.find(address); path == "" {
		t.Errorf("%s: the document does not know %s", what, address)
		return ""
	}
	item := c.doc.Paths.Value(path)
	o := item.GetOperation(map[string]string{"HEAD": "GET"}[method])
	if method != "HEAD" {
		o = item.Operations()[method]
	}
	if method == "OPTIONS" {
		return path
	}
	if o == nil {
		for _, any := range item.Operations() {
			o = any // a method that the address does not take
		}
	}
	r := o.Responses.Status(rec.Code)
	if r == nil {
		t.Errorf("%s answers %d, which the document does not name: %s", what, rec.Code, clip(rec.Body.String()))
		return path
	}
	for name, h := range r.Value.Headers {
		if h.Value.Required && rec.Header().Get(name) == "" {
			t.Errorf("%s answers %d without %s", what, rec.Code, name)
		}
	}
	if method == "HEAD" {
		return path
	}
	body := rec.Body.Bytes()
	if len(r.Value.Content) == 0 {
		if len(body) > 0 {
			t.Errorf("%s answers %d with a body, which the document does not name: %s", what, rec.Code, clip(string(body)))
		}
		return path
	}
	kind, _, err := mime.ParseMediaType(rec.Header().Get("Content-Type"))
	media := r.Value.Content[kind]
	if err != nil || media == nil {
		t.Errorf("%s answers %d with %q: the document says %v", what, rec.Code, rec.Header().Get("Content-Type"), slices.Collect(maps.Keys(r.Value.Content)))
		return path
	}
	if kind != "application/json" {
		return path
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := path + " " + strconv.Itoa(rec.Code) + " " + string(body)
	if c.ok[key] {
		return path
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Errorf("%s answers broken JSON: %v", what, err)
		return path
	}
	if err := media.Schema.Value.VisitJSON(v, openapi3.EnableJSONSchema2020(), openapi3.MultiErrors()); err != nil {
		t.Errorf("%s answers %d %s, which is not what the document says: %v", what, rec.Code, clip(string(body)), err)
		return path
	}
	c.ok[key] = true
	return path
}

// codesOf are the codes that a documented answer may have.
func codesOf(r *openapi3.Response) (codes []string) {
	media := r.Content["application/json"]
	if media == nil {
		return nil
	}
	return enumOf(media.Schema.Value)
}

// enumOf are the codes that a schema allows.
func enumOf(s *openapi3.Schema) (codes []string) {
	if code := s.Properties["code"]; code != nil {
		for _, v := range code.Value.Enum {
			codes = append(codes, v.(string))
		}
	}
	for _, part := range slices.Concat(s.AllOf, s.OneOf) {
		codes = append(codes, enumOf(part.Value)...)
	}
	return codes
}

// claims are the answers that the document promises, as "method path status" and, where they have codes, each code.
func (c *contract) claims() map[string]bool {
	list := map[string]bool{}
	for path, item := range c.doc.Paths.Map() {
		for method, o := range item.Operations() {
			for status, r := range o.Responses.Map() {
				claim := method + " " + path + " " + status
				list[claim] = true
				for _, code := range codesOf(r.Value) {
					list[claim+" "+code] = true
				}
			}
		}
	}
	return list
}
