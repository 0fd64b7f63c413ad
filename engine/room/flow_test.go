package room

import "testing"

// TestAFullRoomPromisesWhatItsSlotsGive: the rate, and the rush that filled the slots, say nothing of a full room (contract.md 10;
// seed 004, estWaitSec).
func TestAFullRoomPromisesWhatItsSlotsGive(t *testing.T) {
	limit := int64(2)
	const start Instant = 1_000_000_000
	s := Summary{
		Exists: true, Mode: Active, Slots: 2, Waiting: 10,
		Settings: &Settings{RatePerMinute: 600, MaxConcurrent: &limit},
	}
	s.Flow.Since = start
	s.Flow.passed(start, 2)
	if sec, ok := s.ETA(0, start); !ok || sec != 1 {
		t.Errorf("at once, with nothing measured: %d, %v", sec, ok)
	}
	if sec, ok := s.ETA(9, start+90_000); ok {
		t.Errorf("full for a minute and a half, with nobody let in: %d s, not null", sec)
	}
	if sec, _, ok := s.Wait(start + 90_000); ok {
		t.Errorf("who joins now: %d s, not null", sec)
	}
	s.Flow.passed(start+95_000, 1)
	s.Flow.passed(start+125_000, 1)
	if sec, ok := s.ETA(9, start+130_000); !ok || sec != 300 {
		t.Errorf("two in the last minute, ten to go: %d, %v, not 300", sec, ok)
	}
	// Nobody queues: the next one still waits for a slot.
	s.Waiting, s.Flow.Since = 0, 0
	if sec, _, ok := s.Wait(start + 300_000); ok {
		t.Errorf("full, nobody let in, nobody queued: %d s, not null", sec)
	}
	s.Slots = 1
	if sec, _, ok := s.Wait(start + 300_000); !ok || sec != 0 {
		t.Errorf("a slot is free: %d, %v, not 0", sec, ok)
	}
}
