package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"qm/engine/room"
)

// manyRooms are as many as a busy organisation has.
const manyRooms = 500

// A tick in which five of 500 rooms changed costs a console less than 20 KB, and tells of those five alone.
func TestDeltaFrameOfFiveRoomsIsSmall(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		for i := range manyRooms {
			w.room(fmt.Sprintf("room-%03d", i), 1, "")
		}
		known := new(board)
		frame := func() []byte {
			w.Helper()
			at := room.Instant(time.Now().UnixMilli())
			list, err := w.server.allStats(w.Context(), at)
			if err != nil {
				w.Fatal(err)
			}
			return known.append(nil, list, at)
		}
		whole := frame()
		frame() // the second is whole, too (QM-468)
		for i := range 5 {
			w.crowd(fmt.Sprintf("room-%03d", 100*i), 3)
		}
		delta := frame()
		var told struct {
			Delta bool
			Rooms []struct{ ID string }
		}
		if err := json.Unmarshal(delta, &told); err != nil || !told.Delta {
			w.Fatalf("%v: %.200s", err, delta)
		}
		if len(told.Rooms) != 5 || len(delta) >= 20<<10 {
			w.Errorf("%d rooms in %d bytes", len(told.Rooms), len(delta))
		}
		w.Logf("the whole frame has %d bytes, the delta %d", len(whole), len(delta))
	})
}

// What one console's tick costs with 500 rooms and 100,000 waiting in one; there is one every two seconds, so 40 ms would be 2 % of a core.
func BenchmarkConsoleTick(b *testing.B) {
	w := newBenchWorld(b)
	known := new(board)
	var out []byte
	set := room.DefaultSettings()
	set.Name, set.TargetURL = "Bench", testTarget
	set.QueueMaxPerIP = nil
	for i := range manyRooms {
		if _, err := w.engine.Create(b.Context(), fmt.Sprintf("room-%03d", i), "admin", set, room.Paused, time.Time{}); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 100_000 {
		if _, err := w.engine.Join(b.Context(), "room-000", "a-session-of-the-bench-"+strconv.Itoa(i), prefixOf(w.server.o.Proxies.Client(&http.Request{RemoteAddr: addrOf(i) + ":1"})), 0); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		at := room.Instant(time.Now().UnixMilli())
		list, err := w.server.allStats(b.Context(), at)
		if err != nil {
			b.Fatal(err)
		}
		out = known.append(out[:0], list, at)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(boardEvery.Nanoseconds())*100, "%core/viewer")
}
