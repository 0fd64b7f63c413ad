package replay

import (
	"fmt"

	"qm/engine/room"
)

// judge checks an event against the room as it stands before it and returns what of it can be applied; nil when nothing can.
func (v *verifier) judge(b room.Body) room.Body {
	if c, ok := b.(*room.Create); ok {
		return v.create(c)
	}
	if !v.sum.Exists {
		v.found(NoRoom, "%q happens to a room that does not exist", b.Kind())
		return nil
	}
	if _, ok := b.(*room.Draw); !ok && v.sum.OpensAt != 0 && v.at >= v.sum.OpensAt {
		v.found(DrawLate, "%q is timed at or after the doors-open instant %s, and the draw has not been made", b.Kind(), clock(v.sum.OpensAt))
	}
	switch b := b.(type) {
	case *room.Join:
		return v.join(b)
	case *room.Enqueue:
		return v.enqueue(b)
	case *room.Draw:
		return v.draw(b)
	case *room.Schedule:
		return v.schedule(b)
	case *room.Pass:
		return v.pass(b)
	case *room.Unslot:
		return v.unslot(b)
	case *room.Enter:
		return v.enter(b)
	case *room.Renew:
		return v.renew(b)
	case *room.Leave:
		return v.leave(b)
	case *room.Lapse:
		return v.lapse(b)
	case *room.Eject:
		return v.eject(b)
	case *room.Purge:
		return v.purge(b)
	case *room.Configure:
		return &room.Configure{Settings: b.Settings, Credit: v.credit(b.Credit), Reason: b.Reason}
	case *room.StateChange:
		return &room.StateChange{Mode: b.Mode, Credit: v.credit(b.Credit), Reason: b.Reason}
	case *room.Close:
		v.generation(b.Generation)
		v.forget()
		return b
	case *room.Delete:
		v.forget()
		return b
	}
	panic(fmt.Sprintf("replay: no check for events of kind %q", b.Kind()))
}

// create checks I4.
func (v *verifier) create(b *room.Create) room.Body {
	if v.sum.Exists {
		v.found(RoomExists, "the room is created though generation %d exists", v.sum.Generation)
	}
	v.generation(b.Generation)
	v.forget()
	return b
}

func (v *verifier) generation(g uint32) {
	if first := v.report.Records == 1 && v.report.First > 1; first {
		return // retention has cut what came before
	}
	if g != v.sum.Generation+1 {
		v.found(Generation, "generation %d follows generation %d", g, v.sum.Generation)
	}
}

// credit checks I11 where an event carries what is left of the outflow's credit, and returns what can be left at most.
func (v *verifier) credit(left int64) int64 {
	if left < 0 || left > v.meter.most {
		v.found(Credit, "a credit of %d ticket-milliseconds is recorded; it can be 0 to %d", left, v.meter.most)
		left = min(max(left, 0), v.meter.most)
	}
	v.meter.most = left
	return left
}

// ticket checks that a fresh ticket is the next one (I5), and says whether it may be applied.
func (v *verifier) ticket(n room.Ticket) bool {
	due := v.sum.LastTicket + 1
	switch {
	case n < due:
		v.found(TicketReused, "ticket %d was given before; %d was due", n, due)
		return false
	case n > due:
		v.found(TicketGap, "ticket %d is given; %d was due", n, due)
		return n-due < 1<<20 // a number out of the blue would only cost memory
	}
	return true
}

// seat notes a fresh ticket in line.
func (v *verifier) seat(n room.Ticket, id room.Identity) {
	for len(v.identities) <= int(n) {
		v.identities = append(v.identities, 0)
	}
	v.identities[n] = id
	if id != 0 {
		v.inLine[id]++
	}
}

// unwait notes that a waiting ticket has gone from the line.
func (v *verifier) unwait(n room.Ticket) {
	if id := v.identity(n); id != 0 {
		if v.inLine[id]--; v.inLine[id] == 0 {
			delete(v.inLine, id)
		}
	}
}

func (v *verifier) identity(n room.Ticket) room.Identity {
	if int(n) < len(v.identities) {
		return v.identities[n]
	}
	return 0
}

// holder checks I6.
func (v *verifier) holder(h room.Holder) {
	if p, ok := v.s.PlaceOf(h); ok {
		v.found(HolderTwice, "the holder has %s already", placeName(p))
	}
}

func placeName(p room.Place) string {
	if p.Ticket != 0 {
		return fmt.Sprintf("ticket %d", p.Ticket)
	}
	return fmt.Sprintf("handle %d", p.Handle)
}

func (v *verifier) join(b *room.Join) room.Body {
	switch {
	case v.sum.OpensAt != 0:
		v.found(JoinScheduled, "ticket %d is given before the doors have opened; the pre-queue was the place", b.Ticket)
	case v.sum.Mode == room.Idle || v.sum.Mode == room.Bypass:
		v.found(JoinShut, "ticket %d is given while the room is in state %s", b.Ticket, v.sum.Mode)
	}
	ok := v.ticket(b.Ticket)
	v.holder(b.Holder)
	if limit := v.sum.Settings.QueueMaxPerIP; limit != nil && b.Identity != 0 && int64(v.inLine[b.Identity]) >= *limit {
		v.found(CapLine, "ticket %d is waiting place %d of one identity; the cap is %d", b.Ticket, v.inLine[b.Identity]+1, *limit)
	}
	if !ok {
		return nil
	}
	v.seat(b.Ticket, b.Identity)
	return b
}

func (v *verifier) enqueue(b *room.Enqueue) room.Body {
	if v.sum.OpensAt == 0 {
		v.found(EnqueueUnschedule, "handle %d is given while nothing is scheduled", b.Handle)
	} else if v.sum.Mode == room.Idle || v.sum.Mode == room.Bypass {
		v.found(JoinShut, "handle %d is given while the room is in state %s", b.Handle, v.sum.Mode)
	}
	v.holder(b.Holder)
	if limit := v.sum.Settings.PreQueueMaxPerIP; limit != nil && b.Identity != 0 && int64(v.entered[b.Identity]) >= *limit {
		v.found(CapPreQueue, "handle %d is entry %d of one identity; the cap is %d", b.Handle, v.entered[b.Identity]+1, *limit)
	}
	switch due := v.sum.LastHandle + 1; {
	case b.Handle < due:
		v.found(HandleReused, "handle %d was given before; %d was due", b.Handle, due)
		return nil
	case b.Handle > due:
		v.found(HandleGap, "handle %d is given; %d was due", b.Handle, due)
		if b.Handle-due >= 1<<20 {
			return nil
		}
	}
	if v.sum.PreQueue >= room.MaxEntries {
		v.found(CapPreQueue, "handle %d is one more than the %d entries that a pre-queue may have", b.Handle, room.MaxEntries)
	}
	v.entries = append(v.entries, entry{b.Handle, b.Identity})
	if b.Identity != 0 {
		v.entered[b.Identity]++
	}
	return b
}

// eject checks I20 and the number of the new ticket.
func (v *verifier) eject(b *room.Eject) room.Body {
	p := v.s.Ticket(b.Ticket)
	if p.Expired(v.sum.Settings, v.at) {
		v.found(EjectStranger, "ticket %d is ejected; its pass of %s, or the door session on it, was over", b.Ticket, clock(p.PassedAt))
	}
	if !p.Live() {
		v.found(EjectStranger, "ticket %d is ejected; it is %s", b.Ticket, statusName(p))
		if b.To == v.sum.LastTicket+1 {
			// Its holder is unknown by now, but the number is used up all the same.
			v.seat(b.To, 0)
			return &room.Join{Ticket: b.To}
		}
		return nil
	}
	if !v.ticket(b.To) {
		return nil
	}
	if p.Status == room.Waiting {
		v.unwait(b.Ticket)
	}
	v.seat(b.To, v.identity(b.Ticket))
	return b
}

// purge checks I21.
func (v *verifier) purge(b *room.Purge) room.Body {
	if waiting := v.sum.Waiting + v.sum.Held; b.Waiting != waiting || b.PreQueue != v.sum.PreQueue {
		v.found(PurgeCount, "%d waiting tickets and %d pre-queue entries are said to be purged; there were %d and %d", b.Waiting, b.PreQueue, waiting, v.sum.PreQueue)
	}
	v.inLine, v.entered = map[room.Identity]int{}, map[room.Identity]int{}
	v.entries = v.entries[:0]
	return b
}

func statusName(p room.Place) string {
	switch p.Status {
	case room.None:
		return "not given"
	case room.Waiting:
		return "waiting"
	case room.Passed:
		return "passed"
	case room.Inside:
		return "at the door"
	case room.Expired:
		return "expired"
	case room.Reset:
		return "ended by an operator"
	case room.Left:
		return "given back"
	case room.Enqueued:
		return "in the pre-queue"
	}
	return fmt.Sprintf("in status %d", p.Status)
}
