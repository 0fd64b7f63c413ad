package room

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// SnapshotFormat is the number of the snapshot form; a snapshot of another is thrown away, never migrated.
const SnapshotFormat = 2

// snapshotHead is the part of a snapshot that does not grow with visitors.
type snapshotHead struct {
	Exists     bool      `json:"exists"`
	Generation uint32    `json:"g"`
	Mode       Mode      `json:"mode"`
	Settings   *Settings `json:"settings"`
	CreatedAt  Instant   `json:"createdAt"`
	At         Instant   `json:"at"`
	Credit     int64     `json:"credit"`
	Flow       Flow      `json:"flow"`
	Minutes    []Minute  `json:"minutes"`
	Steering   Steering  `json:"steering"`
	OpensAt    Instant   `json:"opensAt"`
	Commitment Digest    `json:"commitment"`
	Draws      int       `json:"draws"`
	Proof      *Proof    `json:"proof"`
	Last       Ticket    `json:"last"`
	LastHandle Handle    `json:"lastHandle"`
	Slots      int       `json:"slots"`
	Passes     int       `json:"passes"`
	Doors      int       `json:"doors"`
}

// AppendBinary appends the state's snapshot form: equal states give equal bytes. Full states only. The form is: length and JSON
// of the head, the lines and columns in their own forms, the passes and door sessions, and a SHA-256 of it all.
func (s *State) AppendBinary(b []byte) []byte {
	start := len(b)
	head, err := json.Marshal(snapshotHead{
		Exists: s.exists, Generation: s.generation, Mode: s.mode, Settings: s.settings, CreatedAt: s.createdAt, At: s.at,
		Credit: s.credit, Flow: s.flow, Minutes: s.minutes, Steering: s.steering, OpensAt: s.opensAt, Commitment: s.commitment, Draws: s.draws, Proof: s.proof,
		Last: s.last, LastHandle: s.lastHandle, Slots: s.slots, Passes: s.passes.live, Doors: s.doors.live,
	})
	if err != nil {
		panic(fmt.Sprintf("room: snapshot: %v", err)) // integers and strings: it cannot fail
	}
	b = slices.Grow(b, len(head)+s.snapshotBytes()) // growing by and by would leave three times as much behind
	b = binary.AppendUvarint(b, uint64(len(head)))
	b = append(b, head...)
	b = s.line.AppendBinary(b)
	b = s.held.AppendBinary(b)
	b = s.entries.AppendBinary(b)
	b = appendIntegers(b, &s.status)
	b = appendDigests(b, &s.holder)
	b = appendIntegers(b, &s.joined)
	b = appendIntegers(b, &s.score)
	b = appendIntegers(b, &s.identity)
	b = appendDigests(b, &s.entryOf)
	b = appendIntegers(b, &s.entryScore)
	b = appendIntegers(b, &s.entryAt)
	b = appendIntegers(b, &s.entryIdentity)
	b = appendIntegers(b, &s.drawn)
	b = appendIntegers(b, &s.ended)
	s.passes.each(func(n Ticket, p *pass) bool {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
		b = binary.LittleEndian.AppendUint64(b, uint64(p.at))
		slot := byte(0)
		if p.slot {
			slot = 1
		}
		b = append(b, slot)
		return true
	})
	s.doors.each(func(n Ticket, d *door) bool {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
		for _, at := range []Instant{d.passedAt, d.enteredAt, d.seenAt, d.codeAt} {
			b = binary.LittleEndian.AppendUint64(b, uint64(at))
		}
		b = append(b, d.key[:]...)
		return true
	})
	sum := sha256.Sum256(b[start:])
	return append(b, sum[:]...)
}

// snapshotBytes is about how long a snapshot gets, the head aside: at most a few pages' worth more than it needs.
func (s *State) snapshotBytes() int {
	lines := (s.line.Pages() + s.held.Pages() + s.entries.Pages()) * (LinePageWords*8 + 4)
	tickets := s.status.stored() + s.score.stored() + 4*s.joined.stored() + 8*s.identity.stored() + 16*s.holder.stored()
	handles := s.entryScore.stored() + s.ended.stored() + 4*(s.entryAt.stored()+s.drawn.stored()) + 8*s.entryIdentity.stored() + 16*s.entryOf.stored()
	return lines + tickets + handles + s.passes.live*passBytes + s.doors.live*doorBytes + 1024
}

var errSnapshot = errors.New("room: damaged snapshot")

const (
	passBytes = 4 + 8 + 1
	doorBytes = 4 + 4*8 + 16
)

// Restore reads a snapshot. A damaged one gives an error.
func Restore(b []byte) (*State, error) {
	if len(b) < sha256.Size {
		return nil, errSnapshot
	}
	body := b[:len(b)-sha256.Size]
	if sha256.Sum256(body) != [sha256.Size]byte(b[len(body):]) {
		return nil, errSnapshot
	}
	size, n := binary.Uvarint(body)
	if n <= 0 || size > uint64(len(body)-n) {
		return nil, errSnapshot
	}
	var head snapshotHead
	if err := json.Unmarshal(body[n:n+int(size)], &head); err != nil {
		return nil, fmt.Errorf("room: snapshot head: %w", err)
	}
	s := &State{
		exists: head.Exists, generation: head.Generation, mode: head.Mode, settings: head.Settings,
		createdAt: head.CreatedAt, at: head.At, credit: head.Credit, flow: head.Flow, minutes: head.Minutes, steering: head.Steering,
		opensAt: head.OpensAt, commitment: head.Commitment, draws: head.Draws, proof: head.Proof,
		last: head.Last, lastHandle: head.LastHandle, slots: head.Slots,
	}
	if s.exists && s.settings == nil {
		return nil, errSnapshot
	}
	rest, err := s.restoreColumns(body[n+int(size):])
	if err != nil {
		return nil, fmt.Errorf("room: snapshot: %w", err)
	}
	if len(rest) != head.Passes*passBytes+head.Doors*doorBytes {
		return nil, errSnapshot
	}
	for range head.Passes {
		n := Ticket(binary.LittleEndian.Uint32(rest))
		s.passes.put(n, pass{at: Instant(binary.LittleEndian.Uint64(rest[4:])), slot: rest[12] == 1})
		rest = rest[passBytes:]
	}
	for range head.Doors {
		n := Ticket(binary.LittleEndian.Uint32(rest))
		var at [4]Instant
		for i := range at {
			at[i] = Instant(binary.LittleEndian.Uint64(rest[4+8*i:]))
		}
		s.doors.put(n, door{passedAt: at[0], enteredAt: at[1], seenAt: at[2], codeAt: at[3], key: Holder(rest[36:52])})
		rest = rest[doorBytes:]
	}
	s.reindex()
	return s, nil
}

func (s *State) restoreColumns(b []byte) (rest []byte, err error) {
	lines := func(l *Line) {
		if err == nil {
			*l, b, err = DecodeLine(b)
		}
	}
	lines(&s.line)
	lines(&s.held)
	lines(&s.entries)
	restoreInto(&s.status, &b, &err, decodeIntegers)
	restoreInto(&s.holder, &b, &err, decodeDigests)
	restoreInto(&s.joined, &b, &err, decodeIntegers)
	restoreInto(&s.score, &b, &err, decodeIntegers)
	restoreInto(&s.identity, &b, &err, decodeIntegers)
	restoreInto(&s.entryOf, &b, &err, decodeDigests)
	restoreInto(&s.entryScore, &b, &err, decodeIntegers)
	restoreInto(&s.entryAt, &b, &err, decodeIntegers)
	restoreInto(&s.entryIdentity, &b, &err, decodeIntegers)
	restoreInto(&s.drawn, &b, &err, decodeIntegers)
	restoreInto(&s.ended, &b, &err, decodeIntegers)
	return b, err
}

func restoreInto[T comparable](c *column[T], b *[]byte, err *error, decode func([]byte) (column[T], []byte, error)) {
	if *err == nil {
		*c, *b, *err = decode(*b)
	}
}

// reindex makes anew what a snapshot does not hold, because it follows from the rest.
func (s *State) reindex() {
	s.live = make([]uint16, int(s.last>>pageBits)+1)
	for n := uint32(1); n <= uint32(s.last); n++ {
		switch s.status.at(n) {
		case Waiting:
			if id := s.identity.at(n); id != 0 {
				s.waitingBy.Add(id, +1)
			}
		case Passed, Inside:
		default:
			continue
		}
		s.live[n>>pageBits]++
		s.index.Put(s.holder.at(n), n, s.holderOf)
	}
	for q, ok := s.entries.First(); ok; q, ok = s.entries.Next(q) {
		if id := s.entryIdentity.at(uint32(q)); id != 0 {
			s.enteredBy.Add(id, +1)
		}
		s.index.Put(s.entryOf.at(uint32(q)), uint32(q)|entryRef, s.holderOf)
	}
}
