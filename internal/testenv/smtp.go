package testenv

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// Mailbox is a mail server of the loopback that keeps what it is sent.
type Mailbox struct {
	URL string // smtp://127.0.0.1:port

	t       testing.TB
	letters chan Mail
	login   SMTPOptions

	mu     sync.Mutex
	refuse map[string]error // by step: "rcpt", "data"
	heard  bytes.Buffer     // of the network, as a listener on the way would
}

// SMTPOptions are what a mail server asks of those who send.
type SMTPOptions struct {
	Certificate    *tls.Certificate // nil: no TLS
	Implicit       bool             // TLS from the first byte, not by STARTTLS
	User, Password string           // empty: no login; otherwise a letter is taken only after one
	Mechanisms     []string         // of PLAIN and LOGIN
	ClearLogin     bool             // offers the login before TLS, as a careless or a false server does
}

// Mail is one letter as it arrived.
type Mail struct {
	From, To   string // of the envelope
	Header     mail.Header
	Text, HTML string
	Raw        string
}

// SMTP starts a mail server without TLS and login that ends with the test.
func SMTP(t testing.TB) *Mailbox {
	t.Helper()
	return SMTPWith(t, SMTPOptions{})
}

// SMTPWith starts a mail server that ends with the test.
func SMTPWith(t testing.TB, o SMTPOptions) *Mailbox {
	t.Helper()
	l, err := net.Listen("tcp", loopback(0))
	if err != nil {
		t.Fatalf("testenv: listen for mail: %v", err)
	}
	m := &Mailbox{URL: "smtp://" + l.Addr().String(), t: t, letters: make(chan Mail, 1000), login: o, refuse: map[string]error{}}
	s := smtp.NewServer(m)
	s.Domain = "mail.test"
	s.ReadTimeout, s.WriteTimeout = 30*time.Second, 30*time.Second
	s.AllowInsecureAuth = o.ClearLogin
	l = listened{l, m}
	if o.Certificate != nil {
		config := &tls.Config{Certificates: []tls.Certificate{*o.Certificate}, MinVersion: tls.VersionTLS12}
		if o.Implicit {
			m.URL = "smtps://" + l.Addr().String()
			l = tls.NewListener(l, config)
		} else {
			s.TLSConfig = config
		}
	}
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

// Heard is all that clients have sent so far, as it went over the network.
func (m *Mailbox) Heard() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.heard.String()
}

// listened notes what comes over its connections.
type listened struct {
	net.Listener
	box *Mailbox
}

func (l listened) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return heardConn{c, l.box}, nil
}

type heardConn struct {
	net.Conn
	box *Mailbox
}

func (c heardConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.box.mu.Lock()
	defer c.box.mu.Unlock()
	c.box.heard.Write(p[:n])
	return n, err
}

// Waiting is how many letters have come and were not taken by Next.
func (m *Mailbox) Waiting() int { return len(m.letters) }

// NewSession implements smtp.Backend.
func (m *Mailbox) NewSession(*smtp.Conn) (smtp.Session, error) { return &mailSession{box: m}, nil }

type mailSession struct {
	box      *Mailbox
	from, to string
	known    bool // logged in
}

// AuthMechanisms implements smtp.AuthSession.
func (s *mailSession) AuthMechanisms() []string { return s.box.login.Mechanisms }

// Auth implements smtp.AuthSession.
func (s *mailSession) Auth(mechanism string) (sasl.Server, error) {
	check := func(user, password string) error {
		if user != s.box.login.User || password != s.box.login.Password {
			return smtp.ErrAuthFailed
		}
		s.known = true
		return nil
	}
	switch {
	case !slices.Contains(s.box.login.Mechanisms, mechanism):
		return nil, smtp.ErrAuthUnknownMechanism
	case mechanism == sasl.Plain:
		return sasl.NewPlainServer(func(_, user, password string) error { return check(user, password) }), nil
	default:
		return &loginServer{check: check}, nil
	}
}

// loginServer is LOGIN, for which the library has the client's side only.
type loginServer struct {
	check func(user, password string) error
	asked int
	user  string
}

// Next implements sasl.Server.
func (l *loginServer) Next(said []byte) ([]byte, bool, error) {
	l.asked++
	switch l.asked {
	case 1:
		return []byte("Username:"), false, nil
	case 2:
		l.user = string(said)
		return []byte("Password:"), false, nil
	default:
		return nil, true, l.check(l.user, string(said))
	}
}

func (s *mailSession) Reset()        { s.from, s.to = "", "" }
func (s *mailSession) Logout() error { return nil }

func (s *mailSession) Mail(from string, _ *smtp.MailOptions) error {
	if s.box.login.User != "" && !s.known {
		return smtp.ErrAuthRequired
	}
	s.from = from
	return nil
}

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
