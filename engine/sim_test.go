package engine

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"qm/engine/room"
	"qm/journal"
	"qm/projection"
)

// world is a house under everything that can happen to it, and what its visitors were promised.
type world struct {
	*house
	rt    *rapid.T
	fired map[string]int // over all histories

	mu    sync.Mutex
	steps int
	acks  []ack
}

// ack is a place that a visitor was given: what the journal must hold, whatever happens after.
type ack struct {
	visitor    int
	asked, got int // steps of the world
	generation uint32
	ticket     room.Ticket
	handle     room.Handle
	cause      string
	seq        int64
	fresh      bool
}

func (w *world) step() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steps++
	return w.steps
}

// retryable are the answers after which a visitor asks again.
func retryable(err error) bool {
	return errors.Is(err, ErrStorage) || errors.Is(err, ErrBusy) || errors.Is(err, ErrElsewhere)
}

// refusal says whether err is an answer of the room that the simulation expects.
func refusal(err error) bool {
	var r room.Refusal
	return errors.As(err, &r) && r != room.ErrDrawDue && r != room.ErrDrawNotDue && r != room.ErrCommitment && r != room.ErrRoomExists
}

// visit asks for a place through p, and again through anybody who answers after an error.
func (w *world) visit(p *process, visitor, tries int) {
	for range tries {
		asked := w.step()
		ans, err := p.Join(w.ctx, "shop", fmt.Sprint("session-", visitor), network(visitor%6), uint8(visitor%80))
		switch {
		case err == nil:
			if ans.Place.Ticket == 0 && ans.Place.Handle == 0 {
				return // bypass
			}
			got := w.step()
			w.mu.Lock()
			w.acks = append(w.acks, ack{visitor, asked, got, ans.Place.Generation, ans.Place.Ticket, ans.Place.Handle, ans.Cause, ans.Seq, ans.Fresh})
			w.mu.Unlock()
			return
		case refusal(err):
			return
		case !retryable(err):
			panic(fmt.Sprintf("a join: %v", err))
		}
		nap(250 * time.Millisecond)
		live := w.living()
		p = live[visitor%len(live)]
	}
}

func (w *world) living() (live []*process) {
	for _, p := range w.all {
		if len(p.done) == 0 {
			live = append(live, p)
		}
	}
	return live
}

func (w *world) pick() *process {
	live := w.living()
	return live[rapid.IntRange(0, len(live)-1).Draw(w.rt, "process")]
}

// surge lets many ask at once; some of them twice.
func (w *world) surge() {
	var all sync.WaitGroup
	first := rapid.IntRange(1, 60).Draw(w.rt, "first visitor")
	p := w.pick()
	tries := rapid.IntRange(1, 4).Draw(w.rt, "tries")
	for i := range rapid.IntRange(1, 15).Draw(w.rt, "surge") {
		all.Go(func() { w.visit(p, first+i, tries) })
		if i%4 == 0 {
			all.Go(func() { w.visit(p, first+i, 1) })
		}
	}
	all.Wait()
}

// operate lets an operator do something; storage errors are theirs to retry.
func (w *world) operate() {
	p := w.pick()
	var err error
	switch k := rapid.IntRange(0, 17).Draw(w.rt, "operation"); k {
	case 0, 1:
		rate := rapid.SampledFrom([]int64{0, 60, 600, 6000}).Draw(w.rt, "rate")
		_, err = p.Configure(w.ctx, "shop", "admin", func(s *room.Settings) error { s.RatePerMinute = rate; return nil })
	case 2:
		slots := rapid.Int64Range(1, 30).Draw(w.rt, "slots")
		_, err = p.Configure(w.ctx, "shop", "admin", func(s *room.Settings) error { s.MaxConcurrent = &slots; return nil })
	case 3:
		hold := rapid.Int64Range(40, 100).Draw(w.rt, "hold")
		_, err = p.Configure(w.ctx, "shop", "admin", func(s *room.Settings) error { s.HoldScore = hold; return nil })
	case 4:
		_, err = p.Do(w.ctx, "shop", "admin", room.SetMode{Mode: rapid.SampledFrom([]room.Mode{room.Active, room.Active, room.Paused, room.Bypass}).Draw(w.rt, "mode")})
	case 5:
		_, err = p.Do(w.ctx, "shop", "admin", room.Flush{Count: rapid.IntRange(1, 10).Draw(w.rt, "flush")})
	case 6:
		_, err = p.Do(w.ctx, "shop", "admin", room.EjectTicket{Ticket: room.Ticket(rapid.IntRange(1, 40).Draw(w.rt, "eject"))})
	case 7, 8:
		_, err = p.Schedule(w.ctx, "shop", "admin", w.now().Add(time.Duration(rapid.IntRange(50, 8000).Draw(w.rt, "opens"))*time.Millisecond))
	case 9:
		_, err = p.Schedule(w.ctx, "shop", "admin", time.Time{})
	case 10, 11, 12:
		if len(w.acks) > 0 {
			leaver := w.acks[rapid.IntRange(0, len(w.acks)-1).Draw(w.rt, "leaver")].visitor
			_, err = p.Leave(w.ctx, "shop", fmt.Sprint("session-", leaver))
		}
	default:
		// Whoever has a ticket tries the door, and the first of them to have passed gets in.
		for _, a := range w.acks {
			if a.ticket == 0 {
				continue
			}
			_, err = p.Enter(w.ctx, "shop", 1, a.ticket, fmt.Sprint("session-", a.visitor), 0, room.Holder{byte(a.ticket)})
			if err == nil {
				p.SeenDoor("shop", a.ticket)
			}
			if !refusal(err) {
				break
			}
		}
	}
	if err != nil && !retryable(err) && !refusal(err) {
		w.rt.Fatalf("an operator: %v", err)
	}
}

// injure arms a fault at one process and makes sure that it strikes: somebody writes until it has.
func (w *world) injure() {
	p := w.pick()
	op := rapid.SampledFrom([]journal.Op{journal.OpAppend, journal.OpAppend, journal.OpAppend, journal.OpRenew, journal.OpAcquire, journal.OpRead, journal.OpSnapshot}).Draw(w.rt, "op")
	mode := rapid.SampledFrom([]journal.Mode{journal.FailBefore, journal.FailAfter, journal.Delay}).Draw(w.rt, "how")
	shot := p.faults.Arm(op, mode, rapid.IntRange(1, 2).Draw(w.rt, "times"))
	if mode == journal.Delay {
		time.AfterFunc(time.Duration(rapid.IntRange(1, 9000).Draw(w.rt, "delay"))*time.Millisecond, shot.Release)
	}
	if op == journal.OpAppend {
		go func() {
			_, _ = p.Configure(w.ctx, "shop", "admin", func(*room.Settings) error { return nil })
		}()
		synctest.Wait()
		if len(shot.Fired) > 0 {
			w.fired[fmt.Sprint(op, " ", mode)]++
		}
		return
	}
	// These strike when a room is next taken or a lease next renewed; the end of the history counts them.
}

// disturb is one thing that happens.
func (w *world) disturb() {
	switch k := rapid.IntRange(0, 29).Draw(w.rt, "event"); {
	case k < 10:
		w.surge()
	case k < 16:
		w.operate()
	case k < 20:
		nap(time.Duration(rapid.IntRange(1, 4000).Draw(w.rt, "wait")) * time.Millisecond)
	case k < 24:
		w.injure()
	case k == 24: // kill -9, and a new process
		p := w.pick()
		w.house.kill(p)
		w.open()
		w.fired["kill"]++
	case k == 25: // a graceful restart
		p := w.pick()
		p.faults.Disarm()
		w.house.close(p)
		w.open()
	case k == 26: // another live process; the oldest goes where there are too many
		if live := w.living(); len(live) >= 3 {
			live[0].faults.Disarm()
			w.house.close(live[0])
		}
		w.open()
	case k == 27: // the clock is set
		step := time.Duration(rapid.IntRange(-20_000, 20_000).Draw(w.rt, "step")) * time.Millisecond
		w.ahead.Add(int64(step))
	case k == 28: // a process is cut off for a while
		p := w.pick()
		p.cable.set(rapid.SampledFrom([]cableState{broken, silent}).Draw(w.rt, "cut"))
		hit := p.cable.hit.Load() + p.cable.hung.Load()
		nap(time.Duration(rapid.IntRange(1, 12_000).Draw(w.rt, "cut off")) * time.Millisecond)
		if p.cable.hit.Load()+p.cable.hung.Load() > hit {
			w.fired["cut"]++
		}
		p.cable.set(whole)
	case k == 29:
		w.fault.Arm(projection.Before, projection.After)
		w.fired["projection"] -= w.house.fault.Fired()
		nap(1500 * time.Millisecond)
		w.fired["projection"] += w.house.fault.Fired()
	}
	for _, p := range w.living() { // some of those who wait poll
		for range 4 {
			p.Seen("shop", room.Ticket(rapid.IntRange(1, 60).Draw(w.rt, "poll")))
		}
	}
}

// settle heals everything and waits until the room works again.
func (w *world) settle() {
	for _, p := range w.living() {
		for _, op := range []journal.Op{journal.OpRenew, journal.OpAcquire, journal.OpRead, journal.OpSnapshot} {
			w.fired[string(op)] += p.faults.Fired(op)
		}
		p.faults.Disarm()
		p.cable.set(whole)
	}
	w.ahead.Store(max(w.ahead.Load(), 0))
	var owner *process
	w.within(30*time.Second, "somebody owns the room", func() bool {
		for _, p := range w.living() {
			if w.owns(p) {
				owner = p
			}
		}
		return owner != nil
	})
	nap(10 * time.Second) // a drop on its way opens, the projection catches up
	w.within(30*time.Second, "a join is answered", func() bool {
		for _, p := range w.living() {
			_, err := p.Join(w.ctx, "shop", "session-last", network(200), 0)
			if err == nil || refusal(err) {
				owner = p
				return true
			}
		}
		return false
	})
	nap(3 * time.Second)
	w.judge(owner)
}

// judge holds the journal against everything that was promised.
func (w *world) judge(owner *process) {
	w.verify()
	state, causes := w.fold()
	if err := room.Check(state); err != nil {
		w.rt.Fatalf("the fold: %v", err)
	}
	keys, err := owner.known("shop").keysOf(w.ctx, state.Generation())
	if err != nil {
		w.rt.Fatalf("keys: %v", err)
	}
	holders := w.holders()
	entries := w.entries()
	for _, a := range w.acks {
		h := keys.holder(fmt.Sprint("session-", a.visitor))
		switch {
		case a.generation != state.Generation():
			w.rt.Fatalf("%+v is of another generation", a)
		case a.ticket != 0 && holders[a.ticket] != h:
			w.rt.Fatalf("visitor %d was given ticket %d at seq %d; the journal gives it to somebody else", a.visitor, a.ticket, a.seq)
		case a.ticket == 0 && entries[a.handle] != h:
			w.rt.Fatalf("visitor %d was given handle %d at seq %d; the journal gives it to somebody else", a.visitor, a.handle, a.seq)
		case a.fresh && causes[a.cause] == 0:
			w.rt.Fatalf("visitor %d was given a place by command %s, which is not in the journal", a.visitor, a.cause)
		case a.fresh && causes[a.cause] > a.seq:
			w.rt.Fatalf("visitor %d was answered as of seq %d; the place is seq %d", a.visitor, a.seq, causes[a.cause])
		}
	}
	w.inOrder()
	w.sameEverywhere(owner, state)
	w.fired["places given"] += len(w.acks)
	w.fired["epochs"] += int(owner.known("shop").lease.Epoch)
	w.each(func(e room.Event) { w.fired[e.Body.Kind()]++ })
}

// fold reads the room from the journal, and the last seq of each command.
func (w *world) fold() (*room.State, map[string]int64) {
	state, causes := room.New(), map[string]int64{}
	err := w.memory.Read(w.ctx, stream, 0, func(r *journal.Record) error {
		e, err := room.DecodeBody(r.Kind, r.Version, room.Instant(r.At.UnixMilli()), r.Body)
		if err != nil {
			return err
		}
		state.Apply(e)
		causes[r.Cause] = r.Seq
		return nil
	})
	if err != nil {
		w.rt.Fatalf("fold: %v", err)
	}
	return state, causes
}

func (w *world) each(fn func(e room.Event)) {
	_ = w.memory.Read(w.ctx, stream, 0, func(r *journal.Record) error {
		e, err := room.DecodeBody(r.Kind, r.Version, room.Instant(r.At.UnixMilli()), r.Body)
		if err == nil {
			fn(e)
		}
		return err
	})
}

// holders are who had each ticket: of the join, the draw or the eject that gave it.
func (w *world) holders() map[room.Ticket]room.Holder {
	of := map[room.Ticket]room.Holder{}
	state := room.New()
	w.each(func(e room.Event) {
		state.Apply(e)
		switch b := e.Body.(type) {
		case *room.Join:
			of[b.Ticket] = b.Holder
		case *room.Eject:
			of[b.To] = of[b.Ticket]
		case *room.Draw:
			for i := range b.Count {
				n := b.First + room.Ticket(i)
				of[n] = state.Ticket(n).Holder
			}
		}
	})
	return of
}

func (w *world) entries() map[room.Handle]room.Holder {
	of := map[room.Handle]room.Holder{}
	w.each(func(e room.Event) {
		if b, ok := e.Body.(*room.Enqueue); ok {
			of[b.Handle] = b.Holder
		}
	})
	return of
}

// inOrder: whoever was answered before another asked is before them in line.
func (w *world) inOrder() {
	fresh := slices.DeleteFunc(slices.Clone(w.acks), func(a ack) bool { return !a.fresh || a.ticket == 0 })
	slices.SortFunc(fresh, func(a, b ack) int { return a.got - b.got })
	for i, a := range fresh {
		for _, b := range fresh[i+1:] {
			if a.got < b.asked && a.ticket >= b.ticket {
				w.rt.Fatalf("visitor %d had ticket %d before visitor %d asked, who got %d", a.visitor, a.ticket, b.visitor, b.ticket)
			}
		}
	}
}

// sameEverywhere: what readers see is what the journal says, in every field.
func (w *world) sameEverywhere(owner *process, state *room.State) {
	if !w.owns(owner) {
		w.rt.Fatalf("whoever answers does not own the room")
	}
	synctest.Wait() // the room goes on by itself: look between two of its events
	var live projection.Image
	var at int64
	if err := owner.live.With(stream, func(_, seq int64, s *room.State) error {
		at, live = seq, projection.ImageOf(s)
		return nil
	}); err != nil {
		w.rt.Fatalf("the live view: %v", err)
	}
	if head, _ := w.memory.Head(w.ctx, stream); head.Seq == at {
		state, _ = w.fold()
		if diff := projection.Diff(projection.ImageOf(state), live, 5); len(diff) > 0 {
			w.rt.Fatalf("the live view differs from the journal: %v", diff)
		}
		w.sameAsShared(owner)
	}
	restored, err := room.Restore(state.AppendBinary(nil))
	if err != nil || !bytes.Equal(restored.AppendBinary(nil), state.AppendBinary(nil)) {
		w.rt.Fatalf("a snapshot of the fold: %v", err)
	}
}

// TestSimulation: random histories with surges, waits, operators, faults before and after an append, kills, second owners, cuts, clock
// steps and drops. -rapid.checks makes it longer (make sim).
func TestSimulation(t *testing.T) {
	fired := map[string]int{}
	history := func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			w := &world{house: newHouse(rt, rt.Context()), rt: rt, fired: fired}
			defer w.closeAll()
			p := w.open()
			w.build(p, func(s *room.Settings) {
				s.RatePerMinute = 600
				if rapid.Bool().Draw(rt, "short presence") {
					s.PresenceSec = new(int64)
					*s.PresenceSec = 3
				}
				s.PassedTTLSec, s.SessionTTLSec, s.SessionMaxSec = 20, 10, 30
			})
			for range rapid.IntRange(3, 30).Draw(rt, "events") {
				w.disturb()
			}
			w.settle()
		})
	}
	missing := func() (kinds []string) {
		for _, kind := range []string{
			"append 0", "append 1", "append 2", "kill", "cut", "projection", string(journal.OpRenew), // before, after, delayed
			"join", "pass", "enqueue", "draw", "enter", "leave", "eject", "lapse", "configure",
		} {
			if fired[kind] == 0 {
				kinds = append(kinds, kind)
			}
		}
		return kinds
	}
	// A hundred histories may do without a thing that is rare; a thousand do not.
	for round := 0; round == 0 || round < 10 && len(missing()) > 0 && !t.Failed(); round++ {
		rapid.Check(t, history)
	}
	if kinds := missing(); len(kinds) > 0 && !t.Failed() {
		t.Errorf("these took place in no history: %v", kinds)
	}
	t.Logf("what took place: %v", fired)
}
