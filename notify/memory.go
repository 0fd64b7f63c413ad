package notify

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Memory is the Queue of a process without a database: what it holds dies with it.
type Memory struct {
	kinds Kinds
	log   *slog.Logger
	now   func() time.Time

	mu      sync.Mutex
	waiting map[string][]Job // by kind, in order of RunAt
	open    map[jobName]bool // not come to an end
	running map[string]int   // by kind
	arrive  chan struct{}    // one pending at most
}

type jobName struct{ kind, key string }

var _ Queue = (*Memory)(nil)

// NewMemory makes a queue of these kinds.
func NewMemory(log *slog.Logger, now func() time.Time, kinds Kinds) *Memory {
	return &Memory{
		kinds: kinds, log: log, now: now, waiting: make(map[string][]Job), open: make(map[jobName]bool),
		running: make(map[string]int), arrive: make(chan struct{}, 1),
	}
}

// Enqueue implements [Queue].
func (q *Memory) Enqueue(_ context.Context, jobs ...Job) error {
	if err := q.kinds.Check(jobs); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	for _, j := range jobs {
		name := jobName{j.Kind, j.Key}
		if q.open[name] {
			continue
		}
		q.open[name] = true
		if j.RunAt.Before(now) {
			j.RunAt = now
		}
		j.Attempt, j.Payload = 0, slices.Clone(j.Payload)
		q.put(j)
	}
	q.hint()
	return nil
}

// put puts a job behind those that are due no later.
func (q *Memory) put(j Job) {
	list := q.waiting[j.Kind]
	i, _ := slices.BinarySearchFunc(list, j, func(a, b Job) int {
		if a.RunAt.After(b.RunAt) {
			return 1
		}
		return -1
	})
	q.waiting[j.Kind] = slices.Insert(list, i, j)
}

func (q *Memory) hint() {
	select {
	case q.arrive <- struct{}{}:
	default:
	}
}

// Waiting implements [Queue].
func (q *Memory) Waiting(_ context.Context, kind string) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting[kind]) + q.running[kind], nil
}

// Run implements [Queue].
func (q *Memory) Run(ctx context.Context) error {
	working, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	var workers sync.WaitGroup
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			late := time.AfterFunc(StopTime, cut)
			defer late.Stop()
			workers.Wait()
			return nil
		case <-q.arrive:
		case <-timer.C:
		}
		next := q.start(func(j Job) { workers.Go(func() { q.do(working, j) }) })
		if !next.IsZero() {
			timer.Reset(max(next.Sub(q.now()), 0))
		}
	}
}

// start begins every job that is due and finds a free worker, and says when the next one is due (zero: none that is not
// waiting for a worker).
func (q *Memory) start(begin func(Job)) (next time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	for name, kind := range q.kinds {
		for q.running[name] < kind.Workers && len(q.waiting[name]) > 0 {
			j := q.waiting[name][0]
			if j.RunAt.After(now) {
				if next.IsZero() || j.RunAt.Before(next) {
					next = j.RunAt
				}
				break
			}
			q.waiting[name] = q.waiting[name][1:]
			q.running[name]++
			j.Attempt++
			begin(j)
		}
	}
	return next
}

func (q *Memory) do(ctx context.Context, j Job) {
	kind := q.kinds[j.Kind]
	again, err := kind.Do(ctx, j)
	if err != nil {
		q.log.Warn("a job failed", "kind", j.Kind, "attempt", j.Attempt, "again", again, "error", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running[j.Kind]--
	if again {
		j.RunAt = q.now().Add(kind.Backoff(j.Attempt))
		q.put(j)
	} else {
		delete(q.open, jobName{j.Kind, j.Key})
	}
	q.hint()
}
