package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"qm/engine/room"
	"qm/journal"
	"qm/projection"
)

const (
	tickMoving  = 200 * time.Millisecond // while somebody waits
	tickIdle    = time.Second
	sweepEvery  = time.Minute
	batchEvents = 8192            // no more commands are decided while so many events wait for the commit before
	appendWait  = 6 * time.Second // longer than a stalled database may stall, shorter than the lease
	callerWait  = 2 * time.Second // a caller who waited so long has been answered 503
	snapEvents  = 500_000         // a snapshot after so many events, beside the one at the end of a tenure
)

// actor is one tenure: it owns a room from an acquired lease until the lease, the storage or the process ends. Nothing
// outlives it but what is durable. One goroutine runs it; one more commits for it, one batch at a time.
type actor struct {
	r     *runner
	lease journal.Lease
	state *room.State
	meter room.Meter
	head  journal.Head // of what has been handed to the journal
	ids   causes
	clock room.Instant // the latest now

	batch   batch      // decided, waiting for the commit before it
	spare   batch      // memory of one that has landed, for the next
	flying  *batch     // being committed
	landed  chan error // the outcome of flying
	flownAt time.Time
	taken   []*request // from the mailbox; swapped for the mailbox's own slice when all of it is decided
	backlog []*request // the rest of taken that is not decided: the draw comes first, or the batch is full
	tickDue bool
	swept   time.Time
	snapped int64 // seq of the newest snapshot
}

// batch is what one commit makes durable, and whom it answers.
type batch struct {
	events  []room.Event
	records []journal.Record
	replies []*request
	text    []byte // the bodies
}

// empty is a batch in the memory of b, whose records nobody needs any more. Its events are the publisher's to keep, and the next batch
// is likely to need as many.
func (b *batch) empty() batch {
	clear(b.records)
	clear(b.replies)
	return batch{events: make([]room.Event, 0, len(b.events)), records: b.records[:0], replies: b.replies[:0], text: b.text[:0]}
}

// errFenced ends a tenure whose lease another process has taken.
var errFenced = errors.New("engine: another process has taken the room")

// run works until ctx ends (nil, with everything decided made durable) or the tenure fails.
func (a *actor) run(ctx context.Context) error {
	timer := time.NewTimer(tickMoving)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return a.finish()
		case <-a.r.fenced:
			a.fail(ErrElsewhere)
			return errFenced
		case err := <-a.landed:
			if err := a.land(err); err != nil {
				return err
			}
		case <-a.r.mailbox.arrived:
		case <-timer.C:
			a.r.presence.watch(a.now())
			a.tickDue = true
			timer.Reset(a.pace())
		}
		if err := a.work(ctx); err != nil {
			a.fail(ErrStorage)
			return err
		}
	}
}

// pace is how long until the next tick.
func (a *actor) pace() time.Duration {
	if a.state.Restless() {
		return tickMoving
	}
	return tickIdle
}

// now is the room's clock: the process's, except that it never runs backwards. Not between two events either: what was earned by an
// instant is not spent before it.
func (a *actor) now() room.Instant { return a.at(a.r.e.o.Now()) }

func (a *actor) at(wall time.Time) room.Instant {
	a.clock = max(a.clock, room.Instant(wall.UnixMilli()), a.state.At())
	return a.clock
}

// work decides what can be decided, and hands the batch to the journal when none is on its way.
func (a *actor) work(ctx context.Context) error {
	for {
		if a.state.DrawDue(a.now()) {
			if a.flying != nil {
				return nil // the draw is decided on the durable head
			}
			if len(a.batch.events)+len(a.batch.replies) == 0 {
				if err := a.draw(ctx); err != nil {
					return err
				}
			}
			a.launch()
			continue
		}
		if a.tickDue && (a.flying == nil || time.Since(a.flownAt) < time.Second) {
			a.tickDue = false
			a.tick()
			continue // a tick may have been cut short by a draw
		}
		if len(a.backlog) == 0 {
			clear(a.taken)
			a.taken = a.r.mailbox.take(a.taken)
			a.backlog = a.taken
			if n := len(a.taken); n > 0 {
				a.r.e.metrics.mailbox.Observe(float64(n))
			}
		}
		a.decideBacklog()
		if a.flying == nil {
			a.launch()
		}
		if len(a.backlog) > 0 && a.flying == nil {
			continue
		}
		return nil
	}
}

// decideBacklog decides the requests taken from the mailbox until they are through, the batch is full, or a draw is due.
func (a *actor) decideBacklog() {
	i := 0
	var wall time.Time
	for ; i < len(a.backlog) && len(a.batch.events) < batchEvents; i++ {
		req := a.backlog[i]
		if i%clockEvery == 0 {
			wall = a.r.e.o.Now()
		}
		if wall.Sub(req.sent) > callerWait {
			req.reply <- result{err: ErrBusy} // the caller has gone: no place is made that nobody would know of
			continue
		}
		now := a.at(wall)
		if a.state.DrawDue(now) {
			break
		}
		var events []room.Event
		cmd, err := req.command(a.state)
		if err == nil {
			cmd = a.observed(cmd, now)
			events, err = room.Decide(a.state, cmd, now)
		}
		a.batch.replies = append(a.batch.replies, req)
		if err != nil {
			req.answer.refused = err
			continue
		}
		cause := req.cause
		if cause == "" {
			cause = a.ids.next(wall)
		}
		a.take(events, req.actor, cause)
		a.answer(&req.answer, cmd, events, cause, now)
	}
	a.backlog = a.backlog[i:]
}

// clockEvery is for how many requests the clock is read once: some tens of microseconds, which no instant in milliseconds shows.
const clockEvery = 32

// observed completes an operator's command with what only the owner knows.
func (a *actor) observed(c room.Command, now room.Instant) room.Command {
	switch c := c.(type) {
	case room.SetMode:
		a.meter.Advance(a.state, now)
		c.Credit = a.meter.Credit
		return c
	case room.Reconfigure:
		a.meter.Advance(a.state, now)
		c.Credit = a.meter.Credit
		return c
	case room.Edit:
		a.meter.Advance(a.state, now)
		c.Credit = a.meter.Credit
		return c
	case room.Flush:
		a.meter.Advance(a.state, now)
		c.Credit, c.Presence = a.meter.Credit, &a.r.presence
		return c
	}
	return c
}

// answer is what the caller of a command will hear once the batch is durable.
func (a *actor) answer(ans *Answer, c room.Command, events []room.Event, cause string, now room.Instant) {
	ans.Cause, ans.Events = cause, events
	switch c := c.(type) {
	case room.TakePlace:
		if ans.Fresh = len(events) > 0; ans.Fresh {
			ans.Place = a.state.PlaceGiven(events[len(events)-1])
		} else {
			ans.Place, _ = a.state.PlaceOf(c.Holder)
		}
		if n := ans.Place.Ticket; n != 0 {
			a.r.presence.mark(n, now)
		}
	case room.EnterDoor:
		ans.Place = a.state.Ticket(c.Ticket)
	}
}

// take makes events part of the state and of the batch.
func (a *actor) take(events []room.Event, actor, cause string) {
	for _, e := range events {
		start := len(a.batch.text)
		text, version := room.EncodeBody(a.batch.text, e.Body)
		a.batch.text = text
		a.state.Apply(e)
		a.batch.events = append(a.batch.events, e)
		a.batch.records = append(a.batch.records, journal.Record{
			Stream: a.r.stream, At: time.UnixMilli(int64(e.At)).UTC(), Kind: e.Body.Kind(), Version: version,
			Actor: actor, Cause: cause, Body: text[start:len(text):len(text)],
		})
		switch b := e.Body.(type) {
		case *room.Renew:
			a.r.presence.forgetDoors(b.Tickets)
		case *room.Draw: // nobody could be seen with a ticket before there was one: observation begins now
			for n := range room.Ticket(b.Count) {
				a.r.presence.mark(b.First+n, e.At)
			}
		case *room.Eject:
			a.r.presence.mark(b.To, e.At)
		}
	}
	a.meter.After(a.state, events)
}

// tick lets the clock decide.
func (a *actor) tick() {
	now := a.now()
	a.meter.Advance(a.state, now)
	c := room.Tick{Credit: a.meter.Credit, Presence: &a.r.presence, Doors: a.doorsSeen()}
	if wall := a.r.e.o.Now(); wall.Sub(a.swept) >= sweepEvery {
		a.swept, c.Sweep = wall, true
	}
	events, err := room.Decide(a.state, c, now)
	if err != nil || len(events) == 0 {
		return // a draw that has come due meanwhile, or a room that does not exist
	}
	a.take(events, "clock", a.ids.next(a.r.e.o.Now()))
}

// doorsSeen lists the door sessions seen since the last renew, and forgets those that have ended.
func (a *actor) doorsSeen() []room.Ticket {
	seen := a.r.presence.doorsSeen()
	var ended []room.Ticket
	seen = slices.DeleteFunc(seen, func(n room.Ticket) bool {
		gone := a.state.Ticket(n).Status != room.Inside
		if gone {
			ended = append(ended, n)
		}
		return gone
	})
	if len(ended) > 0 {
		a.r.presence.forgetDoors(ended)
	}
	return seen
}

// draw decides the draw, alone, on the durable head.
func (a *actor) draw(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, appendWait)
	defer cancel()
	secret, ok, err := a.r.e.o.Vault.Recall(ctx, a.r.stream, dropName(a.state.Generation(), a.state.Draws()))
	if err != nil {
		return fmt.Errorf("recall the drop's secret: %w", err)
	}
	if !ok || len(secret) != len(room.Digest{}) {
		return &damagedError{Seq: a.head.Seq, Why: "the sealed secret of the scheduled drop is gone, so it cannot be drawn"}
	}
	events, err := room.Decide(a.state, room.DrawNow{Secret: room.Digest(secret), Head: room.Digest(a.head.Hash)}, a.now())
	if err != nil {
		return &damagedError{Seq: a.head.Seq, Why: "the draw is refused: " + err.Error()}
	}
	a.take(events, "clock", a.ids.next(a.r.e.o.Now()))
	return nil
}

// launch hands the batch to the journal. A batch without events rests on nothing that is not durable when none is on its way, so it
// is answered at once.
func (a *actor) launch() {
	b := a.batch
	if len(b.events) == 0 {
		a.reply(&b)
		a.batch = b.empty()
		return
	}
	a.head = journal.Seal(a.head, b.records)
	summary := a.state.Summary()
	for _, req := range b.replies {
		req.answer.Summary = &summary
	}
	a.batch, a.spare = a.spare, batch{}
	a.flying, a.flownAt = &b, time.Now()
	epoch := a.lease.Epoch
	go func() { // ends by itself: the append's context does
		ctx, cancel := context.WithTimeout(context.Background(), appendWait)
		defer cancel()
		a.landed <- a.r.e.o.Journal.Append(ctx, epoch, b.records)
	}()
}

// land takes the outcome of a commit: publish, then answer; or, after a failure, end, for the memory is poison.
func (a *actor) land(err error) error {
	b := a.flying
	a.flying = nil
	m := a.r.e.metrics
	m.appendSeconds.Observe(time.Since(a.flownAt).Seconds())
	if err != nil {
		m.appendFailures.Inc()
		cause := ErrStorage
		if errors.Is(err, journal.ErrFenced) {
			cause, err = ErrElsewhere, errFenced
		} else {
			a.r.unwritten.failed(a.r.e.monotonic())
		}
		for _, req := range b.replies {
			req.reply <- result{err: cause}
		}
		a.fail(cause)
		return err
	}
	a.r.unwritten.mended()
	m.batchEvents.Observe(float64(len(b.events)))
	m.count(b.events)
	last := b.records[len(b.records)-1].Seq
	out := projection.Batch{Room: a.r.stream, Epoch: a.lease.Epoch, After: b.records[0].Seq - 1, Events: b.events}
	a.r.publisher.add(out) // before the view moves, so that whoever reads the view finds every event of it here
	if err := a.r.e.live.Apply(context.Background(), out); err != nil {
		for _, req := range b.replies {
			req.reply <- result{err: ErrStorage}
		}
		a.fail(ErrStorage)
		return fmt.Errorf("publish to the live view: %w", err)
	}
	summary := a.state.Summary()
	a.r.promises.note(b.events, &summary, a.state, m.etaRatio.Observe)
	for _, req := range b.replies {
		req.answer.Seq = last
	}
	a.reply(b)
	a.spare = b.empty()
	if a.batchIdle() && last-a.snapped >= snapEvents {
		a.snapshot()
	}
	return nil
}

func (a *actor) batchIdle() bool { return len(a.batch.events) == 0 }

// reply answers a batch: a lease that is no longer trusted answers nothing, not even what needed no event.
func (a *actor) reply(b *batch) {
	if len(b.replies) == 0 {
		return
	}
	trusted := a.r.trusted()
	var summary *room.Summary
	for _, req := range b.replies { // which is the caller's again from its reply on
		switch {
		case len(b.events) == 0 && !trusted:
			req.reply <- result{err: ErrStorage}
		case req.answer.refused != nil:
			req.reply <- result{err: req.answer.refused}
		default:
			if req.answer.Summary == nil {
				if summary == nil {
					s := a.state.Summary()
					summary = &s
				}
				req.answer.Summary, req.answer.Seq = summary, a.head.Seq
			}
			req.reply <- result{}
		}
	}
}

// fail answers everything that is undecided or not durable.
func (a *actor) fail(err error) {
	for _, req := range a.batch.replies {
		req.reply <- result{err: err}
	}
	for _, req := range a.backlog {
		req.reply <- result{err: err}
	}
	a.batch, a.backlog = batch{}, nil
	if b := a.flying; b != nil {
		a.flying = nil
		outcome := <-a.landed // bounded by appendWait; whether it was committed shows when the room is taken again
		if !errors.Is(outcome, journal.ErrFenced) {
			err = ErrStorage // it may have been
		}
		for _, req := range b.replies {
			req.reply <- result{err: err}
		}
	}
}

// finish makes what was decided durable, keeps a snapshot and gives the lease up.
func (a *actor) finish() error {
	for a.flying != nil || len(a.batch.events)+len(a.batch.replies) > 0 {
		if a.flying == nil {
			a.launch()
			continue
		}
		if err := a.land(<-a.landed); err != nil {
			return err
		}
	}
	a.fail(ErrElsewhere)
	a.snapshot()
	ctx, cancel := context.WithTimeout(context.Background(), callerWait)
	defer cancel()
	return a.r.e.o.Journal.Release(ctx, a.lease)
}

// snapshot keeps the state, which is the durable one whenever nothing is decided and not committed.
func (a *actor) snapshot() {
	if a.head.Seq == a.snapped {
		return
	}
	s := journal.Snapshot{Stream: a.r.stream, Seq: a.head.Seq, Hash: a.head.Hash, Format: room.SnapshotFormat, State: a.state.AppendBinary(nil)}
	a.snapped = s.Seq
	save := func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := a.r.e.o.Journal.SaveSnapshot(ctx, s); err != nil {
			a.r.log.Warn("a snapshot was not kept; the next start will take longer", "seq", s.Seq, "error", err)
		}
	}
	a.r.background(save)
}
