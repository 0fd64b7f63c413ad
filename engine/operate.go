package engine

import (
	"context"
	"errors"
	"time"

	"qm/engine/room"
)

// Do carries out an operator's command: Flush, EjectTicket, PurgeLine, CloseRoom, DeleteRoom, SetMode, Reconfigure. The engine fills
// in credit and presence. actor is the operator's id.
func (e *Engine) Do(ctx context.Context, roomID, actor string, c room.Command) (Answer, error) {
	r, err := e.found(ctx, roomID)
	if err != nil {
		return Answer{}, err
	}
	ans, err := r.do(ctx, request{cmd: c, actor: actor}, true)
	if err == nil {
		r.forget(ctx, ans)
	}
	return ans, err
}

// Create makes a room, or its next generation after a delete. With opensAt it is made with its drop scheduled, so that nobody can
// have a ticket ahead of the draw; the zero time means that its doors are open. room.ErrRoomExists when there is one.
func (e *Engine) Create(ctx context.Context, roomID, actor string, settings room.Settings, mode room.Mode, opensAt time.Time) (Answer, error) {
	e.mu.Lock()
	r := e.runnerLocked(roomID)
	e.mu.Unlock()
	return r.sealed(ctx, actor, !opensAt.IsZero(), true, func(s *room.Summary, commitment room.Digest) (room.Command, error) {
		c := room.NewRoom{Settings: settings, Mode: mode}
		if !opensAt.IsZero() {
			c.OpensAt, c.Commitment = room.Instant(opensAt.UnixMilli()), commitment
		}
		return c, nil
	})
}

// Change is what an operator asks of a room at once: all of it happens, or nothing.
type Change struct {
	Settings *room.Settings // nil: as they are
	OpensAt  *time.Time     // nil: as it is; the zero time cancels
	Mode     room.Mode      // "": as it is
	Reason   *room.Reason   // nil: an operator's wish
}

// Change changes a room. decide is called with the room as it stands when the change is decided, so that two operators who change
// different settings at once both get their way; it may be called more than once, and from another goroutine after ctx has
// ended. An error of decide is returned as it is, and nothing happens.
func (e *Engine) Change(ctx context.Context, roomID, actor string, decide func(*room.Summary) (Change, error)) (Answer, error) {
	r, err := e.found(ctx, roomID)
	if err != nil {
		return Answer{}, err
	}
	if err := r.settled(ctx).refusal(); err != nil {
		return Answer{}, err
	}
	s, _, err := r.view.Summary(ctx)
	if err != nil {
		return Answer{}, err
	}
	if !s.Exists {
		return Answer{}, room.ErrRoomNotFound
	}
	change, err := decide(&s)
	if err != nil {
		return Answer{}, err
	}
	opens := change.OpensAt != nil && !change.OpensAt.IsZero()
	return r.sealed(ctx, actor, opens, false, func(s *room.Summary, commitment room.Digest) (room.Command, error) {
		change, err := decide(s)
		if err != nil {
			return nil, err
		}
		c := room.Edit{Settings: change.Settings, Mode: change.Mode, Commitment: commitment, Reason: change.Reason}
		if change.OpensAt != nil {
			at := room.Instant(0)
			if !change.OpensAt.IsZero() {
				if at = room.Instant(change.OpensAt.UnixMilli()); !opens {
					return nil, ErrBusy // decide has changed its mind: nothing is sealed for a drop
				}
			}
			c.OpensAt = &at
		}
		return c, nil
	})
}

// Configure changes a room's settings alone; see Change.
func (e *Engine) Configure(ctx context.Context, roomID, actor string, edit func(*room.Settings) error) (Answer, error) {
	return e.Change(ctx, roomID, actor, func(s *room.Summary) (Change, error) {
		settings := *s.Settings
		err := edit(&settings)
		return Change{Settings: &settings}, err
	})
}

// Schedule sets (or with the zero time cancels) the doors-open instant alone; see Change.
func (e *Engine) Schedule(ctx context.Context, roomID, actor string, opensAt time.Time) (Answer, error) {
	return e.Change(ctx, roomID, actor, func(*room.Summary) (Change, error) {
		return Change{OpensAt: &opensAt}, nil
	})
}

var errOtherDrop = errors.New("engine: the drop has been drawn meanwhile")

// sealed sends a command that may schedule a drop. Its secret is sealed before the event that commits to it, and named by the drop
// it is for, so that rescheduling keeps it; if another drop is next by the time of the decision, it is asked again.
func (r *runner) sealed(ctx context.Context, actor string, opens, create bool, build func(*room.Summary, room.Digest) (room.Command, error)) (Answer, error) {
	for {
		generation, draws, exists, err := r.standing(ctx)
		switch {
		case err != nil:
			return Answer{}, err
		case create && exists:
			return Answer{}, room.ErrRoomExists
		case !create && !exists:
			return Answer{}, room.ErrRoomNotFound
		case create:
			generation, draws = generation+1, 0
		}
		var commitment room.Digest
		if opens {
			secret, err := r.keep(ctx, dropName(generation, draws))
			if err != nil {
				return Answer{}, err
			}
			commitment = room.Commitment(secret)
		}
		ans, err := r.do(ctx, request{actor: actor, build: func(s *room.Summary) (room.Command, error) {
			switch {
			case create && s.Exists:
				return nil, room.ErrRoomExists
			case !create && !s.Exists:
				return nil, room.ErrRoomNotFound
			case create && s.Generation+1 != generation, !create && (s.Generation != generation || s.Draws != draws):
				return nil, errOtherDrop
			}
			return build(s, commitment)
		}}, true)
		if !errors.Is(err, errOtherDrop) {
			return ans, err
		}
	}
}
