package engine

import (
	"context"
	"errors"
	"testing"

	"qm/engine/room"
	"qm/projection"
)

// brokenView fails as a shared projection does that is out of reach or holds what nobody of ours wrote.
type brokenView struct{ err error }

func (v brokenView) Summary(context.Context) (room.Summary, projection.Position, error) {
	return room.Summary{}, projection.Position{}, v.err
}

func (v brokenView) Ticket(context.Context, room.Ticket) (room.Summary, room.Place, error) {
	return room.Summary{}, room.Place{}, v.err
}

func (v brokenView) Handle(context.Context, room.Handle) (room.Summary, room.Place, error) {
	return room.Summary{}, room.Place{}, v.err
}

// TestARoomThatCannotBeReadIsNotLost: whatever keeps a projection from being read, a retry may do better, and the room exists.
func TestARoomThatCannotBeReadIsNotLost(t *testing.T) {
	ctx := context.Background()
	for _, test := range []struct{ from, want error }{
		{errors.New("i/o timeout"), ErrStorage}, {projection.ErrNoRoom, ErrStorage}, {context.DeadlineExceeded, ErrStorage},
		{context.Canceled, context.Canceled}, {nil, nil},
	} {
		v := roomView{brokenView{test.from}}
		_, _, summary := v.Summary(ctx)
		_, _, ticket := v.Ticket(ctx, 1)
		_, _, handle := v.Handle(ctx, 1)
		for _, err := range []error{summary, ticket, handle} {
			if !errors.Is(err, test.want) || errors.Is(err, projection.ErrNoRoom) {
				t.Errorf("%v is read as %v", test.from, err)
			}
		}
	}
}
