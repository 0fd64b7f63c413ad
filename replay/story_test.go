package replay

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"qm/engine/room"
)

func tell(t *testing.T, r *recorder, n room.Ticket) (texts []string) {
	t.Helper()
	_, findings, err := Tell(Records(r.records()), StoryOptions{Ticket: n}, func(s Told) error {
		texts = append(texts, s.At.Format("15:04:05")+" "+s.Text)
		return nil
	})
	if err != nil || len(findings) > 0 {
		t.Fatal(findings, err)
	}
	return texts
}

func TestTicketStories(t *testing.T) {
	tests := []struct {
		name   string
		record func(testing.TB) *recorder
		ticket room.Ticket
		want   []string
	}{
		{"a ghost", recordGhosts, 2, []string{
			"18:00:00 joined the line, 1 ahead",
			"18:00:37 passed by the clock, without a slot, its holder unseen, 37 s after joining",
			"18:00:42 enters by its own browser, 5 s after the pass",
		}},
		{"never told", recordGhosts, 6, []string{
			"18:00:00 joined the line, 5 ahead",
			"18:00:39 passed by the clock, with a slot, 39 s after joining",
			"18:01:09 its slot was taken back 30 s after the pass: its holder was never told and is unseen",
			"18:02:09 lapsed: the pass was not used within 90 s",
		}},
		{"ejected at the door", recordEjectPurge, 1, []string{
			"18:00:00 joined the line, 0 ahead",
			"18:00:00 passed by the clock, with a slot, 500 ms after joining",
			"18:00:01 enters by its own browser, 1 s after the pass",
			"18:00:01 ejected while at the door; its holder goes on with ticket 11",
		}},
		{"from an eject to a purge", recordEjectPurge, 12, []string{
			"18:00:01 given at the back to the holder of ticket 2, which was ejected",
			"18:00:02 purged with the line, 1 s after joining",
		}},
		{"two generations", recordGenerations, 1, []string{
			"18:00:00 joined the line, 0 ahead",
			"18:00:01 passed by the clock, with a slot, 1 s after joining",
			"18:00:01 ended with its generation while passed (delete)",
			"18:00:06 joined the line, 0 ahead",
			"18:00:07 passed by the clock, with a slot, 1 s after joining",
			"18:00:09 enters by its own browser, 1 s after the pass",
			"18:00:10 ended with its generation while at the door (close)",
			"18:00:11 joined the line, 0 ahead",
			"18:00:12 passed by the clock, with a slot, 1 s after joining",
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := tell(t, test.record(t), test.ticket); !slices.Equal(got, test.want) {
				t.Errorf("told\n%q\nwant\n%q", got, test.want)
			}
		})
	}
}

// An entry's story goes on as that of the ticket it was drawn as, and agrees with it.
func TestHandleStories(t *testing.T) {
	records := recordDropCancelled(t).records()
	drawn := 0
	for q := room.Handle(1); q <= 30; q++ {
		var entry, ticket []string
		var n uint32
		_, _, err := Tell(Records(records), StoryOptions{Handle: q}, func(s Told) error {
			if s.Ticket != 0 {
				n, drawn = s.Ticket, drawn+1
				ticket = append(ticket, s.Text)
				return nil
			}
			entry = append(entry, s.Text)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(entry) == 0 || !strings.HasPrefix(entry[0], "entered the pre-queue as number ") {
			t.Errorf("handle %d: %q", q, entry)
		}
		if n == 0 {
			continue
		}
		var same []string
		if _, _, err := Tell(Records(records), StoryOptions{Ticket: room.Ticket(n)}, func(s Told) error { same = append(same, s.Text); return nil }); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(ticket[0], fmt.Sprintf("(handle %d,", q)) || !slices.Equal(ticket, same) {
			t.Errorf("handle %d, ticket %d:\n%q\n%q", q, n, ticket, same)
		}
	}
	if drawn == 0 {
		t.Error("nobody was drawn")
	}
}

func TestRoomStory(t *testing.T) {
	got := tell(t, recordDropCancelled(t), 0)
	for _, want := range []string{
		"18:00:00 generation 1 created, active, at 60 a minute, with no limit of slots",
		"18:00:01 the drop is cancelled",
		"18:00:01 ticket 1 joins, 0 ahead of it",
		"18:00:06 the doors open now",
		"18:00:06 29 entries drawn into tickets 2 to 30; the doors are open",
		"18:00:13 the draw finds the pre-queue empty; the doors are open",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	got = tell(t, recordPauseRate(t), 0)
	if want := "18:00:03 configured: ratePerMinute 60 → 600"; !slices.Contains(got, want) {
		t.Errorf("%q is not in the story", want)
	}
}

func TestTellEndsWithTheErrorOfItsCaller(t *testing.T) {
	stop, told := errors.New("stop"), 0
	_, _, err := Tell(Records(recordSmall(t).records()), StoryOptions{}, func(Told) error {
		told++
		return stop
	})
	if !errors.Is(err, stop) || told != 1 {
		t.Errorf("%d told, %v", told, err)
	}
}
