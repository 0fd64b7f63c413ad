package httpapi

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"qm/engine/room"
)

// manyRooms are as many as a busy organisation has.
const manyRooms = 500

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
