package replay

import (
	"qm/engine/room"
)

// waitForgotten is how long a waiting ticket that nobody polls for stays in line (domain.md rule 6), in milliseconds.
const waitForgotten = 24 * 3600 * 1000

// enter checks I17.
func (v *verifier) enter(b *room.Enter) room.Body {
	p := v.s.Ticket(b.Ticket)
	switch p.Status {
	case room.Passed:
		if p.Expired(v.sum.Settings, v.at) {
			v.found(EnterLate, "ticket %d enters; it passed at %s and was good for %d s", b.Ticket, clock(p.PassedAt), v.sum.Settings.PassedTTLSec)
		}
	case room.Inside:
		if v.at > p.EnteredAt+room.Instant(v.sum.Settings.SessionMaxSec)*1000 {
			v.found(EnterLate, "ticket %d enters again; its door session is from %s and could last %d s", b.Ticket, clock(p.EnteredAt), v.sum.Settings.SessionMaxSec)
		}
		if b.CodeAt != 0 && b.CodeAt <= p.CodeAt {
			v.found(CodeSpent, "ticket %d enters with the code of %s; the one of %s was spent before", b.Ticket, clock(b.CodeAt), clock(p.CodeAt))
		}
	default:
		v.found(EnterStranger, "ticket %d enters; it is %s", b.Ticket, statusName(p))
		return nil
	}
	return b
}

func (v *verifier) renew(b *room.Renew) room.Body {
	good := v.each(b.Tickets, func(n room.Ticket, again bool) bool {
		if p := v.s.Ticket(n); p.Status != room.Inside || again {
			v.found(RenewStranger, "the door session of ticket %d is renewed; the ticket is %s", n, statusName(p))
			return false
		}
		return true
	})
	if len(good) == 0 {
		return nil
	}
	return &room.Renew{Tickets: good}
}

// leave checks I18.
func (v *verifier) leave(b *room.Leave) room.Body {
	tickets := v.each(b.Tickets, func(n room.Ticket, again bool) bool {
		p := v.s.Ticket(n)
		if !p.Live() || again {
			v.found(LeaveStranger, "ticket %d is given back; it is %s", n, statusName(p))
			return false
		}
		if p.Status == room.Waiting {
			v.unwait(n)
		}
		return true
	})
	handles := make([]room.Handle, 0, len(b.Handles))
	for i, q := range b.Handles {
		p, again := v.s.Handle(q), false
		for _, other := range b.Handles[:i] {
			again = again || other == q
		}
		if p.Status != room.Enqueued || again {
			v.found(LeaveStranger, "handle %d is given back; it is %s", q, statusName(p))
			continue
		}
		handles = append(handles, q)
		v.leaveEntry(q)
	}
	if len(tickets)+len(handles) == 0 {
		return nil
	}
	return &room.Leave{Tickets: tickets, Handles: handles}
}

// leaveEntry notes that a handle has left the pre-queue.
func (v *verifier) leaveEntry(q room.Handle) {
	if e := v.entry(q); e != nil && e.id != 0 {
		if v.entered[e.id]--; v.entered[e.id] == 0 {
			delete(v.entered, e.id)
		}
	}
}

// lapse checks I19.
func (v *verifier) lapse(b *room.Lapse) room.Body {
	status, ok := map[string]room.Status{"pass": room.Passed, "door": room.Inside, "wait": room.Waiting}[b.Why]
	if !ok {
		v.found(LapseWhy, "places lapse for the reason %q, which there is not", b.Why)
	}
	set := v.sum.Settings
	good := v.each(b.Tickets, func(n room.Ticket, again bool) bool {
		p := v.s.Ticket(n)
		if !p.Live() || again || ok && p.Status != status {
			v.found(LapseStranger, "ticket %d lapses as %q; it is %s", n, b.Why, statusName(p))
			return false
		}
		var due room.Instant
		switch {
		case !ok:
		case p.Status == room.Passed:
			due = p.PassedAt + room.Instant(set.PassedTTLSec)*1000
		case p.Status == room.Inside:
			due = min(p.SeenAt+room.Instant(set.SessionTTLSec)*1000, p.EnteredAt+room.Instant(set.SessionMaxSec)*1000)
		default:
			due = p.JoinedAt + waitForgotten
		}
		if ok && v.at <= due {
			v.found(LapseEarly, "ticket %d lapses as %q; that can be after %s", n, b.Why, clock(due))
		}
		if p.Status == room.Waiting {
			v.unwait(n)
		}
		return true
	})
	if len(good) == 0 {
		return nil
	}
	return &room.Lapse{Why: b.Why, Tickets: good}
}
