package httpapi

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"qm/engine"
)

// bareFrom is a GET straight from an address.
func (w *world) bareFrom(addr, path, query string, header http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", path, nil)
	r.URL.RawQuery, r.RemoteAddr, r.Header = query, addr, header
	rec := httptest.NewRecorder()
	w.server.ServeHTTP(rec, r)
	return rec
}

// asked is a proxy's question about a page of the shop.
func asked(more ...string) http.Header {
	h := http.Header{
		"X-Forwarded-Method": {"GET"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"shop.example"}, "X-Forwarded-Uri": {"/p?a=1"},
		"X-Forwarded-For": {"198.51.100.7"}, "Accept": {"text/html"},
	}
	for i := 0; i < len(more); i += 2 {
		h[more[i]] = []string{more[i+1]}
		if more[i+1] == "" {
			delete(h, more[i])
		}
	}
	return h
}

// TestForwardedHeadersNeedTrust: what a proxy says is believed with the Public API key, or from a trusted address, and never else.
func TestForwardedHeadersNeedTrust(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 0, "")
		stranger := func(query string, h http.Header) answer {
			rec := w.bareFrom("203.0.113.9:4711", "/api/v1/check/forward", query, h)
			return answer{status: rec.Code, header: rec.Header(), body: rec.Body.String(), json: members(rec.Body.String())}
		}
		key := "Bearer " + testPublicKey
		stranger("roomId=rm1", asked()).want(t, 403, "forward_untrusted")
		stranger("roomId=rm1&ip=198.51.100.7", asked()).want(t, 403, "forward_untrusted")
		stranger("roomId=rm1&ip=198.51.100.7", asked("Authorization", "Bearer wrong")).want(t, 403, "forward_untrusted")
		stranger("roomId=rm1&ip=198.51.100.7&key="+testPublicKey, asked()).want(t, 403, "forward_untrusted")
		stranger("roomId=rm1", asked("Authorization", key)).want(t, 400, "invalid_ip")
		stranger("roomId=rm1&ip=1.2.3.4,5.6.7.8", asked("Authorization", key)).want(t, 400, "invalid_ip")
		stranger("roomId=rm1&ip=198.51.100.7", asked("Authorization", key)).want(t, 302, "")
		// A trusted proxy needs no key, and the visitor's own Authorization is none of ours.
		trusted := func(query string, h http.Header) answer {
			rec := w.bare("GET", "/api/v1/check/forward", query, "", h)
			return answer{status: rec.Code, header: rec.Header(), body: rec.Body.String(), json: members(rec.Body.String())}
		}
		for range 30 { // nor does it count towards a lock-out
			trusted("roomId=rm1", asked("Authorization", "Basic dmlzaXRvcjpzaXRl")).want(t, 302, "")
		}
		trusted("roomId=rm1&ip=198.51.100.7", asked()).want(t, 403, "forward_untrusted")

		trusted("", asked()).want(t, 400, "invalid_room_id")
		trusted("roomId=rm1&roomId=rm2", asked()).want(t, 400, "duplicate_parameter")
		trusted("roomId=rm1&fail=maybe", asked()).want(t, 400, "invalid_parameter")
		trusted("roomId=rm1&headers=yes", asked()).want(t, 400, "invalid_parameter")
		for _, bad := range []string{"X-Forwarded-Method", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Uri"} {
			trusted("roomId=rm1", asked(bad, "")).want(t, 400, "invalid_forward")
			h := asked()
			h[bad] = append(h[bad], h[bad]...)
			trusted("roomId=rm1", h).want(t, 400, "invalid_forward")
		}
		for name, value := range map[string]string{"X-Forwarded-Proto": "ftp", "X-Forwarded-Host": "evil.example/@shop.example", "X-Forwarded-Uri": "https://evil.example/"} {
			trusted("roomId=rm1", asked(name, value)).want(t, 400, "invalid_forward")
		}

		a := trusted("roomId=rm1&headers=1", asked())
		if a.status != 401 || a.body != "" || a.header.Get("X-QM-Status") != "302" || !strings.HasSuffix(a.header.Get("X-QM-Location"), "/w/rm1?qm_return=https%3A%2F%2Fshop.example%2Fp%3Fa%3D1") ||
			a.header.Get("X-QM-Decision") != "queue; reason=no_token" || a.header.Get("Set-Cookie") != "" {
			t.Errorf("in headers: %d %v", a.status, a.header)
		}
		a = trusted("roomId=rm1&headers=1", asked("X-Forwarded-Method", "DELETE"))
		if a.status != 401 || a.header.Get("X-QM-Status") != "429" || members(a.header.Get("X-QM-Body"))["code"] != "queued" || a.header.Get("X-QM-Retry-After") == "" {
			t.Errorf("in headers: %d %v", a.status, a.header)
		}
		w.operator().post("/api/v1/admin/rooms/rm1/state", `{"state":"bypass"}`).want(t, 200, "")
		for _, query := range []string{"roomId=rm1", "roomId=rm1&headers=1"} {
			if a := trusted(query, asked()); a.status != 204 || a.header.Get("X-QM-Decision") != "pass; reason=bypass" {
				t.Errorf("bypass: %d %v", a.status, a.header)
			}
		}
		if a := trusted("roomId=nowhere", asked()); a.status != 204 || a.header.Get("X-QM-Decision") != "open; reason=no_room" {
			t.Errorf("an unknown room: %d %v", a.status, a.header)
		}
		if text := w.operator().get("/metrics").body; !strings.Contains(text, `qm_forward_decisions_total{decision="open"} 1`) || !strings.Contains(text, `qm_forward_decisions_total{decision="pass"} 2`) {
			t.Error("decisions are not counted")
		}
	})
}

// TestForwardedVisitorsCountForThemselves: one visitor who asks too often closes the site for nobody else.
func TestForwardedVisitorsCountForThemselves(t *testing.T) {
	inMemory(t, Options{CheckLimitPerMin: 5}, func(w *world) {
		w.room("rm1", 0, "")
		decision := func(addr, fail string) string {
			rec := w.bare("GET", "/api/v1/check/forward", "roomId=rm1&fail="+fail, "", asked("X-Forwarded-For", addr))
			return rec.Header().Get("X-QM-Decision")
		}
		said := ""
		for range 10 {
			said = decision("198.51.100.7", "closed")
		}
		if said != "closed; reason=status_429" {
			t.Errorf("the tenth question of a visitor: %q", said)
		}
		if said := decision("198.51.100.7", "open"); said != "open; reason=status_429" {
			t.Errorf("failing open: %q", said)
		}
		if said := decision("198.51.100.8", "closed"); said != "queue; reason=no_token" {
			t.Errorf("another visitor: %q", said)
		}
	})
}

// TestForwardWithoutStorage: a queue that cannot decide says so, with the page for people.
func TestForwardWithoutStorage(t *testing.T) {
	var log strings.Builder
	inMemory(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, func(w *world) {
		w.room("rm1", 0, "")
		b := &broken{Engine: w.server.o.Engine, view: engine.ErrStorage}
		w.server.o.Engine = b
		rec := w.bare("GET", "/api/v1/check/forward", "roomId=rm1", "", asked())
		if rec.Code != 503 || rec.Header().Get("X-QM-Decision") != "closed; reason=status_503" || !strings.Contains(rec.Body.String(), "<html") {
			t.Errorf("closed: %d %v %s", rec.Code, rec.Header(), rec.Body)
		}
		rec = w.bare("GET", "/api/v1/check/forward", "roomId=rm1&headers=1", "", asked())
		if rec.Code != 503 || rec.Header().Get("X-QM-Decision") != "closed; reason=status_503" {
			t.Errorf("closed, in headers: %d %v", rec.Code, rec.Header())
		}
		rec = w.bare("GET", "/api/v1/check/forward", "roomId=rm1&fail=open", "", asked())
		if rec.Code != 204 || rec.Header().Get("X-QM-Decision") != "open; reason=status_503" {
			t.Errorf("open: %d %v", rec.Code, rec.Header())
		}
		w.bare("GET", "/api/v1/check/forward", "roomId=rm1&fail=open", "", asked()) // the same second
		if n := strings.Count(log.String(), `msg="let a proxy serve a visitor undecided" room=rm1 reason=status_503`); n != 1 {
			t.Errorf("served undecided, logged %d times: %s", n, &log)
		}
	})
}
