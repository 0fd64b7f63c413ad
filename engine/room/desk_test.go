package room

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fataler is what a desk needs of *testing.T and of *rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// desk drives a room by commands on a clock of its own. Each decision is watched: Decide writes nothing, what it decides survives
// the journal's form, and the state, a lean copy and one made of decoded events stay equal in what they answer.
type desk struct {
	t      fataler
	s      *State
	lean   *State
	replay *State // fed with events as the journal gives them back
	meter  Meter
	now    Instant
	events []Event
	thrift bool // for long lines: compare less
}

const dawn Instant = 1_800_000_000_000 // some time in 2027

func openDesk(t fataler) *desk {
	d := &desk{t: t, s: New(), replay: New(), now: dawn}
	d.lean = d.s.Lean()
	d.meter = NewMeter(d.s, d.now)
	return d
}

// newRoom is a desk with an active room, made of the defaults and then of change.
func newRoom(t fataler, change func(*Settings)) *desk {
	t.Helper()
	d := openDesk(t)
	d.must(NewRoom{Settings: settingsOf(change), Mode: Active})
	return d
}

func settingsOf(change func(*Settings)) Settings {
	s := DefaultSettings()
	s.Name, s.TargetURL = "Test", "https://shop.example/"
	if change != nil {
		change(&s)
	}
	return s
}

func num(n int64) *int64 { return &n }

// do decides a command now and applies what it led to. Credit is filled in as the engine does.
func (d *desk) do(c Command) ([]Event, error) {
	d.t.Helper()
	switch b := c.(type) {
	case Tick:
		d.meter.Advance(d.s, d.now)
		b.Credit = d.meter.Credit
		c = b
	case Flush:
		d.meter.Advance(d.s, d.now)
		b.Credit = d.meter.Credit
		c = b
	case SetMode:
		d.meter.Advance(d.s, d.now)
		b.Credit = d.meter.Credit
		c = b
	case Reconfigure:
		d.meter.Advance(d.s, d.now)
		b.Credit = d.meter.Credit
		c = b
	}
	var before []byte
	if !d.thrift {
		before = d.s.AppendBinary(nil)
	}
	events, err := Decide(d.s, c, d.now)
	if !d.thrift && !bytes.Equal(before, d.s.AppendBinary(nil)) {
		d.t.Fatalf("deciding %#v wrote to the state", c)
	}
	if err != nil {
		var refusal Refusal
		if !errors.As(err, &refusal) || len(events) != 0 {
			d.t.Fatalf("%#v: %d events and error %v", c, len(events), err)
		}
		return nil, err
	}
	for _, e := range events {
		d.apply(e)
	}
	d.meter.After(d.s, events)
	if d.thrift {
		return events, nil
	}
	if err := Check(d.s); err != nil {
		d.t.Fatalf("after %#v: %v", c, err)
	}
	return events, nil
}

func (d *desk) apply(e Event) {
	d.t.Helper()
	if e.At < d.s.at {
		d.t.Fatalf("time runs backwards: %s at %d after %d", e.Body.Kind(), e.At, d.s.at)
	}
	body, version := EncodeBody(nil, e.Body)
	back, err := DecodeBody(e.Body.Kind(), version, e.At, body)
	if err != nil {
		d.t.Fatalf("%s does not survive the journal: %v\n%s", e.Body.Kind(), err, body)
	}
	if again, _ := EncodeBody(nil, back.Body); !bytes.Equal(body, again) {
		d.t.Fatalf("%s is stored as %s, and read and stored again as %s", e.Body.Kind(), body, again)
	}
	d.s.Apply(e)
	d.lean.Apply(back)
	d.replay.Apply(back)
	d.events = append(d.events, e)
}

// must is do that may not be refused.
func (d *desk) must(c Command) []Event {
	d.t.Helper()
	events, err := d.do(c)
	if err != nil {
		d.t.Fatalf("%#v: %v", c, err)
	}
	return events
}

// refused expects a refusal.
func (d *desk) refused(c Command, want Refusal) {
	d.t.Helper()
	if events, err := d.do(c); !errors.Is(err, want) {
		d.t.Fatalf("%#v: %d events and %v, not %q", c, len(events), err, want)
	}
}

// nothing expects that what the command asks for is so already.
func (d *desk) nothing(c Command) {
	d.t.Helper()
	if events := d.must(c); len(events) != 0 {
		d.t.Fatalf("%#v led to %s", c, kindsOf(events))
	}
}

// kinds expects a command to lead to these events.
func (d *desk) kinds(c Command, want string) []Event {
	d.t.Helper()
	events := d.must(c)
	if got := kindsOf(events); got != want {
		d.t.Fatalf("%#v led to %q, not %q", c, got, want)
	}
	return events
}

func kindsOf(events []Event) string {
	var b bytes.Buffer
	for i, e := range events {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(e.Body.Kind())
	}
	return b.String()
}

// who is the digest of visitor i.
func who(i int) (h Holder) {
	binary.BigEndian.PutUint64(h[:], uint64(i)*0x9e3779b97f4a7c15)
	h[15] = 1
	return h
}

// from is an identity of its own for each visitor.
func from(i int) Identity { return Identity(i)*0x9e3779b97f4a7c15 | 1 }

// join takes places for visitors first to last.
func (d *desk) join(first, last int) {
	d.t.Helper()
	for i := first; i <= last; i++ {
		d.kinds(d.arrival(i), "join")
	}
}

func (d *desk) arrival(i int) TakePlace {
	return TakePlace{Generation: d.s.Generation(), Holder: who(i), Identity: from(i)}
}

// wait lets time pass with a tick five times a second, and returns who passed.
func (d *desk) wait(ms Instant, p Presence) (passed []Ticket) {
	d.t.Helper()
	for end := d.now + ms; d.now < end; {
		d.now = min(d.now+200, end)
		passed = append(passed, passedIn(d.must(Tick{Presence: p}))...)
	}
	return passed
}

func passedIn(events []Event) (list []Ticket) {
	for _, e := range events {
		if p, ok := e.Body.(*Pass); ok {
			for _, span := range p.Spans {
				for n := span[0]; n <= span[1]; n++ {
					list = append(list, n)
				}
			}
		}
	}
	return list
}

// status expects tickets to have a status.
func (d *desk) status(want Status, tickets ...Ticket) {
	d.t.Helper()
	for _, n := range tickets {
		if p := d.s.Ticket(n); p.Status != want {
			d.t.Fatalf("ticket %d has status %d, not %d", n, p.Status, want)
		}
	}
}

// equal expects two values to be equal.
func equal[T any](t fataler, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// compare holds the three states against each other, and against a snapshot of the first.
func (d *desk) compare() {
	d.t.Helper()
	full := d.s.AppendBinary(nil)
	if !bytes.Equal(full, d.replay.AppendBinary(nil)) {
		d.t.Fatalf("a replay of the events is not the state:\n%s", cmp.Diff(d.s.Summary(), d.replay.Summary()))
	}
	restored, err := Restore(full)
	if err != nil {
		d.t.Fatalf("restore: %v", err)
	}
	if !bytes.Equal(full, restored.AppendBinary(nil)) {
		d.t.Fatalf("a restored snapshot is not the state:\n%s", cmp.Diff(d.s.Summary(), restored.Summary()))
	}
	for name, s := range map[string]*State{"restored": restored, "lean": d.lean, "lean copy": d.s.Lean()} {
		if err := Check(s); err != nil {
			d.t.Fatalf("%s: %v", name, err)
		}
		equal(d.t, name+" summary", s.Summary(), d.s.Summary())
		equal(d.t, name+" minutes", s.Minutes(), d.s.Minutes())
		for n := Ticket(0); n <= d.s.last+1; n++ {
			if got, want := s.Ticket(n), d.s.Ticket(n); got != want {
				d.t.Fatalf("%s: ticket %d is %+v, not %+v", name, n, got, want)
			}
		}
		for q := Handle(0); q <= d.s.lastHandle+1; q++ {
			if got, want := s.Handle(q), d.s.Handle(q); got != want {
				d.t.Fatalf("%s: handle %d is %+v, not %+v", name, q, got, want)
			}
		}
	}
}

// watch is what an owner has observed.
type watch struct {
	since Instant
	seen  map[Ticket]Instant
}

func (w *watch) Since() Instant        { return w.since }
func (w *watch) Seen(n Ticket) Instant { return w.seen[n] }

// watching starts to observe now.
func (d *desk) watching() *watch { return &watch{since: d.now, seen: map[Ticket]Instant{}} }

func (d *desk) sees(w *watch, tickets ...Ticket) {
	for _, n := range tickets {
		w.seen[n] = d.now
	}
}

// drop schedules the doors to open in ms, with the secret that byte names.
func (d *desk) drop(ms Instant, secret byte) {
	d.t.Helper()
	d.kinds(Reschedule{OpensAt: d.now + ms, Commitment: Commitment(Digest{secret})}, "schedule")
}

func (d *desk) draw(secret byte) *Draw {
	d.t.Helper()
	return d.kinds(DrawNow{Secret: Digest{secret}, Head: Digest{0xaa}}, "draw")[0].Body.(*Draw)
}

func TestMain(m *testing.M) {
	// Every command must be known to Decide, and every kind to the codec: the tables here are what the tests walk.
	if len(kinds) != len(Kinds()) {
		panic(fmt.Sprint("a kind is listed twice: ", len(kinds), " and ", len(Kinds())))
	}
	m.Run()
}
