package projection

import (
	"context"
	"fmt"
	"time"

	"qm/engine/room"
)

// Preparer is a Store that does I/O but can take all it needs of a state beforehand, without any. Whoever reads the state under a
// lock prepares under the lock and sends after it:
//
//	err := memory.With(stream, func(epoch, seq int64, s *room.State) error {
//		write = shared.Prepare(Batch{Room: stream, Epoch: epoch, After: last, Events: events, State: s})
//		return nil
//	})
//	…
//	err = write.Send(ctx)
//
// Apply and Reset are Prepare and PrepareReset, then Send.
type Preparer interface {
	Prepare(b Batch) Write
	PrepareReset(stream string, epoch, seq int64, s *room.State) Write
}

// Write is a prepared Apply or Reset. It may be sent again after an error: what has been seen is ignored.
type Write interface {
	Send(ctx context.Context) error
}

// PresenceKept is how long a window of presence is kept after the last mark in it.
const PresenceKept = 10 * time.Minute

// SeenPage is a bitmap over the tickets page*4096 … page*4096+4095: ticket n is bit n%64 of word n%4096/64, as in
// [room.Line.Words].
type SeenPage = [room.LinePageWords]uint64

// Presence shares between processes whose holders were seen lately (domain.md rule 6). It need not be durable: after a loss everyone
// counts as present for presenceSec. Windows are numbered by their users, for instance Unix time divided by the window's length.
type Presence interface {
	// MarkSeen notes that the holders of these tickets of generation gen were seen in a window.
	MarkSeen(ctx context.Context, stream string, gen uint32, window int64, tickets []room.Ticket) error
	// SeenSince merges the marks of the windows first to last: page number to bitmap; pages without a mark are absent.
	SeenSince(ctx context.Context, stream string, gen uint32, first, last int64) (map[int]*SeenPage, error)
}

// Reclaim is what to do after ErrStale: it tells whether the room's projection was written under an epoch that the journal has never
// given, as after the journal was restored from a backup, and disowns it then. newest reads the journal's newest epoch.
func Reclaim(ctx context.Context, s Store, stream string, newest func(context.Context) (int64, error)) (foreign bool, err error) {
	at, err := s.Position(ctx, stream)
	if err != nil {
		return false, err
	}
	epoch, err := newest(ctx) // after the position: an owner who came meanwhile has raised it
	if err != nil {
		return false, fmt.Errorf("read the newest epoch of %s: %w", stream, err)
	}
	if at.Epoch <= epoch {
		return false, nil
	}
	return true, s.Disown(ctx, stream)
}
