package projection

import (
	"context"
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
