// Package email posts letters by SMTP.
package email

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	netmail "net/mail"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail"

	"qm/notify"
)

// Post implements [notify.Post].
type Post struct {
	host   string
	from   netmail.Address
	domain string // of from
	opts   []mail.Option
}

var _ notify.Post = (*Post)(nil)

// stepTimeout is how long it may take to reach the server and log in, and how long to hand over a letter. Both fit into notify.JobTime.
const stepTimeout = 10 * time.Second

// Options of [New].
type Options struct {
	TLS *tls.Config // of the connection to the mail server; nil: the system's roots and TLS 1.2 or newer
}

// New reads SMTP_URL and MAIL_FROM. The URL is smtp://[user:password@]host[:587] or smtps://[user:password@]host[:465].
// smtps is TLS from the first byte. smtp turns TLS on where the server offers it (STARTTLS), and insists on it where there is a
// password to protect; a server on this machine is spoken to without TLS, or with it where there is a password and the server offers it. from is an address, or "Name <address>".
func New(smtpURL, from string, o Options) (*Post, error) {
	u, err := url.Parse(smtpURL)
	if err != nil || u.Scheme != "smtp" && u.Scheme != "smtps" || u.Hostname() == "" {
		return nil, errors.New("email: the server's address does not begin with smtp:// or smtps://")
	}
	if u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("email: the server's address has more than user, password, host and port")
	}
	sender, err := netmail.ParseAddress(from)
	if err != nil {
		return nil, errors.New("email: the sender is no e-mail address")
	}
	bare, ok := notify.ParseAddress(sender.Address)
	if !ok {
		return nil, errors.New("email: the sender is no e-mail address")
	}
	p := &Post{host: u.Hostname(), from: netmail.Address{Name: sender.Name, Address: bare}, domain: bare[strings.LastIndexByte(bare, '@')+1:]}
	port := 587
	if u.Scheme == "smtps" {
		port = 465
	}
	if text := u.Port(); text != "" {
		if port, err = strconv.Atoi(text); err != nil || port < 1 || port > 65_535 {
			return nil, errors.New("email: the server's port is not within 1 and 65535")
		}
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.TLS != nil {
		config = o.TLS.Clone()
	}
	config.ServerName = p.host
	p.opts = []mail.Option{mail.WithTimeout(stepTimeout), mail.WithTLSConfig(config), mail.WithHELO(p.domain), mail.WithoutNoop(), mail.WithoutRset()}
	policy := mail.TLSOpportunistic
	if here(p.host) && u.User == nil {
		policy = mail.NoTLS // the certificate of a machine's own relay is mostly one that nobody signed
	}
	if u.User != nil {
		password, _ := u.User.Password()
		kind := mail.SMTPAuthAutoDiscover
		if !here(p.host) {
			policy = mail.TLSMandatory
		} else if u.Scheme == "smtp" {
			kind = mail.SMTPAuthPlainNoEnc
		}
		p.opts = append(p.opts, mail.WithSMTPAuth(kind), mail.WithUsername(u.User.Username()), mail.WithPassword(password))
	}
	if u.Scheme == "smtps" {
		p.opts = append(p.opts, mail.WithSSL())
	} else {
		p.opts = append(p.opts, mail.WithTLSPolicy(policy))
	}
	p.opts = append(p.opts, mail.WithPort(port))
	if _, err := mail.NewClient(p.host, p.opts...); err != nil {
		return nil, fmt.Errorf("email: %w", err)
	}
	return p, nil
}

// here reports a host on this machine, to which nothing travels that could be read on the way.
func here(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// Open implements [notify.Post].
func (p *Post) Open(ctx context.Context) (notify.Delivery, error) {
	c, err := mail.NewClient(p.host, p.opts...)
	if err != nil {
		return nil, fmt.Errorf("email: %w", err)
	}
	if err := c.DialWithContext(ctx); err != nil {
		return nil, fmt.Errorf("email: reach the mail server: %w", err)
	}
	return &delivery{p, c}, nil
}

type delivery struct {
	post   *Post
	client *mail.Client
}

// Close implements [notify.Delivery]. What the server says to a good-bye changes nothing.
func (d *delivery) Close() { _ = d.client.Close() }

// Send implements [notify.Delivery].
func (d *delivery) Send(ctx context.Context, l notify.Letter) error {
	m, err := d.post.message(l)
	if err != nil {
		return fmt.Errorf("%w: %w", notify.ErrRefused, err)
	}
	// The library takes no context here; each of its steps has a time-out of its own.
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", notify.ErrNotNow, err)
	}
	return outcome(d.client.Send(m), m.IsDelivered())
}

// message writes a letter.
func (p *Post) message(l notify.Letter) (*mail.Msg, error) {
	m := mail.NewMsg(mail.WithEncoding(mail.EncodingQP))
	from := p.from
	if name := line(l.FromName); name != "" {
		from.Name = name
	}
	m.FromMailAddress(&from)
	if to, ok := notify.ParseAddress(l.To); !ok || to != l.To {
		return nil, errors.New("email: the letter has no address")
	}
	m.ToMailAddress(&netmail.Address{Address: l.To})
	m.Subject(line(l.Subject))
	m.SetDate()
	m.SetMessageIDWithValue(word(l.ID) + "@" + p.domain)
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	if strings.HasPrefix(l.Withdraw, "https:") {
		if err := m.SetListUnsubscribeOneClick(l.Withdraw); err != nil {
			return nil, errors.New("email: the link that ends the mails is none")
		}
	} else if l.Withdraw != "" {
		m.SetListUnsubscribe(word(l.Withdraw)) // one click is for https alone (RFC 8058, 3.1)
	}
	m.SetBodyString(mail.TypeTextPlain, l.Text)
	m.AddAlternativeString(mail.TypeTextHTML, l.HTML)
	return m, nil
}

// line makes text one line without control characters, as a header's value has to be.
func line(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, ""), func(r rune) bool { return r <= ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' }), " ")
}

// word drops what no address or identifier in a header has.
func word(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f || r == '<' || r == '>' {
			return -1
		}
		return r
	}, s)
}

// outcome says what an error of the library means. Its own words name the recipient, and so may the server's: of both nothing is
// passed on but the step and the code.
func outcome(err error, delivered bool) error {
	var failed *mail.SendError
	switch {
	case err == nil, delivered:
		return nil
	case !errors.As(err, &failed):
		return errors.New("email: the letter may or may not have been delivered")
	}
	code := failed.ErrorCode()
	said := fmt.Sprintf("%s: %d %s", failed.Reason, code, failed.EnhancedStatusCode())
	switch failed.Reason {
	case mail.ErrWriteContent:
		// The server delivers nothing before the dot at the end (RFC 5321, 4.1.1.4), which was not sent.
		return fmt.Errorf("%w: %s", notify.ErrNotNow, said)
	case mail.ErrSMTPDataClose:
		if code == 0 { // the connection broke while the server decided
			return fmt.Errorf("email: it is not known whether the letter was delivered: %s", said)
		}
	}
	if code >= 500 {
		return fmt.Errorf("%w: %s", notify.ErrRefused, said)
	}
	return fmt.Errorf("%w: %s", notify.ErrNotNow, said)
}
