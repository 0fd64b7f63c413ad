package token

import (
	"errors"
	"testing"
	"time"
)

// The link in a mail ends the mails of its place, is good for nothing else, and nothing else is good in its stead.
func TestWithdrawals(t *testing.T) {
	now := time.UnixMilli(1764525600000)
	for _, o := range []Options{{}, {SignV2: true}} {
		k := keyring(t, o)
		for _, v := range []Visitor{
			{Room: "spring-drop", Ticket: 7, Generation: 2, IssuedAt: now.UnixMilli()},
			{Room: "spring-drop", Handle: 9, Generation: 1, IssuedAt: now.UnixMilli()},
		} {
			text := k.SignWithdraw(v)
			if got, err := k.VerifyWithdraw(text, now.Add(WithdrawLife)); err != nil || got != v {
				t.Errorf("%+v comes back as %+v, %v", v, got, err)
			}
			if _, err := k.VerifyWithdraw(text, now.Add(WithdrawLife+time.Second)); !errors.Is(err, ErrExpired) {
				t.Errorf("too old: %v", err)
			}
			if _, err := k.VerifyVisitor(text, v.Room, now); err == nil {
				t.Error("it names a place in line")
			}
			if _, err := k.VerifyCode(text, v.Room, now); err == nil {
				t.Error("it opens a door")
			}
			last := text[:len(text)-1] + map[bool]string{true: "A", false: "E"}[text[len(text)-1] != 'A']
			if _, err := k.VerifyWithdraw(last, now); err == nil {
				t.Error("another signature is taken")
			}
			if _, err := k.VerifyWithdraw(k.SignVisitor(v), now); err == nil {
				t.Error("a visitor token withdraws")
			}
		}
		code := k.SignCode(Code{Room: "spring-drop", Ticket: 7, Generation: 2, IssuedAt: now.UnixMilli()})
		if _, err := k.VerifyWithdraw(code, now); err == nil {
			t.Error("a hand-over code withdraws")
		}
		// Legacy form with the payload of a withdrawal, which a holder of no key but SECRET itself could not make.
		if _, err := k.VerifyWithdraw(legacyToken(testSecret, `{"r":"spring-drop","n":7,"g":2,"iat":1764525600000}`), now); !errors.Is(err, ErrPurpose) {
			t.Errorf("the legacy form: %v", err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a withdrawal without a place was signed")
		}
	}()
	keyring(t, Options{}).SignWithdraw(Visitor{Room: "spring-drop", Generation: 1})
}
