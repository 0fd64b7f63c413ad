package projection

import (
	"context"
	"sync"
)

// Hints fans out "this room may have changed" within a process. A hint never blocks its sender: a watcher has room for one,
// and whoever has not fetched it yet needs no second. The zero Hints is ready; it must not be copied.
type Hints struct {
	mu       sync.Mutex
	watchers map[string]map[chan struct{}]struct{}
}

// Watch returns a channel that gets the hints of a stream until ctx ends. It is never closed.
func (h *Hints) Watch(ctx context.Context, stream string) <-chan struct{} {
	c := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watchers == nil {
		h.watchers = make(map[string]map[chan struct{}]struct{})
	}
	if h.watchers[stream] == nil {
		h.watchers[stream] = make(map[chan struct{}]struct{})
	}
	h.watchers[stream][c] = struct{}{}
	context.AfterFunc(ctx, func() { h.forget(stream, c) })
	return c
}

func (h *Hints) forget(stream string, c chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.watchers[stream], c)
	if len(h.watchers[stream]) == 0 {
		delete(h.watchers, stream)
	}
}

// Send hints at a change of the stream.
func (h *Hints) Send(stream string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.watchers[stream] {
		select {
		case c <- struct{}{}:
		default: // One is pending: its reader will read what is there now.
		}
	}
}
