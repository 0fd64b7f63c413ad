package valkey_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"qm/engine/room"
	"qm/internal/testenv"
	"qm/projection"
	"qm/projection/projectiontest"
	"qm/projection/valkey"
)

// soon is far more than any call may take whose context ends after a fraction of it.
const soon = 10 * time.Second

// everyCall makes each call of a store, and says what came of it.
func everyCall(t *testing.T, s *valkey.Store, h *projectiontest.House) map[string]error {
	t.Helper()
	limited := func(call func(context.Context) error) error {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		begun := time.Now()
		err := call(ctx)
		if took := time.Since(begun); took > soon {
			t.Errorf("a call took %s", took)
		}
		return err
	}
	v := s.View(h.Stream)
	return map[string]error{
		"ping": limited(s.Ping),
		"apply": limited(func(ctx context.Context) error {
			b := projection.Batch{Room: h.Stream, Epoch: h.Epoch, After: h.Seq - 1, Events: []room.Event{{Body: &room.StateChange{}}}, State: h.State}
			return s.Apply(ctx, b)
		}),
		"reset":    limited(func(ctx context.Context) error { return s.Reset(ctx, h.Stream, h.Epoch, h.Seq, h.State) }),
		"position": limited(func(ctx context.Context) error { _, err := s.Position(ctx, h.Stream); return err }),
		"summary":  limited(func(ctx context.Context) error { _, _, err := v.Summary(ctx); return err }),
		"ticket":   limited(func(ctx context.Context) error { _, _, err := v.Ticket(ctx, 1); return err }),
		"handle":   limited(func(ctx context.Context) error { _, _, err := v.Handle(ctx, 1); return err }),
		"dump":     limited(func(ctx context.Context) error { _, err := s.Dump(ctx, h.Stream); return err }),
		"mark":     limited(func(ctx context.Context) error { return s.MarkSeen(ctx, h.Stream, 1, 1, []room.Ticket{1}) }),
		"seen":     limited(func(ctx context.Context) error { _, err := s.SeenSince(ctx, h.Stream, 1, 1, 2); return err }),
	}
}

func everyCallFails(t *testing.T, s *valkey.Store, h *projectiontest.House) {
	t.Helper()
	for call, err := range everyCall(t, s, h) {
		if err == nil || errors.Is(err, projection.ErrNoRoom) || errors.Is(err, projection.ErrGap) || errors.Is(err, projection.ErrStale) {
			t.Errorf("%s of a server out of reach: %v", call, err)
		}
	}
}

func everyCallWorks(t *testing.T, s *valkey.Store, h *projectiontest.House) {
	t.Helper()
	for call, err := range everyCall(t, s, h) {
		if err != nil {
			t.Errorf("%s: %v", call, err)
		}
	}
}

// recovers pings until the server answers: connecting again takes a moment.
func recovers(t *testing.T, s *valkey.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	for {
		err := s.Ping(ctx)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("the store does not connect again: %v", err)
		}
	}
}

func TestServerLost(t *testing.T) {
	server := testenv.OwnValkey(t)
	s, err := valkey.Open(t.Context(), server.URL, valkey.Options{Timeout: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	h := projectiontest.NewHouse(t, stream, 1)
	h.Join(t, 100, true)
	h.Reset(t, s)
	everyCallWorks(t, s, h)
	hints, err := s.Watch(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}

	server.Kill()
	everyCallFails(t, s, h)
	server.Start()
	recovers(t, s)

	// The projection is gone: readers learn it, and the owner builds it anew.
	if _, _, err := s.View(stream).Ticket(t.Context(), 1); !errors.Is(err, projection.ErrNoRoom) {
		t.Errorf("a ticket of a lost projection: %v", err)
	}
	h.Join(t, 1, true)
	if err := s.Apply(t.Context(), h.Batch()); !errors.Is(err, projection.ErrGap) {
		t.Errorf("a batch for a lost projection: %v", err)
	}
	h.Reset(t, s)
	projectiontest.Same(t, s, h, nil, nil)

	// A watcher that was there before hears again.
	for heard := false; !heard; {
		h.Join(t, 1, true)
		h.Publish(t, s)
		select {
		case <-hints:
			heard = true
		case <-t.Context().Done():
			t.Fatal("the watcher hears nothing any more")
		case <-time.After(50 * time.Millisecond):
		}
	}
	server.FlushAll()
	if at, err := s.Position(t.Context(), stream); err != nil || at != (projection.Position{}) {
		t.Errorf("position after a loss: %+v, %v", at, err)
	}
}

func TestServerStalls(t *testing.T) {
	server := testenv.OwnValkey(t)
	s, err := valkey.Open(t.Context(), server.URL, valkey.Options{Timeout: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	h := projectiontest.NewHouse(t, stream, 1)
	h.Reset(t, s)
	server.Pause()
	everyCallFails(t, s, h)
	server.Resume()
	recovers(t, s)
	h.Reset(t, s)
	projectiontest.Same(t, s, h, nil, nil)
	everyCallWorks(t, s, h)
}

func TestServerNotUpYet(t *testing.T) {
	server := testenv.OwnValkey(t)
	server.Stop()
	s, err := valkey.Open(t.Context(), server.URL, valkey.Options{Timeout: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	h := projectiontest.NewHouse(t, stream, 1)
	everyCallFails(t, s, h)
	server.Start()
	recovers(t, s)
	h.Reset(t, s)
	projectiontest.Same(t, s, h, nil, nil)
}

func TestEvictionIsReported(t *testing.T) {
	server := testenv.OwnValkey(t)
	s, err := valkey.Open(t.Context(), server.URL, valkey.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	c := server.Client(t)
	for policy, fine := range map[string]bool{"allkeys-lru": false, "volatile-ttl": false, "noeviction": true} {
		if err := c.Do(t.Context(), c.B().ConfigSet().ParameterValue().ParameterValue("maxmemory-policy", policy).Build()).Error(); err != nil {
			t.Fatal(err)
		}
		if err := s.Ping(t.Context()); (err == nil) != fine {
			t.Errorf("with %s: %v", policy, err)
		}
	}
}

// A full server refuses batches whole: nothing of them is visible, and the owner can go on when there is room again.
func TestServerFull(t *testing.T) {
	server := testenv.OwnValkey(t)
	s, err := valkey.Open(t.Context(), server.URL, valkey.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	c := server.Client(t)
	limit := func(bytes string) {
		t.Helper()
		if err := c.Do(t.Context(), c.B().ConfigSet().ParameterValue().ParameterValue("maxmemory", bytes).Build()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	h := projectiontest.NewHouse(t, stream, 1)
	h.Join(t, 50, true)
	h.Reset(t, s)
	before := *h
	before.State = h.State.Lean()
	limit("1")
	h.Join(t, 50, true)
	batch := h.Batch()
	if err := s.Apply(t.Context(), batch); err == nil {
		t.Fatal("a full server took a batch")
	}
	if err := s.Reset(t.Context(), stream, 1, h.Seq, h.State); err == nil {
		t.Fatal("a full server took a reset")
	}
	if at, err := s.Position(t.Context(), stream); err != nil || at.Seq != before.Seq {
		t.Fatalf("position %+v, %v", at, err)
	}
	limit("0")
	projectiontest.Same(t, s, &before, nil, nil)
	if err := s.Apply(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	projectiontest.Same(t, s, h, nil, nil)
}

func TestOpenRefusesNonsense(t *testing.T) {
	for _, url := range []string{"", "http://127.0.0.1:6379", "redis://127.0.0.1:port", "127.0.0.1"} {
		if s, err := valkey.Open(t.Context(), url, valkey.Options{}); err == nil {
			s.Close()
			t.Errorf("%q was taken", url)
		}
	}
}

func TestCloseLeavesNothingRunning(t *testing.T) {
	vk := testenv.Valkey(t)
	existing := goleak.IgnoreCurrent()
	s, err := valkey.Open(t.Context(), vk.URL, valkey.Options{Prefix: vk.Prefix})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	for range 3 {
		if _, err := s.Watch(ctx, stream); err != nil {
			t.Fatal(err)
		}
	}
	h := projectiontest.NewHouse(t, stream, 1)
	h.Reset(t, s)
	cancel()
	s.Close()
	if err := s.Ping(t.Context()); err == nil {
		t.Error("a closed store answers")
	}
	goleak.VerifyNone(t, existing)
}
