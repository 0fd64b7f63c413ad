package turn

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"qm/engine/room"
	"qm/notify"
	"qm/projection"
)

// kindName is the queue's name for these mails.
const kindName = "turn_mail"

const (
	workers     = 4
	attempts    = 20
	longestWait = time.Minute
)

// Kind is how the queue sends the mails. A mail is tried for about a quarter of an hour: as long as most passes are good.
func (s *Service) Kind() notify.Kind {
	return notify.Kind{
		Name: kindName, Handle: s.handle, Workers: workers, Attempts: attempts, GivenUp: s.givenUp,
		Backoff: func(attempt int) time.Duration { return min(time.Second<<min(attempt-1, 10), longestWait) },
	}
}

// errBehind: the queue is ahead of what this process sees of the room.
var errBehind = errors.New("turn: the room's view does not show the turn yet")

// handle sends a mail, if it is still owed.
func (s *Service) handle(ctx context.Context, j notify.Job) error {
	var e errand
	if err := json.Unmarshal(j.Payload, &e); err != nil {
		return fmt.Errorf("%w: read the errand: %w", notify.ErrGiveUp, err)
	}
	view, err := s.o.Rooms.View(ctx, e.Place.Room)
	if errors.Is(err, projection.ErrNoRoom) {
		return nil
	}
	if err != nil {
		return err
	}
	sum, place, err := look(ctx, view, e.Place)
	if err != nil {
		return err
	}
	now := s.o.Now()
	switch is := judge(&sum, &place, e.Place, room.Instant(now.UnixMilli())); {
	case is == turn && e.Mail == notify.Turn, is == near && e.Mail == notify.Near:
	case (is == waits || is == near) && e.Mail == notify.Turn:
		return errBehind
	default:
		return nil // overtaken: discarded, or the turn has come before it was told to be near
	}
	r, ok, err := s.o.Registrations.Find(ctx, e.Place)
	if err != nil || !ok || !r.Live() || r.Turn || r.Near && e.Mail == notify.Near {
		return err
	}
	way, err := s.o.Post.Open(ctx)
	if err != nil {
		s.metrics.count(e.Mail, "later")
		s.post.failed(now, err)
		return err
	}
	defer way.Close()
	// From here on it is once or never.
	r, ok, err = s.o.Registrations.Claim(ctx, e.Place, e.Mail)
	if err != nil || !ok {
		return err
	}
	return s.deliver(ctx, way, &sum, r, e)
}

// deliver sends a mail that was claimed. Whatever must be written down afterwards is, even when the server is to stop.
func (s *Service) deliver(ctx context.Context, way notify.Delivery, sum *room.Summary, r notify.Registration, e errand) error {
	letter, err := s.letter(sum, r, e.Mail)
	if err == nil {
		err = way.Send(ctx, letter)
	} else {
		err = fmt.Errorf("%w: %w", notify.ErrRefused, err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	var outcome string
	switch {
	case err == nil:
		outcome = "sent"
		s.post.well()
	case errors.Is(err, notify.ErrNotNow):
		s.metrics.count(e.Mail, "later")
		s.post.failed(s.o.Now(), err)
		return errors.Join(err, s.o.Registrations.Unclaim(ctx, e.Place, e.Mail))
	case errors.Is(err, notify.ErrRefused):
		outcome = "refused"
	default: // it may have been delivered: a second one would be worse
		outcome = "unknown"
		s.post.failed(s.o.Now(), err)
	}
	s.metrics.count(e.Mail, outcome)
	if err != nil {
		s.o.Log.Warn("a mail was not delivered, or may not have been", "room", e.Place.Room, "mail", string(e.Mail), "to", s.printable(r.Address), "error", err)
	}
	// The last mail was sent, or the address is of no use.
	if e.Mail == notify.Turn || outcome == "refused" {
		if _, err := s.o.Registrations.Erase(ctx, e.Place); err != nil {
			s.o.Log.Warn("an address that has served is erased later", "room", e.Place.Room, "error", err)
		}
	}
	return nil
}

// printable is what logs say of an address.
func (s *Service) printable(address string) string {
	d := s.digest("log", address)
	return hex.EncodeToString(d[:6])
}

// letter writes a mail.
func (s *Service) letter(sum *room.Summary, r notify.Registration, m notify.Mail) (notify.Letter, error) {
	l := Letter{Mail: m, Locale: r.Locale, Brand: sum.Settings.Branding.Name, RoomName: sum.Settings.Name, Room: r.Room}
	if l.RoomName == "" {
		l.RoomName = r.Room
	}
	withdraw := s.o.PublicURL + notify.WithdrawPath + "?t=" + s.o.Link(r.Place, s.o.Now()) + "&lang=" + r.Locale
	out, err := s.o.Word(l, s.o.PublicURL+"/w/"+r.Room+"?lang="+r.Locale, withdraw)
	id := s.digest("mail", keyOf(r.Place, m))
	out.To, out.Withdraw, out.ID = r.Address, withdraw, hex.EncodeToString(id[:16])
	return out, err
}

// givenUp erases the address of a turn that could not be told.
func (s *Service) givenUp(ctx context.Context, j notify.Job) {
	var e errand
	if json.Unmarshal(j.Payload, &e) != nil {
		return
	}
	s.metrics.count(e.Mail, "given_up")
	if e.Mail != notify.Turn {
		return
	}
	if _, err := s.o.Registrations.Erase(ctx, e.Place); err != nil {
		s.o.Log.Warn("an address that has served is erased later", "room", e.Place.Room, "error", err)
	}
}
