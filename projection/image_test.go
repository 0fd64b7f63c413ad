package projection_test

import (
	"strings"
	"testing"

	"qm/engine/room"
	"qm/projection"
	"qm/projection/projectiontest"
)

func TestDiffNamesWhatDiffers(t *testing.T) {
	image := func() projection.Image {
		h := projectiontest.NewHouse(t, stream, 1)
		settings := room.DefaultSettings()
		settings.TagOrigins = []string{}
		h.Must(t, room.Reconfigure{Settings: settings})
		h.Drop(t, 5, func() {})
		h.Must(t, room.Flush{Count: 1})
		return projection.ImageOf(h.State)
	}
	if found := projection.Diff(image(), image(), 0); len(found) > 0 {
		t.Fatalf("the same room differs from itself: %v", found)
	}
	for want, damage := range map[string]func(*projection.Image){
		"summary.Waiting":                func(i *projection.Image) { i.Summary.Waiting++ },
		"summary.Settings.RatePerMinute": func(i *projection.Image) { s := *i.Summary.Settings; s.RatePerMinute++; i.Summary.Settings = &s },
		"summary.Settings.MaxConcurrent": func(i *projection.Image) {
			s := *i.Summary.Settings
			s.MaxConcurrent = new(int64)
			i.Summary.Settings = &s
		},
		"summary.Settings.TagOrigins": func(i *projection.Image) { s := *i.Summary.Settings; s.TagOrigins = nil; i.Summary.Settings = &s },
		"summary.Proof.Count":         func(i *projection.Image) { p := *i.Summary.Proof; p.Count++; i.Summary.Proof = &p },
		"summary.Proof":               func(i *projection.Image) { i.Summary.Proof = nil },
		"ticket 3.Holder":             func(i *projection.Image) { i.Tickets[2].Holder[4]++ },
		"ticket 5.Status":             func(i *projection.Image) { i.Tickets = i.Tickets[:4] },
		"handle 2.Ticket":             func(i *projection.Image) { i.Handles[1].Ticket = 77 },
		"line, place 2":               func(i *projection.Image) { i.Passable = append(i.Passable[:1], i.Passable[2:]...) },
		"count of page 0":             func(i *projection.Image) { i.Counts[0] = 9 },
	} {
		got := image()
		damage(&got)
		found := projection.Diff(image(), got, 0)
		var where []string
		for _, d := range found {
			where = append(where, d.Where)
			if d.Want == d.Got {
				t.Errorf("%s tells nothing", d)
			}
		}
		if !strings.Contains(strings.Join(where, "|")+"|", want+"|") {
			t.Errorf("want %q, found %v", want, found)
		}
		if limited := projection.Diff(image(), got, 1); len(limited) != 1 {
			t.Errorf("a limit of 1 gives %v", limited)
		}
	}
}
