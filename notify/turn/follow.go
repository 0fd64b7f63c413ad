package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"qm/engine/room"
	"qm/notify"
	"qm/projection"
)

const (
	lookEvery    = 500 * time.Millisecond // while somebody waits for a mail
	idleEvery    = 5 * time.Second        // while nobody does; a registration of this process ends it at once
	lookAgain    = 5 * time.Second        // at a room in which nothing happens: time alone brings a turn near
	shareOfTime  = 20                     // looking takes one part in so many of a core at most
	longestBreak = 15 * time.Second
	page         = 500                // registrations at once
	askAgain     = time.Minute        // a mail that was asked for and is still owed
	lapsedFor    = time.Hour          // how long a lapsed place's address waits for its owner
	claimedFor   = 3 * notify.JobTime // how long an address stays beside its last mail's claim: whoever had it has died
	countEvery   = 10 * time.Second
	sweepEvery   = 10 * time.Minute
)

// memory is what this process remembers of a room between two looks. Losing it costs nothing but time.
type memory struct {
	at    projection.Position
	when  time.Time
	marks map[mark]time.Time // since when, of places with a live registration
	live  int
}

// mark is something that holds of a place since a while: a mail was asked for, or its address outlives its use.
type mark struct {
	place notify.Place
	what  string
}

// Run looks at rooms until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	var counted, swept time.Time
	for ctx.Err() == nil {
		began := s.o.Now()
		somebody, err := s.lookAtAll(ctx)
		if err == nil && began.Sub(counted) >= countEvery {
			counted = began
			var n int
			if n, err = s.queue.Waiting(ctx, kindName); err == nil {
				s.waiting.Store(int64(n))
			}
		}
		if err == nil && began.Sub(swept) >= sweepEvery {
			swept = began
			err = s.o.Registrations.Sweep(ctx, began.Add(-notify.Kept))
		}
		if err != nil && ctx.Err() == nil {
			s.o.Log.Warn("nobody could be mailed, and it is tried again", "error", err)
		}
		wait, hint := min(max(lookEvery, shareOfTime*s.o.Now().Sub(began)), longestBreak), s.hint
		if somebody {
			hint = nil // it is not long until the next look, and however many come, the pace is ours
		} else {
			wait = max(wait, idleEvery)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-hint:
		case <-timer.C:
		}
		timer.Stop()
	}
	return nil
}

// lookAtAll looks at every room of this process in which somebody waits for a mail.
func (s *Service) lookAtAll(ctx context.Context) (somebody bool, err error) {
	rooms, err := s.o.Registrations.Rooms(ctx)
	if err != nil {
		return false, err
	}
	kept := make(map[string]*memory, len(rooms))
	live := 0
	var failed []error
	for _, id := range rooms {
		if !s.o.Rooms.Serves(id) {
			continue
		}
		m := s.seen[id]
		if m == nil {
			m = &memory{marks: make(map[mark]time.Time)}
		}
		kept[id] = m
		if err := s.lookAt(ctx, id, m); err != nil {
			failed = append(failed, fmt.Errorf("look at room %s: %w", id, err))
		}
		live += m.live
	}
	s.seen = kept
	s.live.Store(int64(live))
	return len(kept) > 0, errors.Join(failed...)
}

// lookAt asks for every mail that is owed in a room, and erases the addresses that have served.
func (s *Service) lookAt(ctx context.Context, id string, m *memory) error {
	view, err := s.o.Rooms.View(ctx, id)
	if err != nil {
		return err
	}
	_, at, err := view.Summary(ctx)
	if err != nil {
		return err
	}
	now := s.o.Now()
	if at == m.at && now.Sub(m.when) < lookAgain {
		return nil
	}
	marks, live := make(map[mark]time.Time), 0
	for after := (notify.Place{}); ; {
		list, err := s.o.Registrations.Live(ctx, id, after, page)
		if err != nil {
			return err
		}
		var jobs []notify.Job
		for i := range list {
			r := &list[i]
			after = r.Place
			live++
			owed, err := s.attend(ctx, view, r, m.marks, marks)
			if err != nil {
				return err
			}
			if owed == "" {
				continue
			}
			asked := mark{r.Place, string(owed)}
			if since, ok := m.marks[asked]; ok && now.Sub(since) < askAgain {
				marks[asked] = since
				continue
			}
			marks[asked] = now
			j, err := job(r.Place, owed)
			if err != nil {
				return err
			}
			jobs = append(jobs, j)
		}
		if len(jobs) > 0 {
			if err := s.queue.Enqueue(ctx, jobs...); err != nil {
				return err
			}
		}
		if len(list) < page {
			break
		}
	}
	m.at, m.when, m.marks, m.live = at, now, marks, live
	return nil
}

// attend does what a place's state asks for, and says which mail is owed; "" for none.
func (s *Service) attend(ctx context.Context, view projection.View, r *notify.Registration, before, after map[mark]time.Time) (notify.Mail, error) {
	sum, place, err := look(ctx, view, r.Place)
	if err != nil {
		return "", err
	}
	now := s.o.Now()
	erase := func() error {
		_, err := s.o.Registrations.Erase(ctx, r.Place)
		return err
	}
	// outlives reports that something has held for so long.
	outlives := func(what string, limit time.Duration) bool {
		m := mark{r.Place, what}
		since, ok := before[m]
		if !ok {
			since = now
		}
		after[m] = since
		return now.Sub(since) >= limit
	}
	if r.Turn {
		if outlives("claimed", claimedFor) {
			return "", erase()
		}
		return "", nil
	}
	switch judge(&sum, &place, r.Place, room.Instant(now.UnixMilli())) {
	case gone:
		return "", erase()
	case lapsed:
		if outlives("lapsed", lapsedFor) {
			return "", erase()
		}
	case moved:
		to := notify.Place{Room: r.Room, Generation: r.Generation, Ticket: uint32(place.Ticket)}
		return "", s.o.Registrations.Move(ctx, r.Place, to, false)
	case turn:
		return notify.Turn, nil
	case near:
		if !r.Near {
			return notify.Near, nil
		}
	}
	return "", nil
}

// errand is the payload of a job: whom to mail, but not where.
type errand struct {
	Place notify.Place `json:"place"`
	Mail  notify.Mail  `json:"mail"`
}

func job(p notify.Place, m notify.Mail) (notify.Job, error) {
	body, err := json.Marshal(errand{p, m})
	return notify.Job{Kind: kindName, Key: keyOf(p, m), Payload: body}, err
}

func keyOf(p notify.Place, m notify.Mail) string {
	if p.Handle != 0 {
		return fmt.Sprintf("%s/%d/q%d/%s", p.Room, p.Generation, p.Handle, m)
	}
	return fmt.Sprintf("%s/%d/%d/%s", p.Room, p.Generation, p.Ticket, m)
}
