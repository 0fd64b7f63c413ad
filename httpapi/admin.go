package httpapi

import (
	"context"
	"net/http"
	"time"

	"qm/engine"
	"qm/engine/room"
)

func (s *Server) ok(x *exchange) error {
	x.buf = append(x.buf[:0], `{"ok":true}`...)
	x.json(http.StatusOK)
	return nil
}

// listRooms is every room with its live figures.
func (s *Server) listRooms(x *exchange) error {
	at := room.Instant(x.ms())
	list, err := s.allStats(x.r.Context(), at)
	if err != nil {
		return err
	}
	b := append(x.buf[:0], `{"rooms":[`...)
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, shownTo(x.actor, list[i].json)...)
	}
	b = append(b, ']')
	b = appendTotals(b, list, at)
	b = appendInt(b, "now", int64(at))
	x.buf = append(b, '}')
	x.json(http.StatusOK)
	return nil
}

// oneRoom is one of them.
func (s *Server) oneRoom(x *exchange) error {
	if err := s.named(x); err != nil {
		return err
	}
	return s.answerRoom(x)
}

// named refuses a path whose room id cannot be one.
func (s *Server) named(x *exchange) error {
	if !validRoomID(x.id) {
		return refuseField("invalid_room_id", "id", "")
	}
	return nil
}

// answerRoom answers with a room's stats, after any change to it.
func (s *Server) answerRoom(x *exchange) error {
	sum, pos, err := s.summary(x.r.Context(), x.id)
	if err != nil {
		return err
	}
	x.buf = shownTo(x.actor, appendStats(x.buf[:0], x.id, &sum, s.o.Engine.ETARecord(x.id), pos.Seq, s.alarmsOf(s.alarms(room.Instant(x.ms()))[x.id], nameOf(sum.Settings, x.id)), room.Instant(x.ms())))
	x.json(http.StatusOK)
	return nil
}

// saveRoom creates or updates a room (seed 004, POST /api/admin/rooms). Everything is judged before anything is done.
func (s *Server) saveRoom(x *exchange) error {
	body, err := x.object(adminBody, false)
	if err != nil {
		return err
	}
	if raw, ok := body.find("redacted"); ok && string(raw) == "true" {
		return refuseField("redacted_shape", "redacted", "")
	}
	if err := body.only(writable...); err != nil {
		return err
	}
	id, ok, err := body.text("id", "invalid_room_id")
	if err != nil {
		return err
	}
	if !ok || !validRoomID(id) {
		return refuseField("invalid_room_id", "id", "")
	}
	x.id = id
	_, _, err = s.summary(x.r.Context(), id)
	switch {
	case isNoRoom(err):
		if err := s.createRoom(x, body); err != nil {
			return err
		}
		return s.answerRoom(x)
	case err != nil:
		return err
	}
	now := x.now // the exchange may be over when the edit runs
	edit := func(set *room.Settings) (change, error) { return readChange(body, set, now) }
	if err := s.carryOut(x, edit); err != nil {
		return err
	}
	return s.answerRoom(x)
}

func (s *Server) createRoom(x *exchange, body object) error {
	set := room.DefaultSettings()
	c, err := readChange(body, &set, x.now)
	if err != nil {
		return err
	}
	if set.TargetURL == "" {
		return refuseField("invalid_target_url", "targetUrl", "")
	}
	if set.Name == "" {
		set.Name = x.id
	}
	mode := room.Active
	if c.mode != "" {
		mode = c.mode
	}
	_, err = s.act(x, "", func(ctx context.Context) (engine.Answer, error) {
		return s.o.Engine.Create(ctx, x.id, x.actor.ID, set, mode, c.opensAt)
	})
	return err
}

// carryOut does what an edit asks, at once: all of it, or nothing. Of the settings only the named ones change, whoever else changes
// others at the same time.
func (s *Server) carryOut(x *exchange, edit func(*room.Settings) (change, error)) error {
	x.keep()
	decide := func(sum *room.Summary) (engine.Change, error) {
		set := *sum.Settings
		c, err := edit(&set)
		if err != nil {
			return engine.Change{}, err
		}
		asked := engine.Change{Mode: c.mode}
		if c.named {
			asked.Settings = &set
		}
		if c.opens && (!c.opensAt.IsZero() || sum.OpensAt != 0) {
			asked.OpensAt = &c.opensAt
			if sum.OpensAt != 0 && len(set.Openings) > 0 {
				to := room.Instant(0)
				if !c.opensAt.IsZero() {
					to = room.Instant(c.opensAt.UnixMilli())
				}
				if set.Openings, err = rescheduled(set.Openings, sum.OpensAt, to); err != nil {
					return engine.Change{}, err
				}
				asked.Settings = &set
			}
		}
		if asked == (engine.Change{}) {
			return engine.Change{}, refuse("nothing_to_change")
		}
		return asked, nil
	}
	_, err := s.act(x, "", func(ctx context.Context) (engine.Answer, error) {
		return s.o.Engine.Change(ctx, x.id, x.actor.ID, decide)
	})
	return err
}

// deleteRoom ends everything live in the room, and the room.
func (s *Server) deleteRoom(x *exchange) error {
	if err := s.named(x); err != nil {
		return err
	}
	if _, err := s.do(x, room.DeleteRoom{}, ""); err != nil {
		return err
	}
	s.door.forget(x.id)
	return s.ok(x)
}

// do carries out an operator's command; reason is why, in their words.
func (s *Server) do(x *exchange, c room.Command, reason string) (engine.Answer, error) {
	return s.act(x, reason, func(ctx context.Context) (engine.Answer, error) {
		return s.o.Engine.Do(ctx, x.id, x.actor.ID, c)
	})
}

// command reads the body of a room's command: a known room, known fields only.
func (s *Server) command(x *exchange, optional bool, fields ...string) (object, error) {
	if err := s.named(x); err != nil {
		return nil, err
	}
	body, err := x.object(adminBody, optional)
	if err != nil {
		return nil, err
	}
	return body, body.only(fields...)
}

// setState is POST …/state {state}.
func (s *Server) setState(x *exchange) error {
	body, err := s.command(x, false, "state")
	if err != nil {
		return err
	}
	r := reader{o: body}
	var mode room.Mode
	if r.state(&mode); r.err != nil {
		return r.err
	}
	if mode == "" {
		return refuseField("invalid_state", "state", "")
	}
	if _, err := s.do(x, room.SetMode{Mode: mode}, ""); err != nil {
		return err
	}
	return s.answerRoom(x)
}

// setRate is POST …/rate {ratePerMinute}, from this instant on.
func (s *Server) setRate(x *exchange) error {
	body, err := s.command(x, false, "ratePerMinute", "rate")
	if err != nil {
		return err
	}
	if !body.has("ratePerMinute") && !body.has("rate") {
		return refuseField("invalid_rate_per_minute", "ratePerMinute", "")
	}
	return s.edit(x, func(set *room.Settings) (change, error) {
		r := reader{o: body}
		r.rate(&set.RatePerMinute)
		return change{named: true}, r.err
	})
}

// edit carries an edit out and answers with the room.
func (s *Server) edit(x *exchange, edit func(*room.Settings) (change, error)) error {
	if err := s.carryOut(x, edit); err != nil {
		return err
	}
	return s.answerRoom(x)
}

// maxFlush is how many one flush may let in.
const maxFlush = 1_000_000

// flush is POST …/flush {count, reason?}: the first count in line pass now.
func (s *Server) flush(x *exchange) error {
	body, err := s.command(x, false, "count", "reason")
	if err != nil {
		return err
	}
	raw, _ := body.find("count")
	n, ok := whole(raw)
	if !ok || n < 1 || n > maxFlush {
		return refuseField("invalid_count", "count", "")
	}
	reason, err := body.reason()
	if err != nil {
		return err
	}
	a, err := s.do(x, room.Flush{Count: int(n)}, reason)
	if err != nil {
		return err
	}
	flushed := 0
	for _, e := range a.Events {
		if pass, ok := e.Body.(*room.Pass); ok {
			for _, span := range pass.Spans {
				flushed += int(span[1]-span[0]) + 1
			}
		}
	}
	return s.answerStats(x, func(b []byte) []byte { return appendInt(b, "flushed", int64(flushed)) })
}

// schedule is POST …/schedule {opensAt?, preQueueMaxPerIp?}; each is applied only if present.
func (s *Server) schedule(x *exchange) error {
	body, err := s.command(x, false, "opensAt", "preQueueMaxPerIp")
	if err != nil {
		return err
	}
	now := x.now
	return s.edit(x, func(set *room.Settings) (change, error) {
		var c change
		r := reader{o: body}
		r.limit("preQueueMaxPerIp", "invalid_pre_queue_max_per_ip", &set.PreQueueMaxPerIP, 1, 100_000)
		c.opens = r.opening(&c.opensAt, now)
		c.named = r.named > 0
		return c, r.err
	})
}

// eject is POST …/eject {ticket, reason?}: the pass or door session is revoked, and its holder gets a place at the back.
func (s *Server) eject(x *exchange) error {
	body, err := s.command(x, false, "ticket", "reason")
	if err != nil {
		return err
	}
	raw, _ := body.find("ticket")
	n, ok := whole(raw)
	if !ok || n < 1 || n > 1<<32-1 {
		return refuseField("invalid_ticket", "ticket", "")
	}
	reason, err := body.reason()
	if err != nil {
		return err
	}
	a, err := s.do(x, room.EjectTicket{Ticket: room.Ticket(n)}, reason)
	if err != nil {
		return err
	}
	return s.answerStats(x, func(b []byte) []byte {
		b = appendInt(b, "ejected", n)
		for _, e := range a.Events {
			if eject, ok := e.Body.(*room.Eject); ok {
				b = appendInt(b, "ticket", int64(eject.To))
			}
		}
		return b
	})
}

// purge is POST …/purge {reason?}: the backlog goes, nobody is admitted (seed 004).
func (s *Server) purge(x *exchange) error {
	body, err := s.command(x, true, "reason")
	if err != nil {
		return err
	}
	reason, err := body.reason()
	if err != nil {
		return err
	}
	a, err := s.do(x, room.PurgeLine{}, reason)
	if err != nil {
		return err
	}
	waiting, preQueue := 0, 0
	for _, e := range a.Events {
		if p, ok := e.Body.(*room.Purge); ok {
			waiting += p.Waiting
			preQueue += p.PreQueue
		}
	}
	return s.answerStats(x, func(b []byte) []byte {
		b = appendInt(b, "purged", int64(waiting+preQueue))
		return appendInt(b, "preQueue", int64(preQueue))
	})
}

// answerStats answers {ok, …, stats}.
func (s *Server) answerStats(x *exchange, more func([]byte) []byte) error {
	ctx, stop := context.WithTimeout(x.r.Context(), time.Second)
	defer stop()
	b := more(append(x.buf[:0], `{"ok":true`...))
	b = append(b, `,"stats":`...)
	if sum, pos, err := s.summary(ctx, x.id); err == nil {
		b = appendStats(b, x.id, &sum, s.o.Engine.ETARecord(x.id), pos.Seq, s.alarmsOf(s.alarms(room.Instant(x.ms()))[x.id], nameOf(sum.Settings, x.id)), room.Instant(x.ms()))
	} else {
		b = append(b, "null"...) // done all the same
	}
	x.buf = append(b, '}')
	x.json(http.StatusOK)
	return nil
}
