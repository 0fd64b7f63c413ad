package testenv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
)

// Mailbox is a mail server of the loopback that keeps what it is sent.
type Mailbox struct {
	URL string // smtp://127.0.0.1:port

	t       testing.TB
	letters chan Mail

	mu     sync.Mutex
	refuse map[string]error // by step: "rcpt", "data"
}

// Mail is one letter as it arrived.
type Mail struct {
	From, To   string // of the envelope
	Header     mail.Header
	Text, HTML string
	Raw        string
}

// SMTP starts a mail server that ends with the test.
func SMTP(t testing.TB) *Mailbox {
	t.Helper()
	l, err := net.Listen("tcp", loopback(0))
	if err != nil {
		t.Fatalf("testenv: listen for mail: %v", err)
	}
	m := &Mailbox{URL: "smtp://" + l.Addr().String(), t: t, letters: make(chan Mail, 1000), refuse: map[string]error{}}
	s := smtp.NewServer(m)
	s.Domain = "mail.test"
	s.ReadTimeout, s.WriteTimeout = 30*time.Second, 30*time.Second
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-ended })
	return m
}

// Refuse answers a step, "rcpt" or "data", with a code and a sentence from now on; code 0 takes it again. "data" is refused after the
// letter has been read.
func (m *Mailbox) Refuse(step string, code int, sentence string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.refuse, step)
	if code != 0 {
		m.refuse[step] = &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{code / 100, 0, 0}, Message: sentence}
	}
}

func (m *Mailbox) refusal(step string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refuse[step]
}

// Next is the next letter; the test fails when none comes.
func (m *Mailbox) Next() Mail {
	m.t.Helper()
	select {
	case l := <-m.letters:
		return l
	case <-time.After(startLimit):
		m.t.Fatal("testenv: no mail came")
		return Mail{}
	}
}

// Waiting is how many letters have come and were not taken by Next.
func (m *Mailbox) Waiting() int { return len(m.letters) }

// NewSession implements smtp.Backend.
func (m *Mailbox) NewSession(*smtp.Conn) (smtp.Session, error) { return &mailSession{box: m}, nil }

type mailSession struct {
	box      *Mailbox
	from, to string
}

func (s *mailSession) Reset()        { s.from, s.to = "", "" }
func (s *mailSession) Logout() error { return nil }

func (s *mailSession) Mail(from string, _ *smtp.MailOptions) error { s.from = from; return nil }

func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	if s.to != "" {
		return &smtp.SMTPError{Code: 452, Message: "one recipient at a time"}
	}
	s.to = to
	return s.box.refusal("rcpt")
}

func (s *mailSession) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if err := s.box.refusal("data"); err != nil {
		return err
	}
	l, err := parseMail(raw)
	if err != nil {
		s.box.t.Errorf("testenv: a letter cannot be read: %v\n%s", err, raw)
		return err
	}
	l.From, l.To = s.from, s.to
	s.box.letters <- l
	return nil
}

func parseMail(raw []byte) (Mail, error) {
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return Mail{}, err
	}
	l := Mail{Header: m.Header, Raw: string(raw)}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		return Mail{}, fmt.Errorf("content type %q: %w", kind, err)
	}
	parts := multipart.NewReader(m.Body, params["boundary"])
	for {
		p, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return l, nil
		}
		if err != nil {
			return Mail{}, err
		}
		body := io.Reader(p)
		if strings.EqualFold(p.Header.Get("Content-Transfer-Encoding"), "quoted-printable") {
			body = quotedprintable.NewReader(p)
		}
		text, err := io.ReadAll(body)
		if err != nil {
			return Mail{}, err
		}
		if strings.HasPrefix(p.Header.Get("Content-Type"), "text/html") {
			l.HTML = string(text)
		} else {
			l.Text = string(text)
		}
	}
}

// Subject is the subject, decoded.
func (l Mail) Subject() string {
	s, err := new(mime.WordDecoder).DecodeHeader(l.Header.Get("Subject"))
	if err != nil {
		return ""
	}
	return s
}
