package replay

import (
	"context"
	"errors"
	"fmt"

	"qm/projection"
)

// Rebuilt is what a rebuild came to.
type Rebuilt struct {
	Stream      string `json:"stream"`
	Room        string `json:"room"`
	Seq         int64  `json:"seq"`
	Tickets     int    `json:"tickets"`
	Incarnation string `json:"incarnation"`
	History     int    `json:"history"` // rows of it, where it was rebuilt too
}

// Rebuild folds a stream from its first record and puts the room in place of whatever the store holds of it, as one unit. It may be
// done beside a running owner: a batch of the owner's that comes in between finds a hole and makes the projection anew itself. The error is a
// *[DamageError] when the journal does not make a room; the store is left alone then.
func Rebuild(ctx context.Context, j Reader, store projection.Store, stream string) (Rebuilt, error) {
	head, err := j.Head(ctx, stream)
	if err != nil {
		return Rebuilt{}, fmt.Errorf("rebuild %s: %w", stream, err)
	}
	f, err := Fold(Stream(ctx, j, stream), stream, 0)
	if err != nil {
		return Rebuilt{}, fmt.Errorf("rebuild: %w", err)
	}
	err = store.Reset(ctx, stream, head.Epoch, f.Head.Seq, f.State)
	if errors.Is(err, projection.ErrStale) {
		// Of another history, perhaps: the journal may have been restored from a backup.
		foreign, reclaimErr := projection.Reclaim(ctx, store, stream, func(ctx context.Context) (int64, error) {
			head, err := j.Head(ctx, stream)
			return head.Epoch, err
		})
		if reclaimErr != nil {
			return Rebuilt{}, fmt.Errorf("rebuild %s: %w", stream, reclaimErr)
		}
		if foreign {
			err = store.Reset(ctx, stream, head.Epoch, f.Head.Seq, f.State)
		}
	}
	if err != nil {
		return Rebuilt{}, fmt.Errorf("rebuild %s: %w", stream, err)
	}
	at, err := store.Position(ctx, stream)
	if err != nil {
		return Rebuilt{}, fmt.Errorf("rebuild %s: %w", stream, err)
	}
	return Rebuilt{
		Stream: stream, Room: RoomID(stream), Seq: f.Head.Seq,
		Tickets: int(f.State.Summary().LastTicket), Incarnation: at.Incarnation,
	}, nil
}
