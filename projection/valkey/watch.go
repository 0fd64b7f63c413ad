package valkey

import (
	"context"
	"errors"
	"time"

	client "github.com/valkey-io/valkey-go"
)

// resubscribe is the pause before a lost subscription is tried again.
const resubscribe = 500 * time.Millisecond

// Watch implements [projection.Store]. It hints after each (re)subscription, too, since hints before it are lost.
func (s *Store) Watch(ctx context.Context, stream string) (<-chan struct{}, error) {
	hints := make(chan struct{}, 1)
	hint := func() {
		select {
		case hints <- struct{}{}:
		default:
		}
	}
	go s.subscribe(ctx, stream, hint)
	return hints, nil
}

func (s *Store) subscribe(ctx context.Context, stream string, hint func()) {
	hooked := client.WithOnSubscriptionHook(ctx, func(client.PubSubSubscription) { hint() })
	for ctx.Err() == nil {
		err := s.client.Receive(hooked, s.client.B().Ssubscribe().Channel(s.channel(stream)).Build(),
			func(client.PubSubMessage) { hint() })
		if ctx.Err() != nil || errors.Is(err, client.ErrClosing) {
			return
		}
		s.log.DebugContext(ctx, "projection: subscription lost", "room", stream, "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(resubscribe):
		}
	}
}
