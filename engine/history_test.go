package engine

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"qm/engine/room"
	"qm/projection"
	"qm/replay"
)

// recorded expects the stored history to be what the journal says, and to have rows.
func (h *house) recorded(least int) {
	h.t.Helper()
	compared, findings, err := replay.DiffHistory(h.ctx, h.memory, h.series, stream, h.now())
	if err != nil || len(findings) > 0 || compared < least {
		h.t.Fatalf("%d rows of history compared, at least %d expected: %v %v", compared, least, err, findings)
	}
}

// The history is written down by whoever owns the room, over kills and take-overs, and equals what the journal says.
//
// Proves: metrics.series
func TestHistoryOverTakeovers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := newHouse(t, t.Context())
		defer h.closeAll()
		p := h.open()
		h.build(p, func(s *room.Settings) { s.RatePerMinute, s.PassedTTLSec = 30, 90 })
		visitor := 0
		for i := range 90 {
			for range i % 7 {
				visitor++
				if _, err := h.join(p, visitor); err != nil {
					t.Fatal(err)
				}
			}
			switch i {
			case 20, 50:
				h.kill(p) // what was not written down is in the journal
				p = h.open()
				h.within(time.Minute, "the room is taken over", func() bool { return h.owns(p) })
			case 40:
				nap(70 * time.Minute) // most of it without events
			case 80:
				h.close(p)
				p = h.open()
				h.within(time.Minute, "the room is taken up again", func() bool { return h.owns(p) })
			}
			nap(time.Minute)
		}
		nap(3 * time.Minute)
		synctest.Wait()
		h.recorded(80)
		rows, err := p.History(h.ctx, "shop", projection.PerHour, 0, math.MaxInt64)
		if err != nil || len(rows) < 3 {
			t.Fatalf("%d hours, %v", len(rows), err)
		}
		joined := uint32(0)
		for _, r := range rows {
			joined += r.Joined
		}
		if int(joined) != visitor {
			t.Fatalf("%d joined according to the hours, %d did", joined, visitor)
		}
	})
}

// Who asks for the history gets this minute too.
func TestHistoryOfNow(t *testing.T) {
	inHouse(t, nil, func(h *house, p *process) {
		h.joins(p, 1, 5, 1)
		synctest.Wait()
		minute := h.now().Unix() / 60
		rows, err := p.History(h.ctx, "shop", projection.PerMinute, minute, minute+1)
		if err != nil || len(rows) != 1 || rows[0].Joined != 5 {
			t.Fatalf("%+v %v", rows, err)
		}
		if _, err := p.History(h.ctx, "none", projection.PerMinute, 0, 1); err == nil {
			t.Fatal("a room that does not exist has a history")
		}
	})
}

// A week of minutes and two years of hours are kept.
func TestHistoryIsPruned(t *testing.T) {
	inHouse(t, nil, func(h *house, p *process) {
		minute := h.now().Unix() / 60
		old := room.Minute{Minute: minute - projection.MinutesFor - 200}
		ancient := room.Minute{Minute: projection.Hour(minute - projection.HoursFor - 200)}
		for span, rows := range map[projection.Span][]room.Minute{projection.PerMinute: {old}, projection.PerHour: {ancient, {Minute: projection.Hour(old.Minute)}}} {
			if err := h.series.Save(h.ctx, "production/other", span, 1, rows); err != nil {
				t.Fatal(err)
			}
		}
		left := func(span projection.Span) int {
			rows, err := h.series.Load(h.ctx, "production/other", span, 0, math.MaxInt64)
			if err != nil {
				t.Fatal(err)
			}
			return len(rows)
		}
		h.within(2*pruneEvery, "old rows go", func() bool { return left(projection.PerMinute) == 0 && left(projection.PerHour) == 1 })
	})
}
