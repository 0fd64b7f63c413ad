package replay

import (
	"qm/engine/room"
)

// perPass is what one paid pass costs in ticket-milliseconds (domain.md rule 5).
const perPass = 60_000

// meter is the most credit that the outflow can have earned (I11). The room's owner may have earned less: it ticks now and then,
// never makes up for time without an owner, and takes at most a second a tick. It can never have earned more.
type meter struct {
	at   room.Instant
	most int64 // ticket-milliseconds
}

// advance adds what the rate earned from the event before to now, during which the room was as in sum: rate x elapsed while the clock
// runs, and no more than the idle cap when all that time nobody could be passed.
func (m *meter) advance(sum *room.Summary, now room.Instant) {
	dt := int64(now - m.at)
	m.at = now
	if !sum.Exists || sum.Settings == nil || sum.Mode != room.Active || sum.OpensAt != 0 || dt <= 0 {
		return
	}
	m.most += sum.Settings.RatePerMinute * dt
	if sum.Waiting == 0 || !slotFree(sum) {
		m.most = min(m.most, idleCap(sum.Settings))
	}
}

// idleCap is how much credit may be kept while nobody can be passed.
func idleCap(s *room.Settings) int64 { return max(perPass, s.RatePerMinute*1000) }

func slotFree(sum *room.Summary) bool {
	return sum.Settings.MaxConcurrent == nil || int64(sum.Slots) < *sum.Settings.MaxConcurrent
}
