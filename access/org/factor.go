package org

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Refusals about second factors.
var (
	// ErrFactorOn: the operator has a second factor already.
	ErrFactorOn = errors.New("org: there is a second factor already")
	// ErrNoFactor: there is none to confirm or remove.
	ErrNoFactor = errors.New("org: there is no second factor")
)

// A second factor's secret is sealed by its owner (see access.Gate) and lies in the vault under "otp/<operator>/<ULID>", so that it can be erased.

func secretPrefix(operator string) string { return "otp/" + operator + "/" }

// StartFactor keeps a sealed secret until its first code has come. An earlier one that never did is dropped.
func (b *Book) StartFactor(ctx context.Context, by By, sealed []byte) error {
	name := NewID(secretPrefix(by.Actor))
	if _, err := b.o.Vault.Keep(ctx, Stream, name, sealed); err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	var former string
	err := b.Change(ctx, by, func(s *State) (Body, error) {
		o, ok := s.Operator(by.Actor)
		switch {
		case !ok || o.Revoked:
			return nil, ErrNoOperator
		case o.Factor.Secret != "":
			return nil, ErrFactorOn
		}
		former = o.Factor.Pending
		return &FactorStarted{ID: by.Actor, Secret: name}, nil
	})
	drop := former
	if err != nil {
		drop = name
	}
	if drop != "" && !errors.Is(err, ErrStorage) {
		b.erase(ctx, drop)
	}
	return err
}

// FactorSecret is the sealed secret in force for an operator, or the one that waits for its first code: of several the one that was sealed
// under the key named by kid. ErrNoFactor when there is none.
func (b *Book) FactorSecret(ctx context.Context, operator, kid string, pending bool) (sealed []byte, err error) {
	name := b.factorName(operator, pending)
	if name == "" {
		return nil, ErrNoFactor
	}
	for _, n := range []string{name + "~" + kid, name} {
		sealed, ok, err := b.o.Vault.Recall(ctx, Stream, n)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: %w", ErrStorage, err)
		case ok:
			return sealed, nil
		}
	}
	return nil, ErrNoFactor
}

// ResealFactor keeps the secret in force under another key too.
func (b *Book) ResealFactor(ctx context.Context, operator, kid string, sealed []byte) error {
	name := b.factorName(operator, false)
	if name == "" {
		return ErrNoFactor
	}
	if _, err := b.o.Vault.Keep(ctx, Stream, name+"~"+kid, sealed); err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	return nil
}

func (b *Book) factorName(operator string, pending bool) (name string) {
	b.Look(func(s *State) {
		if o, ok := s.Operator(operator); ok {
			if name = o.Factor.Secret; pending {
				name = o.Factor.Pending
			}
		}
	})
	return name
}

// ConfirmFactor puts the waiting secret in force, whose code of step has come. keep is the session that goes on.
func (b *Book) ConfirmFactor(ctx context.Context, by By, step int64, keep string) error {
	return b.Change(ctx, by, func(s *State) (Body, error) {
		o, ok := s.Operator(by.Actor)
		switch {
		case !ok || o.Revoked:
			return nil, ErrNoOperator
		case o.Factor.Pending == "":
			return nil, ErrNoFactor
		}
		return &FactorOn{ID: by.Actor, Step: step, Keep: keep}, nil
	})
}

// RemoveFactor ends an operator's second factor, be it in force or waiting, and erases its secret.
func (b *Book) RemoveFactor(ctx context.Context, by By, operator string) error {
	err := b.Change(ctx, by, func(s *State) (Body, error) {
		o, ok := s.Operator(operator)
		switch {
		case !ok || o.Revoked:
			return nil, ErrNoOperator
		case o.Factor.Secret == "" && o.Factor.Pending == "":
			return nil, ErrNoFactor
		}
		return &FactorOff{ID: operator}, nil
	})
	if err == nil {
		b.eraseSecret(ctx, operator)
	}
	return err
}

func (b *Book) eraseSecret(ctx context.Context, operator string) {
	b.erase(ctx, secretPrefix(operator))
}

func (b *Book) erase(ctx context.Context, prefix string) {
	if err := b.o.Vault.Erase(ctx, Stream, prefix); err != nil {
		b.o.Log.Error("erase the secret of a second factor", "operator", strings.Split(prefix, "/")[1], "err", err)
	}
}
