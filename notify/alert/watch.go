package alert

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"qm/access/org"
	"qm/engine/room"
	"qm/projection"
)

const (
	lookEvery = time.Second
	// orphanFor is after how long an alert about something that nothing here is read of is over: of a process that is gone, say.
	orphanFor = time.Hour
	queueWait = 4 * time.Second // to queue a message and write its event
)

// Run looks once a second until ctx ends: at the rooms that this process owns, and at the process itself.
func (s *Service) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	if s.spare != nil {
		running.Go(func() { _ = s.spare.Run(ctx) })
	}
	running.Go(func() { s.watchCertificates(ctx) })
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		s.look(ctx)
	}
}

// look reads, judges, and carries out the verdicts.
func (s *Service) look(ctx context.Context) {
	now := s.o.Now()
	readings, names := s.read(ctx, now)
	var active []org.Alert
	s.o.Book.Look(func(st *org.State) { active = st.Alerts() })
	readings = append(readings, s.absent(ctx, active, readings)...)
	next := make(map[[2]string]Memory, len(s.memory))
	for _, seen := range readings {
		name := [2]string{seen.Rule, seen.Subject}
		rule, ok := s.rules[seen.Rule]
		if !ok {
			continue
		}
		standing, offline := s.offline[name]
		if !offline {
			if i := slices.IndexFunc(active, func(a org.Alert) bool { return a.Rule == seen.Rule && a.Subject == seen.Subject }); i >= 0 {
				standing = active[i]
			}
		}
		if seen.orphaned {
			rule.Clear = orphanFor
		}
		m, verdict := Judge(rule, s.memory[name], standing.ID != "", seen.Reading, now)
		if m != (Memory{}) {
			next[name] = m
		}
		var err error
		switch verdict {
		case Fire:
			err = s.fire(ctx, rule, seen.Reading, names[seen.Room], now)
		case End:
			err = s.end(ctx, standing, offline, names[seen.Room])
		}
		switch {
		case err != nil && ctx.Err() == nil:
			s.o.Log.Warn("an alert could not be recorded; it will be tried again", "rule", seen.Rule, "about", seen.Subject, "error", err)
		case err == nil && verdict != Stay:
			delete(next, name)
		}
	}
	s.memory = next
	s.record(ctx)
	s.release(ctx, names, now)
}

// sighting is a reading of this process, or the lack of one.
type sighting struct {
	Reading
	orphaned bool
}

// read is what this process sees now, and the names of its rooms.
func (s *Service) read(ctx context.Context, now time.Time) (list []sighting, names map[string]string) {
	names = map[string]string{}
	add := func(r Reading) { list = append(list, sighting{Reading: r}) }
	health := s.o.Rooms.Health()
	down := int64(0)
	if health.JournalErr != "" {
		down |= journalDown
	}
	if health.SharedErr != "" {
		down |= projectionDown
	}
	add(Reading{Rule: BackendDown, Subject: s.o.Process, Value: down, Bad: down != 0, Good: down == 0})
	if s.o.Refused != nil {
		add(above(Refusals, s.o.Process, "", s.refused.lastMinute(s.o.Refused(), now), s.rules[Refusals].Limit))
	}
	for _, one := range health.Rooms {
		if one.Damaged != "" {
			add(Reading{Rule: Damaged, Subject: one.Room, Room: one.Room, Bad: true})
		}
		if !s.o.Rooms.Serves(one.Room) {
			continue
		}
		sum, err := s.summary(ctx, one.Room)
		if err != nil {
			continue
		}
		names[one.Room] = sum.Settings.Name
		for _, r := range s.ofRoom(one.Room, sum, one.Lag, now) {
			add(r)
		}
	}
	if left, ok := s.certificates.left(s.o.PublicURL, now); ok {
		add(s.expiring(Certificate, publicSubject, "", left))
	}
	var links []org.Link
	s.o.Book.Look(func(st *org.State) { links = st.Links(now) })
	for _, l := range links {
		if limit := time.Duration(s.rules[Key].Limit) * day; l.Ends.Sub(l.At) > 2*limit { // of one made to be short nobody is surprised
			add(s.expiring(Key, l.ID, "", l.Ends.Sub(now)))
		}
	}
	return list, names
}

func (s *Service) summary(ctx context.Context, id string) (*room.Summary, error) {
	view, err := s.o.Rooms.View(ctx, id)
	if err != nil {
		return nil, err
	}
	sum, _, err := view.Summary(ctx)
	if err == nil && !sum.Exists {
		err = projection.ErrNoRoom
	}
	return &sum, err
}

// ofRoom is what can be read of a room.
func (s *Service) ofRoom(id string, sum *room.Summary, lag int64, now time.Time) []Reading {
	at := room.Instant(now.UnixMilli())
	waits := sum.Waiting > 0 && !sum.Scheduled() && sum.Mode != room.Idle
	still := waits && sum.Flow.PassedLastMin(at) == 0
	list := []Reading{
		above(Surge, id, id, int64(sum.Flow.JoinedLastMin(at)), s.rules[Surge].Limit),
		{NotMoving, id, id, int64(sum.Waiting), still, !still},
		above(Lag, id, id, lag, s.rules[Lag].Limit),
	}
	eta, floor, ok := sum.Wait(at)
	if !ok || floor {
		eta = 0 // a line that stands still is another rule's, and doors that are shut are nobody's fault
	}
	list = append(list, above(ETA, id, id, eta, s.rules[ETA].Limit))
	if left, ok := s.certificates.left(sum.Settings.TargetURL, now); ok {
		list = append(list, s.expiring(Certificate, id, id, left))
	}
	return list
}

const day = 24 * time.Hour

func (s *Service) expiring(rule, subject, roomID string, left time.Duration) Reading {
	value := int64(left / day)
	if left < 0 {
		value = -1
	}
	soon := left <= time.Duration(s.rules[rule].Limit)*day
	return Reading{rule, subject, roomID, value, soon, !soon}
}

// absent reads the lack of a reading: what has gone is well.
func (s *Service) absent(ctx context.Context, active []org.Alert, list []sighting) (more []sighting) {
	var rooms []string
	listed := false
	for _, a := range active {
		if slices.ContainsFunc(list, func(r sighting) bool { return r.Rule == a.Rule && r.Subject == a.Subject }) {
			continue
		}
		good := sighting{Reading: Reading{Rule: a.Rule, Subject: a.Subject, Room: a.Room, Value: a.Value, Good: true}}
		switch {
		case a.Rule == Key: // the link has ended
		case a.Rule == Certificate && s.unlooked(ctx, a):
			continue
		case a.Room == "":
			good.orphaned = true
		case !s.o.Rooms.Serves(a.Room):
			if !listed {
				var err error
				if rooms, err = s.o.Rooms.Rooms(ctx); err != nil {
					return more // which rooms there are is not known now
				}
				listed = true
			}
			if slices.Contains(rooms, a.Room) || s.damaged(a.Room) {
				continue // its owner judges it
			}
		}
		more = append(more, good)
	}
	return more
}

// unlooked reports a certificate that is there and was not looked at yet.
func (s *Service) unlooked(ctx context.Context, a org.Alert) bool {
	address := s.o.PublicURL
	if a.Room != "" {
		sum, err := s.summary(ctx, a.Room)
		if err != nil {
			return !errors.Is(err, projection.ErrNoRoom)
		}
		address = sum.Settings.TargetURL
	}
	return originOf(address) != ""
}

func (s *Service) damaged(id string) bool {
	for _, one := range s.o.Rooms.Health().Rooms {
		if one.Room == id && one.Damaged != "" {
			return true
		}
	}
	return false
}

var clock = org.By{Actor: org.Clock}

// fire records that an alert fires, and has it told. Of several processes one does.
func (s *Service) fire(ctx context.Context, rule Rule, seen Reading, roomName string, now time.Time) error {
	a := org.Alert{
		ID: org.NewID("al_"), Rule: rule.ID, Subject: seen.Subject, Room: seen.Room, Value: seen.Value, Limit: rule.Limit,
		Since: now.UTC().Truncate(time.Millisecond), Told: !s.silenced(rule.ID, seen.Room, now),
	}
	return s.firing(ctx, a, roomName)
}

func (s *Service) firing(ctx context.Context, a org.Alert, roomName string) error {
	err := s.queued(ctx, a, fired, a.Told, roomName, func(st *org.State) (org.Body, error) {
		if _, active := st.AlertOf(a.Rule, a.Subject); active {
			return nil, nil // another process was first
		}
		return firedBody(a), nil
	})
	if err == nil || a.Rule != BackendDown || ctx.Err() != nil {
		return err
	}
	// What says that the database is away cannot be written to it. It gets an id of its own: a message that was queued under the first
	// one finds no event, and is dropped.
	a.ID = org.NewID("al_")
	s.offline[[2]string{a.Rule, a.Subject}] = a
	if a.Told && s.spare != nil {
		return s.tell(ctx, s.spare, s.message(a, fired, roomName), 0)
	}
	return nil
}

func firedBody(a org.Alert) *org.AlertFired {
	return &org.AlertFired{ID: a.ID, Rule: a.Rule, Subject: a.Subject, Room: a.Room, Value: a.Value, Limit: a.Limit, Since: a.Since.UnixMilli(), Kept: !a.Told}
}

// end records that one is over, and has it told to whom it was told that it fired.
func (s *Service) end(ctx context.Context, a org.Alert, offline bool, roomName string) error {
	kept := s.silenced(a.Rule, a.Room, s.o.Now())
	if offline {
		name := [2]string{a.Rule, a.Subject}
		delete(s.offline, name)
		a.Ended, a.EndTold = s.o.Now(), a.Told && !kept
		s.ended = append(s.ended, a)
		if a.EndTold && s.spare != nil {
			return s.tell(ctx, s.spare, s.message(a, resolved, roomName), 0)
		}
		return nil
	}
	return s.queued(ctx, a, resolved, a.Told && !kept, roomName, func(st *org.State) (org.Body, error) {
		if now, _ := st.Alert(a.ID); !now.Ended.IsZero() {
			return nil, nil
		}
		return &org.AlertEnded{ID: a.ID, Kept: kept}, nil
	})
}

// queued queues the message of a change, then makes the change: whoever sends it waits for the event.
func (s *Service) queued(ctx context.Context, a org.Alert, state string, send bool, roomName string, change func(*org.State) (org.Body, error)) error {
	ctx, cancel := context.WithTimeout(ctx, queueWait)
	defer cancel()
	if send && s.queue != nil {
		if err := s.tell(ctx, s.queue, s.message(a, state, roomName), lookEvery); err != nil {
			return err
		}
	}
	err := s.o.Book.Change(ctx, clock, change)
	if errors.Is(err, org.ErrReference) {
		return nil // another process was first
	}
	return err
}

// record writes down what happened while the stream was out of reach.
func (s *Service) record(ctx context.Context) {
	if len(s.offline)+len(s.ended) == 0 || s.o.Book.Stale() != nil {
		return
	}
	write := func(a org.Alert, over bool) bool {
		err := s.o.Book.Change(ctx, clock, func(st *org.State) (org.Body, error) {
			_, known := st.Alert(a.ID)
			_, active := st.AlertOf(a.Rule, a.Subject)
			if known || active {
				return nil, nil
			}
			return firedBody(a), nil
		})
		if err == nil && over {
			err = s.o.Book.Change(ctx, clock, func(st *org.State) (org.Body, error) {
				if now, ok := st.Alert(a.ID); !ok || !now.Ended.IsZero() {
					return nil, nil
				}
				return &org.AlertEnded{ID: a.ID, Kept: !a.EndTold}, nil
			})
		}
		return err == nil
	}
	s.ended = slices.DeleteFunc(s.ended, func(a org.Alert) bool { return write(a, true) })
	for name, a := range s.offline {
		if write(a, false) {
			delete(s.offline, name)
		}
	}
}

// release tells what silences that have ended kept back: what still stands, and the end of what had been told.
func (s *Service) release(ctx context.Context, names map[string]string, now time.Time) {
	var owed []org.Alert
	s.o.Book.Look(func(st *org.State) {
		for _, a := range append(st.Alerts(), st.PastAlerts()...) {
			over := !a.Ended.IsZero()
			if (!over && !a.Told || over && a.Told && !a.EndTold) && st.SilencedUntil(a.Rule, a.Room, now).IsZero() {
				owed = append(owed, a)
			}
		}
	})
	for _, a := range owed {
		if a.Room != "" && !s.o.Rooms.Serves(a.Room) && a.Ended.IsZero() {
			continue
		}
		state := fired
		if !a.Ended.IsZero() {
			state = resolved
		}
		err := s.queued(ctx, a, state, true, names[a.Room], func(*org.State) (org.Body, error) { return &org.AlertTold{ID: a.ID}, nil })
		if err != nil && ctx.Err() == nil {
			s.o.Log.Warn("what a silence kept back is not told yet", "alert", a.ID, "error", err)
			return
		}
	}
}

func (s *Service) silenced(rule, roomID string, now time.Time) (yes bool) {
	s.o.Book.Look(func(st *org.State) { yes = !st.SilencedUntil(rule, roomID, now).IsZero() })
	return yes
}

// refusals counts what grew within a minute.
type refusals struct{ marks []mark }

type mark struct {
	at    time.Time
	total int64
}

func (r *refusals) lastMinute(total int64, now time.Time) int64 {
	r.marks = append(r.marks, mark{now, total})
	for len(r.marks) > 1 && now.Sub(r.marks[1].at) >= time.Minute {
		r.marks = r.marks[1:]
	}
	return total - r.marks[0].total
}
