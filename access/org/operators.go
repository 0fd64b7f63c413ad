package org

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"qm/journal"
)

// Refusals of changes.
var (
	// ErrNoOperator: there is no such operator, or no more.
	ErrNoOperator = errors.New("org: no such operator")
	// ErrNoLink: there is no such share link, or no more.
	ErrNoLink = errors.New("org: no such link")
	// ErrSelf: nobody revokes the key that they came with.
	ErrSelf = errors.New("org: an operator cannot revoke their own key")
	// ErrTooMany: there are MaxOperators.
	ErrTooMany = errors.New("org: too many operators")
)

// MaxOperators is how many keys may be good at once.
const MaxOperators = 1000

// AddOperator adds an operator, whose name is by.Name.
func (b *Book) AddOperator(ctx context.Context, by By, id string, role Role, verifier string) error {
	return b.Change(ctx, by, func(s *State) (Body, error) {
		if len(s.Operators()) >= MaxOperators {
			return nil, ErrTooMany
		}
		return &OperatorAdded{ID: id, Role: role, Verifier: verifier}, nil
	})
}

// RevokeOperator ends a key with all that it made.
func (b *Book) RevokeOperator(ctx context.Context, by By, id string) error {
	err := b.Change(ctx, by, func(s *State) (Body, error) {
		o, ok := s.Operator(id)
		switch {
		case !ok || o.Revoked:
			return nil, ErrNoOperator
		case id == by.Actor:
			return nil, ErrSelf
		}
		return &OperatorRevoked{ID: id}, nil
	})
	if err == nil {
		b.eraseSecret(ctx, id)
	}
	return err
}

// Reseal keeps another verifier of an operator's key.
func (b *Book) Reseal(ctx context.Context, id, from, to string) error {
	return b.Change(ctx, By{Actor: id}, func(s *State) (Body, error) {
		if o, ok := s.Operator(id); !ok || o.Revoked || o.Verifier != from {
			return nil, nil // somebody was faster
		}
		return &Resealed{ID: id, Verifier: to}, nil
	})
}

// SignIn begins a session. check sees the organisation as it stands when the session begins, so that a one-time code is good once.
func (b *Book) SignIn(ctx context.Context, by By, in *SignedIn, check func(*State) error) error {
	return b.Change(ctx, by, func(s *State) (Body, error) { return in, check(s) })
}

// SignOut ends a session; one that has ended is no error.
func (b *Book) SignOut(ctx context.Context, from, id string) error {
	var by string
	b.Look(func(s *State) { by = s.sessions[id].By })
	if by == "" {
		return nil
	}
	return b.Change(ctx, By{Actor: by, From: from}, func(s *State) (Body, error) {
		if _, ok := s.sessions[id]; !ok {
			return nil, nil
		}
		return &SignedOut{ID: id}, nil
	})
}

// MakeLink makes a share link.
func (b *Book) MakeLink(ctx context.Context, by By, link *LinkMade) error {
	return b.Change(ctx, by, func(*State) (Body, error) { return link, nil })
}

// RevokeLinks ends a share link, or with "" all of them, and says how many.
func (b *Book) RevokeLinks(ctx context.Context, by By, id string, now time.Time) (n int, err error) {
	err = b.Change(ctx, by, func(s *State) (Body, error) {
		var ids []string
		for _, l := range s.Links(now) {
			if id == "" || l.ID == id {
				ids = append(ids, l.ID)
			}
		}
		switch n = len(ids); {
		case n == 0 && id != "":
			return nil, ErrNoLink
		case n == 0:
			return nil, nil
		}
		slices.Sort(ids)
		return &LinksRevoked{IDs: ids}, nil
	})
	return n, err
}

// Set gives a setting a value, which must be valid JSON; null removes it.
func (b *Book) Set(ctx context.Context, by By, name string, value []byte) error {
	return b.Change(ctx, by, func(s *State) (Body, error) {
		was := s.settings[name]
		if was == nil {
			was = json.RawMessage("null")
		}
		if string(was) == string(value) {
			return nil, nil
		}
		return &Set{Name: name, Value: value, Was: was}, nil
	})
}

// ShutDown records that a process was told to stop.
func (b *Book) ShutDown(ctx context.Context, by By) error {
	return b.Change(ctx, by, func(*State) (Body, error) { return &ShutDown{}, nil })
}

// Forget erases the addresses and reasons of acts before an instant, and the names of operators who were revoked by then. It erases first and
// records that afterwards, so that whoever follows the stream finds them gone.
func (b *Book) Forget(ctx context.Context, by By, before time.Time) (n int, err error) {
	allowed := false
	b.Look(func(s *State) { allowed = s.RoleOf(by.Actor) == Owner })
	if !allowed {
		return 0, ErrActor
	}
	if n, err = b.forgetBefore(ctx, before); err != nil {
		return n, err
	}
	return n, b.Change(ctx, by, func(*State) (Body, error) { return &Forgotten{Before: before.UnixMilli()}, nil })
}

// EraseOld does by the clock what Forget does by hand, for all that is older than KeepNotes, and says of how many acts. Each note is erased once,
// whichever process comes first, and whoever finds none left records nothing. A process that dies between the two leaves notes that read as erased.
func (b *Book) EraseOld(ctx context.Context) (n int, err error) {
	before := b.o.Now().Add(-b.o.KeepNotes)
	if n, err = b.forgetBefore(ctx, before); err != nil || n == 0 {
		return n, err
	}
	return n, b.Change(ctx, By{Actor: Clock}, func(*State) (Body, error) { return &Forgotten{Before: before.UnixMilli()}, nil })
}

func (b *Book) forgetBefore(ctx context.Context, before time.Time) (n int, err error) {
	var gone []string
	b.Look(func(s *State) {
		for _, o := range s.operators {
			if o.Revoked && o.AddedAt.Before(before) {
				gone = append(gone, o.Cause)
			}
		}
	})
	if n, err = b.o.Notes.ForgetNotes(ctx, before); err == nil {
		err = b.o.Notes.EraseNotes(ctx, gone...)
	}
	if err != nil {
		return n, errors.Join(ErrStorage, err)
	}
	return n, nil
}

// Notes are the notes on acts, by cause.
func (b *Book) Notes(ctx context.Context, causes []string) (map[string]journal.Note, error) {
	notes, err := b.o.Notes.FindNotes(ctx, causes)
	if err != nil {
		return nil, errors.Join(ErrStorage, err)
	}
	return notes, nil
}
