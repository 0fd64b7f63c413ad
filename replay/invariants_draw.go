package replay

import (
	"sort"

	"qm/engine/room"
)

// schedule checks I14 and I15 as far as a schedule can break them.
func (v *verifier) schedule(b *room.Schedule) room.Body {
	switch {
	case b.OpensAt != 0 && b.Commitment == room.Digest{}:
		v.found(ScheduleSecret, "a drop is scheduled for %s without a commitment", clock(b.OpensAt))
	case b.OpensAt != 0 && v.sum.OpensAt != 0 && b.Commitment != v.sum.Commitment:
		v.found(ScheduleSecret, "the drop is scheduled anew with another secret")
	}
	switch {
	case b.OpensAt != 0 && b.OpensAt < v.at:
		v.found(SchedulePast, "a drop is scheduled for %s, which is past", clock(b.OpensAt))
	case b.OpensAt == 0 && v.sum.PreQueue > 0:
		v.found(ScheduleCancel, "a drop is cancelled with %d entries in the pre-queue; that means to draw at once", v.sum.PreQueue)
	}
	return b
}

// entry finds an entry of the pre-queue by its handle.
func (v *verifier) entry(q room.Handle) *entry {
	i := sort.Search(len(v.entries), func(i int) bool { return v.entries[i].handle >= q })
	if i == len(v.entries) || v.entries[i].handle != q {
		return nil
	}
	return &v.entries[i]
}

// draw checks I14 and I15, and that the drawn tickets are the next ones.
func (v *verifier) draw(b *room.Draw) room.Body {
	switch {
	case v.sum.OpensAt == 0:
		v.found(DrawUnscheduled, "a draw is made and nothing was scheduled")
	case v.at < v.sum.OpensAt:
		v.found(DrawEarly, "the draw is made before the doors-open instant %s", clock(v.sum.OpensAt))
	}
	var ids []room.Identity
	for _, e := range v.entries {
		if v.s.Handle(e.handle).Status == room.Enqueued {
			ids = append(ids, e.id)
		}
	}
	if v.o.onDraw != nil {
		v.o.onDraw(v, b, ids)
	}
	for _, fault := range proveDraw(b, v.sum.Commitment, room.Digest(v.before), ids) {
		v.found(fault.code, "%s", fault.text)
	}
	if b.Count != len(ids) {
		return nil // whom it seats cannot be told
	}
	order, err := room.UnpackOrder(b.Order)
	if err != nil || len(order) != len(ids) {
		return nil
	}
	if b.Count > 0 && !v.ticket(b.First) {
		return nil
	}
	for i, at := range order {
		v.seat(b.First+room.Ticket(i), ids[at])
	}
	v.drawn, v.drawnAt = room.Span{b.First, b.First + room.Ticket(b.Count) - 1}, v.at
	v.entries = v.entries[:0]
	v.entered = map[room.Identity]int{}
	return b
}
