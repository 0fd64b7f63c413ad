package journal

import (
	"bytes"
	"context"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"
)

// Memory is a Journal, a Vault, Notes and Acts in process memory: as strict as the durable one and gone with the process (domain.md rule 2). It has no
// goroutines and does no I/O, so it works inside testing/synctest.
type Memory struct {
	now func() time.Time

	mu      sync.RWMutex // never held while calling out
	streams map[string]*stream
	snaps   map[string]Snapshot
	vault   map[string]map[string][]byte
	notes   map[string]Note // by cause
}

// stream is the head and the records of one stream.
type stream struct {
	head    Head
	owner   string    // "" when nobody holds the lease
	expires time.Time // of the lease
	pages   [][]Record
}

// pageSize is how many records share an allocation. Pages keep a long stream from being copied as it grows, and record
// seq is found at pages[(seq-1)/pageSize][(seq-1)%pageSize].
const pageSize = 1024

var (
	_ Journal = (*Memory)(nil)
	_ Vault   = (*Memory)(nil)
	_ Notes   = (*Memory)(nil)
	_ Acts    = (*Memory)(nil)
)

// NewMemory returns an empty Memory whose leases run on time.Now.
func NewMemory() *Memory { return NewMemoryAt(time.Now) }

// NewMemoryAt is NewMemory with another clock for the leases; now must be safe for concurrent use.
func NewMemoryAt(now func() time.Time) *Memory {
	return &Memory{now: now, streams: map[string]*stream{}, snaps: map[string]Snapshot{}, vault: map[string]map[string][]byte{}, notes: map[string]Note{}}
}

// Acquire implements [Journal].
func (m *Memory) Acquire(ctx context.Context, name, owner string, ttl time.Duration) (Lease, error) {
	if err := ctx.Err(); err != nil {
		return Lease{}, fmt.Errorf("journal: acquire %s: %w", name, err)
	}
	if name == "" || !plain(name) || owner == "" || !plain(owner) {
		return Lease{}, fmt.Errorf("%w: lease of stream %q by owner %q", ErrInvalid, name, owner)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, now := m.stream(name), m.now()
	live := s.owner != "" && now.Before(s.expires)
	if live && s.owner != owner {
		return Lease{}, &HeldError{Stream: name, Owner: s.owner, For: s.expires.Sub(now)}
	}
	if !live {
		s.head.Epoch++
	}
	s.owner, s.expires = owner, now.Add(ttl)
	return Lease{Stream: name, Owner: owner, Epoch: s.head.Epoch, Head: s.head}, nil
}

// stream returns the named stream and creates it if it must; the caller holds the write lock.
func (m *Memory) stream(name string) *stream {
	s := m.streams[name]
	if s == nil {
		s = &stream{head: Head{Stream: name}}
		m.streams[name] = s
	}
	return s
}

// held returns the stream of a lease that is still the newest and not released, or nil; the caller holds the lock.
func (m *Memory) held(l *Lease) *stream {
	if s := m.streams[l.Stream]; s != nil && s.head.Epoch == l.Epoch && s.owner == l.Owner && l.Owner != "" {
		return s
	}
	return nil
}

// Renew implements [Journal].
func (m *Memory) Renew(ctx context.Context, leases []Lease, ttl time.Duration) (lost []string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("journal: renew %d leases: %w", len(leases), err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	expires := m.now().Add(ttl)
	for i := range leases {
		if s := m.held(&leases[i]); s != nil {
			s.expires = expires
		} else {
			lost = append(lost, leases[i].Stream)
		}
	}
	return lost, nil
}

// Release implements [Journal].
func (m *Memory) Release(ctx context.Context, lease Lease) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("journal: release %s: %w", lease.Stream, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.held(&lease); s != nil {
		s.owner = ""
	}
	return nil
}

// Append implements [Journal].
func (m *Memory) Append(ctx context.Context, epoch int64, batch []Record) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("journal: append: %w", err)
	}
	if err := Validate(batch); err != nil {
		return err
	}
	size := 0
	for i := range batch {
		if !ValidBody(batch[i].Body) {
			return fmt.Errorf("%w: %s seq %d: its body is not a JSON object", ErrInvalid, batch[i].Stream, batch[i].Seq)
		}
		size += len(batch[i].Body)
	}
	bodies := make([]byte, 0, size) // one allocation for the batch; the caller keeps its own

	name := batch[0].Stream
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.streams[name]
	if s == nil && epoch == 0 && batch[0].Seq == 1 {
		s = m.stream(name)
	}
	switch {
	case s == nil && epoch != 0:
		return fmt.Errorf("append %s with epoch %d: %w", name, epoch, ErrFenced)
	case s == nil:
		return fmt.Errorf("append %s seq %d: %w", name, batch[0].Seq, ErrConflict)
	case s.head.Epoch != epoch, epoch != 0 && s.owner == "":
		return fmt.Errorf("append %s with epoch %d: %w", name, epoch, ErrFenced)
	case s.head.Seq+1 != batch[0].Seq:
		return fmt.Errorf("append %s seq %d: %w", name, batch[0].Seq, ErrConflict)
	}
	for i := range batch {
		r := batch[i]
		r.At = r.At.UTC()
		at := len(bodies)
		bodies = append(bodies, r.Body...)
		r.Body = bodies[at:len(bodies):len(bodies)]
		if n := len(s.pages); n == 0 {
			s.pages = append(s.pages, nil) // a short stream's only page grows as it must
		} else if len(s.pages[n-1]) == pageSize {
			s.pages = append(s.pages, make([]Record, 0, pageSize))
		}
		last := &s.pages[len(s.pages)-1]
		*last = append(*last, r)
	}
	last := &batch[len(batch)-1]
	s.head.Seq, s.head.Hash = last.Seq, last.Hash
	return nil
}

// Read implements [Journal]. The record is a copy whose body is overwritten with the next, as with a storage that streams:
// who keeps it past fn finds out here and not in production.
func (m *Memory) Read(ctx context.Context, name string, after int64, fn func(*Record) error) error {
	m.mu.RLock()
	var to int64
	if s := m.streams[name]; s != nil {
		to = s.head.Seq
	}
	m.mu.RUnlock()
	var (
		r    Record
		body []byte
	)
	for seq := max(after, 0) + 1; seq <= to; {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("journal: read %s after %d: %w", name, seq-1, err)
		}
		for _, stored := range m.page(name, seq, to) {
			r = stored
			body = append(body[:0], r.Body...)
			r.Body = body
			if err := fn(&r); err != nil {
				return err
			}
			seq++
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("journal: read %s: %w", name, err)
	}
	return nil
}

// page returns the stored records from seq to the end of their page, but not beyond to. What is below the head never changes.
func (m *Memory) page(name string, seq, to int64) []Record {
	m.mu.RLock()
	defer m.mu.RUnlock()
	i := seq - 1
	page := m.streams[name].pages[i/pageSize]
	return page[i%pageSize : min(int64(len(page)), to-i/pageSize*pageSize)]
}

// Head implements [Journal].
func (m *Memory) Head(ctx context.Context, name string) (Head, error) {
	if err := ctx.Err(); err != nil {
		return Head{}, fmt.Errorf("journal: head of %s: %w", name, err)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if s := m.streams[name]; s != nil {
		return s.head, nil
	}
	return Head{Stream: name}, nil
}

// Streams implements [Journal].
func (m *Memory) Streams(ctx context.Context, prefix string) ([]Head, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("journal: streams %s: %w", prefix, err)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	var heads []Head
	for name, s := range m.streams {
		if strings.HasPrefix(name, prefix) {
			heads = append(heads, s.head)
		}
	}
	sort.Slice(heads, func(i, j int) bool { return heads[i].Stream < heads[j].Stream })
	return heads, nil
}

// SaveSnapshot implements [Journal].
func (m *Memory) SaveSnapshot(ctx context.Context, snap Snapshot) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("journal: save snapshot of %s: %w", snap.Stream, err)
	}
	snap.State = bytes.Clone(snap.State)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.snaps[snap.Stream].Seq < snap.Seq {
		m.snaps[snap.Stream] = snap
	}
	return nil
}

// LoadSnapshot implements [Journal].
func (m *Memory) LoadSnapshot(ctx context.Context, name string) (Snapshot, bool, error) {
	if err := ctx.Err(); err != nil {
		return Snapshot{}, false, fmt.Errorf("journal: load snapshot of %s: %w", name, err)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	snap, ok := m.snaps[name]
	snap.State = bytes.Clone(snap.State)
	return snap, ok, nil
}

// Ping implements [Journal].
func (m *Memory) Ping(ctx context.Context) error { return ctx.Err() }

// Keep implements [Vault].
func (m *Memory) Keep(ctx context.Context, name, key string, value []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("vault: keep %s of %s: %w", key, name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	values := m.vault[name]
	if values == nil {
		values = map[string][]byte{}
		m.vault[name] = values
	}
	if _, ok := values[key]; !ok {
		values[key] = bytes.Clone(value)
	}
	return bytes.Clone(values[key]), nil
}

// Recall implements [Vault].
func (m *Memory) Recall(ctx context.Context, name, key string) ([]byte, bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, false, fmt.Errorf("vault: recall %s of %s: %w", key, name, err)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	value, ok := m.vault[name][key]
	return bytes.Clone(value), ok, nil
}

// Erase implements [Vault].
func (m *Memory) Erase(ctx context.Context, name, prefix string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("vault: erase %s of %s: %w", prefix, name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.vault[name] {
		if strings.HasPrefix(key, prefix) {
			delete(m.vault[name], key)
		}
	}
	return nil
}
