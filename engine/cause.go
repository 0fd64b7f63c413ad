package engine

import (
	"context"
	"time"

	"github.com/oklog/ulid/v2"
)

// causes deals the ULIDs of commands: random in each millisecond's first, counted on from it in the others, so that they ascend for
// as long as the clock does.
type causes struct{ last ulid.ULID }

func (c *causes) next(wall time.Time) string {
	at := uint64(wall.UnixMilli())
	if c.last.Time() != at || !c.countOn() {
		c.last = ulid.MustNew(at, ulid.DefaultEntropy())
	}
	var text [ulid.EncodedSize]byte
	_ = c.last.MarshalTextTo(text[:]) // fails on a buffer of another size alone
	return string(text[:])
}

// countOn adds one to the random part, or says that it has run out.
func (c *causes) countOn() bool {
	for i := len(c.last) - 1; i >= len(c.last)-10; i-- {
		if c.last[i]++; c.last[i] != 0 {
			return true
		}
	}
	return false
}

type causeKey struct{}

// WithCause names the operator's command that ctx carries, by a ULID that is used once, in place of one that the actor deals: whoever keeps a note of
// an act by its cause can then write the note first.
func WithCause(ctx context.Context, cause string) context.Context {
	return context.WithValue(ctx, causeKey{}, cause)
}

// causeOf is the name that ctx gives, "" for none.
func causeOf(ctx context.Context) string {
	cause, _ := ctx.Value(causeKey{}).(string)
	return cause
}
