package access

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"net/url"
	"sync"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"

	"qm/access/org"
)

// One-time codes as authenticator apps make them by default: RFC 6238 with SHA-1, 6 digits, steps of 30 s. One step of difference between the
// clocks is forgiven either way.
const (
	codeStep   = 30
	codeSkew   = 1
	codeDigits = otp.DigitsSix
	secretSize = 20 // bytes; RFC 4226, 4
)

// codesPerMinute is how many wrong codes an operator's key may be tried with in a minute, from wherever: whoever has the key must not guess the rest.
const codesPerMinute = 10

// codeLimits bounds guesses of codes by operator, whatever address they come from.
type codeLimits struct {
	mu sync.Mutex
	of map[string]*Lockout
}

func (c *codeLimits) lockout(operator string) *Lockout {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.of[operator]
	if l == nil {
		if c.of == nil {
			c.of = map[string]*Lockout{}
		}
		l = NewLockout(codesPerMinute)
		c.of[operator] = l // at most one for each operator with a second factor
	}
	return l
}

// Factor is what an operator's authenticator needs. It is shown once.
type Factor struct {
	Secret string // base32
	URI    string // otpauth://totp/…
}

// StartFactor gives an operator a second factor, which counts from its first code on (ConfirmFactor).
func (g *Gate) StartFactor(ctx context.Context, by org.By, issuer string) (Factor, error) {
	raw := make([]byte, secretSize)
	rand.Read(raw)
	secret := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(raw)
	if err := g.book.StartFactor(ctx, by, g.tokens.Seal([]byte(secret), by.Actor)); err != nil {
		return Factor{}, refusal(err)
	}
	u := url.URL{Scheme: "otpauth", Host: "totp", Path: "/" + issuer + ":" + g.book.Name(by.Actor),
		RawQuery: "secret=" + secret + "&issuer=" + url.QueryEscape(issuer) + "&algorithm=SHA1&digits=6&period=30"}
	return Factor{secret, u.String()}, nil
}

// ConfirmFactor puts it in force once the operator has shown a code. All their other sessions end. Any error is a *Refusal or the book's.
func (g *Gate) ConfirmFactor(ctx context.Context, by org.By, actor Actor, client Network, code string, now time.Time) error {
	step, err := g.codeOf(ctx, actor.operator, client, code, true, now)
	if err != nil {
		return err
	}
	return refusal(g.book.ConfirmFactor(ctx, by, step, actor.session))
}

// RemoveFactor ends an operator's second factor.
func (g *Gate) RemoveFactor(ctx context.Context, by org.By, operator string) error {
	return refusal(g.book.RemoveFactor(ctx, by, operator))
}

// codeOf is the time step of a code of the operator's. A wrong one counts against the client and against the operator's key.
func (g *Gate) codeOf(ctx context.Context, operator string, client Network, code string, pending bool, now time.Time) (step int64, err error) {
	guesses := g.codes.lockout(operator)
	if err := guesses.Check(Network{}, now); err != nil {
		return 0, err
	}
	sealed, err := g.book.FactorSecret(ctx, operator, g.tokens.KeyID(), pending)
	if errors.Is(err, org.ErrNoFactor) && !pending {
		// Erased, which only a revocation or a removal does that we have not heard of yet.
		return 0, refuse(CodeUnauthorized)
	}
	if err != nil {
		return 0, refusal(err)
	}
	secret, old, ok := g.tokens.Open(sealed, operator)
	if ok {
		step, ok = stepOf(string(secret), code, now)
	}
	if !ok {
		g.lockout.Failed(client, now)
		guesses.Failed(Network{}, now)
		return 0, refuse(CodeInvalidOTP)
	}
	if old && !pending {
		_ = g.book.ResealFactor(ctx, operator, g.tokens.KeyID(), g.tokens.Seal(secret, operator)) // else at a later sign-in
	}
	return step, nil
}

// stepOf finds the time step that a code is of.
func stepOf(secret, code string, now time.Time) (int64, bool) {
	at := now.Unix() / codeStep
	for step := at - codeSkew; step <= at+codeSkew; step++ {
		ok, err := hotp.ValidateCustom(code, uint64(step), secret, hotp.ValidateOpts{Digits: codeDigits, Algorithm: otp.AlgorithmSHA1})
		if ok && err == nil {
			return step, true
		}
	}
	return 0, false
}
