package alert

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"qm/access/org"
	"qm/notify"
)

// Message is the body that the webhook is sent.
type Message struct {
	ID       string `json:"id"` // of the alert; together with State the same for the same message
	Rule     string `json:"rule"`
	Title    string `json:"title"`
	State    string `json:"state"` // fired, resolved or test
	Subject  string `json:"subject,omitempty"`
	RoomID   string `json:"roomId,omitempty"`
	Sentence string `json:"sentence"`
	Value    int64  `json:"value"`
	Limit    int64  `json:"limit"`
	Unit     string `json:"unit,omitempty"`
	Since    int64  `json:"since"` // epoch ms: when it fired
	At       int64  `json:"at"`    // epoch ms: when this was to be told
	Console  string `json:"console,omitempty"`
}

// States of a message.
const (
	fired    = "fired"
	resolved = "resolved"
	tested   = "test"
)

// The kinds of jobs.
const (
	webhookKind = "alert_webhook"
	mailKind    = "alert_mail"
)

// unknownFor is how long a message may wait for the event that it tells of, which is written right behind it.
const unknownFor = 30 * time.Second

// letter is the payload of a job.
type letter struct {
	Message Message `json:"message"`
	To      int     `json:"to,omitempty"` // which of ALERT_MAIL_TO: the queue holds no address
}

// Kinds are how messages are sent, for the queue.
func (s *Service) Kinds() []notify.Kind { return s.kinds(s.job) }

func (s *Service) kinds(handle func(send func(context.Context, letter) error) func(context.Context, notify.Job) error) []notify.Kind {
	backoff := func(attempt int) time.Duration { return time.Second << min(attempt-1, 9) }
	return []notify.Kind{
		{Name: webhookKind, Attempts: 15, Backoff: backoff, Handle: handle(s.hook)},
		{Name: mailKind, Attempts: 15, Backoff: backoff, Handle: handle(s.mail)},
	}
}

// job sends what the organisation's stream confirms. The message is queued before its event is written, so that no crash loses it; where the
// event was never written, or another process was first, there is nothing to tell.
func (s *Service) job(send func(context.Context, letter) error) func(context.Context, notify.Job) error {
	return func(ctx context.Context, j notify.Job) error {
		var l letter
		if err := json.Unmarshal(j.Payload, &l); err != nil {
			return fmt.Errorf("%w: %w", notify.ErrGiveUp, err)
		}
		if err := s.o.Book.Refresh(ctx); err != nil {
			return fmt.Errorf("look for the event of a message: %w", err)
		}
		known := false
		s.o.Book.Look(func(st *org.State) {
			a, ok := st.Alert(l.Message.ID)
			known = ok && (l.Message.State == fired && a.Told || l.Message.State == resolved && a.EndTold)
		})
		if !known {
			if s.o.Now().Sub(time.UnixMilli(l.Message.At)) > unknownFor {
				return nil
			}
			return errors.New("the event of the message is not there yet")
		}
		return send(ctx, l)
	}
}

// offlineJob sends what no stream can confirm, because it is out of reach.
func (s *Service) offlineJob(send func(context.Context, letter) error) func(context.Context, notify.Job) error {
	return func(ctx context.Context, j notify.Job) error {
		var l letter
		if err := json.Unmarshal(j.Payload, &l); err != nil {
			return fmt.Errorf("%w: %w", notify.ErrGiveUp, err)
		}
		return send(ctx, l)
	}
}

// message words an alert.
func (s *Service) message(a org.Alert, state, roomName string) Message {
	m := Message{
		ID: a.ID, Rule: a.Rule, Title: s.rules[a.Rule].Title, State: state, Subject: a.Subject, RoomID: a.Room,
		Sentence: Sentence(a.Rule, a.Subject, roomName, a.Value, a.Limit), Value: a.Value, Limit: a.Limit, Unit: s.rules[a.Rule].Unit,
		Since: a.Since.UnixMilli(), At: s.o.Now().UnixMilli(),
	}
	if state == resolved {
		m.Sentence = "It is over: " + m.Sentence
	}
	if s.o.PublicURL != "" {
		m.Console = s.o.PublicURL + "/"
	}
	return m
}

// tell queues a message for every way there is. delay leaves time for its event to be written.
func (s *Service) tell(ctx context.Context, q notify.Queue, m Message, delay time.Duration) error {
	if q == nil {
		return nil
	}
	var jobs []notify.Job
	add := func(kind, key string, l letter) {
		payload, err := json.Marshal(l)
		if err == nil {
			jobs = append(jobs, notify.Job{Kind: kind, Key: key, Payload: payload, RunAt: s.o.Now().Add(delay)})
		}
	}
	if s.o.WebhookURL != "" {
		add(webhookKind, m.ID+"/"+m.State, letter{Message: m})
	}
	for i := range s.Mails() {
		add(mailKind, m.ID+"/"+m.State+"/"+strconv.Itoa(i), letter{Message: m, To: i})
	}
	if len(jobs) == 0 {
		return nil
	}
	return q.Enqueue(ctx, jobs...)
}

// hook posts a message to the webhook. A redirect is no answer.
func (s *Service) hook(ctx context.Context, l letter) (err error) {
	defer func() { s.count("webhook", err) }()
	body, err := json.Marshal(l.Message)
	if err != nil {
		return fmt.Errorf("%w: %w", notify.ErrGiveUp, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.o.WebhookURL, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: the webhook's address is none", notify.ErrGiveUp)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "qm-alert")
	r.Header.Set("QM-Id", l.Message.ID+"/"+l.Message.State)
	if s.key != nil {
		r.Header.Set("QM-Signature", sign(s.key, s.o.Now(), body))
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return errors.New("the webhook cannot be reached") // the error's own words contain its address, which is a secret
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, 64<<10)
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return fmt.Errorf("the webhook answers %d", answer.StatusCode)
	}
	return nil
}

// sign is t=<epoch ms>,v1=<hex of HMAC-SHA256 over "t.body">, the form of seed 002's webhooks.
func sign(key []byte, at time.Time, body []byte) string {
	t := strconv.FormatInt(at.UnixMilli(), 10)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(t + "."))
	mac.Write(body)
	return "t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

// mail mails a message to one address.
func (s *Service) mail(ctx context.Context, l letter) (err error) {
	if l.To >= s.Mails() {
		return nil // ALERT_MAIL_TO has become shorter
	}
	defer func() { s.count("mail", err) }()
	d, err := s.o.Post.Open(ctx)
	if err != nil {
		return err
	}
	defer d.Close()
	m := l.Message
	subject := map[string]string{fired: "Alert: ", resolved: "Over: ", tested: "Test: "}[m.State] + m.Title
	if m.Subject != "" {
		subject += " (" + m.Subject + ")"
	}
	since := time.UnixMilli(m.Since).UTC().Format(time.DateTime) + " UTC"
	text := m.Sentence + "\n\nSince " + since + ".\n"
	if m.Console != "" {
		text += m.Console + "\n"
	}
	err = d.Send(ctx, notify.Letter{
		To: s.o.MailTo[l.To], FromName: "Queue Manager", Subject: subject, Text: text,
		HTML: "<p>" + strings.ReplaceAll(html.EscapeString(strings.TrimSpace(text)), "\n", "<br>") + "</p>",
		ID:   strings.NewReplacer("/", "", "_", "").Replace(m.ID) + m.State + strconv.Itoa(l.To),
	})
	if errors.Is(err, notify.ErrRefused) {
		return fmt.Errorf("%w: %w", notify.ErrGiveUp, err)
	}
	return err
}

func (s *Service) count(by string, err error) {
	outcome := "sent"
	if err != nil {
		outcome = "failed"
	}
	s.metrics.sends.WithLabelValues(by, outcome).Inc()
}

// Test implements [notify.Alerts].
func (s *Service) Test(ctx context.Context) (mailed bool, err error) {
	if s.o.WebhookURL == "" {
		return false, notify.ErrNoAlerts
	}
	now := s.o.Now().UnixMilli()
	m := Message{
		ID: org.NewID("al_"), Rule: tested, Title: "Test page", State: tested, Since: now, At: now,
		Sentence: "This is a test page: alerts reach you. Nothing has to be done.",
	}
	if s.o.PublicURL != "" {
		m.Console = s.o.PublicURL + "/"
	}
	if err := s.hook(ctx, letter{Message: m}); err != nil {
		return false, fmt.Errorf("%w: %w", notify.ErrWebhook, err)
	}
	mailed = s.Mails() > 0
	for i := range s.Mails() {
		if err := s.mail(ctx, letter{Message: m, To: i}); err != nil {
			s.o.Log.Warn("a test page was not mailed", "error", err)
			mailed = false
		}
	}
	return mailed, nil
}
