package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"qm/engine/room"
	"qm/journal"
	"qm/projection"
	"qm/replay"
)

func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// verify holds the journal against every invariant.
func (h *house) verify() {
	h.t.Helper()
	_, findings, err := replay.Verify(replay.Stream(h.ctx, h.memory, stream), replay.Options{})
	if err != nil || len(findings) > 0 {
		h.t.Fatalf("verify: %v %v\n%s", err, findings, h.story())
	}
}

// story tells the room's journal, for whoever has to find out what went wrong.
func (h *house) story() string {
	var b bytes.Buffer
	var began time.Time
	_ = h.memory.Read(h.ctx, stream, 0, func(r *journal.Record) error {
		if began.IsZero() {
			began = r.At
		}
		fmt.Fprintf(&b, "%4d %9s %-8s %s\n", r.Seq, r.At.Sub(began), r.Kind, r.Body)
		return nil
	})
	return b.String()
}

// The journal is down: places already held keep being answered, joins are refused at once, passing stops; it comes back by itself.
func TestJournalDown(t *testing.T) {
	for name, state := range map[string]cableState{"refusing": broken, "silent": silent} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, nil, func(h *house, p *process) {
				h.joins(p, 1, 30, 1)
				p.cable.set(state)
				began := time.Now()
				_, err := h.join(p, 31)
				h.expect("the join that finds out", err, ErrStorage)
				if waited := time.Since(began); waited > callerWait {
					t.Errorf("it waited %s", waited)
				}
				nap(10 * time.Second)
				sum, _ := h.ticket(p, 5)
				for range 20 {
					nap(time.Second)
					began := time.Now()
					_, err := h.join(p, 31)
					h.expect("a join", err, ErrStorage)
					if waited := time.Since(began); waited > 0 {
						t.Fatalf("a join waited %s to be refused", waited)
					}
					_, err = p.Do(h.ctx, "shop", "admin", room.Flush{Count: 5})
					h.expect("a flush", err, ErrStorage)
				}
				if p.cable.hit.Load()+p.cable.hung.Load() == 0 {
					t.Fatal("the fault did not fire")
				}
				later, place := h.ticket(p, 30)
				if place.Status != room.Waiting || later.Passes != sum.Passes {
					t.Fatalf("ticket 30 is %+v; %d passes became %d without a journal", place, sum.Passes, later.Passes)
				}
				if health := p.Health(); health.Ready || health.JournalErr == "" {
					t.Errorf("health without a journal: %+v", health)
				}
				p.cable.set(whole)
				h.within(8*time.Second, "the room is owned again", func() bool { return h.owns(p) })
				ans, err := h.join(p, 31)
				if err != nil || ans.Place.Ticket != 31 {
					t.Fatalf("the join that was refused: %+v %v", ans.Place, err)
				}
				nap(time.Second)
				if health := p.Health(); !health.Ready {
					t.Errorf("health: %+v", health)
				}
				now, _ := h.ticket(p, 1)
				if more := now.Passes - later.Passes; more > 4 {
					t.Errorf("%d passed within seconds after the outage, at one a second", more)
				}
				h.verify()
			})
		})
	}
}

// A batch whose answer got lost was committed all the same: a retry finds its place.
func TestLostAnswer(t *testing.T) {
	for name, mode := range map[string]journal.Mode{"before": journal.FailBefore, "after": journal.FailAfter} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, func(s *room.Settings) { s.RatePerMinute = 0 }, func(h *house, p *process) {
				h.joins(p, 1, 3, 1)
				shot := p.faults.Arm(journal.OpAppend, mode, 1)
				_, err := h.join(p, 4)
				h.expect("the join", err, ErrStorage)
				h.struck(shot)
				h.within(3*time.Second, "the room is taken again", func() bool { return h.owns(p) })
				ans, err := h.join(p, 4)
				if err != nil || ans.Place.Ticket != 4 || ans.Fresh != (mode == journal.FailBefore) {
					t.Fatalf("the retry: %+v %v", ans, err)
				}
				h.joins(p, 5, 6, 5)
				h.verify()
			})
		})
	}
}

// An answer that rests on an event of a batch on its way waits for it, a refusal too.
func TestAnswersWaitForWhatTheyRestOn(t *testing.T) {
	inHouse(t, func(s *room.Settings) { s.RatePerMinute, s.QueueMaxPerIP = 0, new(int64) }, func(h *house, p *process) {
		edit := func(s *room.Settings) error { *s.QueueMaxPerIP = 1; return nil }
		if _, err := p.Configure(h.ctx, "shop", "admin", edit); err != nil {
			t.Fatal(err)
		}
		shot := p.faults.Arm(journal.OpAppend, journal.Delay, 1)
		type outcome struct {
			ans Answer
			err error
		}
		ask := func(session string) chan outcome {
			c := make(chan outcome, 1)
			go func() {
				ans, err := p.Join(h.ctx, "shop", session, network(7), 0)
				c <- outcome{ans, err}
			}()
			synctest.Wait()
			return c
		}
		first := ask("session-1")
		h.struck(shot)
		again, refused := ask("session-1"), ask("session-2")
		for name, c := range map[string]chan outcome{"the join": first, "its repetition": again, "a refusal": refused} {
			select {
			case o := <-c:
				t.Fatalf("%s was answered before anything was durable: %+v", name, o)
			default:
			}
		}
		if v, err := p.View(h.ctx, "shop"); err != nil {
			t.Fatal(err)
		} else if sum, _, _ := v.Summary(h.ctx); sum.Waiting != 0 {
			t.Fatalf("readers see %d waiting before they are durable", sum.Waiting)
		}
		shot.Release()
		if o := <-first; o.err != nil || !o.ans.Fresh || o.ans.Place.Ticket != 1 {
			t.Fatalf("the join: %+v", o)
		}
		if o := <-again; o.err != nil || o.ans.Fresh || o.ans.Place.Ticket != 1 {
			t.Fatalf("its repetition: %+v", o)
		}
		if o := <-refused; !errors.Is(o.err, room.ErrQueueIdentityLimit) {
			t.Fatalf("the refusal: %+v", o)
		}
	})
}

// A caller waits 2 s at most; the place that was made after all is found by the retry.
func TestACallerWhoTimesOut(t *testing.T) {
	inHouse(t, func(s *room.Settings) { s.RatePerMinute = 0 }, func(h *house, p *process) {
		shot := p.faults.Arm(journal.OpAppend, journal.Delay, 1)
		began := time.Now()
		_, err := h.join(p, 1)
		h.expect("the join", err, ErrStorage)
		if waited := time.Since(began); waited > callerWait || waited < callerWait-lateStep {
			t.Fatalf("it waited %s", waited)
		}
		h.struck(shot)
		shot.Release()
		ans, err := h.join(p, 1)
		if err != nil || ans.Fresh || ans.Place.Ticket != 1 {
			t.Fatalf("the retry: %+v %v", ans, err)
		}

		// Whoever's context ends waits no longer either.
		shot = p.faults.Arm(journal.OpAppend, journal.Delay, 1)
		ctx, cancel := context.WithTimeout(h.ctx, 100*time.Millisecond)
		defer cancel()
		_, err = p.Join(ctx, "shop", "session-2", network(2), 0)
		h.expect("the join", err, ErrStorage)
		shot.Release()
	})
}

// A request that outlived its caller in the mailbox makes no place.
func TestNoPlaceForACallerWhoHasGone(t *testing.T) {
	inHouse(t, func(s *room.Settings) { s.RatePerMinute = 0 }, func(h *house, p *process) {
		shot := p.faults.Arm(journal.OpAppend, journal.Delay, 1)
		go func() { _, _ = h.join(p, 1) }()
		h.struck(shot)
		r := p.known("shop")
		late := &request{cmd: room.Flush{Count: 1}, actor: "admin", sent: h.now().Add(-callerWait - time.Millisecond), reply: make(chan result, 1)}
		r.mailbox.put(late, true)
		if res := <-late.reply; !errors.Is(res.err, ErrBusy) {
			t.Fatalf("a late request: %+v", res)
		}
		shot.Release()
	})
}

// The mailbox is bounded: visitors are refused at once, and operators still get in.
func TestMailboxFull(t *testing.T) {
	inHouse(t, nil, func(h *house, p *process) {
		r := p.known("shop")
		shot := p.faults.Arm(journal.OpAppend, journal.Delay, 1)
		go func() { _, _ = h.join(p, 1) }()
		h.struck(shot)
		// What the actor has taken waits in its batch; the batch takes batchEvents, the mailbox the rest.
		stuff := func() *request {
			return &request{cmd: room.Reconfigure{Settings: testSettings(60)}, actor: "admin", sent: h.now(), reply: make(chan result, 1)}
		}
		for range batchEvents {
			r.mailbox.put(stuff(), false)
		}
		synctest.Wait()
		r.mailbox.put(stuff(), false) // the backlog
		synctest.Wait()
		for r.mailbox.put(stuff(), false) {
		}
		began := time.Now()
		_, err := h.join(p, 2)
		h.expect("a join", err, ErrBusy)
		_, err = p.Leave(h.ctx, "shop", "session-1")
		h.expect("a leave", err, ErrBusy)
		if waited := time.Since(began); waited != 0 {
			t.Fatalf("they waited %s", waited)
		}
		done := make(chan error, 1)
		go func() {
			_, err := p.Do(h.ctx, "shop", "admin", room.SetMode{Mode: room.Paused})
			done <- err
		}()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("an operator in a surge: %v", err)
		default:
		}
		for range mailboxReserved - 1 {
			if !r.mailbox.put(stuff(), true) {
				t.Fatal("the operators' room is too small")
			}
		}
		_, err = p.Do(h.ctx, "shop", "admin", room.Flush{Count: 1})
		h.expect("an operator beyond that", err, ErrBusy)
		shot.Release()
		if err := <-done; err != nil {
			t.Fatalf("an operator in a surge: %v", err)
		}
	})
}

// A damaged row shuts its room, named by seq; another works on.
func TestDamagedRow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := newHouse(t, t.Context())
		defer h.closeAll()
		p := h.open()
		h.build(p, nil)
		h.joins(p, 1, 5, 1)
		if _, err := p.Create(h.ctx, "other", "admin", testSettings(60), room.Active, time.Time{}); err != nil {
			t.Fatal(err)
		}
		h.kill(p) // leaving no snapshot
		nap(leaseTTL)
		bad := &editor{Memory: h.memory, stream: stream}
		bad.seq.Store(3)
		var log logged
		e := New(Options{Environment: "production", Journal: bad, Vault: h.memory, Now: h.now, Log: slog.New(slog.NewJSONHandler(&log, nil))})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx) }()
		defer func() { stop(); <-done }()
		nap(time.Second)
		_, err := e.Join(ctx, "shop", "session-9", network(9), 0)
		h.expect("a join", err, ErrDamaged)
		_, err = e.View(ctx, "shop")
		h.expect("a read", err, ErrDamaged)
		if ans, err := e.Join(ctx, "other", "session-9", network(9), 0); err != nil || ans.Place.Ticket != 1 {
			t.Fatalf("the other room: %+v %v", ans.Place, err)
		}
		if ids, err := e.Rooms(ctx); err != nil || fmt.Sprint(ids) != "[other]" {
			t.Fatalf("rooms: %v %v", ids, err)
		}
		for _, r := range e.Health().Rooms {
			if (r.Damaged != "") != (r.Room == "shop") || r.Room == "shop" && !strings.Contains(r.Damaged, "seq 3") {
				t.Errorf("health: %+v", r)
			}
		}
		if !strings.Contains(log.String(), `"seq":3`) {
			t.Errorf("the log does not name the row: %s", log.String())
		}
		bad.seq.Store(0) // mended
		nap(damagedRetry + time.Second)
		if ans, err := e.Join(ctx, "shop", "session-9", network(9), 0); err != nil || ans.Place.Ticket != 6 {
			t.Fatalf("after mending: %+v %v", ans.Place, err)
		}
	})
}

// logged keeps what is logged from several goroutines.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// editor changes a row on its way out.
type editor struct {
	*journal.Memory
	stream string
	seq    atomic.Int64
	reseal bool // and makes the chain right again
	change func(*journal.Record)
}

func (e *editor) Read(ctx context.Context, name string, after int64, fn func(*journal.Record) error) error {
	var prev journal.Hash
	return e.Memory.Read(ctx, name, after, func(r *journal.Record) error {
		if name == e.stream && r.Seq == e.seq.Load() {
			if e.change != nil {
				e.change(r)
			} else {
				r.Actor = "somebody else"
			}
		}
		if e.reseal && name == e.stream {
			r.Hash = journal.Sum(prev, r)
		}
		prev = r.Hash
		return fn(r)
	})
}

// A journal whose chain is right but that cannot have happened shuts its room too, and does not take the process with it.
func TestImpossibleRows(t *testing.T) {
	for name, change := range map[string]func(*journal.Record){
		"a draw of entries that are not there": func(r *journal.Record) {
			order := room.PackOrder([]uint32{1, 0})
			r.Kind, r.Version = "draw", 1
			r.Body, _ = room.EncodeBody(nil, &room.Draw{Version: 1, First: 1, Count: 2, Order: order, Digest: room.OrderDigest([]uint32{1, 0})})
		},
		"an unknown kind":         func(r *journal.Record) { r.Kind = "promote" },
		"a body that is not JSON": func(r *journal.Record) { r.Body = []byte(`{"n":`) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				h := newHouse(t, t.Context())
				defer h.closeAll()
				p := h.open()
				h.build(p, func(s *room.Settings) { s.RatePerMinute = 0 })
				h.joins(p, 1, 5, 1)
				h.kill(p)
				nap(leaseTTL)
				bad := &editor{Memory: h.memory, stream: stream, reseal: true, change: change}
				bad.seq.Store(4)
				e := New(Options{Environment: "production", Journal: bad, Vault: h.memory, Now: h.now})
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- e.Run(ctx) }()
				defer func() { stop(); <-done }()
				nap(time.Second)
				_, err := e.Join(ctx, "shop", "session-9", network(9), 0)
				h.expect("a join", err, ErrDamaged)
			})
		})
	}
}

// A snapshot shortens recovery; one that is damaged, of another format or of another history is thrown away.
func TestSnapshots(t *testing.T) {
	for name, spoil := range map[string]func(*journal.Snapshot){
		"good":                nil,
		"damaged":             func(s *journal.Snapshot) { s.State[len(s.State)/2] ^= 1 },
		"empty":               func(s *journal.Snapshot) { s.State = nil },
		"of another format":   func(s *journal.Snapshot) { s.Format++ },
		"of another history":  func(s *journal.Snapshot) { s.Hash[0] ^= 1 },
		"from beyond the end": func(s *journal.Snapshot) { s.Seq += 1000 },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				h := newHouse(t, t.Context())
				defer h.closeAll()
				p := h.open()
				h.build(p, func(s *room.Settings) { s.RatePerMinute = 0 })
				h.joins(p, 1, 50, 1)
				h.close(p)
				snap, ok, err := h.memory.LoadSnapshot(h.ctx, stream)
				if err != nil || !ok || snap.Seq != 51 {
					t.Fatalf("the snapshot at the end of a tenure: seq %d, %v, %v", snap.Seq, ok, err)
				}
				reads := &reading{Memory: h.memory, snap: snap}
				if spoil != nil {
					spoil(&reads.snap)
				}
				q := h.openOn(reads)
				h.within(time.Second, "the room is owned", func() bool { return h.owns(q) })
				if short := reads.records.Load() == 1; short != (spoil == nil) {
					t.Errorf("%d records were read", reads.records.Load())
				}
				h.joins(q, 7, 7, 7)
				h.joins(q, 51, 51, 51)
				h.verify()
			})
		})
	}
}

// reading counts the records that are read and gives a snapshot of its own.
type reading struct {
	*journal.Memory
	snap    journal.Snapshot
	records atomic.Int64
}

func (r *reading) LoadSnapshot(context.Context, string) (journal.Snapshot, bool, error) {
	return r.snap, true, nil
}

func (r *reading) Read(ctx context.Context, stream string, after int64, fn func(*journal.Record) error) error {
	return r.Memory.Read(ctx, stream, after, func(rec *journal.Record) error {
		r.records.Add(1)
		return fn(rec)
	})
}

// A room that the journal's list does not name is refused as not there only after a look that is fresh.
func TestUnknownRooms(t *testing.T) {
	inHouse(t, nil, func(h *house, p *process) {
		_, err := p.View(h.ctx, "none")
		h.expect("a read", err, projection.ErrNoRoom)
		_, err = p.Join(h.ctx, "none", "session-1", network(1), 0)
		h.expect("a join", err, room.ErrRoomNotFound)
		_, err = p.Do(h.ctx, "none", "admin", room.PurgeLine{})
		h.expect("a purge", err, room.ErrRoomNotFound)
		_, err = p.Schedule(h.ctx, "none", "admin", h.now().Add(time.Hour))
		h.expect("a schedule", err, room.ErrRoomNotFound)
		h.expect("an export", p.Export(h.ctx, "none", io.Discard), projection.ErrNoRoom)
		p.cable.set(broken)
		nap(listFresh + 2*time.Second)
		_, err = p.View(h.ctx, "none")
		h.expect("a read without a journal", err, ErrStorage)
		_, err = p.Join(h.ctx, "none", "session-1", network(1), 0)
		h.expect("a join without a journal", err, ErrStorage)
	})
}
