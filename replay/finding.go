package replay

import (
	"fmt"
	"strings"
)

// Finding is one thing that is wrong with a journal, or with what a projection holds.
type Finding struct {
	Stream    string `json:"stream"`    // "<environment>/<room>"; "" when it cannot be told, as with a line that cannot be read
	Room      string `json:"room"`      // the room's id
	Seq       int64  `json:"seq"`       // the record; 0 when none can be named
	Invariant string `json:"invariant"` // "I1" and so on: the number in docs/design/invariants.md
	Code      Code   `json:"code"`      // which check of that invariant
	Text      string `json:"text"`      // what is wrong, in words
}

// String is the finding as one line.
func (f Finding) String() string {
	room := f.Room
	if room == "" {
		room = "-"
	}
	return fmt.Sprintf("%s seq %d %s %s: %s", room, f.Seq, f.Invariant, f.Code, f.Text)
}

// Code is the stable name of one check. Each has a broken journal in testdata/journals that shows it.
type Code string

// The checks, by invariant. docs/design/invariants.md says what each invariant is for.
const (
	Hash    Code = "hash"
	Gap     Code = "gap"
	Reorder Code = "reorder"
	Head    Code = "head"
	Torn    Code = "torn"
	Line    Code = "line"

	TimeBack  Code = "time_back"
	TimeGrain Code = "time_grain"

	Kind Code = "kind"
	Body Code = "body"

	NoRoom     Code = "no_room"
	RoomExists Code = "room_exists"
	Generation Code = "generation"

	TicketGap    Code = "ticket_gap"
	TicketReused Code = "ticket_reused"
	HandleGap    Code = "handle_gap"
	HandleReused Code = "handle_reused"

	HolderTwice Code = "holder_twice"

	JoinScheduled     Code = "join_scheduled"
	JoinShut          Code = "join_shut"
	EnqueueUnschedule Code = "enqueue_unscheduled"

	PassSpans    Code = "pass_spans"
	PassStranger Code = "pass_stranger"
	PassTwice    Code = "pass_twice"
	PassHeld     Code = "pass_held"

	FIFO Code = "fifo"

	GhostStranger Code = "ghost_stranger"
	GhostOff      Code = "ghost_off"
	GhostSeen     Code = "ghost_seen"
	GhostAlone    Code = "ghost_alone"

	Overserved Code = "overserved"
	Credit     Code = "credit"

	Slots      Code = "slots"
	FlushSlots Code = "flush_slots"

	ClockShut Code = "clock_shut"

	ScheduleSecret Code = "schedule_secret"
	SchedulePast   Code = "schedule_past"
	ScheduleCancel Code = "schedule_cancel"
	DrawCommitment Code = "draw_commitment"
	DrawHead       Code = "draw_head"
	DrawSeed       Code = "draw_seed"
	DrawOrder      Code = "draw_order"
	DrawEntries    Code = "draw_entries"
	DrawVersion    Code = "draw_version"

	DrawUnscheduled Code = "draw_unscheduled"
	DrawEarly       Code = "draw_early"
	DrawLate        Code = "draw_late"

	CapLine     Code = "cap_line"
	CapPreQueue Code = "cap_prequeue"

	EnterStranger Code = "enter_stranger"
	EnterLate     Code = "enter_late"
	CodeSpent     Code = "code_spent"
	RenewStranger Code = "renew_stranger"

	LeaveStranger Code = "leave_stranger"

	LapseWhy      Code = "lapse_why"
	LapseStranger Code = "lapse_stranger"
	LapseEarly    Code = "lapse_early"

	EjectStranger Code = "eject_stranger"
	PurgeCount    Code = "purge_count"

	UnslotStranger Code = "unslot_stranger"
	UnslotEarly    Code = "unslot_early"

	State Code = "state"

	OrgActor     Code = "org_actor"
	OrgReference Code = "org_reference"
)

// invariants lists every check under the number of its invariant.
var invariants = []struct {
	number string
	codes  []Code
}{
	{"I1", []Code{Hash, Gap, Reorder, Head, Torn, Line}},             // the chain holds
	{"I2", []Code{TimeBack, TimeGrain}},                              // time never runs back
	{"I3", []Code{Kind, Body}},                                       // every record can be read
	{"I4", []Code{NoRoom, RoomExists, Generation}},                   // a room is created first, and its generation grows
	{"I5", []Code{TicketGap, TicketReused, HandleGap, HandleReused}}, // numbers have no gap and are used once
	{"I6", []Code{HolderTwice}},                                      // one place per holder
	{"I7", []Code{JoinScheduled, JoinShut, EnqueueUnschedule}},       // the pre-queue before the doors open, the line after
	{"I8", []Code{PassSpans, PassStranger, PassTwice, PassHeld}},     // only who waits passes, and once
	{"I9", []Code{FIFO}},                                             // first in, first out
	{"I10", []Code{GhostStranger, GhostOff, GhostSeen, GhostAlone}},  // only who is absent is a ghost
	{"I11", []Code{Overserved, Credit}},                              // the outflow is never overserved
	{"I12", []Code{Slots, FlushSlots}},                               // slots are never exceeded
	{"I13", []Code{ClockShut}},                                       // the clock stands while the room does not let in
	{"I14", []Code{ScheduleSecret, DrawCommitment, DrawHead, DrawSeed, DrawOrder, DrawEntries, DrawVersion}}, // a draw can be proved
	{"I15", []Code{SchedulePast, ScheduleCancel, DrawUnscheduled, DrawEarly, DrawLate}},                      // a draw is at its time
	{"I16", []Code{CapLine, CapPreQueue}},                               // caps hold
	{"I17", []Code{EnterStranger, EnterLate, CodeSpent, RenewStranger}}, // the door opens to passes alone
	{"I18", []Code{LeaveStranger}},                                      // only what is held can be given back
	{"I19", []Code{LapseWhy, LapseStranger, LapseEarly}},                // nothing lapses before its time
	{"I20", []Code{EjectStranger}},                                      // an eject takes what is live
	{"I21", []Code{PurgeCount}},                                         // a purge counts what it takes
	{"I22", []Code{UnslotStranger, UnslotEarly}},                        // a slot is taken back only where there is one
	{"I23", []Code{State}},                                              // the room agrees with itself
	{"I24", []Code{OrgActor}},                                           // only who may do it changes the organisation
	{"I25", []Code{OrgReference}},                                       // what an act on the organisation names is there
}

var numbers = func() map[Code]string {
	m := map[Code]string{}
	for _, inv := range invariants {
		for _, c := range inv.codes {
			m[c] = inv.number
		}
	}
	return m
}()

// Codes lists every check that [Verify] makes, in the order of the invariants.
func Codes() []Code {
	var all []Code
	for _, inv := range invariants {
		all = append(all, inv.codes...)
	}
	return all
}

// Invariant is the number of the invariant that a check belongs to, "I1" and so on.
func (c Code) Invariant() string { return numbers[c] }

// RoomID is the room's id within its stream's name.
func RoomID(stream string) string {
	if _, id, ok := strings.Cut(stream, "/"); ok {
		return id
	}
	return stream
}

func finding(stream string, seq int64, c Code, format string, args ...any) Finding {
	return Finding{Stream: stream, Room: RoomID(stream), Seq: seq, Invariant: c.Invariant(), Code: c, Text: fmt.Sprintf(format, args...)}
}
