package notify_test

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"qm/notify"
	"qm/notify/notifytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemoryQueue(t *testing.T) {
	notifytest.Queue(t, func(*testing.T) notifytest.Store {
		return notifytest.Store{Open: func(_ *testing.T, log *slog.Logger, kinds notify.Kinds) notify.Queue {
			return notify.NewMemory(log, time.Now, kinds)
		}}
	})
}

func TestLedger(t *testing.T) {
	notifytest.Registrations(t, func(*testing.T) notifytest.Table {
		var later atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
		return notifytest.Table{Registrations: notify.NewLedger(now), Age: func(d time.Duration) { later.Add(int64(d)) }}
	})
}
