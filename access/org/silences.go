package org

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrNoSilence: there is no such silence, or it has ended.
var ErrNoSilence = errors.New("org: there is no such silence")

// Silence keeps the messages of a rule back until an instant; room "" is all rooms. The reason of by is noted.
func (b *Book) Silence(ctx context.Context, by By, rule, room string, until time.Time) (Silence, error) {
	id := NewID("si_")
	err := b.Change(ctx, by, func(*State) (Body, error) {
		return &Silenced{ID: id, Rule: rule, Room: room, Until: until.UnixMilli()}, nil
	})
	var made Silence
	b.Look(func(s *State) { made = s.silences[id] })
	return made, err
}

// EndSilence ends one early. ErrNoSilence.
func (b *Book) EndSilence(ctx context.Context, by By, id string) error {
	return b.Change(ctx, by, func(s *State) (Body, error) {
		if v, ok := s.silences[id]; !ok || !b.o.Now().Before(v.Until) {
			return nil, ErrNoSilence
		}
		return &SilenceEnded{ID: id}, nil
	})
}

// Reasons are what was noted of why, by cause.
func (b *Book) Reasons(ctx context.Context, causes []string) (map[string]string, error) {
	if len(causes) == 0 {
		return nil, nil
	}
	notes, err := b.o.Notes.FindNotes(ctx, causes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStorage, err)
	}
	why := make(map[string]string, len(notes))
	for cause, n := range notes {
		why[cause] = n.Reason
	}
	return why, nil
}
