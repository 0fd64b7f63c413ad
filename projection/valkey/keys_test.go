package valkey_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"qm/engine/room"
	"qm/internal/testenv"
	"qm/projection"
	"qm/projection/projectiontest"
	"qm/projection/valkey"
)

// roomKeys lists a test's keys, without prefix and incarnation, and checks that there is one incarnation and no key that expires.
func roomKeys(t *testing.T, vk *testenv.VK, s *valkey.Store) (keys []string) {
	t.Helper()
	at, err := s.Position(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	c := vk.Client(t)
	base := vk.Prefix + "qm:{" + stream + "}:"
	for _, key := range keysOf(t, c, vk.Prefix+"*") {
		ttl, err := c.Do(t.Context(), c.B().Ttl().Key(key).Build()).AsInt64()
		if err != nil || ttl != -1 {
			t.Errorf("%s expires in %d s (%v)", key, ttl, err)
		}
		rest, ok := strings.CutPrefix(key, base)
		if !ok {
			t.Errorf("the key %s does not belong to the room", key)
		}
		if rest != "head" {
			if rest, ok = strings.CutPrefix(rest, at.Incarnation+":"); !ok {
				t.Errorf("%s was left behind", key)
			}
		}
		keys = append(keys, rest)
	}
	slices.Sort(keys)
	return keys
}

func TestKeysComeAndGo(t *testing.T) {
	vk := testenv.Valkey(t)
	s, err := valkey.Open(t.Context(), vk.URL, valkey.Options{Prefix: vk.Prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	h := projectiontest.NewHouse(t, stream, 1)
	settings := room.DefaultSettings()
	settings.QueueMaxPerIP, settings.PreQueueMaxPerIP = nil, nil
	h.Must(t, room.Reconfigure{Settings: settings})
	h.Reset(t, s)
	expect := func(when string, want ...string) {
		t.Helper()
		h.Publish(t, s)
		projectiontest.Same(t, s, h, []room.Ticket{1, 4095, 4096, 5000}, []room.Handle{1, 2})
		slices.Sort(want)
		if got := roomKeys(t, vk, s); !slices.Equal(got, want) {
			t.Errorf("%s: keys %v, want %v", when, got, want)
		}
	}
	expect("an empty room", "head", "c")
	h.Join(t, 5000, false)
	expect("a line", "head", "c", "s:0", "s:1", "t:0", "t:1", "w:0", "w:1")
	h.Must(t, room.Flush{Count: 4500})
	expect("passes", "head", "c", "s:0", "s:1", "t:0", "t:1", "w:1", "l:0", "l:1")
	h.Pass(601_000)
	h.Must(t, room.Tick{})
	expect("passes that lapsed", "head", "c", "s:0", "s:1", "t:1", "w:1", "l:1")
	h.Drop(t, 10, func() {
		expect("a pre-queue", "head", "c", "s:0", "s:1", "t:1", "w:1", "l:1", "q:0", "e:0")
	})
	expect("a draw", "head", "c", "s:0", "s:1", "t:1", "w:1", "l:1", "q:0")
	h.Reset(t, s)
	expect("a reset", "head", "c", "s:0", "s:1", "t:1", "w:1", "q:0")
	h.Must(t, room.CloseRoom{})
	expect("a new generation", "head", "c")
	// A page whose last live ticket ends before the next page begins goes when that begins.
	h.Must(t, room.SetMode{Mode: room.Active})
	h.Join(t, 4095, false)
	expect("a full page", "head", "c", "s:0", "t:0", "w:0")
	h.Must(t, room.PurgeLine{})
	expect("a page that is over", "head", "c", "s:0", "t:0")
	h.Join(t, 1, false)
	expect("the page after it", "head", "c", "s:0", "s:1", "t:1", "w:1")
}

// Several who reset and publish at once leave one incarnation, and nothing of the others.
func TestRivalsLeaveNothingBehind(t *testing.T) {
	vk := testenv.Valkey(t)
	s, err := valkey.Open(t.Context(), vk.URL, valkey.Options{Prefix: vk.Prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	var rivals sync.WaitGroup
	for rival := range int64(4) {
		h := projectiontest.NewHouse(t, stream, 1)
		h.Epoch = 1 + rival
		h.Join(t, 5000, false)
		rivals.Go(func() {
			for range 10 {
				switch err := s.Reset(t.Context(), stream, h.Epoch, h.Seq, h.State); {
				case errors.Is(err, projection.ErrStale) && h.Epoch < 4:
				case err != nil:
					t.Errorf("reset of epoch %d: %v", h.Epoch, err)
				}
			}
		})
	}
	rivals.Wait()
	if at, err := s.Position(t.Context(), stream); err != nil || at.Epoch != 4 {
		t.Errorf("position %+v, %v", at, err)
	}
	roomKeys(t, vk, s)
}

// A prepared write is of the moment at which it was prepared, and may be sent twice: after a lost answer nobody knows whether it
// has happened.
func TestWritesMayBeSentAgain(t *testing.T) {
	vk := testenv.Valkey(t)
	s, err := valkey.Open(t.Context(), vk.URL, valkey.Options{Prefix: vk.Prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	h := projectiontest.NewHouse(t, stream, 1)
	h.Join(t, 100, true)
	reset := s.PrepareReset(stream, 1, h.Seq, h.State)
	h.Batch()
	h.Join(t, 20, true)
	joins := s.Prepare(h.Batch())
	h.Must(t, room.CloseRoom{})
	closing := s.Prepare(h.Batch())
	h.Must(t, room.SetMode{Mode: room.Active})
	h.Join(t, 10, true)
	after := s.Prepare(h.Batch())
	for i, w := range []projection.Write{reset, reset, joins, joins, closing, closing, joins, after, closing, after} {
		if err := w.Send(t.Context()); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
	}
	projectiontest.Same(t, s, h, nil, nil)
	roomKeys(t, vk, s)
}

// What a line of 1,000,000 takes, all told. architecture.md speaks of a few bytes; the bound is 40.
func TestBytesPerTicket(t *testing.T) {
	vk := testenv.Valkey(t)
	s, err := valkey.Open(t.Context(), vk.URL, valkey.Options{Prefix: vk.Prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	h := projectiontest.NewHouse(t, stream, 1)
	settings := room.DefaultSettings()
	settings.QueueMaxPerIP, settings.PreQueueMaxPerIP = nil, nil
	h.Must(t, room.Reconfigure{Settings: settings})
	h.Reset(t, s)
	const batch, batches = 1000, 200
	h.Drop(t, batch*batches, func() {})
	h.Publish(t, s)
	for range batches {
		h.Join(t, batch, false)
		h.Publish(t, s)
	}
	perTicket := float64(memoryOf(t, vk.Client(t), vk.Prefix+"*")) / (2 * batch * batches)
	t.Logf("%.1f bytes a ticket, half of them drawn", perTicket)
	if perTicket > 40 {
		t.Errorf("%.1f bytes a ticket, more than 40", perTicket)
	}
}
