package replay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"qm/engine/room"
	"qm/journal"
)

// recorder drives the real core as an owner does: decide, append, apply; with a clock of its own and digests made of names, so that
// a recording is the same each time it is made.
type recorder struct {
	t        testing.TB
	journal  *journal.Memory
	lease    journal.Lease
	head     journal.Head
	state    *room.State
	meter    room.Meter
	now      room.Instant
	presence *present
	doors    []room.Ticket // seen since the last renew
	secret   room.Digest
	commands int
}

// tickMs is how often the recorder's clock decides.
const tickMs = 250

// present is what the owner has seen.
type present struct {
	since room.Instant
	seen  map[room.Ticket]room.Instant
}

func (p *present) Since() room.Instant                { return p.since }
func (p *present) Seen(n room.Ticket) room.Instant    { return p.seen[n] }
func (p *present) see(n room.Ticket, at room.Instant) { p.seen[n] = at }

func newRecorder(t testing.TB, stream string) *recorder {
	r := &recorder{t: t, journal: journal.NewMemory(), now: room.Instant(time.Date(2026, 3, 1, 18, 0, 0, 0, time.UTC).UnixMilli())}
	r.secret = room.Digest(sha256.Sum256([]byte("the secret of " + stream)))
	r.take(stream)
	return r
}

// take is how an owner begins: lease, then replay.
func (r *recorder) take(stream string) {
	r.t.Helper()
	lease, err := r.journal.Acquire(context.Background(), stream, "owner", time.Hour)
	if err != nil {
		r.t.Fatal(err)
	}
	f, err := Fold(Stream(context.Background(), r.journal, stream), stream, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	r.lease, r.head, r.state = lease, f.Head, f.State
	r.meter = room.NewMeter(r.state, r.now)
	r.presence = &present{since: r.now, seen: map[room.Ticket]room.Instant{}}
	r.doors = nil
}

// restart kills the owner and takes the room again after gap milliseconds.
func (r *recorder) restart(gap room.Instant) {
	r.t.Helper()
	if err := r.journal.Release(context.Background(), r.lease); err != nil {
		r.t.Fatal(err)
	}
	r.now += gap
	r.take(r.lease.Stream)
}

// do decides a command of actor and makes it durable; a refusal ends the test.
func (r *recorder) do(actor string, c room.Command) []room.Event {
	r.t.Helper()
	events, err := r.try(actor, c)
	if err != nil {
		r.t.Fatalf("%T at %s: %v", c, clock(r.now), err)
	}
	return events
}

func (r *recorder) try(actor string, c room.Command) ([]room.Event, error) {
	r.t.Helper()
	events, err := room.Decide(r.state, c, r.now)
	if err != nil || len(events) == 0 {
		return events, err
	}
	r.commands++
	var id ulid.ULID
	if err := id.SetTime(uint64(r.now)); err != nil {
		r.t.Fatal(err)
	}
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(r.lease.Stream), uint64(r.commands)))
	if err := id.SetEntropy(sum[:10]); err != nil {
		r.t.Fatal(err)
	}
	var batch []journal.Record
	for _, e := range events {
		body, version := room.EncodeBody(nil, e.Body)
		batch = append(batch, journal.Record{
			Stream: r.lease.Stream, At: time.UnixMilli(int64(e.At)).UTC(), Kind: e.Body.Kind(), Version: version,
			Actor: actor, Cause: id.String(), Body: body,
		})
	}
	r.head = journal.Seal(r.head, batch)
	if err := r.journal.Append(context.Background(), r.lease.Epoch, batch); err != nil {
		r.t.Fatal(err)
	}
	for _, e := range events {
		r.state.Apply(e)
		switch b := e.Body.(type) { // whoever gets a new ticket has not had the time to be seen with it
		case *room.Draw:
			for n := b.First; n < b.First+room.Ticket(b.Count); n++ {
				r.presence.see(n, r.now)
			}
		case *room.Eject:
			r.presence.see(b.To, r.now)
		}
	}
	r.meter.After(r.state, events)
	if err := room.Check(r.state); err != nil {
		r.t.Fatal(err)
	}
	return events, nil
}

// tick lets the clock decide.
func (r *recorder) tick(sweep bool) {
	r.t.Helper()
	if r.state.DrawDue(r.now) {
		r.do("clock", room.DrawNow{Secret: r.secret, Head: room.Digest(r.head.Hash)})
	}
	if !r.state.Summary().Exists {
		return
	}
	r.meter.Advance(r.state, r.now)
	slices.Sort(r.doors)
	r.doors = slices.Compact(r.doors)
	c := room.Tick{Credit: r.meter.Credit, Presence: r.presence, Doors: r.doors, Sweep: sweep}
	for _, e := range r.do("clock", c) {
		if renew, ok := e.Body.(*room.Renew); ok {
			r.doors = slices.DeleteFunc(r.doors, func(n room.Ticket) bool { return slices.Contains(renew.Tickets, n) })
		}
	}
}

// wait lets time go by, tick by tick; whom poll names is seen at each tick.
func (r *recorder) wait(ms room.Instant, poll ...room.Ticket) {
	r.t.Helper()
	for end := r.now + ms; r.now < end; {
		r.now = min(r.now+tickMs, end)
		for _, n := range poll {
			r.presence.see(n, r.now)
		}
		r.tick(false)
	}
}

func holder(name string) room.Holder {
	sum := sha256.Sum256([]byte("holder " + name))
	return room.Holder(sum[:16])
}

func identity(name string) room.Identity {
	if name == "" {
		return 0
	}
	sum := sha256.Sum256([]byte("identity " + name))
	return room.Identity(binary.BigEndian.Uint64(sum[:]))
}

// join takes a place for a name from an address, and returns the ticket or the handle.
func (r *recorder) join(name, address string, score uint8) (n room.Ticket, q room.Handle) {
	r.t.Helper()
	r.do("visitor", room.TakePlace{Generation: r.state.Generation(), Holder: holder(name), Identity: identity(address), Score: score})
	p, ok := r.state.PlaceOf(holder(name))
	if !ok {
		r.t.Fatalf("%s joined and has no place", name)
	}
	if p.Ticket != 0 {
		r.presence.see(p.Ticket, r.now)
	}
	return p.Ticket, p.Handle
}

// enter opens the door session of whoever has that name.
func (r *recorder) enter(name string, code room.Instant) {
	r.t.Helper()
	p, ok := r.state.PlaceOf(holder(name))
	if !ok {
		r.t.Fatalf("%s enters and has no place", name)
	}
	c := room.EnterDoor{Generation: r.state.Generation(), Ticket: p.Ticket, CodeAt: code, Door: holder("door of " + name + clock(r.now))}
	if code == 0 {
		c.Holder = holder(name)
	}
	r.do("visitor", c)
}

func (r *recorder) leave(name string) {
	r.t.Helper()
	r.do("visitor", room.GiveBack{Generation: r.state.Generation(), Holder: holder(name)})
}

// operate carries out an operator's command, with the clock's credit.
func (r *recorder) operate(c room.Command) {
	r.t.Helper()
	r.meter.Advance(r.state, r.now)
	switch o := c.(type) {
	case room.SetMode:
		o.Credit = r.meter.Credit
		c = o
	case room.Reconfigure:
		o.Credit = r.meter.Credit
		c = o
	case room.Flush:
		o.Credit, o.Presence = r.meter.Credit, r.presence
		c = o
	}
	r.do("01HZX0OPERATOR", c)
}

// configure changes settings.
func (r *recorder) configure(change func(*room.Settings)) {
	r.t.Helper()
	s := *r.state.Summary().Settings
	change(&s)
	r.operate(room.Reconfigure{Settings: s})
}

func (r *recorder) schedule(in room.Instant) {
	r.t.Helper()
	r.operate(room.Reschedule{OpensAt: r.now + in, Commitment: room.Commitment(r.secret)})
}

// records are all records so far.
func (r *recorder) records() []journal.Record {
	r.t.Helper()
	var all []journal.Record
	err := r.journal.Read(context.Background(), r.lease.Stream, 0, func(rec *journal.Record) error {
		c := *rec
		c.Body = bytes.Clone(rec.Body)
		all = append(all, c)
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

func num(n int64) *int64 { return &n }

func settings(name string, rate int64) room.Settings {
	s := room.DefaultSettings()
	s.Name, s.TargetURL, s.RatePerMinute = name, "https://shop.example/", rate
	return s
}
