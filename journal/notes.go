package journal

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sort"
	"time"
)

// Note is what is personal about one act, kept beside the journal so that it can be erased, and found by the act's cause (domain.md rule 4).
type Note struct {
	Cause  string    // ULID of the command; one note each
	Stream string    // where the act is recorded
	At     time.Time // about when; whole microseconds
	Name   string    // a name that the act gave somebody
	From   string    // the address it came from
	Reason string    // why, in the operator's words
}

// Notes keeps them. A note is written before its act: an act that was recorded has its note, a note may be of an act that was refused.
type Notes interface {
	// WriteNote stores a note in place of any with its cause. ErrInvalid for text that no storage can hold.
	WriteNote(ctx context.Context, n Note) error
	// FindNotes returns the notes of those causes that have one.
	FindNotes(ctx context.Context, causes []string) (map[string]Note, error)
	// EraseNotes removes the notes of some causes.
	EraseNotes(ctx context.Context, causes ...string) error
	// ForgetNotes removes addresses and reasons from notes of before an instant, and says of how many; names stay.
	ForgetNotes(ctx context.Context, before time.Time) (n int, err error)
}

// Acts is what an audit reads: the records that somebody caused who is neither a visitor nor the clock.
type Acts interface {
	// Acts calls fn for the acts that q asks for, newest first, until fn returns an error (which it returns) or there are no more. The record is only
	// valid during the call.
	Acts(ctx context.Context, q ActQuery, fn func(*Record) error) error
	// Former is the newest record of a stream before seq that is of one of the kinds, each of which [Shapes]; ok=false when there is none.
	Former(ctx context.Context, stream string, seq int64, kinds ...string) (r Record, ok bool, err error)
}

// ActQuery says which acts. What is empty does not matter.
type ActQuery struct {
	Stream string    // exactly
	Actor  string    // exactly
	Kind   string    // exactly
	Since  time.Time // at or after
	Until  time.Time // before
	After  *ActPlace // only what comes later in the answer, that is, what is older
}

// ActPlace is where an act stands among all: newest first, then by stream and seq, both descending.
type ActPlace struct {
	At     time.Time
	Stream string
	Seq    int64
}

// Caused reports whether an act is somebody's.
func Caused(actor string) bool { return actor != "visitor" && actor != "clock" }

// Shapes reports whether events of a kind say what a room is, and not who is in it. There are few of them, and storages find them fast.
func Shapes(kind string) bool {
	switch kind {
	case "create", "configure", "state", "schedule", "draw", "close", "delete":
		return true
	}
	return false
}

// wants reports whether q asks for r.
func (q *ActQuery) wants(r *Record) bool {
	return Caused(r.Actor) && (q.Stream == "" || r.Stream == q.Stream) && (q.Actor == "" || r.Actor == q.Actor) && (q.Kind == "" || r.Kind == q.Kind) &&
		(q.Since.IsZero() || !r.At.Before(q.Since)) && (q.Until.IsZero() || r.At.Before(q.Until)) &&
		(q.After == nil || q.After.before(r))
}

// before reports whether r is listed after p.
func (p *ActPlace) before(r *Record) bool {
	if c := r.At.Compare(p.At); c != 0 {
		return c < 0
	}
	if r.Stream != p.Stream {
		return r.Stream < p.Stream
	}
	return r.Seq < p.Seq
}

// validNote reports whether any storage can hold n.
func validNote(n *Note) error {
	for _, text := range []string{n.Stream, n.Name, n.From, n.Reason} {
		if !plain(text) {
			return fmt.Errorf("%w: a note with a text that cannot be stored", ErrInvalid)
		}
	}
	if n.Cause == "" || !plain(n.Cause) || n.At.Nanosecond()%1000 != 0 {
		return fmt.Errorf("%w: a note without a cause or a time", ErrInvalid)
	}
	return nil
}

// WriteNote implements [Notes].
func (m *Memory) WriteNote(ctx context.Context, n Note) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("notes: write: %w", err)
	}
	if err := validNote(&n); err != nil {
		return err
	}
	n.At = n.At.UTC()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notes[n.Cause] = n
	return nil
}

// FindNotes implements [Notes].
func (m *Memory) FindNotes(ctx context.Context, causes []string) (map[string]Note, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("notes: find: %w", err)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	found := make(map[string]Note, len(causes))
	for _, c := range causes {
		if n, ok := m.notes[c]; ok {
			found[c] = n
		}
	}
	return found, nil
}

// EraseNotes implements [Notes].
func (m *Memory) EraseNotes(ctx context.Context, causes ...string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("notes: erase: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range causes {
		delete(m.notes, c)
	}
	return nil
}

// ForgetNotes implements [Notes].
func (m *Memory) ForgetNotes(ctx context.Context, before time.Time) (forgotten int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("notes: forget: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for c, n := range m.notes {
		if n.At.Before(before) && (n.From != "" || n.Reason != "") {
			n.From, n.Reason = "", ""
			m.notes[c] = n
			forgotten++
		}
	}
	return forgotten, nil
}

// Acts implements [Acts].
func (m *Memory) Acts(ctx context.Context, q ActQuery, fn func(*Record) error) error {
	heads, err := m.Streams(ctx, q.Stream)
	if err != nil {
		return err
	}
	var acts []Record
	for _, h := range heads {
		for seq := int64(1); seq <= h.Seq; {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("journal: acts: %w", err)
			}
			page := m.page(h.Stream, seq, h.Seq)
			for i := range page {
				if q.wants(&page[i]) {
					acts = append(acts, page[i])
				}
			}
			seq += int64(len(page))
		}
	}
	sort.Slice(acts, func(i, j int) bool {
		return (&ActPlace{acts[i].At, acts[i].Stream, acts[i].Seq}).before(&acts[j])
	})
	for i := range acts {
		acts[i].Body = bytes.Clone(acts[i].Body)
		if err := fn(&acts[i]); err != nil {
			return err
		}
	}
	return nil
}

// Former implements [Acts].
func (m *Memory) Former(ctx context.Context, stream string, seq int64, kinds ...string) (Record, bool, error) {
	head, err := m.Head(ctx, stream)
	if err != nil {
		return Record{}, false, err
	}
	for at := min(seq-1, head.Seq); at >= 1; {
		from := (at - 1) / pageSize * pageSize
		page := m.page(stream, from+1, at)
		for i := len(page) - 1; i >= 0; i-- {
			if r := page[i]; slices.Contains(kinds, r.Kind) && Shapes(r.Kind) {
				r.Body = bytes.Clone(r.Body)
				return r, true, nil
			}
		}
		at = from
	}
	return Record{}, false, nil
}
