package org

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"qm/journal"
)

const (
	// followEvery is how often a process looks for what others have written: well within the 5 s in which a revocation holds everywhere.
	followEvery = time.Second
	followLimit = 3 * time.Second
	// StaleAfter is how long a book that cannot read the journal is taken for the present one.
	StaleAfter = 5 * time.Second
	// eraseEvery is how often a process looks for notes that are too old.
	eraseEvery = time.Hour
	// changeLimit bounds an append with its retries.
	changeLimit = 3 * time.Second
)

// ErrStorage is a failure of the storage: whether anything was written is unknown.
var ErrStorage = errors.New("org: the storage cannot be reached")

// Options of a Book.
type Options struct {
	Journal journal.Journal
	Notes   journal.Notes
	Vault   journal.Vault    // for secrets of second factors
	Now     func() time.Time // time.Now by default
	// KeepNotes is how long addresses and reasons of acts are kept, in whole days; 0 keeps them until somebody erases them.
	KeepNotes time.Duration
	Log       *slog.Logger
}

// Book is the organisation as this process knows it: it follows the stream and writes to it. It is safe for concurrent use.
type Book struct {
	o       Options
	writing sync.Mutex // so that this process does not overtake itself
	reading sync.Mutex // one follower at a time

	mu    sync.RWMutex // never held while calling out
	state *State
	head  journal.Head
	names map[string]string // of operators; what was erased is not there
	read  time.Time         // when the last look that succeeded began; zero before the first
	fault error             // a record that cannot be read: nothing behind it is known
}

// NewBook makes a book that knows nothing yet; Run and Refresh read.
func NewBook(o Options) *Book {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Book{o: o, state: New(), head: journal.Head{Stream: Stream}, names: map[string]string{}}
}

// Run follows the stream until ctx ends, and erases what is older than KeepNotes.
func (b *Book) Run(ctx context.Context) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	failing := false
	var erased time.Time
	for {
		err := b.Refresh(ctx)
		if failed := err != nil && ctx.Err() == nil; failed != failing {
			if failing = failed; failed {
				b.o.Log.Error("follow the organisation's stream", "err", err)
			} else {
				b.o.Log.Info("the organisation's stream can be read again")
			}
		}
		if now := b.o.Now(); err == nil && b.o.KeepNotes > 0 && now.Sub(erased) >= eraseEvery {
			erased = now // a failure is tried again in an hour
			if n, err := b.EraseOld(ctx); err != nil && ctx.Err() == nil {
				b.o.Log.Error("erase old notes on acts", "err", err)
			} else if n > 0 {
				b.o.Log.Info("old notes on acts were erased", "notes", n)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Refresh reads what was written since the last look.
func (b *Book) Refresh(ctx context.Context) error {
	b.reading.Lock()
	defer b.reading.Unlock()
	ctx, cancel := context.WithTimeout(ctx, followLimit)
	defer cancel()
	began := time.Now()
	b.mu.RLock()
	head, fault := b.head, b.fault
	b.mu.RUnlock()
	if fault != nil {
		return fault
	}
	chain := journal.NewChain(head)
	err := b.o.Journal.Read(ctx, Stream, head.Seq, func(r *journal.Record) error {
		if err := chain.Check(r); err != nil {
			return b.damaged(err)
		}
		e, err := Decode(r)
		if err != nil {
			return b.damaged(fmt.Errorf("seq %d: %w", r.Seq, err))
		}
		b.take(e, chain.Head())
		return nil
	})
	if err != nil {
		return fmt.Errorf("org: follow: %w", err)
	}
	b.mu.Lock()
	b.read = began
	b.mu.Unlock()
	return b.learnNames(ctx)
}

// damaged stops the book for good: guessing at who may do what is worse.
func (b *Book) damaged(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = fmt.Errorf("org: the stream is damaged: %w", err)
	return b.fault
}

func (b *Book) take(e Event, head journal.Head) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state.Apply(e)
	b.head = head
	if _, ok := e.Body.(*Forgotten); ok {
		clear(b.names)
	}
}

// learnNames asks for the names of operators that are not known yet. A name that is missing is no failure.
func (b *Book) learnNames(ctx context.Context) error {
	b.mu.RLock()
	byCause := map[string]string{}
	for id, o := range b.state.operators {
		if _, known := b.names[id]; !known {
			byCause[o.Cause] = id
		}
	}
	b.mu.RUnlock()
	if len(byCause) == 0 {
		return nil
	}
	causes := make([]string, 0, len(byCause))
	for c := range byCause {
		causes = append(causes, c)
	}
	notes, err := b.o.Notes.FindNotes(ctx, causes)
	if err != nil {
		return fmt.Errorf("org: find names: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for cause, id := range byCause {
		b.names[id] = notes[cause].Name
	}
	return nil
}

// Stale reports that this process has not seen the stream for too long, or cannot read it, and why.
func (b *Book) Stale() error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	switch {
	case b.fault != nil:
		return b.fault
	case b.read.IsZero() || time.Since(b.read) > StaleAfter:
		return ErrStorage
	}
	return nil
}

// Look calls fn with the organisation as it is known. fn must neither keep nor change it, and return soon.
func (b *Book) Look(fn func(*State)) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	fn(b.state)
}

// Name is an operator's name, or their id where it was erased.
func (b *Book) Name(id string) string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if name := b.names[id]; name != "" {
		return name
	}
	return id
}

// Head is where the book stands.
func (b *Book) Head() journal.Head {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.head
}

// By is who asks for a change, and what is noted about it.
type By struct {
	Actor  string
	From   string // the client's address
	Reason string
	Name   string // a name that the change gives
}

// Change appends the event that decide makes of the organisation as it stands. Another process may write at the same time: then decide is asked
// again. decide may return nil when nothing is left to do; its errors are returned as they are, and nothing happens. ErrActor when the
// actor may not (any more) do that, ErrReference, ErrStorage.
func (b *Book) Change(ctx context.Context, by By, decide func(*State) (Body, error)) error {
	b.writing.Lock()
	defer b.writing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, changeLimit)
	defer cancel()
	e := Event{Actor: by.Actor, Cause: ulid.Make().String()}
	noted := by.Actor == Clock // of what happens by itself there is nothing personal to note
	for {
		if err := b.Refresh(ctx); err != nil {
			return fmt.Errorf("%w: %w", ErrStorage, err)
		}
		b.mu.RLock()
		head := b.head
		e.At = b.o.Now().UTC().Truncate(time.Millisecond)
		if e.At.Before(b.state.at) {
			e.At = b.state.at // time never runs back, whoever's clock it is
		}
		body, err := decide(b.state)
		if err == nil && body != nil {
			e.Body = body
			err = b.state.Judge(e)
		}
		b.mu.RUnlock()
		if err != nil || body == nil {
			if noted && by.Actor != Clock {
				_ = b.o.Notes.EraseNotes(ctx, e.Cause) // a note without an act says nothing about anybody's act
			}
			return err
		}
		if !noted {
			n := journal.Note{Cause: e.Cause, Stream: Stream, At: e.At, Name: by.Name, From: by.From, Reason: by.Reason}
			if err := b.o.Notes.WriteNote(ctx, n); err != nil {
				return fmt.Errorf("%w: %w", ErrStorage, err)
			}
			noted = true
		}
		batch := []journal.Record{Record(e)}
		journal.Seal(head, batch)
		switch err := b.o.Journal.Append(ctx, 0, batch); {
		case err == nil:
			if err := b.Refresh(ctx); err != nil {
				b.o.Log.Warn("read back what was written to the organisation's stream", "err", err)
			}
			return nil
		case !errors.Is(err, journal.ErrConflict):
			return fmt.Errorf("%w: %w", ErrStorage, err)
		}
	}
}

// Act keeps the note of an act on a room, about which the room's own event will say the rest, and returns the cause that the act must be given.
func (b *Book) Act(ctx context.Context, stream string, by By) (cause string, err error) {
	n := journal.Note{Cause: ulid.Make().String(), Stream: stream, At: b.o.Now().UTC().Truncate(time.Millisecond), From: by.From, Reason: by.Reason}
	if err := b.o.Notes.WriteNote(ctx, n); err != nil {
		return "", fmt.Errorf("%w: %w", ErrStorage, err)
	}
	return n.Cause, nil
}

// Unact erases the note of an act that was refused.
func (b *Book) Unact(ctx context.Context, cause string) {
	if err := b.o.Notes.EraseNotes(ctx, cause); err != nil {
		b.o.Log.Warn("erase the note of an act that did not happen", "err", err)
	}
}

// NewID makes an id for what events name: a prefix and a ULID in lower case.
func NewID(prefix string) string { return prefix + strings.ToLower(ulid.Make().String()) }
