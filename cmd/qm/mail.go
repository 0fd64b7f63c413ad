package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"qm/access/token"
	"qm/notify"
	"qm/notify/alert"
	"qm/notify/email"
	"qm/notify/jobs"
	"qm/notify/turn"
	"qm/web"
)

// outbox is everything that leaves the building by itself.
type outbox struct {
	registrations notify.Registrations
	queue         notify.Queue   // nil: nothing leaves
	turns         *turn.Service  // nil without EMAIL_NOTIFY
	alerts        *alert.Service // watches even where nothing is to be sent: the console shows it
}

// openOutbox puts together what EMAIL_NOTIFY, ALERT_WEBHOOK_URL and ALERT_MAIL_TO ask for.
func (a *App) openOutbox(ctx context.Context, keys *token.Keyring, secret string) error {
	c := a.config
	var post notify.Post
	if c.SMTPURL != "" && c.MailFrom != "" {
		p, err := email.New(c.SMTPURL, c.MailFrom, email.Options{})
		if err != nil {
			return err
		}
		post = p
	}
	var kinds []notify.Kind
	if c.EmailNotify {
		if err := a.openTurns(keys, post, secret); err != nil {
			return err
		}
		kinds = append(kinds, a.out.turns.Kind())
	}
	if err := a.openAlerts(post); err != nil {
		return err
	}
	if a.out.alerts.Sends() {
		kinds = append(kinds, a.out.alerts.Kinds()...)
	}
	switch {
	case len(kinds) == 0:
		return nil
	case c.Durable():
		q, err := jobs.Open(ctx, c.DatabaseURL, jobs.Options{MigrateURL: c.DatabaseMigrateURL, Log: a.log}, notify.NewKinds(kinds...))
		if err != nil {
			return fmt.Errorf("open the job queue: %w", err)
		}
		a.closers = append(a.closers, q.Close)
		a.out.queue = q
	default:
		a.out.queue = notify.NewMemory(a.log, time.Now, notify.NewKinds(kinds...))
	}
	if a.out.turns != nil {
		a.out.turns.Use(a.out.queue)
	}
	if a.out.alerts.Sends() {
		a.out.alerts.Use(a.out.queue)
	}
	return nil
}

func (a *App) openTurns(keys *token.Keyring, post notify.Post, secret string) (err error) {
	if a.out.registrations == nil {
		a.out.registrations = notify.NewLedger(time.Now)
	}
	a.out.turns, err = turn.New(turn.Options{
		Rooms: a.engine, Registrations: a.out.registrations, Post: post, Word: wordLetter, PublicURL: a.config.PublicURL, Secret: secret, Log: a.log,
		Link: func(p notify.Place, now time.Time) string {
			return keys.SignWithdraw(token.Visitor{Room: p.Room, Generation: p.Generation, Ticket: p.Ticket, Handle: p.Handle, IssuedAt: now.UnixMilli()})
		},
	})
	return err
}

func (a *App) openAlerts(post notify.Post) error {
	c := a.config
	rules, err := alert.Rules(c.AlertLimits)
	if err != nil {
		return fmt.Errorf("ALERT_LIMITS: %w", err)
	}
	to, err := c.alertAddresses()
	if err != nil {
		return fmt.Errorf("ALERT_MAIL_TO: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "qm"
	}
	a.out.alerts, err = alert.New(alert.Options{
		Rooms: a.engine, Book: a.book, Rules: rules, Process: fmt.Sprintf("%s:%d", host, c.Port), WebhookURL: c.AlertWebhookURL, SigningKey: c.Secret,
		Post: post, MailTo: to, AllowPrivate: bool(c.AllowPrivateOutbound), PublicURL: c.PublicURL, Log: a.log,
		Refused: func() int64 { return a.web.Refused() },
	})
	return err
}

// run sends until ctx ends.
func (o *outbox) run(ctx context.Context, log *slog.Logger) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		if err := o.alerts.Run(ctx); err != nil && ctx.Err() == nil {
			log.Error("nobody looks for what an operator should be told", "error", err)
		}
	})
	if o.turns != nil {
		running.Go(func() {
			if err := o.turns.Run(ctx); err != nil && ctx.Err() == nil {
				log.Error("nobody looks at the places that await a mail", "error", err)
			}
		})
	}
	if o.queue == nil {
		return
	}
	if err := o.queue.Run(ctx); err != nil {
		log.Error("the job queue has ended", "error", err)
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
