package email_test

import (
	"errors"
	"net/mail"
	"strings"
	"testing"

	"qm/internal/testenv"
	"qm/notify"
	"qm/notify/email"
)

func letter() notify.Letter {
	return notify.Letter{
		To: "anna@example.com", FromName: "Frühling \"Sale\" <x@evil.example>\r\nBcc: c@evil.example", Subject: "ถึงคิวของคุณแล้ว\r\nBcc: d@evil.example\n\nbody",
		Text: "Grüße\n.\nhttps://queue.example/w/rm1\n", HTML: "<p>Grüße</p>", ID: "abc123", Withdraw: "https://queue.example/notify/withdraw?t=x.y",
	}
}

func send(t *testing.T, p *email.Post, l notify.Letter) error {
	t.Helper()
	d, err := p.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	return d.Send(t.Context(), l)
}

func TestALetterArrivesAsItWasWritten(t *testing.T) {
	box := testenv.SMTP(t)
	p, err := email.New(box.URL, "Queue <queue@shop.example>", email.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := letter()
	if err := send(t, p, l); err != nil {
		t.Fatal(err)
	}
	m := box.Next()
	from, err := m.Header.AddressList("From")
	if err != nil || len(from) != 1 || from[0].Address != "queue@shop.example" || from[0].Name != `Frühling "Sale" <x@evil.example> Bcc: c@evil.example` {
		t.Errorf("From: %v, %v", m.Header["From"], err)
	}
	if m.From != "queue@shop.example" || m.To != l.To || m.Header.Get("To") != "<"+l.To+">" {
		t.Errorf("from %s to %s (%s)", m.From, m.To, m.Header.Get("To"))
	}
	if m.Subject() != "ถึงคิวของคุณแล้ว Bcc: d@evil.example body" || len(m.Header["Subject"]) != 1 {
		t.Errorf("Subject: %q", m.Header["Subject"])
	}
	for name, want := range map[string]string{
		"Bcc": "", "Cc": "", "Auto-Submitted": "auto-generated", "Message-Id": "<abc123@shop.example>",
		"List-Unsubscribe": "<" + l.Withdraw + ">", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
	} {
		if got := m.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if _, err := mail.ParseDate(m.Header.Get("Date")); err != nil {
		t.Error(err)
	}
	if strings.ReplaceAll(m.Text, "\r\n", "\n") != l.Text || m.HTML != l.HTML {
		t.Errorf("text %q, HTML %q", m.Text, m.HTML)
	}
}

// One click is for https alone.
func TestAPlainLinkIsNoOneClick(t *testing.T) {
	box := testenv.SMTP(t)
	p, err := email.New(box.URL, "queue@shop.example", email.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := letter()
	l.FromName, l.Withdraw = "", "http://127.0.0.1/notify/withdraw?t=x"
	if err := send(t, p, l); err != nil {
		t.Fatal(err)
	}
	if m := box.Next(); m.Header.Get("List-Unsubscribe") != "<"+l.Withdraw+">" || m.Header.Get("List-Unsubscribe-Post") != "" || m.Header.Get("From") != "<queue@shop.example>" {
		t.Errorf("%v", m.Header)
	}
}

// What a server answers decides whether a letter may be sent again; whom it was for is not passed on.
func TestAnswersOfTheServer(t *testing.T) {
	for _, c := range []struct {
		step string
		code int
		want error
	}{
		{"rcpt", 550, notify.ErrRefused}, {"rcpt", 451, notify.ErrNotNow}, {"data", 554, notify.ErrRefused}, {"data", 452, notify.ErrNotNow},
	} {
		box := testenv.SMTP(t)
		p, err := email.New(box.URL, "queue@shop.example", email.Options{})
		if err != nil {
			t.Fatal(err)
		}
		box.Refuse(c.step, c.code, "<anna@example.com> is not welcome")
		err = send(t, p, letter())
		if !errors.Is(err, c.want) || strings.Contains(err.Error(), "anna") {
			t.Errorf("%s %d: %v", c.step, c.code, err)
		}
		if box.Waiting() != 0 {
			t.Errorf("%s %d: it was delivered", c.step, c.code)
		}
		box.Refuse(c.step, 0, "")
		if err := send(t, p, letter()); err != nil {
			t.Errorf("%s: %v", c.step, err)
		}
		box.Next()
	}
}

func TestAServerThatIsAway(t *testing.T) {
	p, err := email.New("smtp://127.0.0.1:1", "queue@shop.example", email.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := p.Open(t.Context()); err == nil {
		d.Close()
		t.Error("reached a server that is not there")
	}
}

// The server offers neither TLS nor a login: who has a password to give goes no further.
func TestAPasswordIsNotGivenToAnybody(t *testing.T) {
	box := testenv.SMTP(t)
	p, err := email.New(strings.Replace(box.URL, "smtp://", "smtp://user:secret@", 1), "queue@shop.example", email.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := p.Open(t.Context()); err == nil {
		d.Close()
		t.Error("went on without a login")
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range [][2]string{
		{"http://mail", "a@example.com"}, {"smtp://", "a@example.com"}, {"smtp://mail:0", "a@example.com"}, {"smtp://mail:x", "a@example.com"},
		{"smtp://mail/path", "a@example.com"}, {"smtp://mail?x=1", "a@example.com"}, {"smtp://mail", "nobody"}, {"smtp://mail", "a@b"}, {"smtp://mail", "a@example.com, b@example.com"},
	} {
		if _, err := email.New(c[0], c[1], email.Options{}); err == nil {
			t.Errorf("%q with %q was taken", c[0], c[1])
		}
	}
	for _, url := range []string{"smtp://mail", "smtps://user:p%40ss@mail.example:465", "smtp://[::1]:25"} {
		if _, err := email.New(url, "Queue <a@example.com>", email.Options{}); err != nil {
			t.Errorf("%q: %v", url, err)
		}
	}
}
