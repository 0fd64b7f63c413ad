package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"qm/access/org"
	"qm/engine/room"
	"qm/journal"
)

// Told is one event in words.
type Told struct {
	Stream     string    `json:"stream"`
	Room       string    `json:"room"`
	Generation uint32    `json:"generation"`
	Seq        int64     `json:"seq"`
	At         time.Time `json:"at"`
	Kind       string    `json:"kind"`
	Ticket     uint32    `json:"ticket,omitempty"` // the ticket that the words are about, when a ticket's story is told
	Actor      string    `json:"actor"`
	Cause      string    `json:"cause"`
	Text       string    `json:"text"`
}

// String is the event as one line.
func (t Told) String() string {
	who := ""
	if t.Actor != "visitor" && t.Actor != "clock" {
		who = " (by " + t.Actor + ")"
	}
	return fmt.Sprintf("%s  seq %d  %s%s", t.At.UTC().Format("2006-01-02 15:04:05.000"), t.Seq, t.Text, who)
}

// StoryOptions of [Tell].
type StoryOptions struct {
	// Ticket tells the story of one ticket, in each generation that has it; 0 tells the story of the room.
	Ticket room.Ticket
	// Handle tells the story of one pre-queue entry, and after the draw that of the ticket it became; 0 tells none. Give one of the two.
	Handle room.Handle
	// Progress is that of [Options].
	Progress func(records int64)
}

// Tell tells what happened, event by event, and what is wrong with the journal on the way: a damaged journal is told as far as it
// can be read. An error of fn ends it and is returned.
func Tell(source Source, o StoryOptions, fn func(Told) error) (Report, []Finding, error) {
	var failed error
	told := map[string]*teller{}
	verify := Options{Progress: o.Progress, Every: 1 << 40}
	verify.onEvent = func(v *verifier, r *journal.Record, e room.Event) {
		if failed != nil {
			return
		}
		t := told[v.stream]
		if t == nil {
			t = &teller{}
			told[v.stream] = t
		}
		t.v, t.at = v, v.at
		text, about := "", o.Ticket
		switch {
		case o.Ticket != 0:
			text = t.ticket(e.Body, o.Ticket)
		case o.Handle != 0:
			text, about = t.handle(e.Body, o.Handle)
		default:
			text = t.room(e.Body)
		}
		if text == "" {
			return
		}
		generation := v.sum.Generation
		if c, ok := e.Body.(*room.Create); ok {
			generation = c.Generation
		}
		failed = fn(Told{
			Stream: v.stream, Room: RoomID(v.stream), Generation: generation, Seq: r.Seq, At: r.At.UTC(), Kind: r.Kind,
			Ticket: uint32(about), Actor: strings.Clone(r.Actor), Cause: strings.Clone(r.Cause), Text: text,
		})
	}
	verify.onAct = func(v *verifier, r *journal.Record, e org.Event) {
		if failed != nil || o.Ticket != 0 || o.Handle != 0 {
			return
		}
		failed = fn(Told{
			Stream: v.stream, Room: RoomID(v.stream), Seq: r.Seq, At: r.At.UTC(), Kind: strings.Clone(r.Kind), Actor: e.Actor, Cause: e.Cause, Text: e.Body.Say(),
		})
	}
	report, findings, err := Verify(func(each func(*journal.Record) error) error {
		return source(func(r *journal.Record) error {
			if failed != nil {
				return failed
			}
			return each(r)
		})
	}, verify)
	if failed != nil && (err == nil || errors.Is(err, failed)) {
		err = failed
	}
	return report, findings, err
}

// teller has the words for the events of one stream; the verifier's room is as it was before the event.
type teller struct {
	v  *verifier
	at room.Instant
}

// room is the sentence for an event in the story of its room.
func (t *teller) room(b room.Body) string {
	sum := &t.v.sum
	switch b := b.(type) {
	case *room.Create:
		return fmt.Sprintf("generation %d created, %s, at %d a minute, with %s", b.Generation, b.Mode, b.Settings.RatePerMinute, slotLimit(&b.Settings))
	case *room.Configure:
		if sum.Settings == nil {
			return "configured"
		}
		if changes := settingsDiff(sum.Settings, &b.Settings); len(changes) > 0 {
			return "configured: " + strings.Join(changes, ", ") + because(b.Reason)
		}
		return "configured, with nothing changed"
	case *room.StateChange:
		return fmt.Sprintf("set to %s; it was %s", b.Mode, sum.Mode) + because(b.Reason)
	case *room.Schedule:
		switch {
		case b.OpensAt == 0:
			return "the drop is cancelled"
		case b.OpensAt == t.at:
			return "the doors open now"
		case sum.OpensAt != 0:
			return fmt.Sprintf("the doors open at %s instead", clock(b.OpensAt))
		}
		return fmt.Sprintf("the doors open at %s; the secret of the draw has the hash %s", clock(b.OpensAt), b.Commitment)
	case *room.Enqueue:
		return fmt.Sprintf("handle %d enters the pre-queue as number %d%s", b.Handle, sum.PreQueue+1, score(b.Score))
	case *room.Draw:
		if b.Count == 0 {
			return "the draw finds the pre-queue empty; the doors are open"
		}
		return fmt.Sprintf("%s drawn into tickets %d to %d; the doors are open", count(b.Count, "entry", "entries"), b.First, b.First+room.Ticket(b.Count)-1)
	case *room.Join:
		return fmt.Sprintf("ticket %d joins, %d ahead of it%s", b.Ticket, sum.Waiting, t.held(b.Score))
	case *room.Pass:
		return passSentence(b)
	case *room.Unslot:
		return fmt.Sprintf("%s back, never told and unseen", give(b.Tickets))
	case *room.Enter:
		return fmt.Sprintf("ticket %d %s", b.Ticket, t.enters(b))
	case *room.Renew:
		return fmt.Sprintf("the door sessions of %s were seen", tickets(b.Tickets))
	case *room.Leave:
		if len(b.Handles) > 0 && len(b.Tickets) > 0 {
			return fmt.Sprintf("%s and handles %v leave", tickets(b.Tickets), b.Handles)
		} else if len(b.Handles) > 0 {
			return fmt.Sprintf("handle %s leaves the pre-queue", strings.Trim(fmt.Sprint(b.Handles), "[]"))
		}
		return fmt.Sprintf("left: %s", tickets(b.Tickets))
	case *room.Lapse:
		return fmt.Sprintf("lapsed: %s, %s", tickets(b.Tickets), t.lapsed(b.Why))
	case *room.Eject:
		return fmt.Sprintf("ticket %d is ejected; its holder goes to the back with ticket %d", b.Ticket, b.To)
	case *room.Purge:
		return fmt.Sprintf("purged: %s and %s", count(b.Waiting, "waiting ticket", "waiting tickets"), count(b.PreQueue, "pre-queue entry", "pre-queue entries"))
	case *room.Close:
		return fmt.Sprintf("closed; everything live ends, and generation %d starts idle", b.Generation)
	case *room.Delete:
		return "deleted; everything live ends"
	}
	return b.Kind()
}

// ticket is the sentence for an event in the story of ticket n; "" when it is not about it.
func (t *teller) ticket(b room.Body, n room.Ticket) string {
	p := t.v.s.Ticket(n)
	switch b := b.(type) {
	case *room.Join:
		if b.Ticket == n {
			return fmt.Sprintf("joined the line, %d ahead%s", t.v.sum.Waiting, t.held(b.Score))
		}
	case *room.Draw:
		if n < b.First || n >= b.First+room.Ticket(b.Count) {
			return ""
		}
		text := fmt.Sprintf("drawn from the pre-queue, place %d of %d", n-b.First+1, b.Count)
		order, err := room.UnpackOrder(b.Order)
		waiting := t.waiting()
		if err == nil && len(order) == len(waiting) {
			q := waiting[order[n-b.First]].handle
			text += fmt.Sprintf(" (handle %d, %s after it entered)", q, span(t.at-t.v.s.Handle(q).JoinedAt))
		}
		return text
	case *room.Pass:
		if !covers(b.Spans, n) {
			return ""
		}
		with := "with a slot"
		if covers(b.Ghosts, n) {
			with = "without a slot, its holder unseen"
		}
		return fmt.Sprintf("passed by %s, %s, %s after joining", passedBy(b.By), with, span(t.at-p.JoinedAt))
	case *room.Unslot:
		if slices.Contains(b.Tickets, n) {
			return fmt.Sprintf("its slot was taken back %s after the pass: its holder was never told and is unseen", span(t.at-p.PassedAt))
		}
	case *room.Enter:
		if b.Ticket == n {
			return t.enters(b)
		}
	case *room.Renew:
		if slices.Contains(b.Tickets, n) {
			return fmt.Sprintf("its door session was seen, %s after entering", span(t.at-p.EnteredAt))
		}
	case *room.Leave:
		if slices.Contains(b.Tickets, n) {
			return "given back by its holder while " + statusName(p)
		}
	case *room.Lapse:
		if slices.Contains(b.Tickets, n) {
			return "lapsed: " + t.lapsed(b.Why)
		}
	case *room.Eject:
		if b.To == n {
			return fmt.Sprintf("given at the back to the holder of ticket %d, which was ejected", b.Ticket)
		}
		if b.Ticket == n {
			return fmt.Sprintf("ejected while %s; its holder goes on with ticket %d", statusName(p), b.To)
		}
	case *room.Purge:
		if p.Status == room.Waiting {
			return fmt.Sprintf("purged with the line, %s after joining", span(t.at-p.JoinedAt))
		}
	case *room.Configure:
		if p.Status == room.Waiting && t.v.sum.Settings != nil && p.Held && (b.Settings.HoldScore > t.v.sum.Settings.HoldScore || b.Settings.Protection.Monitor()) {
			return fmt.Sprintf("held so far; holdScore is now %d", b.Settings.HoldScore)
		}
	case *room.Close, *room.Delete:
		if p.Live() {
			return fmt.Sprintf("ended with its generation while %s (%s)", statusName(p), b.Kind())
		}
	}
	return ""
}

// handle is the sentence for an event in the story of pre-queue entry q, and the ticket it became, 0 before the draw; "" when the
// event is not about it.
func (t *teller) handle(b room.Body, q room.Handle) (string, room.Ticket) {
	p := t.v.s.Handle(q)
	if p.Ticket != 0 {
		return t.ticket(b, p.Ticket), p.Ticket
	}
	if e, ok := b.(*room.Enqueue); ok && e.Handle == q {
		return fmt.Sprintf("entered the pre-queue as number %d%s", t.v.sum.PreQueue+1, score(e.Score)), 0
	}
	if p.Status != room.Enqueued {
		return "", 0
	}
	switch b := b.(type) {
	case *room.Draw:
		order, err := room.UnpackOrder(b.Order)
		waiting := t.waiting()
		if err != nil || len(order) != len(waiting) {
			return "", 0
		}
		for i, at := range order {
			if int(at) < len(waiting) && waiting[at].handle == q {
				n := b.First + room.Ticket(i)
				return t.ticket(b, n), n
			}
		}
	case *room.Leave:
		if slices.Contains(b.Handles, q) {
			return "given back by its holder before the draw", 0
		}
	case *room.Purge:
		return fmt.Sprintf("purged with the pre-queue, %s after it entered", span(t.at-p.JoinedAt)), 0
	case *room.Close, *room.Delete:
		return fmt.Sprintf("ended with its generation before the draw (%s)", b.Kind()), 0
	}
	return "", 0
}

// waiting is the pre-queue as the draw finds it.
func (t *teller) waiting() []entry {
	return slices.DeleteFunc(slices.Clone(t.v.entries), func(e entry) bool { return t.v.s.Handle(e.handle).Status != room.Enqueued })
}

func (t *teller) enters(b *room.Enter) string {
	how := "by its own browser"
	if b.CodeAt != 0 {
		how = "with the hand-over code of " + clock(b.CodeAt)
	}
	p := t.v.s.Ticket(b.Ticket)
	if p.Status == room.Inside {
		return fmt.Sprintf("takes its door session up again %s", how)
	}
	return fmt.Sprintf("enters %s, %s after the pass", how, span(t.at-p.PassedAt))
}

func (t *teller) lapsed(why string) string {
	set := t.v.sum.Settings
	switch {
	case set == nil:
		return why
	case why == "pass":
		return fmt.Sprintf("the pass was not used within %d s", set.PassedTTLSec)
	case why == "door":
		return fmt.Sprintf("the door session was unseen for %d s or older than %d s", set.SessionTTLSec, set.SessionMaxSec)
	case why == "wait":
		return "nobody asked for it for a day"
	}
	return why
}

// held says how a score counts.
func (t *teller) held(s uint8) string {
	if set := t.v.sum.Settings; set != nil && set.Holds(s) {
		return fmt.Sprintf(", and is held: score %d", s)
	}
	return score(s)
}

func score(s uint8) string {
	if s == 0 {
		return ""
	}
	return fmt.Sprintf(", score %d", s)
}

func passSentence(b *room.Pass) string {
	all, ghosts := 0, 0
	for _, s := range b.Spans {
		all += int(s[1]-s[0]) + 1
	}
	for _, s := range b.Ghosts {
		ghosts += int(s[1]-s[0]) + 1
	}
	verb := "pass"
	if all == 1 {
		verb = "passes"
	}
	text := fmt.Sprintf("%s %s by %s", spans(b.Spans), verb, passedBy(b.By))
	switch {
	case ghosts == all:
		return text + ", without a slot, unseen"
	case ghosts > 0:
		return text + fmt.Sprintf(", %d of them (%s) without a slot, unseen", ghosts, spans(b.Ghosts))
	case all == 1:
		return text + ", with a slot"
	}
	return text + ", each with a slot"
}

func passedBy(by string) string {
	if by == "flush" {
		return "a flush"
	}
	return "the clock"
}

func covers(list []room.Span, n room.Ticket) bool {
	return slices.ContainsFunc(list, func(s room.Span) bool { return s[0] <= n && n <= s[1] })
}

// spans names tickets: "ticket 4", "tickets 1 to 3, 7".
func spans(list []room.Span) string {
	if len(list) == 0 {
		return "nobody"
	}
	var parts []string
	for _, s := range list {
		if s[0] == s[1] {
			parts = append(parts, fmt.Sprint(s[0]))
		} else {
			parts = append(parts, fmt.Sprintf("%d to %d", s[0], s[1]))
		}
	}
	noun := "tickets "
	if len(list) == 1 && list[0][0] == list[0][1] {
		noun = "ticket "
	}
	return noun + strings.Join(parts, ", ")
}

func tickets(list []room.Ticket) string {
	var s []room.Span
	for _, n := range list {
		if k := len(s); k > 0 && s[k-1][1]+1 == n {
			s[k-1][1] = n
		} else {
			s = append(s, room.Span{n, n})
		}
	}
	return spans(s)
}

func give(list []room.Ticket) string {
	if len(list) == 1 {
		return tickets(list) + " gives its slot"
	}
	return tickets(list) + " give their slots"
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// because says why a room changed by itself.
func because(r *room.Reason) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf(" (%s: %s, %d against %d)", r.Rule, r.Sign, r.Value, r.Limit)
}

func slotLimit(s *room.Settings) string {
	if s.MaxConcurrent == nil {
		return "no limit of slots"
	}
	return count(int(*s.MaxConcurrent), "slot", "slots")
}

// span is a length of time as people say it: 41 s, 3 min 5 s, 2 h 10 min.
func span(ms room.Instant) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", ms)
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// settingsDiff names the settings that changed, under their names in the journal.
func settingsDiff(old, now *room.Settings) (changes []string) {
	before, after := settingsFields(old), settingsFields(now)
	var names []string
	for name := range after {
		names = append(names, name)
	}
	for name := range before {
		if _, both := after[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		from, to := string(before[name]), string(after[name])
		if from == to {
			continue
		}
		changes = append(changes, fmt.Sprintf("%s %s → %s", name, orNone(from), orNone(to)))
	}
	return changes
}

func settingsFields(s *room.Settings) map[string]json.RawMessage {
	fields := map[string]json.RawMessage{}
	text, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil {
		panic(err) // texts and integers: it cannot fail
	}
	return fields
}

func orNone(text string) string {
	if text == "" || text == "null" {
		return "none"
	}
	return text
}
