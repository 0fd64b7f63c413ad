package journal_test

import (
	"testing"
	"testing/synctest"
	"time"

	"qm/journal"
	"qm/journal/journaltest"
)

func TestMemory(t *testing.T) {
	journaltest.Run(t, func(*testing.T) (journal.Journal, journal.Vault) {
		m := journal.NewMemory()
		return m, m
	})
}

// In a bubble the leases run on its clock.
func TestMemoryInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := journal.NewMemory()
		if _, err := m.Acquire(t.Context(), "s", "a", 8*time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(8*time.Second - 1)
		if _, err := m.Acquire(t.Context(), "s", "b", 8*time.Second); err == nil {
			t.Fatal("the lease ran out too soon")
		}
		time.Sleep(time.Nanosecond)
		if l, err := m.Acquire(t.Context(), "s", "b", 8*time.Second); err != nil || l.Epoch != 2 {
			t.Fatalf("%+v, %v", l, err)
		}
	})
}

func TestMemoryOnOtherClock(t *testing.T) {
	now := time.Unix(1000, 0)
	m := journal.NewMemoryAt(func() time.Time { return now })
	if _, err := m.Acquire(t.Context(), "s", "a", time.Second); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Second)
	if l, err := m.Acquire(t.Context(), "s", "b", time.Second); err != nil || l.Epoch != 2 {
		t.Fatalf("%+v, %v", l, err)
	}
}

func TestMemoryNotes(t *testing.T) {
	journaltest.RunNotes(t, func(*testing.T) journaltest.Audited { return journal.NewMemory() })
}
