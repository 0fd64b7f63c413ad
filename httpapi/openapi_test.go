package httpapi

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"qm/access"
	"qm/access/token"
	"qm/engine"
	"qm/engine/room"
)

func TestTheDocumentNamesEveryRouteAndNoOther(t *testing.T) {
	inMemory(t, Options{Demo: true}, func(w *world) {
		c := theContract(t)
		named := map[string]bool{}
		for _, r := range w.server.routes() {
			if r.admin || r.role != access.NoRole || r.write != access.NoRole || apart[r.name] {
				continue
			}
			a := address{route: r}
			for _, path := range r.paths {
				if rest, ok := strings.CutPrefix(path, "api:"); ok {
					path = "/api/v1/" + rest
				}
				key := c.find(path)
				if key == "" {
					t.Errorf("the document does not name %s", path)
					continue
				}
				named[key] = true
				var methods []string
				for method := range c.doc.Paths.Value(key).Operations() {
					methods = append(methods, method)
				}
				slices.Sort(methods)
				if want := slices.Sorted(slices.Values(a.methods())); !slices.Equal(methods, want) {
					t.Errorf("%s takes %q, and the document says %q", path, want, methods)
				}
				if path == "/events" || strings.HasPrefix(path, "/__qm/") {
					alias := strings.TrimSuffix(path, "{id}")
					if about := c.doc.Paths.Value(key).Get.Description; !strings.Contains(about, "`"+alias+"`") {
						t.Errorf("the document does not say that %s is served, too", alias)
					}
				}
			}
		}
		for path := range c.doc.Paths.Map() {
			if !named[path] {
				t.Errorf("the document names %s, which nothing serves", path)
			}
		}
		for _, server := range c.doc.Servers {
			if server.URL != "/api/v1" && server.URL != "/api" {
				t.Errorf("the document names the server %s", server.URL)
			}
		}
	})
}

func TestTheDocumentsCodesAreTheTables(t *testing.T) {
	c := theContract(t)
	refusals := 0
	for path, item := range c.doc.Paths.Map() {
		for method, o := range item.Operations() {
			if o.Description == "" || o.Summary == "" || o.OperationID == "" || o.Security == nil {
				t.Errorf("%s %s is not described", method, path)
			}
			for status, r := range o.Responses.Map() {
				for _, code := range codesOf(r.Value) {
					refusals++
					if v, ok := Codes[code]; !ok || strconv.Itoa(v.Status) != status {
						t.Errorf("%s %s answers %s with %s, which is %d", method, path, status, code, v.Status)
					}
				}
			}
		}
	}
	if refusals < 100 {
		t.Errorf("only %d refusals are documented", refusals)
	}
}

// ask is one request to the server.
type ask struct {
	method, path, query, body string
	header                    http.Header
	fails                     error // what reading the body comes to
	late                      bool  // on a connection beyond the ceiling
}

// failing is a body that cannot be read.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
func (failing) Close() error               { return nil }

// flushable is a recorder to which a stream can be written.
type flushable struct{ *httptest.ResponseRecorder }

func (flushable) SetReadDeadline(time.Time) error  { return nil }
func (flushable) SetWriteDeadline(time.Time) error { return nil }

// provoker asks, and notes which of the document's promises it has seen kept.
type provoker struct {
	*testing.T
	c    *contract
	open map[string]bool // promises not seen yet
	from int             // a fresh address for each request that names none
}

func (p *provoker) ask(w *world, q ask) *httptest.ResponseRecorder {
	p.Helper()
	var in io.Reader = http.NoBody
	switch {
	case q.fails != nil:
		in = failing{q.fails}
	case q.body != "":
		in = strings.NewReader(q.body)
	}
	r := httptest.NewRequest(q.method, q.path, in)
	r.URL.RawQuery, r.RemoteAddr = q.query, "192.0.2.1:4711"
	if q.header != nil {
		r.Header = q.header.Clone()
	}
	if r.Header.Get("X-Forwarded-For") == "" {
		p.from++
		r.Header.Set("X-Forwarded-For", addrOf(p.from))
	}
	if q.late {
		r = r.WithContext(context.WithValue(r.Context(), connectionKey{}, &connection{late: true}))
	}
	if strings.HasSuffix(q.path, "/events") {
		ctx, stop := context.WithTimeout(r.Context(), 2*time.Second) // the page goes
		defer stop()
		r = r.WithContext(ctx)
	}
	rec := flushable{httptest.NewRecorder()}
	w.server.ServeHTTP(rec, r)
	what := q.method + " " + q.path + "?" + clip(q.query)
	path := p.c.answered(p.T, what, q.method, q.path, rec.ResponseRecorder)
	for _, method := range []string{q.method, "GET", "POST", "DELETE"} {
		// A method that an address does not take is an answer of those that it takes.
		claim := method + " " + path + " " + strconv.Itoa(rec.Code)
		delete(p.open, claim)
		if code, ok := members(rec.Body.String())["code"].(string); ok {
			delete(p.open, claim+" "+code)
		}
		if rec.Code != http.StatusMethodNotAllowed {
			break
		}
	}
	return rec.ResponseRecorder
}

// want is ask for an answer of a certain status.
func (p *provoker) want(w *world, status int, q ask) map[string]any {
	p.Helper()
	rec := p.ask(w, q)
	if rec.Code != status {
		p.Errorf("%s %s?%s answers %d %s, not %d", q.method, q.path, q.query, rec.Code, clip(rec.Body.String()), status)
	}
	return members(rec.Body.String())
}

// addressOf is an address of a documented path.
func addressOf(path string, item *openapi3.PathItem) string {
	name := map[string]string{"js": "snippet", "tgz": "go", "zip": "wordpress"}[path[strings.LastIndexByte(path, '.')+1:]]
	path = strings.NewReplacer("{roomId}", "rm1", "{name}", name, "{file}", "qm.js").Replace(path)
	if bare(item) {
		return path
	}
	return "/api/v1" + path
}

// TestEveryDocumentedAnswerIsSeen provokes each status of each route, and each code, and checks the answer against the document.
//
// Proves: errors, join, status
func TestEveryDocumentedAnswerIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := theContract(t)
		p := &provoker{T: t, c: c, open: c.claims()}
		p.everywhere()
		p.visitors()
		p.edge()
		p.installing()
		p.streams()
		p.mails()
		p.proxies()
		if len(p.open) > 0 {
			t.Errorf("the document promises what nothing answered: %q", slices.Sorted(maps.Keys(p.open)))
		}
	})
}

const bodyOfRm1 = `{"roomId":"rm1"}`

// everywhere provokes what means the same on every route.
func (p *provoker) everywhere() {
	w := newWorld(p.T, inProcess(p.T), Options{PublicURL: "https://queue.shop.example"})
	w.room("rm1", 60, `,"state":"paused"`)
	limited := newWorld(p.T, inProcess(p.T), Options{JoinLimitPerMin: 1, CheckLimitPerMin: 1, StatusLimitPerMin: 1})
	limited.room("rm1", 60, `,"state":"paused"`)
	crowded := newWorld(p.T, inProcess(p.T), Options{})
	crowded.server.ceiling.open.Store(crowded.server.ceiling.most + 1)
	stopped := &broken{Engine: w.engine, health: &engine.Health{}}
	failing := newWorld(p.T, inProcess(p.T), Options{Engine: stopped})
	signed := w.keys.SignVisitor(token.Visitor{Room: "rm1", Ticket: 1, Generation: 1, IssuedAt: time.Now().UnixMilli()})
	for path, item := range p.c.doc.Paths.Map() {
		address := addressOf(path, item)
		p.want(w, http.StatusMethodNotAllowed, ask{method: "PATCH", path: address})
		for method := range item.Operations() {
			query, body := "roomId=rm1", ""
			if method == "POST" {
				body = bodyOfRm1
			}
			if path == "/status" || path == "/events" {
				query += "&token=" + signed
			}
			p.ask(crowded, ask{method: method, path: address, query: query, body: body, late: true})
			here := http.Header{"X-Forwarded-For": {"203.0.113." + strconv.Itoa(len(p.open)%250)}}
			if path == "/events" || path == "/status" {
				p.ask(limited, ask{method: method, path: address, query: "token=x", header: here})
			}
			for range 2 {
				p.ask(limited, ask{method: method, path: address, query: "roomId=rm1&token=x", body: body, header: here})
			}
			for _, err := range []error{engine.ErrStorage, engine.ErrBusy, engine.ErrElsewhere, engine.ErrDamaged, errors.New("a fault of ours")} {
				stopped.view, stopped.join = err, err
				p.ask(failing, ask{method: method, path: address, query: query, body: body})
				p.ask(failing, ask{method: method, path: address, query: query, body: body, header: http.Header{"Cookie": {"qm_rm1=" + signed}}})
			}
			rec := p.ask(w, ask{method: method, path: address, query: "roomId=R&token=x", body: `{"roomId":"R"}`})
			if tag := rec.Header().Get("Etag"); tag != "" {
				p.want(w, http.StatusNotModified, ask{method: method, path: address, header: http.Header{"If-None-Match": {tag}}})
			}
		}
	}
}

// visitors provokes what joins, polls and pages lead to.
func (p *provoker) visitors() {
	w := newWorld(p.T, inProcess(p.T), Options{PublicURL: "https://queue.shop.example"})
	w.room("rm1", 60, `,"state":"paused"`)
	w.room("one", 60, `,"state":"paused","queueMaxPerIp":1`)
	w.room("drop", 60, `,"preQueueMaxPerIp":1,"opensAt":`+ms(time.Now().Add(10*time.Second)))
	w.room("open", 60, `,"state":"bypass"`)
	w.room("gone", 60, "")

	const join, leave, status = "/api/v1/join", "/api/v1/leave", "/api/v1/status"
	for _, path := range []string{join, leave} {
		for _, body := range []string{`{"roomId"`, `{"roomId":"rm1","roomId":"rm1"}`, `{"roomId":5}`, `{"roomId":"rm1","token":5}`} {
			p.want(w, 400, ask{method: "POST", path: path, body: body})
		}
		p.want(w, 400, ask{method: "POST", path: path, fails: io.ErrUnexpectedEOF})
		p.want(w, 408, ask{method: "POST", path: path, fails: os.ErrDeadlineExceeded})
		p.want(w, 413, ask{method: "POST", path: path, body: `{"roomId":"` + strings.Repeat("x", visitorBody) + `"}`})
		p.want(w, 404, ask{method: "POST", path: path, body: `{"roomId":"nowhere"}`})
	}
	here := http.Header{"X-Forwarded-For": {"198.51.100.77"}}
	p.want(w, 200, ask{method: "POST", path: join, body: `{"roomId":"one"}`, header: here})
	p.want(w, 429, ask{method: "POST", path: join, body: `{"roomId":"one"}`, header: here})
	p.want(w, 429, ask{method: "GET", path: "/w/one", header: here})
	p.want(w, 200, ask{method: "POST", path: join, body: `{"roomId":"drop"}`, header: here})
	p.want(w, 429, ask{method: "POST", path: join, body: `{"roomId":"drop"}`, header: here})
	p.want(w, 200, ask{method: "POST", path: join, body: `{"roomId":"open"}`})
	p.ask(w, ask{method: "GET", path: "/w/rm1"})
	p.want(w, 302, ask{method: "GET", path: "/w/open"})
	p.want(w, 404, ask{method: "GET", path: "/w/nowhere"})

	// Whatever the engine refuses.
	refusing := &broken{Engine: w.engine}
	r := newWorld(p.T, inProcess(p.T), Options{Engine: refusing})
	for _, err := range []error{room.ErrRoomIdle, room.ErrPrequeueFull, room.ErrRoomFull, room.Refusal("blocked_by_protection")} {
		refusing.join = err
		p.ask(r, ask{method: "POST", path: join, body: bodyOfRm1})
		p.ask(r, ask{method: "GET", path: "/w/rm1"})
	}

	b := w.browser("198.51.100.1")
	b.join("rm1")
	p.want(w, 200, ask{method: "GET", path: status, query: "token=" + b.jar["qm_rm1"]})
	p.want(w, 401, ask{method: "GET", path: status, query: "token=x"})
	p.want(w, 400, ask{method: "GET", path: status, query: "roomId=R"})
	p.want(w, 400, ask{method: "GET", path: status, query: "token=x&token=y"})
	p.want(w, 400, ask{method: "GET", path: "/api/v1/events", query: "token=x&token=y"})
	lost := w.browser("198.51.100.2")
	lost.join("gone")
	w.operator().do("DELETE", "/api/v1/admin/rooms/gone", "").want(p.T, 200, "")
	for _, path := range []string{status, "/api/v1/events"} {
		p.want(w, 404, ask{method: "GET", path: path, query: "token=" + lost.jar["qm_gone"]})
	}
	w.room("gone", 60, "") // made anew: the token is one of the room before
	for _, path := range []string{status, "/api/v1/events", "/events"} {
		p.want(w, 200, ask{method: "GET", path: path, query: "token=" + lost.jar["qm_gone"]})
	}
	own := http.Header{"Cookie": {"qm_rm1=" + b.jar["qm_rm1"] + "; qms_rm1=" + b.jar["qms_rm1"]}, "Origin": {"https://shop.example"}}
	p.want(w, 200, ask{method: "POST", path: leave, query: "roomId=rm1", body: bodyOfRm1, header: own})

	for _, id := range []string{"rm1", "drop", "open"} {
		p.want(w, 200, ask{method: "GET", path: "/api/v1/rooms/" + id})
	}
	p.want(w, 400, ask{method: "GET", path: "/api/v1/rooms/R"})
	p.want(w, 404, ask{method: "GET", path: "/api/v1/rooms/nowhere"})
	time.Sleep(15 * time.Second)
	if said := p.want(w, 200, ask{method: "GET", path: "/api/v1/rooms/drop"}); said["seed"] == nil {
		p.Errorf("nothing was drawn: %v", said)
	}
	p.want(w, 200, ask{method: "GET", path: "/w/drop/draw"})
	p.want(w, 404, ask{method: "GET", path: "/w/nowhere/draw"})
	p.ask(w, ask{method: "GET", path: "/assets/nothing.css"})
	page := p.ask(w, ask{method: "GET", path: "/w/rm1"}).Body.String()
	for part := range strings.SplitSeq(page, `"`) {
		if strings.HasPrefix(part, "/assets/") {
			p.want(w, 200, ask{method: "GET", path: part})
			p.want(w, 200, ask{method: "GET", path: "/__qm" + part})
		}
	}
}

// edge provokes what checks and rules lead to.
func (p *provoker) edge() {
	w := newWorld(p.T, inProcess(p.T), Options{PublicURL: "https://queue.shop.example"})
	w.room("rm1", 60, `,"urlPatterns":["/sale*","!/sale/terms"]`)
	w.room("idle", 60, "")
	const check = "/api/v1/check"
	key := http.Header{"Authorization": {"Bearer " + testPublicKey}}
	for query, want := range map[string]int{
		"": 400, "roomId=R": 400, "roomId=rm1&roomId=rm2": 400, "roomId=nowhere": 200, "roomId=rm1&url=https://shop.example/sale/terms": 200,
		"roomId=rm1&url=https://shop.example/sale&targeting=1": 200, "roomId=rm1&token=x": 200, "roomId=rm1&ip=192.0.2.9": 401, "roomId=rm1&ip=192.0.2.9&key=x": 401,
	} {
		p.want(w, want, ask{method: "GET", path: check, query: query})
	}
	p.want(w, 400, ask{method: "GET", path: check, query: "roomId=rm1&ip=x", header: key})
	p.want(w, 200, ask{method: "GET", path: check, query: "roomId=rm1&ip=192.0.2.9", header: key})
	for range 11 {
		p.ask(w, ask{method: "GET", path: check, query: "roomId=rm1&ip=192.0.2.9", header: http.Header{"Authorization": {"Bearer x"}, "X-Forwarded-For": {"198.51.100.66"}}})
		p.ask(w, ask{method: "GET", path: "/api/v1/verify", query: "roomId=rm1", header: http.Header{"Authorization": {"Bearer x"}, "X-Forwarded-For": {"198.51.100.67"}}})
	}
	p.want(w, 429, ask{method: "GET", path: "/api/v1/verify.gif", query: "roomId=rm1", header: http.Header{"Authorization": {"Bearer x"}, "X-Forwarded-For": {"198.51.100.67"}}})

	// The whole way in.
	b := w.browser("198.51.100.1")
	b.join("rm1")
	w.operator().post("/api/v1/admin/rooms/rm1/flush", `{"count":1}`).want(p.T, 200, "")
	own := http.Header{"Cookie": {"qm_rm1=" + b.jar["qm_rm1"] + "; qms_rm1=" + b.jar["qms_rm1"]}}
	told := p.want(w, 200, ask{method: "GET", path: "/api/v1/status", query: "roomId=rm1", header: own})
	_, code, _ := strings.Cut(told["redirectUrl"].(string), "qm_code=")
	code, _, _ = strings.Cut(code, "#")
	in := p.want(w, 200, ask{method: "GET", path: check, query: "roomId=rm1&url=https://shop.example/sale&code=" + code})
	if in["sess"] == nil || in["token"] == nil {
		p.Errorf("the code opens nothing: %v", in)
	}
	p.want(w, 200, ask{method: "GET", path: check, query: "roomId=rm1", header: http.Header{"X-Qm-Session": {in["sess"].(string)}}})
	w.operator().post("/api/v1/admin/rooms/rm1/state", `{"state":"bypass"}`).want(p.T, 200, "")
	p.want(w, 200, ask{method: "GET", path: check, query: "roomId=rm1"})

	for query, want := range map[string]int{"": 400, "roomId=rm1&roomId=rm2": 400, "roomId=nowhere": 404, "roomId=rm1": 200, "roomId=idle": 200} {
		p.want(w, want, ask{method: "GET", path: "/api/v1/targeting", query: query})
	}
	rules := p.ask(w, ask{method: "GET", path: "/api/v1/targeting", query: "roomId=rm1"})
	p.want(w, 304, ask{method: "GET", path: "/api/v1/targeting", query: "roomId=rm1", header: http.Header{"If-None-Match": {rules.Header().Get("Etag")}}})
}

// installing provokes what installers and balancers meet.
func (p *provoker) installing() {
	w := newWorld(p.T, inProcess(p.T), Options{PublicURL: "https://queue.shop.example", Stores: "memory+memory"})
	w.room("rm1", 60, "")
	for _, path := range []string{"/api/v1/verify", "/api/v1/verify.gif"} {
		p.want(w, 400, ask{method: "GET", path: path})
		p.want(w, 400, ask{method: "GET", path: path, query: "roomId=rm1&url=a&url=b"})
		p.want(w, 200, ask{method: "GET", path: path, query: "roomId=rm1&connector=go&version=0.0.1"})
		p.want(w, 200, ask{method: "GET", path: path, query: "roomId=rm1", header: http.Header{"Authorization": {"Bearer " + testPublicKey}}})
	}
	p.want(w, 424, ask{method: "GET", path: "/api/v1/verify.gif", query: "roomId=nowhere"})
	p.want(w, 200, ask{method: "GET", path: "/api/v1/connectors"})
	p.want(w, 400, ask{method: "GET", path: "/api/v1/connectors", query: "roomId=rm1&roomId=rm2"})
	p.want(w, 400, ask{method: "GET", path: "/api/v1/connectors", query: "roomId=R"})
	p.want(w, 200, ask{method: "GET", path: "/api/v1/connectors/wordpress/update"})
	p.want(w, 200, ask{method: "GET", path: vectorsPath})
	for _, c := range handouts() {
		file := p.ask(w, ask{method: "GET", path: c.path})
		p.want(w, 304, ask{method: "GET", path: c.path, header: http.Header{"If-None-Match": {file.Header().Get("Etag")}}})
	}
	for _, kind := range []string{"js", "tgz", "zip"} {
		p.want(w, 404, ask{method: "GET", path: "/connectors/nothing/latest." + kind})
	}
	p.want(w, 200, ask{method: "GET", path: "/snippet/qm.js"})
	p.want(w, 404, ask{method: "GET", path: "/snippet/other.js"})
	p.want(w, 200, ask{method: "GET", path: "/api/v1/openapi.json"})

	sick := newWorld(p.T, inProcess(p.T), Options{Engine: &broken{Engine: w.engine, health: &engine.Health{JournalErr: "gone"}}, Stores: "memory+memory"})
	for path, want := range map[string][2]int{"/api/v1/health": {200, 503}, "/healthz": {200, 503}, "/api/v1/version": {200, 200}} {
		p.want(w, want[0], ask{method: "GET", path: path})
		p.want(sick, want[1], ask{method: "GET", path: path})
	}
}

// streams provokes what a server says that has as many streams as it can serve, or stops.
func (p *provoker) streams() {
	w := newWorld(p.T, inProcess(p.T), Options{SSEMaxTotal: 2, SSEPerIP: 1})
	w.room("rm1", 60, `,"state":"paused"`)
	b := w.browser("198.51.100.1")
	b.join("rm1")
	q := ask{method: "GET", path: "/api/v1/events", query: "token=" + b.jar["qm_rm1"], header: http.Header{"X-Forwarded-For": {"198.51.100.1"}}}
	for i, code := range []string{"sse_per_ip_limit", "sse_capacity"} {
		a, _ := access.ParseAddr("198.51.100." + itoa(i+1))
		if err := w.server.streams.enter(access.NetworkOf(a)); err != nil {
			p.Fatal(err)
		}
		defer w.server.streams.leave(access.NetworkOf(a))
		if said := p.ask(w, q); members(said.Body.String())["code"] != code {
			p.Errorf("with %d streams: %s", i+1, said.Body)
		}
	}
	w.server.streams.stop()
	p.want(w, 503, q)
}
