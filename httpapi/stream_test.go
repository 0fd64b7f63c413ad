package httpapi

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

// Pushes are paced by distance: who is near the front hears of each that leaves, who is far back of what matters there, and everybody
// at once of what the operator does.
func TestPushesArePacedByDistance(t *testing.T) {
	onNetwork(t, Options{}, func(t *testing.T, s *site) {
		s.room("rm1", 60, `,"state":"paused","queueMaxPerIp":null`)
		crowd := s.crowd("rm1", 100)
		near, far := s.stream("/events?roomId=rm1", crowd[20]), s.stream("/events?roomId=rm1", crowd[99])
		for _, st := range []*eventStream{near, far} {
			st.next()
			st.next() // the first beat: from here on there are whole seconds until the next
		}
		leave := func(b *browser) { b.post("/api/v1/leave", `{"roomId":"rm1"}`).want(t, 200, "") }
		hears := func(st *eventStream, position float64) time.Duration {
			t.Helper()
			from := time.Now()
			for {
				_, frame, ok := st.next()
				if !ok {
					t.Fatal("the stream has ended")
				}
				if frame["position"] == position {
					return time.Since(from)
				}
			}
		}
		leave(crowd[0])
		if after := hears(near, 20); after > 2*roundEvery {
			t.Errorf("who has 20 ahead hears of one that leaves %v later", after)
		}
		for _, b := range crowd[1:6] { // a twentieth of what is ahead of the other
			leave(b)
		}
		if after := hears(far, 94); after > 2*roundEvery {
			t.Errorf("who has 99 ahead hears of the sixth that leaves %v later", after)
		}
		leave(crowd[6])
		if after := hears(far, 93); after < 2*roundEvery || after > beatLatest+2*roundEvery {
			t.Errorf("who has 93 ahead hears of one that leaves %v later, and not with the next beat", after)
		}
		changed := time.Now()
		s.operator().post("/api/v1/admin/rooms/rm1/state", `{"state":"active"}`).want(t, 200, "")
		for _, st := range []*eventStream{near, far} {
			for {
				_, frame, ok := st.next()
				if !ok {
					t.Fatal("the stream has ended")
				}
				if frame["state"] == "active" {
					break
				}
			}
		}
		if after := time.Since(changed); after > 2*roundEvery {
			t.Errorf("the operator's change takes %v", after)
		}
	})
}

// miser is a page that takes so many bytes a push.
type miser struct {
	takes int
	got   bytes.Buffer
}

func (m *miser) push(b []byte) (int, error) {
	n := min(m.takes, len(b))
	m.got.Write(b[:n])
	return n, nil
}
func (m *miser) gone([]byte) bool { return false }
func (m *miser) close()           {}

// A frame that did not fit goes on where it stopped, whatever happened meanwhile; who takes nothing for too long is cut.
func TestFramesAreNeverTorn(t *testing.T) {
	m := &miser{takes: 7}
	st := &stream{wire: m}
	w := &writer{event: appendEvent(nil, "status", []byte(`{"position":12}`))}
	if !w.say(st, false) || st.left != len(w.event)-7 {
		t.Fatalf("%d left", st.left)
	}
	for at := time.Second; st.left > 0; at += time.Second {
		if !st.flush(at) {
			t.Fatal("cut while it reads")
		}
	}
	if m.got.String() != string(w.event) {
		t.Errorf("read %q", m.got.String())
	}
	m.takes, w.at = 0, time.Minute
	if !w.say(st, true) || !st.flush(time.Minute+writePatient-1) || st.flush(time.Minute+writePatient) {
		t.Error("patience is not what it says")
	}
}

// A frame that streams share is not written over by what one of them hears next.
func TestSharedFramesStayWhole(t *testing.T) {
	one, two := &stream{wire: &miser{takes: 1000}}, &stream{wire: &miser{takes: 1000}}
	w := &writer{event: []byte("event: status\ndata: {\"preQueued\":true}\n\n"), common: true}
	w.say(one, false)
	w.say(two, false)
	shared := string(w.event)
	w.event, w.common = []byte("event: status\ndata: {\"position\":1}\n\n"), false
	w.say(one, false)
	if string(two.said) != shared || string(one.said) != string(w.event) {
		t.Errorf("%q and %q", one.said, two.said)
	}
}

// Descriptors are the process's own to close: streams that come and go must not take others' along.
func TestStreamsThatComeAndGoLeaveOthersAlone(t *testing.T) {
	t.Parallel()
	p := onSockets(t, Options{SSEPerIP: 10_000})
	p.room("rm1", 60, `,"state":"paused"`)
	a := p.browser("198.51.100.1")
	a.join("rm1")
	steady := make([]*listener, 100)
	for i := range steady {
		steady[i] = p.listen(t, p.addr, "/events", "1.1", a, "")
		steady[i].es.next()
	}
	var coming sync.WaitGroup
	for range 8 {
		coming.Go(func() {
			for range 150 {
				l := p.listen(t, p.addr, "/events", "1.1", a, "")
				if rand.IntN(2) == 0 {
					l.es.next()
				}
				_ = l.conn.Close()
			}
		})
	}
	coming.Wait()
	p.streamsBecome(len(steady))
	p.operator().post("/api/v1/admin/rooms/rm1/state", `{"state":"active"}`).want(t, 200, "")
	for i, l := range steady {
		for {
			event, frame, ok := l.es.next()
			if !ok || event != "status" {
				t.Fatalf("stream %d: %q %v", i, event, frame)
			}
			if frame["state"] == "active" {
				break
			}
		}
	}
	for _, l := range steady {
		_ = l.conn.Close()
	}
	p.streamsBecome(0)
	if n := strings.Count(p.operator().get("/metrics").body, "qm_sse_streams 0\n"); n != 1 {
		t.Error("the metric does not say so")
	}
}

func TestOtherMethodsOpenNoStream(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, `,"state":"paused"`)
		a := w.browser("198.51.100.1")
		a.join("rm1")
		for _, path := range []string{"/api/v1/events", "/api/events", "/events"} {
			got := a.do("HEAD", path+"?roomId=rm1", "")
			if got.status != 200 || got.header.Get("Content-Type") != "text/event-stream" || got.body != "" || got.header["Set-Cookie"] != nil {
				t.Errorf("HEAD %s: %d %v %q", path, got.status, got.header, got.body)
			}
			if got := a.do("HEAD", path+"?roomId=rm1&token=none", ""); got.status != 200 { // the cookie counts
				t.Errorf("HEAD %s: %d", path, got.status)
			}
			if got := w.browser("198.51.100.2").do("HEAD", path+"?roomId=rm1", ""); got.status != 401 {
				t.Errorf("HEAD %s of nobody: %d", path, got.status)
			}
			if got := a.do("OPTIONS", path+"?roomId=rm1", ""); got.status != 204 || got.header.Get("Allow") != "GET, HEAD, OPTIONS" || got.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("OPTIONS %s: %d %v", path, got.status, got.header)
			}
			a.post(path, "{}").want(t, 405, "method_not_allowed")
		}
		if n := w.server.streams.count(); n != 0 {
			t.Errorf("%d streams are open", n)
		}
	})
}
