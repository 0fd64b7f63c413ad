package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"qm/engine"
	"qm/notify"
)

// registered is turn notifications without mails: what is held against each place, or the error that everything comes to.
type registered struct {
	told map[notify.Place]notify.Statement
	err  error
}

func (r *registered) Register(_ context.Context, p notify.Place, _, address, _ string) (notify.Statement, error) {
	if r.err != nil {
		return notify.Statement{}, r.err
	}
	r.told[p] = notify.Statement{EmailMasked: address[:1] + "•", RequestedAt: time.Now(), Delivery: "pending"}
	return r.told[p], nil
}

func (r *registered) Withdraw(_ context.Context, p notify.Place) (bool, error) {
	_, had := r.told[p]
	delete(r.told, p)
	return had, r.err
}

func (r *registered) Told(_ context.Context, p notify.Place) (*notify.Statement, error) {
	if s, ok := r.told[p]; ok {
		return &s, r.err
	}
	return nil, r.err
}

func (r *registered) Carry(context.Context, notify.Place, notify.Place, string) error { return r.err }
func (r *registered) Discard(context.Context, notify.Place, string) error             { return r.err }
func (r *registered) Warning() string                                                 { return "" }

// mails provokes what turn notifications lead to.
func (p *provoker) mails() {
	const path = "/api/v1/notify"
	silent := newWorld(p.T, inProcess(p.T), Options{})
	p.want(silent, 400, ask{method: "POST", path: path, body: `{}`})
	turns := &registered{told: map[notify.Place]notify.Statement{}}
	w := newWorld(p.T, inProcess(p.T), Options{Turns: turns, StatusLimitPerMin: 3})
	w.room("rm1", 60, `,"state":"paused"`)
	w.room("gone", 60, `,"state":"paused"`)
	b, lost := w.browser("198.51.100.1"), w.browser("198.51.100.2")
	b.join("rm1")
	lost.join("gone")
	cookies := func(b *browser, id string) http.Header {
		return http.Header{"Cookie": {"qm_" + id + "=" + b.jar["qm_"+id] + "; qms_" + id + "=" + b.jar["qms_"+id]}}
	}
	own := cookies(b, "rm1")
	const given = `{"roomId":"rm1","email":"ann@example.com"}`

	for _, body := range []string{`{"roomId"`, `{"email":"a","email":"b"}`, `{"roomId":"R"}`, `{"token":5}`, `{"roomId":"rm1","email":"x"}`} {
		p.want(w, 400, ask{method: "POST", path: path, body: body, header: own})
	}
	p.want(w, 400, ask{method: "POST", path: path, fails: io.ErrUnexpectedEOF})
	p.want(w, 408, ask{method: "POST", path: path, fails: os.ErrDeadlineExceeded})
	p.want(w, 413, ask{method: "POST", path: path, body: `{"token":"` + strings.Repeat("x", visitorBody) + `"}`})
	p.want(w, 401, ask{method: "POST", path: path, body: given})
	p.want(w, 403, ask{method: "POST", path: path, body: `{"token":"` + b.jar["qm_rm1"] + `","email":"ann@example.com"}`})
	p.want(w, 200, ask{method: "POST", path: path, body: given, header: own})
	p.want(w, 200, ask{method: "POST", path: "/api/v1/join", body: bodyOfRm1, header: own})
	p.want(w, 200, ask{method: "POST", path: path, body: `{}`, header: own})
	for _, turns.err = range []error{notify.ErrServed, notify.ErrChanges, notify.ErrAddress, errors.New("the table is out of reach")} {
		p.ask(w, ask{method: "POST", path: path, body: given, header: own})
	}
	place, err := w.keys.VerifyVisitor(b.jar["qm_rm1"], "rm1", time.Now())
	if err != nil {
		p.Fatal(err)
	}
	link := "t=" + w.keys.SignWithdraw(place)
	p.want(w, 503, ask{method: "POST", path: notify.WithdrawPath, query: link})
	turns.err = nil
	w.operator().do("DELETE", "/api/v1/admin/rooms/gone", "").want(p.T, 200, "")
	p.want(w, 404, ask{method: "POST", path: path, body: `{}`, header: cookies(lost, "gone")})
	w.room("gone", 60, "")
	p.want(w, 409, ask{method: "POST", path: path, body: `{}`, header: cookies(lost, "gone")})
	// A newcomer's join, where nothing is asked for yet.
	p.want(w, 200, ask{method: "POST", path: "/api/v1/join", body: bodyOfRm1})

	here := http.Header{"X-Forwarded-For": {"198.51.100.9"}}
	for range notifyLimitPerMin + 1 {
		p.ask(w, ask{method: "POST", path: path, body: `{}`, header: here})
	}
	for _, page := range []string{"/notify/box", notify.WithdrawPath} {
		p.want(w, 200, ask{method: "GET", path: page, query: link})
		p.want(silent, 404, ask{method: "GET", path: page, query: link})
		for range 4 {
			p.ask(w, ask{method: "GET", path: page, query: link, header: http.Header{"X-Forwarded-For": {"198.51.100.1" + itoa(len(page))}}})
		}
	}
	for _, method := range []string{"GET", "POST"} {
		p.want(w, 400, ask{method: method, path: notify.WithdrawPath, query: "t=x"})
	}
	p.want(w, 200, ask{method: "POST", path: notify.WithdrawPath, query: link})
	p.want(silent, 404, ask{method: "POST", path: notify.WithdrawPath, query: link})
	for range 4 {
		p.ask(w, ask{method: "POST", path: notify.WithdrawPath, query: link, header: http.Header{"X-Forwarded-For": {"198.51.100.13"}}})
	}
	// What is asked of a room that is out of reach.
	stopped := &broken{Engine: w.engine}
	failing := newWorld(p.T, inProcess(p.T), Options{Engine: stopped, Turns: turns})
	for _, err := range []error{engine.ErrStorage, engine.ErrBusy, engine.ErrElsewhere, engine.ErrDamaged, errors.New("a fault of ours")} {
		stopped.view = err
		p.ask(failing, ask{method: "POST", path: path, body: given, header: own})
	}
}

// proxies provokes what a proxy is told that asks on behalf of a visitor.
func (p *provoker) proxies() {
	const path = "/api/v1/check/forward"
	w := newWorld(p.T, inProcess(p.T), Options{PublicURL: "https://queue.shop.example"})
	w.room("rm1", 60, "")
	w.room("open", 60, `,"state":"bypass"`)
	of := func(method, target string, more ...string) http.Header {
		h := http.Header{"X-Forwarded-Method": {method}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"shop.example"}, "X-Forwarded-Uri": {target}, "Accept": {"text/html"}}
		for i := 0; i < len(more); i += 2 {
			h.Set(more[i], more[i+1])
		}
		return h
	}
	for query, want := range map[string]int{
		"": 400, "roomId=rm1&roomId=open": 400, "roomId=rm1&fail=x": 400, "roomId=rm1&headers=2": 400, "roomId=open": 204, "roomId=rm1": 302, "roomId=rm1&headers=1": 401,
	} {
		p.want(w, want, ask{method: "GET", path: path, query: query, header: of("GET", "/sale")})
	}
	p.want(w, 400, ask{method: "GET", path: path, query: "roomId=rm1"})
	p.want(w, 400, ask{method: "GET", path: path, query: "roomId=rm1&ip=x", header: of("GET", "/", "Authorization", "Bearer "+testPublicKey)})
	p.want(w, 303, ask{method: "GET", path: path, query: "roomId=rm1", header: of("POST", "/sale")})
	p.want(w, 307, ask{method: "GET", path: path, query: "roomId=open", header: of("PUT", "/sale?qm_code=x")})
	p.want(w, 429, ask{method: "GET", path: path, query: "roomId=rm1", header: of("GET", "/api", "Accept", "application/json")})
	for range 10 {
		p.want(w, 403, ask{method: "GET", path: path, query: "roomId=rm1&ip=192.0.2.9", header: of("GET", "/", "X-Forwarded-For", "198.51.100.66", "Authorization", "Bearer x")})
	}
	p.want(w, 429, ask{method: "GET", path: path, query: "roomId=rm1&ip=192.0.2.9", header: of("GET", "/", "X-Forwarded-For", "198.51.100.66", "Authorization", "Bearer x")})

	failing := newWorld(p.T, inProcess(p.T), Options{Engine: &broken{Engine: w.engine, view: engine.ErrStorage}})
	p.want(failing, 503, ask{method: "GET", path: path, query: "roomId=rm1", header: of("GET", "/sale")})
	p.want(failing, 503, ask{method: "GET", path: path, query: "roomId=rm1", header: of("GET", "/api", "Accept", "application/json")})
}
