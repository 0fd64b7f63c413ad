package httpapi

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What a room may do by itself is stored as it was asked for, told as its settings take it, and switched off by null.
//
// Proves: openings
func TestRulesOfARoom(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 60, "")
		op := w.operator()
		save := func(body string) answer {
			a := op.do("POST", "/api/v1/admin/rooms", body)
			if a.status != 200 {
				w.Fatalf("%s: %d %s", body, a.status, a.body)
			}
			return a
		}
		opens, closes := w.server.o.Now().Add(time.Hour).UnixMilli(), w.server.o.Now().Add(2*time.Hour).UnixMilli()
		a := save(fmt.Sprintf(`{"id":"rm1","autotune":{"floor":60,"ceiling":460},"autoActivate":{"arrivalsPerMinute":500},"proxyOrigin":"HTTP://10.0.0.5:8080/",
			"openings":[{"opensAt":%d},{"opensAt":%d,"closesAt":%d}]}`, closes+1, opens, closes))
		want := map[string]any{
			"autotune":     map[string]any{"floor": 60.0, "ceiling": 460.0, "step": 20.0, "latencyMs": 800.0, "errorPct": 5.0},
			"autoActivate": map[string]any{"arrivalsPerMinute": 500.0, "calmMinutes": 10.0},
			"proxyOrigin":  "http://10.0.0.5:8080",
			"openings":     []any{map[string]any{"opensAt": float64(opens), "closesAt": float64(closes)}, map[string]any{"opensAt": float64(closes + 1), "closesAt": nil}},
		}
		for name, v := range want {
			if diff := cmp.Diff(v, a.json[name]); diff != "" {
				w.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		eventually(w.T, "the first opening is scheduled", func() bool { return w.stats("rm1").json["opensAt"] == float64(opens) })

		// A drop that is moved moves its opening; one that is cancelled takes it away, and the next one is up.
		a = op.do("POST", "/api/v1/admin/rooms/rm1/schedule", fmt.Sprintf(`{"opensAt":%d}`, closes))
		if a.status != 400 || a.json["code"] != "invalid_opens_at" {
			w.Errorf("moved beyond its end: %d %s", a.status, a.body)
		}
		op.do("POST", "/api/v1/admin/rooms/rm1/schedule", fmt.Sprintf(`{"opensAt":%d}`, opens+60_000))
		if first := w.stats("rm1").list(w.T, "openings")[0]; first["opensAt"] != float64(opens+60_000) {
			w.Errorf("the opening stayed at %v", first)
		}
		op.do("POST", "/api/v1/admin/rooms/rm1/schedule", `{"opensAt":null}`)
		eventually(w.T, "the next opening is scheduled", func() bool {
			s := w.stats("rm1")
			return len(s.list(w.T, "openings")) == 1 && s.json["opensAt"] == float64(closes+1)
		})

		a = save(`{"id":"rm1","autotune":null,"autoActivate":null,"openings":null,"proxyOrigin":null,"opensAt":null}`)
		for name, v := range map[string]any{"autotune": nil, "autoActivate": nil, "openings": []any{}, "proxyOrigin": "", "opensAt": nil} {
			if diff := cmp.Diff(v, a.json[name]); diff != "" {
				w.Errorf("%s off (-want +got):\n%s", name, diff)
			}
		}
	})
}

// A room in bypass begins to queue when checks and joins say that a surge has come, each visitor counted once.
//
// Proves: autoActivate
func TestASurgeAtTheDoor(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, `,"state":"bypass","autoActivate":{"arrivalsPerMinute":20}`)
		for i := range 21 {
			b := w.browser(fmt.Sprintf("198.51.100.%d", i+1))
			for range 3 {
				path := "/api/v1/check?roomId=rm1"
				if i%2 == 1 {
					b = w.browser("198.51.100.200")
					b.headers["Authorization"] = "Bearer " + testPublicKey
					path += fmt.Sprintf("&ip=203.0.113.%d", i+1)
				}
				if a := b.do("GET", path, ""); a.json["action"] != "pass" {
					t.Fatalf("%d: %s", i, a.body)
				}
			}
			if i == 19 {
				time.Sleep(3 * time.Second)
				if state := w.stats("rm1").json["state"]; state != "bypass" {
					t.Fatalf("20 a minute are no surge, and yet: %v", state)
				}
			}
		}
		eventually(w.T, "it queues", func() bool { return w.stats("rm1").json["state"] == "active" })
		if a := w.browser("198.51.100.99").do("GET", "/api/v1/check?roomId=rm1", ""); a.json["action"] != "queue" {
			t.Fatalf("in the surge: %s", a.body)
		}
	})
}
