package replay

import (
	"errors"
	"fmt"

	"qm/engine/room"
	"qm/journal"
)

// Folded is a room as its journal tells it.
type Folded struct {
	State *room.State
	Head  journal.Head // the last record; its Epoch is not known from records
}

// DamageError says that a journal cannot be folded. [Verify] says all that is wrong with it.
type DamageError struct{ Finding Finding }

func (e *DamageError) Error() string { return "replay: the journal is damaged: " + e.Finding.String() }

// Fold replays the records of one stream, with gap and hash checks, until the source ends or, with upTo above 0, that seq is
// reached. The error is a *[DamageError] when the records do not make a room.
func Fold(source Source, stream string, upTo int64) (Folded, error) {
	f := newFolder(stream)
	err := source(func(r *journal.Record) error {
		if r.Stream != stream {
			return nil
		}
		if err := f.record(r); err != nil {
			return err
		}
		if upTo > 0 && r.Seq >= upTo {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return Folded{}, fmt.Errorf("fold %s: %w", stream, err)
	}
	return f.folded(), nil
}

var errEnough = errors.New("enough")

// folder replays one stream.
type folder struct {
	stream string
	chain  *journal.Chain
	state  *room.State
}

func newFolder(stream string) *folder {
	return &folder{stream: stream, chain: journal.NewChain(journal.Head{Stream: stream}), state: room.New()}
}

func (f *folder) folded() Folded { return Folded{State: f.state, Head: f.chain.Head()} }

func (f *folder) record(r *journal.Record) error {
	if r.Seq > 1 && f.chain.Head().Seq == 0 && r.Kind == (*room.Create)(nil).Kind() {
		f.chain.Follow(r) // retention has cut what came before, see verifier.begin
	} else if err := f.chain.Check(r); err != nil {
		return f.damage(r, chainCode(err), err)
	}
	e, err := room.DecodeBody(r.Kind, r.Version, room.Instant(r.At.UnixMilli()), r.Body)
	if err != nil {
		code := Body
		if unknown := (*room.UnknownEventError)(nil); errors.As(err, &unknown) {
			code = Kind
		}
		return f.damage(r, code, err)
	}
	if p, ok := e.Body.(*room.Pass); ok && len(p.Spans) > 0 {
		if last := p.Spans[len(p.Spans)-1][1]; f.state.Ticket(last).Status == room.None {
			return f.damage(r, PassStranger, fmt.Errorf("ticket %d passes, which was never given", last)) // up to 2^31 of them
		}
	}
	return f.apply(r, e)
}

// apply turns a panic of the core, which trusts its own events, into damage with a name.
func (f *folder) apply(r *journal.Record, e room.Event) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = f.damage(r, State, fmt.Errorf("the event cannot have happened to the room: %v", p))
		}
	}()
	f.state.Apply(e)
	return nil
}

func (f *folder) damage(r *journal.Record, c Code, err error) error {
	return &DamageError{finding(f.stream, r.Seq, c, "%v", err)}
}

func chainCode(err error) Code {
	switch {
	case errors.Is(err, journal.ErrGap):
		return Gap
	case errors.Is(err, journal.ErrReorder):
		return Reorder
	}
	return Hash
}
