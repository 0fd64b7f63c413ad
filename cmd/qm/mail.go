package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"qm/access/token"
	"qm/notify"
	"qm/notify/email"
	"qm/notify/jobs"
	"qm/notify/turn"
	"qm/web"
)

// outbox is everything that leaves the building by itself. Its zero value sends nothing.
type outbox struct {
	registrations notify.Registrations
	queue         notify.Queue
	turns         *turn.Service
}

// openOutbox puts together what EMAIL_NOTIFY asks for.
func (a *App) openOutbox(ctx context.Context, keys *token.Keyring, secret string) error {
	c := a.config
	if !c.EmailNotify {
		return nil
	}
	post, err := email.New(c.SMTPURL, c.MailFrom, email.Options{})
	if err != nil {
		return err
	}
	if a.out.registrations == nil {
		a.out.registrations = notify.NewLedger(time.Now)
	}
	a.out.turns, err = turn.New(turn.Options{
		Rooms: a.engine, Registrations: a.out.registrations, Post: post, Word: wordLetter, PublicURL: c.PublicURL, Secret: secret, Log: a.log,
		Link: func(p notify.Place, now time.Time) string {
			return keys.SignWithdraw(token.Visitor{Room: p.Room, Generation: p.Generation, Ticket: p.Ticket, Handle: p.Handle, IssuedAt: now.UnixMilli()})
		},
	})
	if err != nil {
		return err
	}
	kinds := notify.NewKinds(a.out.turns.Kind())
	if c.Durable() {
		q, err := jobs.Open(ctx, c.DatabaseURL, jobs.Options{MigrateURL: c.DatabaseMigrateURL, Log: a.log}, kinds)
		if err != nil {
			return fmt.Errorf("open the job queue: %w", err)
		}
		a.closers = append(a.closers, q.Close)
		a.out.queue = q
	} else {
		a.out.queue = notify.NewMemory(a.log, time.Now, kinds)
	}
	a.out.turns.Use(a.out.queue)
	return nil
}

// run sends until ctx ends.
func (o *outbox) run(ctx context.Context, log *slog.Logger) {
	if o.queue == nil {
		return
	}
	looked := make(chan error, 1)
	go func() { looked <- o.turns.Run(ctx) }()
	if err := o.queue.Run(ctx); err != nil {
		log.Error("the job queue has ended", "error", err)
	}
	if err := <-looked; err != nil && ctx.Err() == nil {
		log.Error("nobody looks at the places that await a mail", "error", err)
	}
}

// wordLetter puts a letter into the words of the pages.
func wordLetter(l turn.Letter, placeURL, withdrawURL string) (notify.Letter, error) {
	brand := l.Brand
	if brand == "" {
		brand = l.RoomName
	}
	subject, text, html, err := web.TurnLetter{
		Near: l.Mail == notify.Near, Locale: l.Locale, Brand: brand, RoomName: l.RoomName, PlaceURL: placeURL, WithdrawURL: withdrawURL,
	}.Compose()
	return notify.Letter{FromName: brand, Subject: subject, Text: text, HTML: html}, err
}
