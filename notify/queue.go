// Package notify is the contract of everything that leaves the building: the queue that carries it, and what is kept of
// a visitor who wants to be told. Nothing here knows a protocol: notify/email speaks SMTP, notify/jobs keeps the queue in
// Postgres, notify/turn decides when a visitor's turn is worth a mail.
package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Job is one thing to do outside a request. It holds nothing personal: a Postgres queue keeps its jobs for a while after
// they are done. What must be erasable stays in a side table, and the payload says where.
type Job struct {
	// Kind names who does it: one of the queue's [Kind]s.
	Kind string
	// Key tells this job from others of its kind, at most 200 bytes. While a job of the same kind and key waits, runs or
	// is to be tried again, another one is not added.
	Key string
	// Payload is a JSON value, at most 64 KiB; nil is null.
	Payload json.RawMessage
	// RunAt is when to do it; the zero time, or one that has passed, is at once.
	RunAt time.Time
	// Attempt counts from 1. Whoever adds a job leaves it 0.
	Attempt int
}

// Kind is how jobs of one kind are done in this process.
type Kind struct {
	Name string // 1 to 40 of a-z and _
	// Handle does a job. nil: done. An error: try again after Backoff, up to Attempts times in all. An error that wraps
	// [ErrGiveUp]: never again. It may be called again for a job that it has done, when the process died before that was
	// recorded: what must not happen twice guards itself. Its context ends after [JobTime].
	Handle   func(ctx context.Context, j Job) error
	Workers  int                              // jobs at once in this process; 1 when 0
	Attempts int                              // tries in all; 1 when 0
	Backoff  func(attempt int) time.Duration  // from a failed attempt (1, 2 …) to the next
	GivenUp  func(ctx context.Context, j Job) // told when no further attempt will be made; may be nil
}

// JobTime is how long one attempt may take.
const JobTime = 30 * time.Second

// ErrGiveUp is wrapped by the error of a job that no further attempt would do.
var ErrGiveUp = errors.New("notify: not to be tried again")

// ErrInvalidJob: the job breaks the rules of its fields, or nobody here does its kind. Nothing was added.
var ErrInvalidJob = errors.New("notify: invalid job")

// Limits of a job's fields, in bytes.
const (
	MaxKey     = 200
	MaxPayload = 64 << 10
)

// Queue does jobs: each at least once, as long as attempts are left. What was added is as durable as the stores are: in
// Postgres it survives the process, in memory it dies with it. All methods are safe for concurrent use.
type Queue interface {
	// Enqueue adds jobs, all or none of them; see Job.Key for those that are there already. ErrInvalidJob, or a failure of
	// the storage.
	Enqueue(ctx context.Context, jobs ...Job) error
	// Waiting is how many jobs of a kind have not come to an end.
	Waiting(ctx context.Context, kind string) (int, error)
	// Run does jobs until ctx ends. It lets those that are running come to an end, within [StopTime].
	Run(ctx context.Context) error
}

// StopTime is how long running jobs may go on when the queue is to stop. After it their contexts end.
const StopTime = 5 * time.Second

// Kinds are the kinds of a queue by name.
type Kinds map[string]Kind

// NewKinds checks kinds and gathers them. It panics on a name that no queue could have: that is a bug of this program.
func NewKinds(kinds ...Kind) Kinds {
	all := make(Kinds, len(kinds))
	for _, k := range kinds {
		if !validKind(k.Name) || k.Handle == nil || all[k.Name].Handle != nil {
			panic(fmt.Sprintf("notify: kind %q cannot be", k.Name))
		}
		k.Workers, k.Attempts = max(k.Workers, 1), max(k.Attempts, 1)
		if k.Backoff == nil {
			k.Backoff = func(attempt int) time.Duration { return time.Second << min(attempt, 10) }
		}
		all[k.Name] = k
	}
	return all
}

// Check refuses jobs that break the rules: ErrInvalidJob.
func (all Kinds) Check(jobs []Job) error {
	for _, j := range jobs {
		switch {
		case all[j.Kind].Handle == nil:
			return fmt.Errorf("%w: nobody does %q", ErrInvalidJob, j.Kind)
		case j.Key == "" || len(j.Key) > MaxKey:
			return fmt.Errorf("%w: the key of a %s has %d bytes", ErrInvalidJob, j.Kind, len(j.Key))
		case len(j.Payload) > MaxPayload || j.Payload != nil && !json.Valid(j.Payload):
			return fmt.Errorf("%w: the payload of %s is no JSON of at most %d bytes", ErrInvalidJob, j.Key, MaxPayload)
		}
	}
	return nil
}

// Do makes one attempt. again is false when the job has come to an end, well or not: then GivenUp has been told.
// A panic is an error of the attempt, not the end of the process.
func (k *Kind) Do(ctx context.Context, j Job) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, JobTime)
	defer cancel()
	if err = k.attempt(ctx, j); err == nil {
		return false, nil
	}
	if j.Attempt < k.Attempts && !errors.Is(err, ErrGiveUp) {
		return true, err
	}
	if k.GivenUp != nil {
		k.GivenUp(context.WithoutCancel(ctx), j)
	}
	return false, err
}

func (k *Kind) attempt(ctx context.Context, j Job) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return k.Handle(ctx, j)
}

func validKind(name string) bool {
	if name == "" || len(name) > 40 {
		return false
	}
	for i := range len(name) {
		if c := name[i]; (c < 'a' || c > 'z') && c != '_' {
			return false
		}
	}
	return true
}
