package httpapi

import (
	"context"
	"errors"
	"time"
	"unicode"
	"unicode/utf8"

	"qm/access/org"
	"qm/engine"
)

// Whoever acts is named in the event by their id; from where and why they did is a note, found by the event's cause (domain.md rule 4).

// environment is the namespace of rooms that this contract speaks of (domain.md, "Words").
const environment = "production"

func streamOf(roomID string) string { return environment + "/" + roomID }

// maxReason is how long a reason may be, in characters.
const maxReason = 500

// reason is what an operator says of why.
func (o object) reason() (string, error) {
	text, _, err := o.text("reason", "invalid_reason")
	if err == nil && !readable(text, maxReason, true) {
		err = refuseField("invalid_reason", "reason", "")
	}
	return text, err
}

// readable reports whether people can read a text: valid, of at most most characters, without control characters; lines: line breaks are none.
func readable(text string, most int, lines bool) bool {
	if !utf8.ValidString(text) || utf8.RuneCountInString(text) > most {
		return false
	}
	for _, r := range text {
		if unicode.IsControl(r) && !(lines && (r == '\n' || r == '\r' || r == '\t')) {
			return false
		}
	}
	return true
}

// by is who asks, and from where.
func (s *Server) by(x *exchange) org.By {
	by := org.By{Actor: x.actor.ID}
	if x.addr.IsValid() {
		by.From = x.addr.String()
	}
	return by
}

// act carries out what an operator asks of a room. Its note is written first, so that no act is without one.
func (s *Server) act(x *exchange, reason string, do func(ctx context.Context) (engine.Answer, error)) (engine.Answer, error) {
	ctx := x.r.Context()
	by := s.by(x)
	by.Reason = reason
	cause, err := s.o.Book.Act(ctx, streamOf(x.id), by)
	if err != nil {
		return engine.Answer{}, err
	}
	a, err := do(engine.WithCause(ctx, cause))
	// A failure of the storage, or a caller who has gone, leaves it open whether it happened.
	if err == nil && len(a.Events) == 0 || err != nil && ctx.Err() == nil && !errors.Is(err, engine.ErrStorage) {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer stop()
		s.o.Book.Unact(ctx, cause)
	}
	return a, err
}
