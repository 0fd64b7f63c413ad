package room

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// The line is cut three ways, each a power of two so that a ticket finds its cell by shifting:
//
//	block  512 tickets     what one rank counts word by word
//	page   4,096 tickets   what a projection writes at once, and what a snapshot stores
//	chunk  32,768 tickets  what is allocated and freed at once
const (
	lineBlockBits = 9
	linePageBits  = 12
	lineChunkBits = 15

	lineChunkBlocks = 1 << (lineChunkBits - lineBlockBits)
	lineChunkWords  = 1 << (lineChunkBits - 6)
	lineBlockWords  = 1 << (lineBlockBits - 6)

	// LinePageTickets is the number of tickets in a page, see [Line.Words].
	LinePageTickets = 1 << linePageBits
	// LinePageWords is the number of 64-bit words in a page, see [Line.Words].
	LinePageWords = LinePageTickets / 64

	lineMaxPage = 1<<(32-linePageBits) - 1
)

// Line is an ordered set of tickets: who waits, in the only order there is (domain.md rule 1). A position is a rank, so
// ranks are what it is built for: a bitmap, a count of the members before each block within its chunk, and a count of
// the members before each chunk. A rank reads one of each and at most eight words, whatever the length of the line; an
// append writes one word; a removal also lowers the counts behind it (architecture.md, "Line").
//
// It costs about 0.13 bytes a ticket between the first and the last. Chunks in which nobody waits any more are
// freed, so those who have gone cost less than a thousandth of a byte each.
//
// The zero Line is empty and ready. A Line must not be copied by assignment and then changed; use [Line.Clone].
// Methods that only read may run at the same time as each other.
type Line struct {
	chunks []lineChunk
	starts []uint32 // members in all chunks before this one
	count  uint32
	top    uint32 // blocks from here on hold nobody and have no counts yet, so that an append updates none
}

// lineChunk is nil in both fields where nobody waits. The counts stand apart from the words because together they
// would not fit an allocation class, and an eighth of the memory would be lost.
type lineChunk struct {
	words  *[lineChunkWords]uint64
	before *[lineChunkBlocks]uint16 // members of this chunk in the blocks before this one
}

// Len is the number of members.
func (l *Line) Len() int { return int(l.count) }

// Has says whether n is a member.
func (l *Line) Has(n Ticket) bool {
	c := int(n >> lineChunkBits)
	if c >= len(l.chunks) || l.chunks[c].words == nil {
		return false
	}
	return l.chunks[c].words[n>>6%lineChunkWords]>>(n&63)&1 != 0
}

// Rank is the number of members smaller than n, for any n: a member's rank is how many are ahead of it, 0 for the first.
func (l *Line) Rank(n Ticket) int {
	block := uint32(n) >> lineBlockBits
	if block >= l.top {
		return int(l.count)
	}
	c := n >> lineChunkBits
	rank := int(l.starts[c])
	chunk := &l.chunks[c]
	if chunk.words == nil {
		return rank
	}
	rank += int(chunk.before[block%lineChunkBlocks])
	first := block % lineChunkBlocks * lineBlockWords
	words := chunk.words[first : first+lineBlockWords : first+lineBlockWords]
	last := n >> 6 % lineBlockWords
	for _, w := range words[:last] {
		rank += bits.OnesCount64(w)
	}
	return rank + bits.OnesCount64(words[last]&(1<<(n&63)-1))
}

// Select is the member of rank k: k = 0 is the first. It is false unless 0 <= k < Len.
func (l *Line) Select(k int) (Ticket, bool) {
	if k < 0 || k >= int(l.count) {
		return 0, false
	}
	left := uint32(k)
	c, end := 0, len(l.starts)
	for end-c > 1 {
		if mid := (c + end) / 2; l.starts[mid] <= left {
			c = mid
		} else {
			end = mid
		}
	}
	left -= l.starts[c]
	chunk := &l.chunks[c]
	block, stop := 0, min(lineChunkBlocks, int(l.top)-c*lineChunkBlocks)
	for stop-block > 1 {
		if mid := (block + stop) / 2; uint32(chunk.before[mid]) <= left {
			block = mid
		} else {
			stop = mid
		}
	}
	left -= uint32(chunk.before[block])
	for w := block * lineBlockWords; ; w++ {
		word := chunk.words[w]
		if n := uint32(bits.OnesCount64(word)); n <= left {
			left -= n
			continue
		}
		for ; left > 0; left-- {
			word &= word - 1
		}
		return Ticket(c<<lineChunkBits | w<<6 | bits.TrailingZeros64(word)), true
	}
}

// First is the smallest member; false when there is none.
func (l *Line) First() (Ticket, bool) { return l.Select(0) }

// Next is the smallest member greater than after; false when there is none. Gaps cost nothing: it goes by the counts,
// not through the gap.
func (l *Line) Next(after Ticket) (Ticket, bool) {
	n := after + 1
	if n == 0 {
		return 0, false
	}
	if c := int(n >> lineChunkBits); c < len(l.chunks) && l.chunks[c].words != nil {
		if w := l.chunks[c].words[n>>6%lineChunkWords] >> (n & 63); w != 0 {
			return n + Ticket(bits.TrailingZeros64(w)), true
		}
	}
	return l.Select(l.Rank(n))
}

// Add makes n a member and says whether it was not one before. Adding beyond the last member is the fast case; adding
// in the middle (a held ticket released, domain.md rule 10) costs as much as a removal. Ticket 0, the bypass pass, has
// no place in line: adding it does nothing.
func (l *Line) Add(n Ticket) bool {
	if n == 0 {
		return false
	}
	block := uint32(n) >> lineBlockBits
	if block >= l.top {
		l.extend(block)
	}
	chunk := &l.chunks[n>>lineChunkBits]
	if chunk.words == nil {
		*chunk = newLineChunk()
	}
	word, bit := &chunk.words[n>>6%lineChunkWords], uint64(1)<<(n&63)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	l.count++
	if block+1 < l.top {
		l.shift(block, 1)
	}
	return true
}

// Remove takes n out and says whether it was a member.
func (l *Line) Remove(n Ticket) bool {
	if !l.Has(n) {
		return false
	}
	c := int(n >> lineChunkBits)
	l.chunks[c].words[n>>6%lineChunkWords] &^= 1 << (n & 63)
	l.count--
	l.shift(uint32(n)>>lineBlockBits, ^uint32(0))
	l.release(c)
	return true
}

// RemoveRange takes out every member n with from <= n <= to and returns how many there were. A range costs far less
// than its members one by one: the counts behind it are lowered once.
func (l *Line) RemoveRange(from, to Ticket) int {
	if l.top == 0 || from > to {
		return 0
	}
	firstBlock, lastBlock := uint32(from)>>lineBlockBits, min(uint32(to)>>lineBlockBits, l.top-1)
	if firstBlock > lastBlock {
		return 0
	}
	removed := uint32(0)
	for c := int(from >> lineChunkBits); c < len(l.chunks); c++ {
		l.starts[c] -= removed
		chunk := &l.chunks[c]
		base := uint32(c) * lineChunkBlocks
		if base > lastBlock || chunk.words == nil {
			continue
		}
		gone := uint32(0)
		for block := max(firstBlock, base); block < min(base+lineChunkBlocks, l.top); block++ {
			chunk.before[block-base] -= uint16(gone)
			if block <= lastBlock {
				gone += chunk.clear(block, from, to)
			}
		}
		removed += gone
	}
	l.count -= removed
	for c := int(firstBlock / lineChunkBlocks); c <= int(lastBlock/lineChunkBlocks); c++ {
		l.release(c)
	}
	return int(removed)
}

// clear takes the members of one block that lie in from..to out of the words, not out of the counts.
func (c *lineChunk) clear(block uint32, from, to Ticket) (gone uint32) {
	for w := block * lineBlockWords; w < (block+1)*lineBlockWords; w++ {
		low, high := Ticket(w)<<6, Ticket(w)<<6|63
		if high < from || low > to {
			continue
		}
		mask := ^uint64(0)
		if from > low {
			mask &= ^uint64(0) << (from - low)
		}
		if to < high {
			mask &= ^uint64(0) >> (high - to)
		}
		word := &c.words[w%lineChunkWords]
		gone += uint32(bits.OnesCount64(*word & mask))
		*word &^= mask
	}
	return gone
}

// Clear takes everybody out and frees the memory.
func (l *Line) Clear() { *l = Line{} }

// Clone is a Line with the same members that shares nothing with l.
func (l *Line) Clone() Line {
	twin := Line{
		chunks: make([]lineChunk, len(l.chunks)),
		starts: append([]uint32(nil), l.starts...),
		count:  l.count,
		top:    l.top,
	}
	for c, chunk := range l.chunks {
		if chunk.words != nil {
			words, before := *chunk.words, *chunk.before
			twin.chunks[c] = lineChunk{words: &words, before: &before}
		}
	}
	return twin
}

// Equal says whether both lines have the same members.
func (l *Line) Equal(other *Line) bool {
	if l.count != other.count {
		return false
	}
	for p := range max(l.Pages(), other.Pages()) {
		a, b := l.Words(p), other.Words(p)
		for i := range LinePageWords {
			if wordAt(a, i) != wordAt(b, i) {
				return false
			}
		}
	}
	return true
}

// wordAt reads a page that may be absent.
func wordAt(page []uint64, i int) uint64 {
	if page == nil {
		return 0
	}
	return page[i]
}

// Pages is the number of pages from ticket 0 to the end of the bitmap: no member lies in page Pages() or beyond.
func (l *Line) Pages() int {
	return (int(l.top) + 1<<(linePageBits-lineBlockBits) - 1) >> (linePageBits - lineBlockBits)
}

// Words is the bitmap of one page: ticket n is bit n%64 of word n%4096/64 of page n/4096. It is nil where nobody waits,
// or LinePageWords long. It is the line's own memory: read it, do not keep it, do not write to it.
func (l *Line) Words(page int) []uint64 {
	const perChunk = 1 << (lineChunkBits - linePageBits)
	if page < 0 || page/perChunk >= len(l.chunks) || l.chunks[page/perChunk].words == nil {
		return nil
	}
	first := page % perChunk * LinePageWords
	return l.chunks[page/perChunk].words[first : first+LinePageWords : first+LinePageWords]
}

// extend starts to keep counts up to and with the given block, which is not below top.
func (l *Line) extend(block uint32) {
	if last := len(l.chunks) - 1; last >= 0 {
		if chunk := &l.chunks[last]; chunk.words != nil {
			held := uint16(l.count - l.starts[last])
			end := min(block+1, uint32(last+1)*lineChunkBlocks)
			for b := l.top; b < end; b++ {
				chunk.before[b%lineChunkBlocks] = held
			}
			if held == 0 && block >= uint32(last+1)*lineChunkBlocks {
				*chunk = lineChunk{}
			}
		}
	}
	for len(l.chunks) <= int(block/lineChunkBlocks) {
		l.chunks = append(l.chunks, lineChunk{})
		l.starts = append(l.starts, l.count)
	}
	l.top = block + 1
}

// shift adds delta to every count behind the given block.
func (l *Line) shift(block uint32, delta uint32) {
	c := int(block / lineChunkBlocks)
	end := min(lineChunkBlocks, l.top-uint32(c)*lineChunkBlocks)
	before := l.chunks[c].before[block%lineChunkBlocks+1 : end]
	for i := range before {
		before[i] += uint16(delta)
	}
	starts := l.starts[c+1:]
	for i := range starts {
		starts[i] += delta
	}
}

// release frees a chunk in which nobody waits. The last chunk stays, for the next to join: otherwise a room that is
// mostly empty would allocate with every visitor.
func (l *Line) release(c int) {
	if c+1 < len(l.chunks) && l.starts[c] == l.starts[c+1] {
		l.chunks[c] = lineChunk{}
	}
}

func newLineChunk() lineChunk {
	return lineChunk{words: new([lineChunkWords]uint64), before: new([lineChunkBlocks]uint16)}
}

// AppendBinary appends the snapshot form of the line to b. Lines with the same members have the same form:
//
//	uvarint members, uvarint pages, then for each page that is not empty, in order:
//	uvarint pages skipped since the one before, 64 words of 8 bytes, little-endian
func (l *Line) AppendBinary(b []byte) []byte {
	filled := 0
	for p := range l.Pages() {
		if lineAnyBit(l.Words(p)) {
			filled++
		}
	}
	b = binary.AppendUvarint(b, uint64(l.count))
	b = binary.AppendUvarint(b, uint64(filled))
	next := 0
	for p := range l.Pages() {
		words := l.Words(p)
		if !lineAnyBit(words) {
			continue
		}
		b = binary.AppendUvarint(b, uint64(p-next))
		for _, w := range words {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
		next = p + 1
	}
	return b
}

func lineAnyBit(words []uint64) bool {
	any := uint64(0)
	for _, w := range words {
		any |= w
	}
	return any != 0
}

var errLineShort = errors.New("line: snapshot ends early")

// DecodeLine reads what [Line.AppendBinary] wrote and returns what follows it in b. Damaged input is refused with an
// error; whatever it claims, memory stays within a small multiple of len(b) plus 3 MiB.
func DecodeLine(b []byte) (Line, []byte, error) {
	members, b, ok := snapshotUvarint(b)
	if !ok {
		return Line{}, nil, errLineShort
	}
	pages, b, ok := snapshotUvarint(b)
	if !ok {
		return Line{}, nil, errLineShort
	}
	var l Line
	next := uint64(0)
	for ; pages > 0; pages-- {
		var skipped uint64
		if skipped, b, ok = snapshotUvarint(b); !ok || len(b) < LinePageWords*8 {
			return Line{}, nil, errLineShort
		}
		if skipped > lineMaxPage || next+skipped > lineMaxPage {
			return Line{}, nil, fmt.Errorf("line: snapshot skips %d pages after page %d, beyond the last ticket", skipped, next)
		}
		page := next + skipped
		if l.decodePage(uint32(page), b) == 0 {
			return Line{}, nil, fmt.Errorf("line: snapshot stores page %d, which is empty", page)
		}
		b = b[LinePageWords*8:]
		next = page + 1
	}
	if l.Has(0) {
		return Line{}, nil, errors.New("line: snapshot has ticket 0 in line")
	}
	if members != uint64(l.count) {
		return Line{}, nil, fmt.Errorf("line: snapshot claims %d members and has %d", members, l.count)
	}
	return l, b, nil
}

// decodePage adds a page beyond all others and returns how many members it has.
func (l *Line) decodePage(page uint32, b []byte) uint32 {
	had := l.count
	firstBlock := page << (linePageBits - lineBlockBits)
	for block := firstBlock; block < firstBlock+1<<(linePageBits-lineBlockBits); block++ {
		l.extend(block)
		chunk := &l.chunks[block/lineChunkBlocks]
		if chunk.words == nil {
			*chunk = newLineChunk()
		}
		first := block % lineChunkBlocks * lineBlockWords
		for w := first; w < first+lineBlockWords; w++ {
			chunk.words[w] = binary.LittleEndian.Uint64(b)
			l.count += uint32(bits.OnesCount64(chunk.words[w]))
			b = b[8:]
		}
	}
	return l.count - had
}

// snapshotUvarint cuts a uvarint off the front of b; false when there is none.
func snapshotUvarint(b []byte) (v uint64, rest []byte, ok bool) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, false
	}
	return v, b[n:], true
}
