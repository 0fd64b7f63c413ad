package valkey_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"qm/engine/room"
	"qm/projection"
)

const stream = "production/sale"

func seenIn(t *testing.T, p projection.Presence, gen uint32, first, last int64) map[room.Ticket]bool {
	t.Helper()
	pages, err := p.SeenSince(t.Context(), stream, gen, first, last)
	if err != nil {
		t.Fatal(err)
	}
	tickets := make(map[room.Ticket]bool)
	for number, page := range pages {
		for i := range room.Ticket(room.LinePageTickets) {
			if page[i/64]>>(i%64)&1 != 0 {
				tickets[room.Ticket(number)*room.LinePageTickets+i] = true
			}
		}
	}
	return tickets
}

func TestPresenceMergesWhatProcessesSaw(t *testing.T) {
	s := open(t)
	want := make(map[room.Ticket]bool)
	var processes sync.WaitGroup
	for process := range uint64(4) {
		rnd := rand.New(rand.NewPCG(process, 1))
		var marks [10][]room.Ticket
		for batch := range marks {
			for range 300 {
				n := room.Ticket(rnd.IntN(30_000))
				marks[batch] = append(marks[batch], n)
				want[n] = true
			}
		}
		processes.Go(func() {
			for batch, tickets := range marks {
				if err := s.MarkSeen(t.Context(), stream, 1, 100+int64(batch%3), tickets); err != nil {
					t.Error(err)
				}
			}
		})
	}
	processes.Wait()
	got := seenIn(t, s, 1, 100, 102)
	for n := range want {
		if !got[n] {
			t.Errorf("ticket %d was seen and is not marked", n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d marks, want %d", len(got), len(want))
	}
}

func TestPresenceKeepsWindowsAndGenerationsApart(t *testing.T) {
	s := open(t)
	for window, n := range map[int64]room.Ticket{5: 1, 6: 4095, 7: 4096, 200: 9} {
		if err := s.MarkSeen(t.Context(), stream, 2, window, []room.Ticket{n}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		gen         uint32
		first, last int64
		want        []room.Ticket
	}{
		{2, 5, 5, []room.Ticket{1}}, {2, 6, 7, []room.Ticket{4095, 4096}}, {2, 0, 300, []room.Ticket{1, 9, 4095, 4096}},
		{1, 0, 300, nil}, {2, 8, 100, nil}, {2, 7, 6, nil},
	} {
		got := seenIn(t, s, c.gen, c.first, c.last)
		if len(got) != len(c.want) {
			t.Errorf("windows %d to %d of generation %d: %v", c.first, c.last, c.gen, got)
		}
		for _, n := range c.want {
			if !got[n] {
				t.Errorf("windows %d to %d of generation %d lack ticket %d", c.first, c.last, c.gen, n)
			}
		}
	}
	if err := s.MarkSeen(t.Context(), stream, 2, 5, nil); err != nil {
		t.Error(err)
	}
}
