package access

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"qm/access/org"
)

// KeyPrefix begins every operator's key (seed 004, "Admin auth"). A key is qmo_<ULID>_<130 random bits>; the ULID is that of the operator's id.
const KeyPrefix = "qmo_"

const (
	idPrefix     = "op_"
	idLength     = 26
	resealPause  = time.Minute
	resealWithin = time.Second
)

// AddOperator adds an operator and answers their key, which is not kept.
func (g *Gate) AddOperator(ctx context.Context, by org.By, role Role) (id, key string, err error) {
	id = org.NewID(idPrefix)
	key = KeyPrefix + strings.TrimPrefix(id, idPrefix) + "_" + rand.Text()
	if err := g.book.AddOperator(ctx, by, id, org.Role(role.String()), g.tokens.Verifier(key)); err != nil {
		return "", "", refusal(err)
	}
	return id, key, nil
}

// RevokeOperator ends an operator's key with all that it made. org.ErrNoOperator, org.ErrSelf.
func (g *Gate) RevokeOperator(ctx context.Context, by org.By, id string) error {
	return refusal(g.book.RevokeOperator(ctx, by, id))
}

// operatorOf is the operator whose key this is. genuine: it is or was one's; only then is there an operator.
func (g *Gate) operatorOf(ctx context.Context, key string, now time.Time) (o org.Operator, genuine bool) {
	rest, ok := strings.CutPrefix(key, KeyPrefix)
	if !ok || len(rest) < idLength+1 || rest[idLength] != '_' {
		return org.Operator{}, false
	}
	g.book.Look(func(s *org.State) { o, ok = s.Operator(idPrefix + rest[:idLength]) })
	if !ok {
		return org.Operator{}, false
	}
	good, better := g.tokens.Verifies(o.Verifier, key)
	if !good {
		return org.Operator{}, false
	}
	if _, lately := g.resealed.get(o.ID, now); better != "" && !o.Revoked && !lately {
		g.resealed.add(o.ID, struct{}{}, now.Add(resealPause), now)
		ctx, cancel := context.WithTimeout(ctx, resealWithin)
		defer cancel()
		// If it cannot be written now, then at a later request: SECRET_PREVIOUS stays until all are done.
		_ = g.book.Reseal(ctx, o.ID, o.Verifier, better)
	}
	return o, true
}

// keyHolder is the actor of an operator's key that comes as a Bearer. With a second factor a key alone is not enough: it only signs in to the console.
func (g *Gate) keyHolder(ctx context.Context, key string, now time.Time) (actor Actor, genuine bool, err error) {
	o, genuine := g.operatorOf(ctx, key, now)
	switch {
	case !genuine || o.Revoked:
		return Actor{}, genuine, nil
	case o.Factor.Secret != "":
		return Actor{}, true, refuse(CodeOTPRequired)
	}
	return g.actorOf(o), true, nil
}

func (g *Gate) actorOf(o org.Operator) Actor {
	return Actor{ID: o.ID, Name: g.book.Name(o.ID), Role: roleOf(o.Role), operator: o.ID, stale: g.book.Stale() != nil}
}

// refusal is what an error of the book means to the caller: a Refusal for what they may know, anything else as it is.
func refusal(err error) error {
	switch {
	case errors.Is(err, org.ErrActor):
		return refuse(CodeInsufficientRole) // revoked, or reduced, since the request was let in
	case errors.Is(err, org.ErrStorage):
		return refuse(CodeStorage)
	}
	return err
}
