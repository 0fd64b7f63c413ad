package replay

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"qm/access/org"
	"qm/engine/room"
	"qm/journal"
)

// MaxFindings is how many findings a room may have before [Verify] looks no further into it.
const MaxFindings = 100

// Options of [Verify].
type Options struct {
	// Head is a record's hash that was noted elsewhere; it must be among the hashes of the journal, or its tail was cut or all of it
	// written anew (domain.md rule 8). Nil: none was noted.
	Head *journal.Hash
	// Heads are where the storage says that the streams stand, read before the records: the records must reach that far.
	Heads []journal.Head
	// Every is how many records lie between two runs of room.Check, which walks the whole room; one run is made at the end in
	// any case. 0: after each of the first 1,000 records of a room, then each time that it has grown by a half.
	Every int64
	// MaxFindings stops the verification of a room that has so many; 0 means the constant [MaxFindings].
	MaxFindings int
	// Progress, if set, is called after every 10,000 records with their number so far.
	Progress func(records int64)

	check   func(*room.State) error                              // room.Check; tests replace it
	onEvent func(v *verifier, r *journal.Record, e room.Event)   // told of each event, before it is judged
	onAct   func(v *verifier, r *journal.Record, e org.Event)    // told of each event of the organisation
	onDraw  func(v *verifier, b *room.Draw, ids []room.Identity) // told of each draw, before it is judged
}

// Report is what was verified.
type Report struct {
	Records int64        `json:"records"`
	Rooms   []RoomReport `json:"rooms"` // in the order in which their first records came
}

// RoomReport is one stream of a [Report].
type RoomReport struct {
	Stream   string       `json:"stream"`
	Room     string       `json:"room"`
	Records  int64        `json:"records"`
	First    int64        `json:"first"` // seq of the first record; above 1 when retention has cut the journal before a create or close
	Last     int64        `json:"last"`
	Head     string       `json:"head"` // hash of the last record, in hex: what to note elsewhere
	From     time.Time    `json:"from"`
	To       time.Time    `json:"to"`
	Findings int          `json:"findings"`
	Gave     bool         `json:"gaveUp,omitempty"` // it had too many findings, and the rest was not looked at
	Events   bool         `json:"events"`           // false for a stream of no room, such as the organisation's
	Summary  room.Summary `json:"-"`
}

// Verify checks every record of source against the numbered invariants of docs/design/invariants.md, in one pass and in no more memory
// than the rooms themselves. It goes on after a finding with what was right in the record, so that one fault is one finding. A line
// that cannot be read ends it: what lies behind is unknown. The error is nil, or says that the source could not be read.
func Verify(source Source, o Options) (Report, []Finding, error) {
	if o.MaxFindings == 0 {
		o.MaxFindings = MaxFindings
	}
	if o.check == nil {
		o.check = room.Check
	}
	var (
		report Report
		rooms  []*verifier
		byName = map[string]*verifier{}
		last   *verifier
		seen   bool // the noted head
		all    []Finding
	)
	err := source(func(r *journal.Record) error {
		if last == nil || last.stream != r.Stream {
			last = byName[r.Stream]
			if last == nil {
				stream := strings.Clone(r.Stream)
				last = newVerifier(stream, &o, &all)
				if i := slices.IndexFunc(o.Heads, func(h journal.Head) bool { return h.Stream == stream }); i >= 0 {
					last.stored = &o.Heads[i]
				}
				byName[stream] = last
				rooms = append(rooms, last)
			}
		}
		last.record(r)
		if o.Head != nil && r.Hash == *o.Head {
			seen = true
		}
		if report.Records++; o.Progress != nil && report.Records%10_000 == 0 {
			o.Progress(report.Records)
		}
		return nil
	})
	var line *journal.LineError
	if errors.As(err, &line) {
		f := finding("", 0, Line, "line %d: %v", line.Line, line.Err)
		if errors.Is(err, journal.ErrTorn) {
			f = finding("", 0, Torn, "line %d: %v", line.Line, line.Err)
		}
		if last != nil {
			f.Stream, f.Room, f.Seq = last.stream, RoomID(last.stream), last.chain.Head().Seq+1
			last.report.Findings++
		}
		all, err = append(all, f), nil
	}
	for _, h := range o.Heads {
		if err == nil && h.Seq > 0 && byName[h.Stream] == nil {
			all = append(all, finding(h.Stream, h.Seq, Head, "the storage says that the stream stands at seq %d, and it has no records", h.Seq))
		}
	}
	for _, v := range rooms {
		if err == nil {
			v.finish()
		}
		report.Rooms = append(report.Rooms, v.report)
	}
	if err == nil && o.Head != nil && !seen {
		f := finding("", 0, Head, "no record has the noted head hash %x: the tail was cut, or all of it was written anew", *o.Head)
		if len(report.Rooms) == 1 {
			r := &report.Rooms[0]
			r.Findings++
			f.Stream, f.Room, f.Seq = r.Stream, r.Room, r.Last
		}
		all = append(all, f)
	}
	if err != nil {
		return report, all, fmt.Errorf("verify: %w", err)
	}
	return report, all, nil
}

// verifier verifies one stream. Each event is judged by the room as it stands before it, then applied.
type verifier struct {
	stream string
	o      *Options
	all    *[]Finding
	report RoomReport

	chain  *journal.Chain
	stored *journal.Head // where the storage says that the stream stands; nil: it does not say
	seq    int64         // of the record at hand
	at     room.Instant
	before journal.Hash // hash of the record before, as recorded

	organisation *org.State // of the organisation's stream, before the record at hand; nil for all others

	s    *room.State
	sum  room.Summary // of s, before the record at hand
	next int64        // records until room.Check runs
	bent bool         // numbers were left out or a holder has two places

	// What the events alone must tell, kept beside the room.
	passed     room.Line // tickets of this generation that have passed
	drawn      room.Span // the tickets of the last draw
	drawnAt    room.Instant
	identities []room.Identity       // by ticket
	inLine     map[room.Identity]int // waiting tickets of an identity
	entries    []entry               // the pre-queue, by handle, those who left included
	entered    map[room.Identity]int // pre-queue entries of an identity
	meter      meter
}

// entry is one in the pre-queue.
type entry struct {
	handle room.Handle
	id     room.Identity
}

func newVerifier(stream string, o *Options, all *[]Finding) *verifier {
	v := &verifier{stream: stream, o: o, all: all, s: room.New(), next: 1}
	v.report = RoomReport{Stream: stream, Room: RoomID(stream), Events: !strings.HasPrefix(stream, "$")}
	if stream == org.Stream {
		v.organisation = org.New()
	}
	v.forget()
	return v
}

// forget starts a generation.
func (v *verifier) forget() {
	v.bent = false
	v.passed.Clear()
	v.drawn, v.drawnAt = room.Span{}, 0
	v.identities = v.identities[:0]
	v.entries = v.entries[:0]
	v.inLine, v.entered = map[room.Identity]int{}, map[room.Identity]int{}
	v.meter = meter{at: v.at}
}

func (v *verifier) found(c Code, format string, args ...any) {
	v.bent = v.bent || c == TicketGap || c == HandleGap || c == HolderTwice
	v.report.Findings++
	if v.report.Findings > v.o.MaxFindings {
		v.report.Gave = true
		return
	}
	*v.all = append(*v.all, finding(v.stream, v.seq, c, format, args...))
}

func (v *verifier) record(r *journal.Record) {
	if v.report.Gave {
		v.report.Last = r.Seq
		return
	}
	v.seq = r.Seq
	cut := v.chain == nil && v.begin(r)
	v.before = v.chain.Head().Hash
	late := false
	if err := v.chain.Check(r); err != nil && !cut {
		var c *journal.ChainError
		errors.As(err, &c)
		switch {
		case errors.Is(err, journal.ErrGap):
			v.found(Gap, "the records from seq %d to %d are missing", c.Want, r.Seq-1)
			v.before = journal.Hash{}
		case errors.Is(err, journal.ErrReorder):
			v.found(Reorder, "the record comes after seq %d: it is repeated or out of order", c.Want-1)
			late = true
		default:
			v.found(Hash, "the hash does not fit: this record, or the one before it, is not the one that was written")
		}
		v.chain.Follow(r)
	}
	v.report.Records++
	if late {
		return // its event has happened already, or cannot be placed
	}
	v.report.Last, v.report.To = r.Seq, r.At
	if v.stored != nil && r.Seq == v.stored.Seq && r.Hash != v.stored.Hash {
		v.found(Head, "the hash is not the one that the storage has for the head of the stream, %x", v.stored.Hash)
	}
	if v.organisation != nil {
		v.act(r)
	}
	if !v.report.Events {
		return
	}
	v.time(r)
	e, err := room.DecodeBody(r.Kind, r.Version, v.at, r.Body)
	if err != nil {
		if unknown := (*room.UnknownEventError)(nil); errors.As(err, &unknown) {
			v.found(Kind, "kind %q version %d is unknown", r.Kind, r.Version)
		} else {
			v.found(Body, "the body of %q version %d cannot be read: %v", r.Kind, r.Version, err)
		}
		return
	}
	if v.o.onEvent != nil {
		v.o.onEvent(v, r, e)
	}
	v.event(e)
}

// begin starts the chain. Retention cuts only before the start of a generation (architecture.md, "The journal"): a journal that begins
// with a create is taken from there, on the word of its first hash, and begin returns true; anything else lacks records.
func (v *verifier) begin(r *journal.Record) (cut bool) {
	v.report.First, v.report.From = r.Seq, r.At
	v.chain = journal.NewChain(journal.Head{Stream: v.stream})
	if cut = r.Seq > 1 && r.Kind == (*room.Create)(nil).Kind(); cut {
		v.chain.Follow(r)
	}
	return cut
}

// time checks I2 and sets the room's clock.
func (v *verifier) time(r *journal.Record) {
	if r.At.Nanosecond()%int(time.Millisecond) != 0 {
		v.found(TimeGrain, "its time %s is not in whole milliseconds", r.At.UTC().Format(time.RFC3339Nano))
	}
	at := room.Instant(r.At.UnixMilli())
	if at < v.at {
		v.found(TimeBack, "its time %s is before that of the event before it, %s", clock(at), clock(v.at))
		at = v.at
	}
	v.at = at
}

// event judges e, applies what is right in it, and looks at the room every now and then.
func (v *verifier) event(e room.Event) {
	v.meter.advance(&v.sum, v.at)
	body := v.judge(e.Body)
	if body == nil {
		return
	}
	v.s.Apply(room.Event{At: v.at, Body: body})
	v.sum = v.s.Summary()
	if v.next--; v.next == 0 {
		v.check()
		switch n := v.report.Records; {
		case v.o.Every > 0:
			v.next = v.o.Every
		case n < 1000:
			v.next = 1
		default:
			v.next = n / 2
		}
	}
}

// check runs room.Check, unless what was found before makes the room bend in a way that would only be found again.
func (v *verifier) check() {
	if v.bent {
		return
	}
	if err := v.o.check(v.s); err != nil {
		v.found(State, "%v", err)
	}
}

func (v *verifier) finish() {
	if v.chain == nil {
		return
	}
	if v.report.Events && !v.report.Gave {
		v.check()
	}
	head := v.chain.Head()
	if v.stored != nil && head.Seq < v.stored.Seq {
		v.seq = head.Seq
		v.found(Head, "the storage says that the stream stands at seq %d; the records from seq %d on are missing", v.stored.Seq, head.Seq+1)
	}
	v.report.Head = fmt.Sprintf("%x", head.Hash)
	v.report.Summary = v.sum
}

// clock is an instant as people read it, in UTC.
func clock(at room.Instant) string {
	return time.UnixMilli(int64(at)).UTC().Format("2006-01-02 15:04:05.000")
}
