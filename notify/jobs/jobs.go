// Package jobs is notify.Queue in Postgres, by River: what was added survives the process, and any number of processes share
// the work. Only cmd names it.
package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"qm/notify"
)

// Queue implements [notify.Queue].
type Queue struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
	kinds  notify.Kinds
	log    *slog.Logger
}

var _ notify.Queue = (*Queue)(nil)

// Options of [Open].
type Options struct {
	MigrateURL string // DATABASE_MIGRATE_URL: the role that owns the tables; "": the server's own
	Log        *slog.Logger
}

const (
	maxConns       = 6 // one of them listens
	connectTimeout = 3 * time.Second
	startRetry     = time.Second
	// finishedFor is how long River keeps a job that has come to an end.
	finishedFor = time.Hour
	// rescueAfter is after how long a job counts as lost with the process that did it.
	rescueAfter = notify.JobTime + 15*time.Second
)

// open are the states of a job that has not come to an end.
var open = []rivertype.JobState{
	rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateRetryable, rivertype.JobStateScheduled,
}

// Open migrates River's tables into the schema that the URL's search_path names, and makes a queue of these kinds. It
// fails when the database cannot be reached.
func Open(ctx context.Context, databaseURL string, o Options, kinds notify.Kinds) (*Queue, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("jobs: parse the database URL: %w", err)
	}
	prepare(config)
	if err := migrate(ctx, config, o); err != nil {
		return nil, fmt.Errorf("jobs: migrate: %w", err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("jobs: open the pool: %w", err)
	}
	q := &Queue{pool: pool, kinds: kinds, log: o.Log}
	workers, queues := river.NewWorkers(), make(map[string]river.QueueConfig, len(kinds))
	river.AddWorker(workers, &worker{q: q})
	for name, k := range kinds {
		queues[name] = river.QueueConfig{MaxWorkers: k.Workers}
	}
	q.client, err = river.NewClient(riverpgxv5.New(pool), &river.Config{
		Logger: slog.New(quiet{o.Log.Handler()}), Queues: queues, Workers: workers, JobTimeout: notify.JobTime + time.Second,
		CompletedJobRetentionPeriod: finishedFor, CancelledJobRetentionPeriod: finishedFor, DiscardedJobRetentionPeriod: finishedFor,
		RescueStuckJobsAfter: rescueAfter, SoftStopTimeout: notify.StopTime,
		ReindexerIndexNames: []string{}, // the server's role may not own the tables
	})
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("jobs: make the client: %w", err)
	}
	return q, nil
}

func prepare(config *pgxpool.Config) {
	if c := &config.ConnConfig.Config; c.ConnectTimeout <= 0 || c.ConnectTimeout > connectTimeout {
		c.ConnectTimeout = connectTimeout
	}
	config.ConnConfig.RuntimeParams["application_name"] = "qm jobs"
	config.MaxConns = maxConns
}

// Close gives up the connections. Run has ended before.
func (q *Queue) Close() { q.pool.Close() }

// args is a job as River keeps it. All our kinds are one of River's, each with a queue of its own, so that a slow kind does not
// keep the others.
type args struct {
	Name string          `json:"kind" river:"unique"`
	Key  string          `json:"key" river:"unique"`
	Body json.RawMessage `json:"body,omitempty"`
}

func (args) Kind() string { return "qm" }

// Enqueue implements [notify.Queue].
func (q *Queue) Enqueue(ctx context.Context, jobs ...notify.Job) error {
	if err := q.kinds.Check(jobs); err != nil {
		return err
	}
	seen := make(map[[2]string]bool, len(jobs))
	params := make([]river.InsertManyParams, 0, len(jobs))
	for _, j := range jobs {
		name := [2]string{j.Kind, j.Key}
		if seen[name] {
			continue
		}
		seen[name] = true
		params = append(params, river.InsertManyParams{
			Args: args{Name: j.Kind, Key: j.Key, Body: j.Payload},
			InsertOpts: &river.InsertOpts{
				Queue: j.Kind, MaxAttempts: q.kinds[j.Kind].Attempts, ScheduledAt: j.RunAt,
				UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: open},
			},
		})
	}
	if len(params) == 0 {
		return nil
	}
	if _, err := q.client.InsertMany(ctx, params); err != nil {
		return fmt.Errorf("jobs: enqueue %d of %s: %w", len(params), jobs[0].Kind, err)
	}
	return nil
}

// Waiting implements [notify.Queue].
func (q *Queue) Waiting(ctx context.Context, kind string) (n int, err error) {
	err = q.pool.QueryRow(ctx, `select count(*) from river_job where queue = $1 and state in ('available', 'pending', 'running', 'retryable', 'scheduled')`, kind).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("jobs: count the %s: %w", kind, err)
	}
	return n, nil
}

// Run implements [notify.Queue]. A database that is away is waited for.
func (q *Queue) Run(ctx context.Context) error {
	for {
		err := q.client.Start(ctx)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return nil
		}
		q.log.Warn("the job queue did not start, and will be started again", "error", err)
		timer := time.NewTimer(startRetry)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
	<-q.client.Stopped()
	return nil
}

// worker does every kind.
type worker struct {
	river.WorkerDefaults[args]
	q *Queue
}

// Work does one attempt.
func (w *worker) Work(ctx context.Context, row *river.Job[args]) error {
	kind := w.q.kinds[row.Args.Name]
	if kind.Handle == nil {
		return fmt.Errorf("nobody here does %q", row.Args.Name) // another version of the server may
	}
	j := notify.Job{Kind: row.Args.Name, Key: row.Args.Key, Payload: row.Args.Body, RunAt: row.ScheduledAt, Attempt: row.Attempt}
	again, err := kind.Do(ctx, j)
	if err != nil {
		w.q.log.Warn("a job failed", "kind", j.Kind, "attempt", j.Attempt, "again", again, "error", err)
	}
	if err != nil && !again {
		return river.JobCancel(err)
	}
	return err
}

// NextRetry says when the next attempt is due.
func (w *worker) NextRetry(row *river.Job[args]) time.Time {
	backoff := w.q.kinds[row.Args.Name].Backoff
	if backoff == nil {
		return time.Now().Add(time.Minute)
	}
	return time.Now().Add(backoff(row.Attempt))
}

// quiet passes on what River says of itself, but for what it says of each failed job, which the worker has said already.
type quiet struct{ slog.Handler }

// Enabled lets warnings through.
func (h quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}

// Handle leaves out failed jobs.
func (h quiet) Handle(ctx context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "Job errored") || strings.Contains(r.Message, "Job cancelled") {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs keeps the filter.
func (h quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{h.Handler.WithAttrs(attrs)} }

// WithGroup keeps the filter.
func (h quiet) WithGroup(name string) slog.Handler { return quiet{h.Handler.WithGroup(name)} }

var errNoSchema = errors.New("no schema of the search_path exists")
