package engine

import (
	"context"
	"errors"
	"fmt"

	"qm/engine/room"
	"qm/projection"
)

// roomView reads a room that the journal has. If there is no projection of it, for instance because a take-over or a loss of the shared one
// came in between, or if it is out of reach or damaged, then it is unknown how the room stands; it is not unknown whether there is one
// (contract.md 17).
type roomView struct{ projection.View }

func there(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err // whoever asked has gone
	}
	return fmt.Errorf("%w: %v", ErrStorage, err) //nolint:errorlint // ErrNoRoom must not be seen through it.
}

func (v roomView) Summary(ctx context.Context) (room.Summary, projection.Position, error) {
	s, at, err := v.View.Summary(ctx)
	return s, at, there(err)
}

func (v roomView) Ticket(ctx context.Context, n room.Ticket) (room.Summary, room.Place, error) {
	s, p, err := v.View.Ticket(ctx, n)
	return s, p, there(err)
}

func (v roomView) Handle(ctx context.Context, q room.Handle) (room.Summary, room.Place, error) {
	s, p, err := v.View.Handle(ctx, q)
	return s, p, there(err)
}
