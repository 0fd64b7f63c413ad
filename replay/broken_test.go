package replay

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"qm/engine/room"
	"qm/journal"
)

// broken is a journal with one fault, made of a good one by a scripted edit. Where the fault is not about the chain, the chain is sealed anew, as
// somebody would who rewrites all of it, or as a faulty server would write it.
type broken struct {
	name string // the file is broken-<name>.ndjson; the first finding's code when empty
	want []Code // what verify finds; one, but where one edit is two faults
	what string // what was done, for the reader of broken.json
	from func(t testing.TB) *recorder
	edit func(e *editor)
}

// editor edits a journal.
type editor struct {
	t       testing.TB
	from    *recorder
	records []journal.Record
	broken  bool                  // the chain stays as it is
	head    *journal.Hash         // noted elsewhere
	bytes   func(b []byte) []byte // edits the file itself
}

// state folds what there is so far.
func (e *editor) state() *room.State {
	s := room.New()
	for i := range e.records {
		s.Apply(e.event(i))
	}
	return s
}

func (e *editor) event(i int) room.Event {
	e.t.Helper()
	r := &e.records[i]
	event, err := room.DecodeBody(r.Kind, r.Version, room.Instant(r.At.UnixMilli()), r.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	return event
}

// find is the index of the nth record of a kind, from 1; from the end below 0.
func (e *editor) find(kind string, nth int) int {
	e.t.Helper()
	var at []int
	for i := range e.records {
		if e.records[i].Kind == kind {
			at = append(at, i)
		}
	}
	if nth < 0 {
		nth += len(at) + 1
	}
	if nth < 1 || nth > len(at) {
		e.t.Fatalf("there are %d records of kind %s, no %d", len(at), kind, nth)
	}
	return at[nth-1]
}

// cut keeps the records before index i.
func (e *editor) cut(i int) { e.records = e.records[:i] }

func (e *editor) last() int { return len(e.records) - 1 }

// body replaces the body of record i.
func (e *editor) body(i int, b room.Body) {
	text, version := room.EncodeBody(nil, b)
	e.records[i].Kind, e.records[i].Version, e.records[i].Body = b.Kind(), version, text
}

// add appends an event so many milliseconds after the last.
func (e *editor) add(after room.Instant, actor string, b room.Body) {
	r := e.records[e.last()]
	r.At = r.At.Add(time.Duration(after) * time.Millisecond)
	r.Actor = actor
	e.records = append(e.records, r)
	e.body(e.last(), b)
}

// seal makes the chain anew.
func (e *editor) seal() { journal.Seal(journal.Head{Stream: e.records[0].Stream}, e.records) }

// draw is the draw that the secret gives on the records so far, with what change did to it put right where it can be.
func (e *editor) draw(change func(d *room.Draw)) *room.Draw {
	e.seal()
	s := e.state()
	ids := map[room.Handle]room.Identity{}
	for i := range e.records {
		if b, ok := e.event(i).Body.(*room.Enqueue); ok {
			ids[b.Handle] = b.Identity
		}
	}
	var waiting []room.Identity
	for q := room.Handle(1); q <= s.Summary().LastHandle; q++ {
		if s.Handle(q).Status == room.Enqueued {
			waiting = append(waiting, ids[q])
		}
	}
	d := &room.Draw{
		Version: room.DrawVersion, Secret: e.from.secret, Head: room.Digest(e.records[e.last()].Hash),
		First: s.Summary().LastTicket + 1, Count: len(waiting),
	}
	fresh := func() {
		order := room.DrawOrder(d.Seed, waiting)
		d.Order, d.Digest = room.PackOrder(order), room.OrderDigest(order)
	}
	d.Seed = room.DrawSeed(d.Secret, d.Head)
	fresh()
	if change != nil {
		secret, head, seed := d.Secret, d.Head, d.Seed
		change(d)
		if d.Secret != secret || d.Head != head {
			d.Seed = room.DrawSeed(d.Secret, d.Head)
		}
		if d.Seed != seed {
			fresh()
		}
	}
	return d
}

// beforeDraw cuts the recording of a drop before its draw.
func (e *editor) beforeDraw() { e.cut(e.find("draw", 1)) }

func (e *editor) drawn(change func(d *room.Draw)) {
	i := e.find("draw", 1)
	at := e.records[i].At
	e.cut(i)
	e.add(0, "clock", e.draw(change))
	e.records[e.last()].At = at
}

// front is the first waiting ticket that is not held.
func (e *editor) front() room.Ticket {
	s := e.state()
	for n := room.Ticket(1); n <= s.Summary().LastTicket; n++ {
		if p := s.Ticket(n); p.Status == room.Waiting && !p.Held {
			return n
		}
	}
	e.t.Fatal("nobody waits")
	return 0
}

func (e *editor) next() room.Ticket { return e.state().Summary().LastTicket + 1 }

func (e *editor) flush(from, to room.Ticket) *room.Pass {
	return &room.Pass{By: "flush", Spans: []room.Span{{from, to}}}
}

// recordSmall: eight join, one leaves, some pass.
func recordSmall(t testing.TB) *recorder {
	r := newRecorder(t, "production/small")
	r.operate(room.NewRoom{Settings: settings("Small", 60), Mode: room.Active})
	r.wait(2000)
	for i := range 8 {
		r.join(string(rune('a'+i)), "192.0.2."+string(rune('1'+i)), 0)
	}
	r.leave("g") // ticket 7
	r.wait(3000, 1, 2, 3, 4, 5, 6, 8)
	return r
}

// recordIdlePaused: a quiet room with all the credit that may be kept, paused, then somebody joins.
func recordIdlePaused(t testing.TB) *recorder {
	r := newRecorder(t, "production/idle")
	r.operate(room.NewRoom{Settings: settings("Idle", 60), Mode: room.Active})
	r.wait(5000)
	r.operate(room.SetMode{Mode: room.Paused})
	r.join("early", "192.0.2.1", 0)
	r.wait(5000, 1)
	return r
}

// recordFull: two slots, both in use, and a line.
func recordFull(t testing.TB) *recorder {
	r := newRecorder(t, "production/full")
	s := settings("Full", 60)
	s.MaxConcurrent, s.PreQueueMaxPerIP = num(2), num(2)
	r.operate(room.NewRoom{Settings: s, Mode: room.Active})
	for _, name := range []string{"a", "b", "c", "d"} {
		r.join(name, "192.0.2.1", 0)
	}
	r.wait(6000, 1, 2, 3, 4)
	return r
}

var brokenJournals = []broken{
	{want: []Code{Hash}, what: "the holder of a join was edited and the hashes left as they are", from: recordSmall, edit: func(e *editor) {
		i := e.find("join", 3)
		b := e.event(i).Body.(*room.Join)
		b.Holder = holder("somebody else")
		e.body(i, b)
		e.broken = true
	}},
	{want: []Code{Gap}, what: "a row was deleted", from: recordDoors, edit: func(e *editor) {
		i := e.find("enter", -1)
		e.records = slices.Delete(e.records, i, i+1)
		e.broken = true
	}},
	{want: []Code{Reorder}, what: "a row is there twice", from: recordSmall, edit: func(e *editor) {
		e.records = slices.Insert(e.records, 5, e.records[4])
		e.broken = true
	}},
	{name: "swapped", want: []Code{Gap, Reorder}, what: "two rows were swapped", from: recordDoors, edit: func(e *editor) {
		i := e.find("renew", -1)
		e.records = append(slices.Clone(e.records[:i-1]), e.records[i], e.records[i-1])
		e.broken = true
	}},
	{want: []Code{Head}, what: "the last three rows were cut off; the head had been noted", from: recordSmall, edit: func(e *editor) {
		head := e.records[e.last()].Hash
		e.head = &head
		e.cut(len(e.records) - 3)
	}},
	{want: []Code{Torn}, what: "the file breaks off in its last line", from: recordSmall, edit: func(e *editor) {
		e.bytes = func(b []byte) []byte { return b[:len(b)-100] }
	}},
	{want: []Code{Line}, what: "a line is no record", from: recordSmall, edit: func(e *editor) {
		e.bytes = func(b []byte) []byte { return append(b, "{\"stream\": \"production/small\"}\n"...) }
	}},
	{want: []Code{TimeBack}, what: "the last event is timed an hour before the one before it", from: recordDoors, edit: func(e *editor) {
		e.records[e.last()].At = e.records[e.last()].At.Add(-time.Hour)
	}},
	{want: []Code{TimeGrain}, what: "the last event is timed half a millisecond later", from: recordDoors, edit: func(e *editor) {
		e.records[e.last()].At = e.records[e.last()].At.Add(500 * time.Microsecond)
	}},
	{want: []Code{Kind}, what: "the last event is of a kind that there is not", from: recordDoors, edit: func(e *editor) {
		e.records[e.last()].Kind = "teleport"
	}},
	{name: "kind-version", want: []Code{Kind}, what: "the last event is of a version that there is not", from: recordDoors, edit: func(e *editor) {
		e.records[e.last()].Version = 9
	}},
	{want: []Code{Body}, what: "the body of the last event has a field too many", from: recordDoors, edit: func(e *editor) {
		e.records[e.last()].Body = []byte(`{"ns":[1],"qs":null,"note":"paid"}`)
	}},
	{want: []Code{NoRoom}, what: "somebody joins a deleted room", from: recordGenerations, edit: func(e *editor) {
		e.cut(e.find("delete", 1) + 1)
		e.add(10, "visitor", &room.Join{Ticket: 1, Holder: holder("x")})
	}},
	{want: []Code{RoomExists}, what: "a room that exists is created", from: recordSmall, edit: func(e *editor) {
		e.add(10, "op", &room.Create{Generation: 2, Mode: room.Active, Settings: settings("Small", 60)})
	}},
	{want: []Code{Generation}, what: "a close skips a generation", from: recordGenerations, edit: func(e *editor) {
		e.body(e.find("close", 1), &room.Close{Generation: 5})
	}},
	{want: []Code{TicketGap}, what: "a join burns a number", from: recordSmall, edit: func(e *editor) {
		e.add(10, "visitor", &room.Join{Ticket: e.next() + 1, Holder: holder("x")})
	}},
	{want: []Code{TicketReused}, what: "a join gets a number that was given before", from: recordSmall, edit: func(e *editor) {
		e.add(10, "visitor", &room.Join{Ticket: 7, Holder: holder("x")})
	}},
	{want: []Code{HandleGap}, what: "an entry burns a handle", from: recordDrop, edit: func(e *editor) {
		e.beforeDraw()
		e.add(10, "visitor", &room.Enqueue{Handle: e.state().Summary().LastHandle + 2, Holder: holder("x")})
	}},
	{want: []Code{HandleReused}, what: "an entry gets a handle that was given before", from: recordDrop, edit: func(e *editor) {
		e.beforeDraw()
		e.add(10, "visitor", &room.Enqueue{Handle: 3, Holder: holder("x")})
	}},
	{want: []Code{HolderTwice}, what: "a holder in line gets a second ticket", from: recordSmall, edit: func(e *editor) {
		e.add(10, "visitor", &room.Join{Ticket: e.next(), Holder: holder("h")})
	}},
	{want: []Code{JoinScheduled}, what: "a ticket is given before the doors open", from: recordDrop, edit: func(e *editor) {
		e.beforeDraw()
		e.add(10, "visitor", &room.Join{Ticket: 1, Holder: holder("x")})
	}},
	{want: []Code{JoinShut}, what: "a closed room gives a ticket", from: recordGenerations, edit: func(e *editor) {
		e.cut(e.find("close", 1) + 1)
		e.add(10, "visitor", &room.Join{Ticket: 1, Holder: holder("x")})
	}},
	{want: []Code{EnqueueUnschedule}, what: "a handle is given while nothing is scheduled", from: recordSmall, edit: func(e *editor) {
		e.add(10, "visitor", &room.Enqueue{Handle: 1, Holder: holder("x")})
	}},
	{want: []Code{PassSpans}, what: "a pass lets nobody through", from: recordSmall, edit: func(e *editor) {
		e.add(10, "clock", &room.Pass{By: "clock"})
	}},
	{want: []Code{PassStranger}, what: "a ticket that was given back passes", from: recordSmall, edit: func(e *editor) {
		e.add(10, "op", e.flush(7, 7))
	}},
	{want: []Code{PassTwice}, what: "a ticket passes a second time", from: recordSmall, edit: func(e *editor) {
		e.add(10, "op", e.flush(1, 1))
	}},
	{want: []Code{PassHeld}, what: "a held ticket passes", from: recordHeldCaps, edit: func(e *editor) {
		e.cut(e.find("configure", 1)) // tickets 7 and 8 are held, all others have passed
		e.add(10, "op", e.flush(7, 7))
	}},
	{want: []Code{FIFO}, what: "the second in line passes before the first", from: recordSmall, edit: func(e *editor) {
		n := e.front()
		e.add(10, "op", e.flush(n+1, n+1))
	}},
	{want: []Code{GhostStranger}, what: "a ticket that does not pass is a ghost", from: recordSmall, edit: func(e *editor) {
		n := e.front()
		p := e.flush(n, n)
		p.Ghosts = []room.Span{{n + 1, n + 1}}
		e.add(10, "op", p)
	}},
	{want: []Code{GhostOff}, what: "a ghost in a room without the ghost rule", from: recordHeldCaps, edit: func(e *editor) {
		e.cut(e.find("pass", 2))
		n := e.front()
		p := e.flush(n, n)
		p.Ghosts = p.Spans
		e.add(10, "op", p)
	}},
	{want: []Code{GhostSeen}, what: "a holder who joined five seconds ago is a ghost", from: recordSmall, edit: func(e *editor) {
		n := e.front()
		p := e.flush(n, n)
		p.Ghosts = p.Spans
		e.add(10, "op", p)
	}},
	{want: []Code{GhostAlone}, what: "the clock passes a ghost and nobody behind it", from: recordGhosts, edit: func(e *editor) {
		i := slices.IndexFunc(e.records, func(r journal.Record) bool { return r.Kind == "pass" && bytes.Contains(r.Body, []byte(`"ns":[[`)) })
		p := e.event(i).Body.(*room.Pass)
		at := e.records[i].At
		e.cut(i)
		e.add(0, "clock", &room.Pass{By: "clock", Spans: p.Ghosts[:1], Ghosts: p.Ghosts[:1], Credit: p.Credit})
		e.records[e.last()].At = at
	}},
	{want: []Code{Overserved}, what: "one more passes than the rate allows", from: recordSmall, edit: func(e *editor) {
		i := e.find("pass", -1)
		p := e.event(i).Body.(*room.Pass)
		p.Spans[len(p.Spans)-1][1]++
		e.body(i, p)
		e.cut(i + 1)
	}},
	{want: []Code{Credit}, what: "a change of settings leaves more credit than there was", from: recordPauseRate, edit: func(e *editor) {
		i := e.find("configure", 2)
		b := e.event(i).Body.(*room.Configure)
		b.Credit += 10 * perPass
		e.body(i, b)
		e.cut(i + 1)
	}},
	{want: []Code{Slots}, what: "the clock passes one more than there are slots", from: recordFull, edit: func(e *editor) {
		n := e.front()
		e.add(4000, "clock", &room.Pass{By: "clock", Spans: []room.Span{{n, n}}})
	}},
	{want: []Code{FlushSlots}, what: "a flush passes one more than there are slots", from: recordFull, edit: func(e *editor) {
		n := e.front()
		e.add(10, "op", e.flush(n, n))
	}},
	{want: []Code{ClockShut}, what: "the clock passes while the room is paused", from: recordIdlePaused, edit: func(e *editor) {
		e.add(10, "clock", &room.Pass{By: "clock", Spans: []room.Span{{1, 1}}})
	}},
	{name: "clock_shut-rate", want: []Code{ClockShut}, what: "the clock passes at rate 0", from: recordIdlePaused, edit: func(e *editor) {
		s := settings("Idle", 0)
		credit := e.event(e.find("state", 1)).Body.(*room.StateChange).Credit
		e.add(10, "op", &room.StateChange{Mode: room.Active, Credit: credit})
		e.add(0, "op", &room.Configure{Settings: s, Credit: credit})
		e.add(5000, "clock", &room.Pass{By: "clock", Spans: []room.Span{{1, 1}}})
	}},
	{want: []Code{ScheduleSecret}, what: "a drop is moved and gets another secret", from: recordDrop, edit: func(e *editor) {
		i := e.find("schedule", 2)
		b := e.event(i).Body.(*room.Schedule)
		b.Commitment = room.Commitment(room.Digest{1})
		e.body(i, b)
		e.cut(i + 1)
	}},
	{name: "schedule_secret-none", want: []Code{ScheduleSecret}, what: "a drop is scheduled without a commitment", from: recordSmall, edit: func(e *editor) {
		e.add(10, "op", &room.Schedule{OpensAt: room.Instant(e.records[e.last()].At.UnixMilli()) + 60_000})
	}},
	{want: []Code{SchedulePast}, what: "a drop is scheduled for a past instant", from: recordSmall, edit: func(e *editor) {
		e.add(10, "op", &room.Schedule{OpensAt: room.Instant(e.records[e.last()].At.UnixMilli()) - 1000, Commitment: room.Commitment(e.from.secret)})
	}},
	{want: []Code{ScheduleCancel}, what: "a drop is cancelled and its entries are forgotten", from: recordDrop, edit: func(e *editor) {
		e.beforeDraw()
		e.add(10, "op", &room.Schedule{})
	}},
	{want: []Code{DrawCommitment}, what: "the secret that is revealed is not the one that was committed to", from: recordDrop, edit: func(e *editor) {
		e.drawn(func(d *room.Draw) { d.Secret[0] ^= 1 })
	}},
	{want: []Code{DrawHead}, what: "the draw rests on another head, as if entries had been chosen", from: recordDrop, edit: func(e *editor) {
		e.drawn(func(d *room.Draw) { d.Head[0] ^= 1 })
	}},
	{want: []Code{DrawSeed}, what: "the seed is not made of secret and head", from: recordDrop, edit: func(e *editor) {
		e.drawn(func(d *room.Draw) { d.Seed[0] ^= 1 })
	}},
	{want: []Code{DrawOrder}, what: "two entries have changed places", from: recordDrop, edit: func(e *editor) {
		e.drawn(func(d *room.Draw) {
			order, _ := room.UnpackOrder(d.Order)
			order[0], order[20] = order[20], order[0]
			d.Order, d.Digest = room.PackOrder(order), room.OrderDigest(order)
		})
	}},
	{name: "draw_order-digest", want: []Code{DrawOrder}, what: "the digest is not that of the order", from: recordDrop, edit: func(e *editor) {
		e.drawn(func(d *room.Draw) { d.Digest[31] ^= 1 })
	}},
	{want: []Code{DrawEntries}, what: "an entry was left out of the draw", from: recordDrop, edit: func(e *editor) {
		e.drawn(func(d *room.Draw) {
			d.Count--
			order := room.DrawOrder(d.Seed, make([]room.Identity, d.Count))
			d.Order, d.Digest = room.PackOrder(order), room.OrderDigest(order)
		})
	}},
	{want: []Code{DrawVersion}, what: "the draw is of an unknown version", from: recordDrop, edit: func(e *editor) {
		e.drawn(func(d *room.Draw) { d.Version = 2 })
	}},
	{want: []Code{DrawUnscheduled}, what: "a second draw is made", from: recordDrop, edit: func(e *editor) {
		e.cut(e.find("draw", 1) + 1)
		e.add(10, "clock", e.draw(nil))
	}},
	{want: []Code{DrawEarly}, what: "the draw is made before the doors-open instant", from: recordDrop, edit: func(e *editor) {
		e.beforeDraw()
		e.add(10, "clock", e.draw(nil))
	}},
	{want: []Code{DrawLate}, what: "an entry is taken at the doors-open instant, before the draw", from: recordDropKilled, edit: func(e *editor) {
		e.beforeDraw()
		s := e.state().Summary()
		e.add(s.OpensAt-s.At, "visitor", &room.Enqueue{Handle: s.LastHandle + 1, Holder: holder("x")})
	}},
	{want: []Code{CapLine}, what: "a fourth of one address joins where three may", from: recordHeldCaps, edit: func(e *editor) {
		e.cut(e.find("join", 3) + 1)
		e.add(10, "visitor", &room.Join{Ticket: 4, Holder: holder("x"), Identity: identity("192.0.2.0")})
	}},
	{want: []Code{CapPreQueue}, what: "a third of one address enters the pre-queue where two may", from: recordFull, edit: func(e *editor) {
		at := room.Instant(e.records[e.last()].At.UnixMilli())
		e.add(10, "op", &room.Schedule{OpensAt: at + 60_000, Commitment: room.Commitment(e.from.secret)})
		for i, name := range []string{"x", "y", "z"} {
			e.add(10, "visitor", &room.Enqueue{Handle: room.Handle(i + 1), Holder: holder(name), Identity: identity("192.0.2.9")})
		}
	}},
	{want: []Code{EnterStranger}, what: "a waiting ticket enters", from: recordSmall, edit: func(e *editor) {
		e.add(10, "visitor", &room.Enter{Ticket: e.front(), Door: holder("door")})
	}},
	{want: []Code{EnterLate}, what: "a pass is used after its time", from: recordSmall, edit: func(e *editor) {
		e.add(700_000, "visitor", &room.Enter{Ticket: 1, Door: holder("door")})
	}},
	{want: []Code{CodeSpent}, what: "a hand-over code is used twice", from: recordDoors, edit: func(e *editor) {
		i := e.find("enter", 1)
		b := *e.event(i).Body.(*room.Enter)
		e.cut(e.find("enter", 3) + 1)
		e.add(10, "visitor", &b)
	}},
	{want: []Code{RenewStranger}, what: "a door session is renewed that there is not", from: recordSmall, edit: func(e *editor) {
		e.add(10, "clock", &room.Renew{Tickets: []room.Ticket{1}})
	}},
	{want: []Code{LeaveStranger}, what: "a ticket is given back twice", from: recordSmall, edit: func(e *editor) {
		e.add(10, "visitor", &room.Leave{Tickets: []room.Ticket{7}})
	}},
	{want: []Code{LapseWhy}, what: "a ticket lapses for a reason that there is not", from: recordSmall, edit: func(e *editor) {
		e.add(10, "clock", &room.Lapse{Why: "boredom", Tickets: []room.Ticket{1}})
	}},
	{want: []Code{LapseStranger}, what: "a waiting ticket lapses as a pass", from: recordSmall, edit: func(e *editor) {
		e.add(10, "clock", &room.Lapse{Why: "pass", Tickets: []room.Ticket{e.front()}})
	}},
	{want: []Code{LapseEarly}, what: "a pass lapses before its time", from: recordSmall, edit: func(e *editor) {
		e.add(10, "clock", &room.Lapse{Why: "pass", Tickets: []room.Ticket{1}})
	}},
	{want: []Code{EjectStranger}, what: "a ticket that was given back is ejected", from: recordSmall, edit: func(e *editor) {
		e.add(10, "op", &room.Eject{Ticket: 7, To: e.next()})
	}},
	{want: []Code{PurgeCount}, what: "a purge says one more than it took", from: recordEjectPurge, edit: func(e *editor) {
		i := e.find("purge", 1)
		b := e.event(i).Body.(*room.Purge)
		b.Waiting++
		e.body(i, b)
	}},
	{want: []Code{UnslotStranger}, what: "a waiting ticket gives a slot back", from: recordSmall, edit: func(e *editor) {
		e.add(10, "clock", &room.Unslot{Tickets: []room.Ticket{e.front()}})
	}},
	{want: []Code{UnslotEarly}, what: "a slot is taken back a moment after the pass", from: recordSmall, edit: func(e *editor) {
		e.add(10, "clock", &room.Unslot{Tickets: []room.Ticket{1}})
	}},
}
