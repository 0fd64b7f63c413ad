package valkey_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	client "github.com/valkey-io/valkey-go"

	"qm/engine/room"
	"qm/internal/testenv"
	"qm/projection/projectiontest"
	"qm/projection/valkey"
)

// BenchmarkApply compares batches of 1,000 joins with what a hash a ticket would cost: one HSET each, pipelined by DoMulti, in
// alternating slices on the same server. "ratio" is how many times faster the pages are, "bytes/ticket" what they take; of the medians,
// because whatever else the machine does falls on some slices.
func BenchmarkApply(b *testing.B) {
	const batch = 1000
	vk := testenv.Valkey(b)
	s, err := valkey.Open(b.Context(), vk.URL, valkey.Options{Prefix: vk.Prefix})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	c := vk.Client(b)
	h := projectiontest.NewHouse(b, stream, 1)
	settings := room.DefaultSettings()
	settings.QueueMaxPerIP = nil
	h.Must(b, room.Reconfigure{Settings: settings})
	h.Reset(b, s)

	var pages, hashes []time.Duration
	tickets := 0
	for b.Loop() {
		h.Join(b, batch, false)
		prepared := h.Batch()
		start := time.Now()
		if err := s.Apply(b.Context(), prepared); err != nil {
			b.Fatal(err)
		}
		pages = append(pages, time.Since(start))

		start = time.Now()
		commands := make(client.Commands, 0, batch)
		for _, e := range prepared.Events {
			j := e.Body.(*room.Join)
			commands = append(commands, c.B().Hset().Key(vk.Prefix+"t:"+strconv.Itoa(int(j.Ticket))).FieldValue().
				FieldValue("status", "1").FieldValue("holder", client.BinaryString(j.Holder[:])).
				FieldValue("at", strconv.FormatInt(int64(e.At), 10)).Build())
		}
		for _, answer := range c.DoMulti(b.Context(), commands...) {
			if err := answer.Error(); err != nil {
				b.Fatal(err)
			}
		}
		hashes = append(hashes, time.Since(start))
		tickets += batch
	}
	b.ReportMetric(float64(sum(hashes))/float64(sum(pages)), "ratio")
	b.ReportMetric(float64(median(hashes))/float64(median(pages)), "median-ratio")
	b.ReportMetric(batch/median(pages).Seconds(), "tickets/s")
	b.ReportMetric(float64(memoryOf(b, c, vk.Prefix+"qm:*"))/float64(tickets), "bytes/ticket")
	b.ReportMetric(0, "ns/op")
}

func sum(slices []time.Duration) (total time.Duration) {
	for _, d := range slices {
		total += d
	}
	return total
}

// median tells what a slice takes while nobody else has the processor.
func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// memoryOf adds up the memory of all keys of a pattern.
func memoryOf(t testing.TB, c client.Client, pattern string) (total int64) {
	for _, key := range keysOf(t, c, pattern) {
		n, err := c.Do(context.Background(), c.B().MemoryUsage().Key(key).Samples(0).Build()).AsInt64()
		if err != nil {
			t.Fatalf("memory of %s: %v", key, err)
		}
		total += n
	}
	return total
}

func keysOf(t testing.TB, c client.Client, pattern string) (keys []string) {
	t.Helper()
	for cursor, first := uint64(0), true; first || cursor != 0; first = false {
		page, err := c.Do(context.Background(), c.B().Scan().Cursor(cursor).Match(pattern).Count(1000).Build()).AsScanEntry()
		if err != nil {
			t.Fatal(err)
		}
		keys, cursor = append(keys, page.Elements...), page.Cursor
	}
	return keys
}

// BenchmarkTicket reads a place in a line of 1,000,000: one round trip.
func BenchmarkTicket(b *testing.B) {
	vk := testenv.Valkey(b)
	s, err := valkey.Open(b.Context(), vk.URL, valkey.Options{Prefix: vk.Prefix})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	h := projectiontest.NewHouse(b, stream, 1)
	settings := room.DefaultSettings()
	settings.QueueMaxPerIP = nil
	h.Must(b, room.Reconfigure{Settings: settings})
	h.Join(b, 1_000_000, false)
	h.Reset(b, s)
	v := s.View(stream)
	n := room.Ticket(0)
	for b.Loop() {
		n = (n + 7919) % 1_000_000
		if _, p, err := v.Ticket(b.Context(), n+1); err != nil || p.Ahead != int(n) {
			b.Fatal(p, err)
		}
	}
}
