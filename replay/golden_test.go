package replay

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"qm/engine/room"
)

const eventDir = "../testdata/events"

// goldenBodies are one body for each kind and version, every field set. A version is never edited: a new meaning is a new version with a
// golden file of its own, and the old file stays, decoded through the upcaster.
func goldenBodies() []room.Body {
	s := room.Settings{
		Name: "Black Friday — “Ünïcode” <b>", TargetURL: "https://shop.example/sale?a=1&b=2", ProxyOrigin: "http://10.0.0.7:8080",
		RatePerMinute: 600, MaxConcurrent: num(500), PassedTTLSec: 600, SessionTTLSec: 1200, SessionMaxSec: 14400, HoldScore: 70,
		PreQueueMaxPerIP: num(16), QueueMaxPerIP: num(8), PresenceSec: num(30), OnBackendDown: "open",
		Branding: room.Branding{
			Name: "Shop", LogoURL: "https://shop.example/logo.svg", Color: "#a1b2c3", Background: "#ffffff", Message: "Back soon", MessageAt: 1_772_388_000_000,
		},
		ReturnOrigins: []string{"https://shop.example"}, TagOrigins: []string{"https://www.shop.example"}, URLPatterns: []string{"/sale*", "!/sale/terms"}, URLPatternsAt: 1_772_388_000_001,
		Protection:   room.Protection{Mode: "enforce", Threshold: 90, Work: true},
		Autotune:     &room.Autotune{Floor: 60, Ceiling: 6000, Step: 30, LatencyMs: 800, ErrorPct: 5},
		AutoActivate: &room.AutoActivate{ArrivalsPerMinute: 1200, CalmMinutes: 10},
		Openings:     []room.Opening{{OpensAt: 1_772_391_600_000, ClosesAt: 1_772_395_200_000}, {OpensAt: 1_772_478_000_000}},
	}
	order := []uint32{2, 0, 3, 1}
	secret, head := room.Digest{1, 2, 3}, room.Digest{4, 5, 6}
	return []room.Body{
		&room.Create{Generation: 3, Mode: room.Active, Settings: s},
		&room.Configure{Settings: s, Credit: 59_999, Reason: &room.Reason{Rule: "autotune", Sign: "slow", Value: 1204, Limit: 800}},
		&room.StateChange{Mode: room.Paused, Credit: 30_000, Reason: &room.Reason{Rule: "autoActivate", Sign: "surge", Value: 1900, Limit: 1200}},
		&room.Schedule{OpensAt: 1_772_391_600_000, Commitment: room.Commitment(secret)},
		&room.Enqueue{Handle: 17, Holder: holder("entrant"), Identity: identity("192.0.2.1"), Score: 12},
		&room.Draw{
			Version: room.DrawVersion, Secret: secret, Head: head, Seed: room.DrawSeed(secret, head), First: 41, Count: len(order),
			Order: room.PackOrder(order), Digest: room.OrderDigest(order),
		},
		&room.Join{Ticket: 1234, Holder: holder("visitor"), Identity: identity("2001:db8::/64"), Score: 100},
		&room.Pass{By: "clock", Spans: []room.Span{{1, 3}, {5, 5}}, Ghosts: []room.Span{{2, 2}}, Credit: 1234},
		&room.Unslot{Tickets: []room.Ticket{1, 3}},
		&room.Enter{Ticket: 5, Door: holder("door"), CodeAt: 1_772_391_700_000},
		&room.Renew{Tickets: []room.Ticket{5, 9}},
		&room.Leave{Tickets: []room.Ticket{7}, Handles: []room.Handle{4}},
		&room.Lapse{Why: "door", Tickets: []room.Ticket{5}},
		&room.Eject{Ticket: 9, To: 1235},
		&room.Purge{Waiting: 120, PreQueue: 7},
		&room.Close{Generation: 4},
		&room.Delete{},
	}
}

// TestRecordEvents: the stored form of each kind and version is what its golden file holds, byte for byte, and decodes to what was encoded.
func TestRecordEvents(t *testing.T) {
	const at = 1_772_391_600_123
	golden := map[string]bool{}
	for _, body := range goldenBodies() {
		text, version := room.EncodeBody(nil, body)
		name := fmt.Sprintf("%s.v%d.json", body.Kind(), version)
		golden[name] = true
		path := filepath.Join(eventDir, name)
		if *update {
			if _, err := os.Stat(path); err == nil {
				continue // never edited: take the file away by hand before anything was released with it
			}
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Errorf("%v; go generate ./replay writes it", err)
			continue
		}
		if !bytes.Equal(text, want) {
			t.Errorf("%s holds\n%s\nbut its body is encoded as\n%s\nA (kind, version) is never edited: make a new version.", name, want, text)
		}
		e, err := room.DecodeBody(body.Kind(), version, at, want)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(room.Event{At: at, Body: body}, e); diff != "" {
			t.Errorf("%s decodes to something else (-want +got):\n%s", name, diff)
		}
	}
	for kind, version := range room.Kinds() {
		for v := 1; v <= version; v++ {
			name := fmt.Sprintf("%s.v%d.json", kind, v)
			text, err := os.ReadFile(filepath.Join(eventDir, name))
			if err != nil {
				t.Errorf("the kind %s has no golden file for version %d: %v", kind, v, err)
				continue
			}
			if _, err := room.DecodeBody(kind, v, at, text); err != nil {
				t.Errorf("%s cannot be read any more: %v", name, err)
			}
		}
		if !golden[fmt.Sprintf("%s.v%d.json", kind, version)] {
			t.Errorf("the kind %s has no golden body for version %d", kind, version)
		}
	}
}
