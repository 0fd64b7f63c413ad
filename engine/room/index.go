package room

import (
	"encoding/binary"
	"math/bits"
)

const (
	indexSegmentSlots = 1024 // a segment that would grow beyond this splits in two instead
	indexFirstSlots   = 16
	indexMaxDepth     = 20 // beyond this a segment only grows: digests that collide so far will not part by splitting
)

// holderIndex finds a holder's place: the ticket or handle of a digest (domain.md rule 9, one place per holder). It
// stores references alone, six bytes a slot, and asks the caller for the holder behind one, so a holder costs 7 to 10
// bytes and the digest is kept once, in the column where it lives anyway (architecture.md, "Line").
//
// The table is a directory of small segments, each open-addressed with linear probing. A full segment splits in two by
// the next bit of the hash, so growing never stops a room for longer than it takes to move a thousand references.
// The hash is made of the digest, which is keyed (domain.md rule 4): nobody outside can choose it.
//
// Every method takes of, which must give the holder behind any reference in the index; so take a reference out before
// its holder is forgotten. References are 1 and up. The zero index is empty and ready.
type holderIndex struct {
	segments []*indexSegment // by the top bits of the hash; neighbours may share one
	bits     uint8           // log2 of len(segments)
	count    int
}

type indexSegment struct {
	refs  []uint32 // 0 is an empty slot
	tags  []uint16 // of the hash; says where a reference belongs, and spares asking for the holders of strangers
	used  int
	depth uint8 // how many bits of the hash all references here have in common
}

// Len is the number of holders.
func (x *holderIndex) Len() int { return x.count }

// Get is the reference of a holder; false when there is none.
func (x *holderIndex) Get(h Holder, of func(ref uint32) Holder) (uint32, bool) {
	if x.count == 0 {
		return 0, false
	}
	hash := hashHolder(h)
	s := x.segment(hash)
	if slot, found := s.find(h, indexTag(hash), of); found {
		return s.refs[slot], true
	}
	return 0, false
}

// Put gives a holder the reference ref, in place of the one it had, if any. It returns the one replaced, or 0.
func (x *holderIndex) Put(h Holder, ref uint32, of func(ref uint32) Holder) (replaced uint32) {
	if ref == 0 {
		panic("room: holder index: reference 0")
	}
	if x.segments == nil {
		x.segments = []*indexSegment{newIndexSegment(indexFirstSlots, 0)}
	}
	hash := hashHolder(h)
	s := x.segment(hash)
	slot, found := s.find(h, indexTag(hash), of)
	if found {
		replaced, s.refs[slot] = s.refs[slot], ref
		return replaced
	}
	for s.full() {
		x.makeRoom(s, hash, of)
		s = x.segment(hash)
		slot = s.free(indexTag(hash))
	}
	s.refs[slot], s.tags[slot] = ref, indexTag(hash)
	s.used++
	x.count++
	return 0
}

// Delete takes a holder out and returns its reference; false when there was none.
func (x *holderIndex) Delete(h Holder, of func(ref uint32) Holder) (uint32, bool) {
	if x.count == 0 {
		return 0, false
	}
	hash := hashHolder(h)
	s := x.segment(hash)
	slot, found := s.find(h, indexTag(hash), of)
	if !found {
		return 0, false
	}
	ref := s.refs[slot]
	s.vacate(slot)
	x.count--
	if x.count == 0 {
		x.Clear()
	}
	return ref, true
}

// Clear takes everybody out and frees the memory.
func (x *holderIndex) Clear() { *x = holderIndex{} }

func (x *holderIndex) segment(hash uint64) *indexSegment {
	return x.segments[hash>>1>>(63-x.bits)] // two shifts: by 64 in all when there is one segment
}

// makeRoom grows the full segment s of the given hash, or splits it in two.
func (x *holderIndex) makeRoom(s *indexSegment, hash uint64, of func(uint32) Holder) {
	if slots := len(s.refs) * 4 / 3; slots <= indexSegmentSlots || s.depth >= indexMaxDepth {
		grown := newIndexSegment(slots, s.depth)
		for slot, ref := range s.refs {
			if ref != 0 {
				grown.insert(ref, s.tags[slot])
			}
		}
		*s = *grown
		return
	}
	if s.depth == x.bits {
		wider := make([]*indexSegment, 2*len(x.segments))
		for i := range wider {
			wider[i] = x.segments[i/2]
		}
		x.segments = wider
		x.bits++
	}
	depth := s.depth + 1
	upper := make([]bool, len(s.refs)) // whose next bit is set
	uppers := 0
	for slot, ref := range s.refs {
		if ref != 0 && hashHolder(of(ref))>>(64-depth)&1 == 1 {
			upper[slot] = true
			uppers++
		}
	}
	low, high := newIndexSegment(slotsFor(s.used-uppers), depth), newIndexSegment(slotsFor(uppers), depth)
	for slot, ref := range s.refs {
		switch {
		case ref == 0:
		case upper[slot]:
			high.insert(ref, s.tags[slot])
		default:
			low.insert(ref, s.tags[slot])
		}
	}
	span := 1 << (x.bits - depth) // entries of the directory for each half
	first := int(hash>>1>>(63-x.bits)) &^ (2*span - 1)
	for i := range span {
		x.segments[first+i] = low
		x.segments[first+span+i] = high
	}
}

// slotsFor is the size of a half that holds n already and is to take some more.
func slotsFor(n int) int { return max(indexFirstSlots, n*11/8) }

func newIndexSegment(slots int, depth uint8) *indexSegment {
	return &indexSegment{refs: make([]uint32, slots), tags: make([]uint16, slots), depth: depth}
}

// full says whether one more would make more than 13 of 16 slots taken: where probing gets long.
func (s *indexSegment) full() bool { return (s.used+1)*16 > len(s.refs)*13 }

// home is the slot where a tag belongs.
func (s *indexSegment) home(tag uint16) int { return int(uint64(tag) * uint64(len(s.refs)) >> 16) }

// indexTag is the low end of a hash; the directory goes by the high end.
func indexTag(hash uint64) uint16 { return uint16(hash) }

// find is the slot of a holder, or the empty slot where it would go.
func (s *indexSegment) find(h Holder, tag uint16, of func(uint32) Holder) (slot int, found bool) {
	for slot = s.home(tag); s.refs[slot] != 0; {
		if s.tags[slot] == tag && of(s.refs[slot]) == h {
			return slot, true
		}
		if slot++; slot == len(s.refs) {
			slot = 0
		}
	}
	return slot, false
}

// free is the empty slot where a tag would go.
func (s *indexSegment) free(tag uint16) int {
	slot := s.home(tag)
	for s.refs[slot] != 0 {
		if slot++; slot == len(s.refs) {
			slot = 0
		}
	}
	return slot
}

func (s *indexSegment) insert(ref uint32, tag uint16) {
	slot := s.free(tag)
	s.refs[slot], s.tags[slot] = ref, tag
	s.used++
}

// vacate empties a slot and moves back what had been pushed behind it, so that no tombstones are left.
func (s *indexSegment) vacate(slot int) {
	n := len(s.refs)
	hole := slot
	for {
		if slot++; slot == n {
			slot = 0
		}
		ref := s.refs[slot]
		if ref == 0 {
			break
		}
		home := s.home(s.tags[slot])
		if (slot-home+n)%n >= (slot-hole+n)%n {
			s.refs[hole], s.tags[hole] = ref, s.tags[slot]
			hole = slot
		}
	}
	s.refs[hole], s.tags[hole] = 0, 0
	s.used--
}

// hashHolder spreads a digest over 64 bits. Real digests are even already; this also serves made-up ones.
func hashHolder(h Holder) uint64 {
	high, low := bits.Mul64(
		binary.LittleEndian.Uint64(h[:8])^0x9e3779b97f4a7c15,
		binary.LittleEndian.Uint64(h[8:])^0xc2b2ae3d27d4eb4f,
	)
	return (high ^ low) * 0x9fb21c651e98df25
}

// identityCounts counts what each identity has, for the caps of seed 004 (preQueueMaxPerIp, queueMaxPerIp). It is
// open-addressed, 12 bytes a slot with at most three slots in four taken, and keeps nothing of an identity at zero.
// Identity 0, none recorded, is never counted: no cap can apply to it. The zero value is empty and ready.
type identityCounts struct {
	ids    []Identity // 0 is an empty slot; the length is a power of two
	counts []uint32
	used   int
}

// Len is the number of identities with a count above zero.
func (t *identityCounts) Len() int { return t.used }

// Get is the count of an identity.
func (t *identityCounts) Get(id Identity) uint32 {
	if t.used == 0 || id == 0 {
		return 0
	}
	slot := t.find(id)
	return t.counts[slot]
}

// Add changes the count of an identity by delta and returns what it is now. It stays at zero rather than go below, and
// at the largest uint32 rather than above.
func (t *identityCounts) Add(id Identity, delta int) uint32 {
	if id == 0 || delta == 0 {
		return t.Get(id)
	}
	if t.ids == nil {
		if delta < 0 {
			return 0
		}
		t.ids, t.counts = make([]Identity, indexFirstSlots), make([]uint32, indexFirstSlots)
	}
	slot := t.find(id)
	count := uint32(min(max(int64(t.counts[slot])+int64(delta), 0), 1<<32-1))
	switch {
	case count == 0 && t.ids[slot] == 0:
		return 0
	case count == 0:
		t.vacate(slot)
		return 0
	case t.ids[slot] == 0:
		if (t.used+1)*4 > len(t.ids)*3 {
			t.grow()
			slot = t.find(id)
		}
		t.ids[slot] = id
		t.used++
	}
	t.counts[slot] = count
	return count
}

// Clear forgets everybody and frees the memory.
func (t *identityCounts) Clear() { *t = identityCounts{} }

func (t *identityCounts) home(id Identity) int {
	return int(uint64(id) * 0x9e3779b97f4a7c15 >> 32 & uint64(len(t.ids)-1))
}

// find is the slot of an identity, or the empty slot where it would go.
func (t *identityCounts) find(id Identity) int {
	slot := t.home(id)
	for t.ids[slot] != id && t.ids[slot] != 0 {
		slot = (slot + 1) & (len(t.ids) - 1)
	}
	return slot
}

func (t *identityCounts) grow() {
	old := *t
	t.ids, t.counts = make([]Identity, 2*len(old.ids)), make([]uint32, 2*len(old.ids))
	for i, id := range old.ids {
		if id != 0 {
			slot := t.find(id)
			t.ids[slot], t.counts[slot] = id, old.counts[i]
		}
	}
}

// vacate empties a slot and moves back what had been pushed behind it, so that no tombstones are left.
func (t *identityCounts) vacate(slot int) {
	mask := len(t.ids) - 1
	hole := slot
	for {
		slot = (slot + 1) & mask
		id := t.ids[slot]
		if id == 0 {
			break
		}
		if (slot-t.home(id))&mask >= (slot-hole)&mask {
			t.ids[hole], t.counts[hole] = id, t.counts[slot]
			hole = slot
		}
	}
	t.ids[hole], t.counts[hole] = 0, 0
	t.used--
	if t.used == 0 {
		t.Clear()
	}
}
