package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"
)

// screen is what a client makes of the console's stream. It is written from seed 004's words alone (Admin, Delta frames): it shares no
// code with the server.
type screen struct {
	rooms  []map[string]any
	others map[string]any // the frame's other keys
	full   bool           // the frame was a full one
	size   int            // of the frame, in bytes
	sent   int            // rooms that were in it
}

func (s *screen) take(data string) error {
	var frame map[string]any
	if err := json.Unmarshal([]byte(data), &frame); err != nil {
		return err
	}
	var rooms []map[string]any
	for _, r := range frame["rooms"].([]any) {
		rooms = append(rooms, r.(map[string]any))
	}
	s.size, s.sent = len(data), len(rooms)
	_, delta := frame["delta"]
	if s.full = !delta; s.full {
		s.rooms = rooms
	} else {
		if frame["delta"] != true {
			return fmt.Errorf("delta is %v", frame["delta"])
		}
		if s.others == nil {
			return fmt.Errorf("a delta with no full frame under it")
		}
		for _, id := range frame["removed"].([]any) {
			before := len(s.rooms)
			s.rooms = without(s.rooms, id)
			if len(s.rooms) != before-1 {
				return fmt.Errorf("%v is removed and was not there", id)
			}
		}
		for _, r := range rooms {
			known := false
			for i := range s.rooms {
				if s.rooms[i]["id"] == r["id"] {
					if reflect.DeepEqual(s.rooms[i], r) {
						return fmt.Errorf("%v is sent and has not changed", r["id"])
					}
					s.rooms[i], known = r, true
				}
			}
			if !known {
				s.rooms = append(s.rooms, r)
			}
		}
	}
	delete(frame, "rooms")
	delete(frame, "delta")
	delete(frame, "removed")
	s.others = frame
	return nil
}

func without(rooms []map[string]any, id any) (kept []map[string]any) {
	for _, r := range rooms {
		if r["id"] != id {
			kept = append(kept, r)
		}
	}
	return kept
}

// tube is a connection whose reader takes each event as it is written.
type tube struct {
	header http.Header
	ctx    context.Context
	events chan string
}

func (t *tube) Header() http.Header            { return t.header }
func (t *tube) WriteHeader(int)                {}
func (t *tube) Flush()                         {}
func (*tube) SetReadDeadline(time.Time) error  { return nil }
func (*tube) SetWriteDeadline(time.Time) error { return nil }
func (t *tube) Write(b []byte) (n int, _ error) {
	for event := range strings.SplitSeq(string(b), "\n\n") {
		var name, data string
		for line := range strings.Lines(event) {
			if v, ok := strings.CutPrefix(line, "event: "); ok {
				name = strings.TrimSpace(v)
			}
			if v, ok := strings.CutPrefix(line, "data: "); ok {
				data += strings.TrimSpace(v)
			}
		}
		if name != "stats" {
			continue
		}
		select {
		case t.events <- data:
		case <-t.ctx.Done():
			return 0, t.ctx.Err()
		}
	}
	return len(b), nil
}

// watch opens the console's stream; end closes it and waits for the server to leave it.
func (b *browser) watch() (t *tube, end func()) {
	ctx, stop := context.WithCancel(context.Background())
	t = &tube{header: http.Header{}, ctx: ctx, events: make(chan string)}
	r := httptest.NewRequest("GET", "/api/v1/admin/events", nil).WithContext(ctx)
	r.RemoteAddr = "192.0.2.1:4711"
	r.Header.Set("X-Forwarded-For", b.addr)
	for name, value := range b.headers {
		r.Header.Set(name, value)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.server.ServeHTTP(t, r)
	}()
	return t, func() { stop(); <-done }
}

// fullFrame is what a client that connects now is shown.
func (b *browser) fullFrame() (s screen) {
	b.Helper()
	stream, end := b.watch()
	defer end()
	if err := s.take(<-stream.events); err != nil || !s.full {
		b.Fatalf("on connect: full %v, %v", s.full, err)
	}
	return s
}

// disorder changes rooms at random: what operators and visitors do, and rooms that come, go and come again.
type disorder struct {
	*world
	chance *rand.Rand
	rooms  []string
	made   int
}

func (d *disorder) create(id string) {
	d.room(id, d.chance.IntN(120), "")
	d.rooms = append(d.rooms, id)
}

func (d *disorder) drop(i int) string {
	id := d.rooms[i]
	d.operator().do("DELETE", "/api/v1/admin/rooms/"+id, "").want(d.T, 200, "")
	d.rooms = append(d.rooms[:i:i], d.rooms[i+1:]...)
	return id
}

func (d *disorder) step() {
	op := d.operator()
	if len(d.rooms) < 3 || d.chance.IntN(12) == 0 && len(d.rooms) < 12 {
		d.made++
		d.create(fmt.Sprintf("%c-room-%d", 'a'+rune(d.chance.IntN(26)), d.made))
		return
	}
	i := d.chance.IntN(len(d.rooms))
	path := "/api/v1/admin/rooms/" + d.rooms[i]
	switch d.chance.IntN(14) {
	case 0:
		d.drop(i)
	case 1:
		d.create(d.drop(i)) // behind all others now
	case 2:
		op.post(path+"/state", `{"state":"`+[]string{"active", "paused", "bypass"}[d.chance.IntN(3)]+`"}`)
	case 3:
		op.post(path+"/rate", `{"rate":`+itoa(d.chance.IntN(300))+`}`)
	case 4:
		op.post("/api/v1/admin/rooms", `{"id":"`+d.rooms[i]+`","name":"`+itoa(d.chance.IntN(99)+1)+`","branding":{"message":"`+itoa(d.chance.IntN(3))+`"}}`)
	case 5:
		op.post(path+"/flush", `{"count":3}`)
	case 6:
		op.post(path+"/purge", "")
	case 7:
		op.post(path+"/schedule", `{"opensAt":`+itoa(int(time.Now().Add(20*time.Second).UnixMilli()))+`}`)
	case 8:
		op.post(path+"/schedule", `{"opensAt":null}`)
	case 9: // nothing happens
	default:
		for range 1 + d.chance.IntN(4) {
			d.browser(addrOf(d.chance.IntN(1<<16))).post("/api/v1/join", `{"roomId":"`+d.rooms[i]+`"}`)
		}
	}
}

// A client that knows nothing but the contract shows at every tick what one that connects at that moment is shown.
//
// Proves: admin.events
func TestDeltaFramesAddUp(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		viewer, _ := w.hire("viewer")
		d := &disorder{world: w, chance: rand.New(rand.NewPCG(4, 468))}
		for range 5 {
			d.step()
		}
		<-time.After(137 * time.Millisecond) // no engine's tick and no change falls on a tick of the stream
		stream, end := viewer.watch()
		defer end()
		var shown screen
		const ticks = 300 // ten minutes
		full, delta, left := 0, 0, 0
		for n := range ticks {
			if err := shown.take(<-stream.events); err != nil {
				t.Fatalf("tick %d: %v", n, err)
			}
			want := viewer.fullFrame()
			if !reflect.DeepEqual(shown.rooms, want.rooms) || !reflect.DeepEqual(shown.others, want.others) {
				t.Fatalf("tick %d, full %v: shows\n%v %v\nand a full frame has\n%v %v", n, shown.full, shown.rooms, shown.others, want.rooms, want.others)
			}
			switch {
			case shown.full:
				full++
			case n < 2:
				t.Errorf("frame %d is a delta", n)
			default:
				delta++
				left += len(want.rooms) - shown.sent
			}
			<-time.After(363 * time.Millisecond)
			for range d.chance.IntN(3) {
				d.step()
			}
			<-time.After(500 * time.Millisecond)
			for range d.chance.IntN(2) {
				d.step()
			}
		}
		if full < 5 || delta < ticks/2 || left == 0 {
			t.Errorf("%d full frames, %d deltas, which left %d rooms out", full, delta, left)
		}
		t.Logf("%d full frames, %d deltas, %d rooms made", full, delta, d.made)
	})
}

// A tick in which five of 500 rooms changed costs under 20 KB.
//
// Proves: admin.events
func TestDeltaFramesAreSmall(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		for i := range 500 {
			w.room("room-"+itoa(i), 60, "")
		}
		<-time.After(137 * time.Millisecond)
		stream, end := w.operator().watch()
		defer end()
		var shown screen
		for n := range 60 {
			if err := shown.take(<-stream.events); err != nil {
				t.Fatal(err)
			}
			if n >= 2 && (shown.full || shown.size >= 20_000 || shown.sent > 5) {
				t.Fatalf("tick %d: full %v, %d rooms in %d bytes", n, shown.full, shown.sent, shown.size)
			}
			if n >= 2 && shown.sent != 5 {
				t.Errorf("tick %d tells of %d rooms", n, shown.sent)
			}
			<-time.After(363 * time.Millisecond)
			for i := range 5 {
				w.browser(addrOf(n*5 + i)).join("room-" + itoa(100*i))
			}
		}
	})
}

// What a shared link does not show is not in its stream's first frame either.
//
// Proves: monitor
func TestSharedLinksStreamIsRedacted(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, `,"proxyOrigin":"https://10.1.2.3:8443","returnOrigins":["https://inside.example"],"urlPatterns":["/secret*"]`)
		<-time.After(137 * time.Millisecond)
		stream, end := w.monitor().watch()
		defer end()
		for n := range 4 {
			data := <-stream.events
			for _, hidden := range []string{"10.1.2.3", "inside.example", "/secret"} {
				if strings.Contains(data, hidden) {
					t.Errorf("frame %d shows %s", n, hidden)
				}
			}
			if n < 2 && !strings.Contains(data, `"redacted":true`) {
				t.Errorf("frame %d: %s", n, data)
			}
			w.browser(addrOf(n)).join("rm1")
		}
	})
}
