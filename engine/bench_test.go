package engine

import (
	"context"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"qm/engine/room"
	"qm/journal"
)

// swallow is a journal whose appends cost nothing and are forgotten.
type swallow struct{ *journal.Memory }

func (swallow) Append(context.Context, int64, []journal.Record) error { return nil }

// BenchmarkJoin measures what a join costs this process, by processor time, which other load on the machine sways less than the
// time that passes: 1,000 callers, and a journal that costs nothing.
func BenchmarkJoin(b *testing.B) {
	const callers = 1000
	memory := journal.NewMemory()
	e := New(Options{Environment: "production", Journal: swallow{memory}, Vault: memory})
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = e.Run(ctx) })
	defer running.Wait()
	defer cancel()
	settings := room.DefaultSettings()
	settings.RatePerMinute, settings.QueueMaxPerIP = 0, nil
	if _, err := e.Create(ctx, "bench", "bench", settings, room.Active, time.Time{}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	before := processorTime(b)
	var left atomic.Int64
	left.Store(int64(b.N))
	var joining sync.WaitGroup
	for range callers {
		joining.Go(func() {
			for n := left.Add(-1); n >= 0; n = left.Add(-1) {
				network := netip.PrefixFrom(netip.AddrFrom4([4]byte{11, byte(n >> 16), byte(n >> 8), byte(n)}), 32)
				if _, err := e.Join(ctx, "bench", strconv.FormatInt(n, 10), network, 0); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	joining.Wait()
	b.ReportMetric(float64((processorTime(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
