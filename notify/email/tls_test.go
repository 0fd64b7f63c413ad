package email_test

import (
	"crypto/tls"
	"encoding/base64"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"qm/internal/testenv"
	"qm/notify/email"
)

const mailUser, mailPassword = "queue@shop.example", "p@ss:w/rd ü"

// away is this machine under a name that is not taken for this machine: dialling the unspecified address reaches the loopback
// (package net), and a mail server at any other address than the loopback may be read on the way.
const away = "0.0.0.0"

// at is the address of a mail server for one who logs in, or not.
func at(box *testenv.Mailbox, host, user, password string) string {
	u, err := url.Parse(box.URL)
	if err != nil {
		panic(err)
	}
	u.Host = net.JoinHostPort(host, u.Port())
	if user != "" {
		u.User = url.UserPassword(user, password)
	}
	return u.String()
}

// try sends one letter and says what came of it.
func try(t *testing.T, server string, a *testenv.Authority) error {
	t.Helper()
	o := email.Options{}
	if a != nil {
		o.TLS = &tls.Config{RootCAs: a.Roots, MinVersion: tls.VersionTLS12}
	}
	p, err := email.New(server, "queue@shop.example", o)
	if err != nil {
		t.Fatal(err)
	}
	d, err := p.Open(t.Context())
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Send(t.Context(), letter())
}

// unread fails the test when a listener on the way could have read the password or a letter.
func unread(t *testing.T, box *testenv.Mailbox) {
	t.Helper()
	heard := box.Heard()
	for what, secret := range map[string]string{
		"password": mailPassword, "password in LOGIN": base64.StdEncoding.EncodeToString([]byte(mailPassword)),
		"user in LOGIN": base64.StdEncoding.EncodeToString([]byte(mailUser)),
		"login":         base64.StdEncoding.EncodeToString([]byte("\x00" + mailUser + "\x00" + mailPassword)), "a login": "AUTH ", "recipient": "anna@example.com",
	} {
		if strings.Contains(heard, secret) {
			t.Errorf("the %s went over the network in clear", what)
		}
	}
}

func TestLettersOverTLS(t *testing.T) {
	a := testenv.NewAuthority(t)
	good := a.Certificate(away, time.Now().Add(time.Hour))
	for name, o := range map[string]testenv.SMTPOptions{
		"STARTTLS":                  {Certificate: good},
		"STARTTLS and PLAIN":        {Certificate: good, User: mailUser, Password: mailPassword, Mechanisms: []string{"PLAIN"}},
		"STARTTLS and LOGIN":        {Certificate: good, User: mailUser, Password: mailPassword, Mechanisms: []string{"LOGIN"}},
		"STARTTLS and both":         {Certificate: good, User: mailUser, Password: mailPassword, Mechanisms: []string{"LOGIN", "PLAIN"}},
		"TLS from the start":        {Certificate: good, Implicit: true},
		"TLS from the start, PLAIN": {Certificate: good, Implicit: true, User: mailUser, Password: mailPassword, Mechanisms: []string{"PLAIN"}},
		"TLS from the start, LOGIN": {Certificate: good, Implicit: true, User: mailUser, Password: mailPassword, Mechanisms: []string{"LOGIN"}},
	} {
		t.Run(name, func(t *testing.T) {
			box := testenv.SMTPWith(t, o)
			if err := try(t, at(box, away, o.User, o.Password), a); err != nil {
				t.Fatal(err)
			}
			if m := box.Next(); m.To != "anna@example.com" {
				t.Errorf("it went to %s", m.To)
			}
			unread(t, box)
			if o.User == "" {
				return
			}
			err := try(t, at(box, away, o.User, "not "+o.Password), a)
			if err == nil || strings.Contains(err.Error(), o.Password) {
				t.Errorf("a wrong password: %v", err)
			}
			if err := try(t, at(box, away, "", ""), a); err == nil {
				t.Error("a letter was taken without a login")
			}
			if box.Waiting() != 0 {
				t.Error("a letter was delivered without the password")
			}
			unread(t, box)
		})
	}
}

// A server that cannot show who it is, or cannot keep a password secret, gets neither a password nor a letter.
func TestServersThatAreNotTrusted(t *testing.T) {
	a, other := testenv.NewAuthority(t), testenv.NewAuthority(t)
	login := testenv.SMTPOptions{User: mailUser, Password: mailPassword, Mechanisms: []string{"PLAIN", "LOGIN"}}
	with := func(c *tls.Certificate, implicit bool) testenv.SMTPOptions {
		o := login
		o.Certificate, o.Implicit = c, implicit
		return o
	}
	tomorrow := time.Now().Add(time.Hour)
	bare := login
	bare.ClearLogin = true
	cases := map[string]testenv.SMTPOptions{"no STARTTLS": login, "no STARTTLS, but a login": bare}
	for form, implicit := range map[string]bool{"STARTTLS": false, "TLS from the start": true} {
		cases[form+", expired"] = with(a.Certificate(away, time.Now().Add(-time.Hour)), implicit)
		cases[form+", of another authority"] = with(other.Certificate(away, tomorrow), implicit)
		cases[form+", of another host"] = with(a.Certificate("mail.example", tomorrow), implicit)
	}
	for name, o := range cases {
		t.Run(name, func(t *testing.T) {
			box := testenv.SMTPWith(t, o)
			if err := try(t, at(box, away, o.User, o.Password), a); err == nil {
				t.Error("a letter was sent")
			}
			if box.Waiting() != 0 {
				t.Error("a letter was delivered")
			}
			unread(t, box)
		})
	}
}

// A relay on this machine is used as it is: Debian's own has a certificate that nobody signed, and one that asks for a login may
// have no TLS at all. Nothing of it leaves the machine.
func TestARelayOnThisMachine(t *testing.T) {
	self := testenv.NewAuthority(t)
	for name, o := range map[string]testenv.SMTPOptions{
		"a certificate that nobody signed": {Certificate: self.Certificate("relay", time.Now().Add(time.Hour))},
		"a login without TLS":              {User: mailUser, Password: mailPassword, Mechanisms: []string{"PLAIN"}, ClearLogin: true},
	} {
		t.Run(name, func(t *testing.T) {
			box := testenv.SMTPWith(t, o)
			if err := try(t, at(box, "127.0.0.1", o.User, o.Password), nil); err != nil {
				t.Fatal(err)
			}
			box.Next()
		})
	}
}
