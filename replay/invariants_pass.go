package replay

import (
	"qm/engine/room"
)

// pass checks I8 to I13. Spans and ghosts are corrected to the tickets that can pass before they are applied.
func (v *verifier) pass(b *room.Pass) room.Body {
	clockPass := b.By == "clock"
	if b.By != "clock" && b.By != "flush" {
		v.found(PassSpans, "it is by %q, neither the clock nor a flush", b.By)
	}
	if clockPass {
		switch {
		case v.sum.Mode != room.Active:
			v.found(ClockShut, "the clock passes while the room is %s", v.sum.Mode)
		case v.sum.OpensAt != 0:
			v.found(ClockShut, "the clock passes before the doors open")
		case v.sum.Settings.RatePerMinute == 0:
			v.found(ClockShut, "the clock passes at rate 0")
		}
	}
	spans, passed := v.spans(b.Spans)
	ghosts, slotless := v.ghosts(b.Ghosts, spans)
	paid := passed - slotless
	if passed == 0 {
		return nil
	}
	v.fifo(spans, passed)
	v.slots(b, paid)
	if last := spans[len(spans)-1][1]; clockPass && len(ghosts) > 0 && ghosts[len(ghosts)-1][1] == last {
		v.found(GhostAlone, "ticket %d passes by the clock as a ghost, and no paid pass behind it takes it along", last)
	}
	left := b.Credit
	if clockPass {
		left = v.spend(paid, left)
	} else {
		left = v.credit(left) // a flush ignores the rate: it leaves the clock's credit as it is
	}
	for _, span := range spans {
		for n := span[0]; n <= span[1]; n++ {
			v.passed.Add(n)
			v.unwait(n)
		}
	}
	return &room.Pass{By: b.By, Spans: spans, Ghosts: ghosts, Credit: left}
}

// spend checks I11 for a pass by the clock and returns what can be left at most.
func (v *verifier) spend(paid int, left int64) int64 {
	rest := v.meter.most - perPass*int64(paid)
	switch {
	case left < 0:
		v.found(Credit, "a credit of %d ticket-milliseconds is recorded; it is never below 0", left)
	case left > rest:
		v.found(Overserved, "%d paid passes leave %d ticket-milliseconds; the rate can have earned %d for both, and a pass costs %d",
			paid, left, v.meter.most, perPass)
	}
	v.meter.most = min(max(left, 0), max(rest, 0))
	return v.meter.most
}

// spans checks I8 (that spans ascend is checked where bodies are read) and returns the spans of those that can pass, and their number.
func (v *verifier) spans(in []room.Span) (out []room.Span, count int) {
	if len(in) == 0 {
		v.found(PassSpans, "nobody passes")
	}
	for _, span := range in {
		if last := v.sum.LastTicket; span[1] > last {
			v.found(PassStranger, "ticket %d passes; the last ticket is %d", span[1], last)
			if span[1] = last; span[0] > last {
				continue
			}
		}
		for n := span[0]; n <= span[1]; n++ {
			p := v.s.Ticket(n)
			switch {
			case p.Status != room.Waiting && v.passed.Has(n):
				v.found(PassTwice, "ticket %d passes a second time", n)
				continue
			case p.Status != room.Waiting:
				v.found(PassStranger, "ticket %d passes; it is %s", n, statusName(p))
				continue
			case p.Held:
				v.found(PassHeld, "ticket %d passes; it is held", n)
			}
			count++
			if k := len(out); k > 0 && out[k-1][1] == n-1 {
				out[k-1][1] = n
			} else {
				out = append(out, room.Span{n, n})
			}
		}
	}
	return out, count
}

// ghosts checks I10 and returns the ghosts among spans, and their number.
func (v *verifier) ghosts(in, spans []room.Span) (out []room.Span, count int) {
	presence := v.sum.Settings.PresenceSec
	if len(in) > 0 && presence == nil {
		v.found(GhostOff, "ticket %d passes as a ghost; the room has no ghost rule", in[0][0])
	}
	end := room.Ticket(0)
	for _, span := range in {
		if span[0] == 0 || span[0] > span[1] || span[0] <= end {
			v.found(GhostStranger, "the span of ghosts %d to %d is not after those before it", span[0], span[1])
			continue
		}
		end = span[1]
		inside := 0
		for _, whole := range spans {
			from, to := max(span[0], whole[0]), min(span[1], whole[1])
			if from > to {
				continue
			}
			out = append(out, room.Span{from, to})
			inside += int(to-from) + 1
			if presence == nil {
				continue
			}
			for n := from; n <= to; n++ {
				// Nobody can be seen with a ticket before there is one: observation begins with it.
				born := v.s.Ticket(n).JoinedAt
				if v.drawn[0] <= n && n <= v.drawn[1] {
					born = v.drawnAt
				}
				if v.at < born+room.Instant(*presence)*1000 {
					v.found(GhostSeen, "ticket %d passes as a ghost; there is such a ticket since %s, for less than %d s", n, clock(born), *presence)
				}
			}
		}
		if inside != int(span[1]-span[0])+1 {
			v.found(GhostStranger, "among the ghosts %d to %d are tickets that do not pass", span[0], span[1])
		}
		count += inside
	}
	return out, count
}

// fifo checks I9: with the last of them, every passable ticket before it must pass.
func (v *verifier) fifo(spans []room.Span, passed int) {
	for _, span := range spans {
		for n := span[0]; n <= span[1]; n++ {
			if v.sum.Held > 0 && v.s.Ticket(n).Held {
				passed-- // it is not among those who are counted ahead
			}
		}
	}
	last := spans[len(spans)-1][1]
	p := v.s.Ticket(last)
	ahead := p.Ahead
	if !p.Held {
		ahead++
	}
	if skipped := ahead - passed; skipped > 0 {
		v.found(FIFO, "ticket %d passes and %d passable before it stay behind", last, skipped)
	}
}

// slots checks I12.
func (v *verifier) slots(b *room.Pass, paid int) {
	limit := v.sum.Settings.MaxConcurrent
	switch {
	case limit == nil:
	case paid > 0 && int64(v.sum.Slots+paid) > *limit && b.By == "flush":
		v.found(FlushSlots, "a flush takes %d slots; %d of %d were in use", paid, v.sum.Slots, *limit)
	case paid > 0 && int64(v.sum.Slots+paid) > *limit:
		v.found(Slots, "%d slots are taken; %d of %d were in use", paid, v.sum.Slots, *limit)
	}
}

// unslot checks I22.
func (v *verifier) unslot(b *room.Unslot) room.Body {
	good := v.each(b.Tickets, func(n room.Ticket, again bool) bool {
		p := v.s.Ticket(n)
		if p.Status != room.Passed || !p.Slot || again {
			v.found(UnslotStranger, "the slot of ticket %d is taken back; it has none to give", n)
			return false
		}
		if presence := v.sum.Settings.PresenceSec; presence == nil {
			v.found(UnslotEarly, "the slot of ticket %d is taken back; the room has no ghost rule", n)
		} else if v.at < p.PassedAt+room.Instant(*presence)*1000 {
			v.found(UnslotEarly, "the slot of ticket %d is taken back; it passed at %s, less than %d s before", n, clock(p.PassedAt), *presence)
		}
		return true
	})
	if len(good) == 0 {
		return nil
	}
	return &room.Unslot{Tickets: good}
}

// each walks a list of tickets and returns those that keep approves of; again tells that the list names the ticket a second time.
func (v *verifier) each(list []room.Ticket, keep func(n room.Ticket, again bool) bool) []room.Ticket {
	var (
		good   = make([]room.Ticket, 0, len(list))
		seen   map[room.Ticket]bool
		before room.Ticket
	)
	for i, n := range list {
		if seen == nil && n <= before { // most lists ascend and need no memory
			seen = make(map[room.Ticket]bool, len(list))
			for _, m := range list[:i] {
				seen[m] = true
			}
		}
		again := seen[n]
		if seen != nil {
			seen[n] = true
		}
		before = n
		if keep(n, again) {
			good = append(good, n)
		}
	}
	return good
}
