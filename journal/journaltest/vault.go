package journaltest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"qm/journal"
)

func vault(t *testing.T, v journal.Vault) {
	recall := func(stream, name string) string {
		t.Helper()
		value, ok, err := v.Recall(t.Context(), stream, name)
		must(t, err)
		if !ok {
			return "nothing"
		}
		return fmt.Sprintf("%q", value)
	}
	keep := func(stream, name, value, want string) {
		t.Helper()
		stored, err := v.Keep(t.Context(), stream, name, []byte(value))
		must(t, err)
		same(t, want, string(stored))
	}
	same(t, "nothing", recall(room, "key/1"))
	keep(room, "key/1", "a\x00\xff", "a\x00\xff")
	keep(room, "key/1", "b", "a\x00\xff")
	keep(room, "key/10", "ten", "ten")
	keep(room, "drop/1", "", "")
	keep(room, "drop/1", "x", "")
	keep("production/other", "key/1", "other", "other")
	same(t, `"a\x00\xff"`, recall(room, "key/1"))
	same(t, `""`, recall(room, "drop/1"))
	same(t, `"other"`, recall("production/other", "key/1"))

	// What is returned is the caller's.
	stored, err := v.Keep(t.Context(), room, "key/10", nil)
	must(t, err)
	stored[0] = 'X'
	same(t, `"ten"`, recall(room, "key/10"))

	must(t, v.Erase(t.Context(), room, "key/1"))
	must(t, v.Erase(t.Context(), room, "%"))
	same(t, "nothing", recall(room, "key/1"))
	same(t, "nothing", recall(room, "key/10"))
	same(t, `""`, recall(room, "drop/1"))
	keep(room, "key/1", "new", "new")
	must(t, v.Erase(t.Context(), room, ""))
	same(t, "nothing", recall(room, "drop/1"))
	same(t, `"other"`, recall("production/other", "key/1"))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err1 := v.Keep(ctx, room, "late", nil)
	_, _, err2 := v.Recall(ctx, room, "late")
	for _, err := range []error{err1, err2, v.Erase(ctx, room, "")} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("with a context that has ended: %v", err)
		}
	}
	same(t, "nothing", recall(room, "late"))
}

func firstWriter(t *testing.T, v journal.Vault) {
	for round := range 10 {
		name := fmt.Sprintf("key/%d", round)
		var wg sync.WaitGroup
		got := make(chan string, 8)
		for id := range 8 {
			wg.Go(func() {
				stored, err := v.Keep(t.Context(), room, name, fmt.Appendf(nil, "value of %d", id))
				if err != nil {
					t.Errorf("keep: %v", err)
				}
				got <- string(stored)
			})
		}
		wg.Wait()
		close(got)
		first := <-got
		for other := range got {
			same(t, first, other)
		}
	}
}
