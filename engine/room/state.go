package room

// State is a room: what Apply made of its events, and nothing else. It is not safe for concurrent use.
//
// A state is full (made by New or Restore) or lean (made by Lean): a lean one answers reads by ticket or handle, but keeps
// neither the index from holders nor the identities, which only decisions need.
type State struct{}

// New returns the state before the first event.
func New() *State { panic("under construction") }

// Apply makes an event part of the state. It never fails, never reads a clock and never refuses.
func (s *State) Apply(e Event) {}

// Decide says which events a command leads to now. It does not write to s. The error is a Refusal.
func Decide(s *State, c Command, now Instant) ([]Event, error) { return nil, nil }

// Check verifies the numbered invariants of docs/design/invariants.md that a state alone can show.
func Check(s *State) error { return nil }

// Ticket returns where a ticket of the present generation stands.
func (s *State) Ticket(n Ticket) Place { return Place{} }

// Handle returns where a pre-queue entry of the present generation stands: enqueued, or (after the draw) its ticket's place with
// Handle set.
func (s *State) Handle(q Handle) Place { return Place{} }

// PlaceOf returns the live place of a holder. Full states only.
func (s *State) PlaceOf(h Holder) (Place, bool) { return Place{}, false }

// Summary returns the room at a glance.
func (s *State) Summary() Summary { return Summary{} }

// Lean returns a lean copy.
func (s *State) Lean() *State { return nil }

// SnapshotFormat is the number of the snapshot form; a snapshot of another is thrown away.
const SnapshotFormat = 1

// AppendBinary appends the state's snapshot form: equal states give equal bytes. Full states only.
func (s *State) AppendBinary(b []byte) []byte { return nil }

// Restore reads a snapshot. A damaged one gives an error.
func Restore(b []byte) (*State, error) { return nil, nil }

// EncodeBody appends the JSON form of a body as the journal stores it, and returns the version of its kind.
func EncodeBody(dst []byte, b Body) (body []byte, version int) { return nil, 0 }

// DecodeBody reads what the journal stores. An unknown kind or version, or a damaged body, is an error.
func DecodeBody(kind string, version int, at Instant, body []byte) (Event, error) {
	return Event{}, nil
}
