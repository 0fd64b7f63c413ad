package room

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
)

// DrawVersion names the algorithm of [DrawOrder]. It is recorded in the draw event; a changed algorithm is a new version
// next to the old one, never an edit, or recorded draws could no longer be checked.
const DrawVersion = 1

// Commitment is what is published about a draw's secret before anybody enters: its SHA-256 (domain.md rule 7).
func Commitment(secret [32]byte) [32]byte { return sha256.Sum256(secret[:]) }

// DrawSeed is HMAC-SHA256 with the secret as the key and, as the message, the hash of the last durable event before the
// draw. The secret was fixed before the entries were known and the head covers every entry, so neither whoever runs the
// room nor whoever enters it can aim at an order (domain.md rule 7, which also says who still could).
func DrawSeed(secret, head [32]byte) (seed [32]byte) {
	mac := hmac.New(sha256.New, secret[:])
	mac.Write(head[:])
	mac.Sum(seed[:0])
	return seed
}

// DrawOrder draws the entries of a pre-queue: the result names, for each drawn place from the first to the last, the
// index in ids of the entry that gets it. ids holds the identity of each entry in the order of their handles; 0 stands
// for none recorded, and each such entry counts as an identity of its own. Only who shares an identity matters, not the
// values, so a draw can be checked after the identities' key was erased. There may be at most 2^32-1 entries.
//
// Version 1, so that anybody can compute it again:
//
//   - Stream: ChaCha8 as math/rand/v2 and C2SP chacha8rand specify it, keyed by the 32 bytes of seed, read as a sequence
//     of 64-bit numbers. It is read once, from the beginning, by the steps below in their order.
//   - Number below n (1 <= n < 2^32): take the next x. Let p = x*n, 128 bits wide. While p mod 2^64 is less than
//     2^64 mod n, take the next x and compute p anew. The number is p div 2^64. It is unbiased.
//   - Shuffle a list of n: for i from n-1 down to 1, take a number j below i+1 and swap items i and j. A list of none
//     or one reads nothing from the stream.
//   - 1. Group the entries by identity: groups in the order of their first entries, entries within a group in order.
//   - 2. Shuffle each group, in the order of groups. This draws which of an identity's entries falls into which round.
//   - 3. Deal: round r (from 0) is the list of item r of every group that has more than r items, in the order of groups.
//   - 4. Shuffle each round, from round 0 on. The order is round 0, then round 1, and so on.
//
// So every identity has an equal chance of every place in the first round, however many entries it has; and no identity
// has a second place before each has its first.
func DrawOrder(seed [32]byte, ids []Identity) []uint32 {
	stream := rand.NewChaCha8(seed)
	order := make([]uint32, len(ids))
	entries, ends := groupEntries(ids, order)

	var rounds []uint32 // size of each round, then where the next item of it goes
	start := uint32(0)
	for _, end := range ends {
		shuffleEntries(stream, entries[start:end])
		for int(end-start) > len(rounds) {
			rounds = append(rounds, 0)
		}
		for r := range rounds[:end-start] {
			rounds[r]++
		}
		start = end
	}
	next := uint32(0)
	for r, size := range rounds {
		rounds[r] = next
		next += size
	}
	start = 0
	for _, end := range ends {
		for r, entry := range entries[start:end] {
			order[rounds[r]] = entry
			rounds[r]++
		}
		start = end
	}
	start = 0
	for _, end := range rounds {
		shuffleEntries(stream, order[start:end])
		start = end
	}
	return order
}

// groupEntries lists the indexes of ids group by group, and where each group ends. It scribbles on groupOf, which is as
// long as ids: in a large draw fresh memory costs as much as the work.
func groupEntries(ids []Identity, groupOf []uint32) (entries, ends []uint32) {
	type slot struct {
		id    Identity
		group uint32
	}
	// The length of the table is a power of two, and id 0 is an empty slot. It starts with room for an identity in every
	// third entry or so, because growing a large table costs more than all the rest of the draw.
	shift := uint(64 - bits.Len(uint(len(ids)/2|15)))
	table := make([]slot, 1<<(64-shift))
	used := 0
	ends = make([]uint32, 0, len(ids)/2+1)
	for i, id := range ids {
		if id == 0 {
			groupOf[i] = uint32(len(ends))
			ends = append(ends, 1)
			continue
		}
		at := uint64(id) * 0x9e3779b97f4a7c15 >> shift
		for table[at].id != id && table[at].id != 0 {
			at = (at + 1) & uint64(len(table)-1)
		}
		if table[at].id == id {
			groupOf[i] = table[at].group
			ends[table[at].group]++
			continue
		}
		table[at] = slot{id: id, group: uint32(len(ends))}
		groupOf[i] = uint32(len(ends))
		ends = append(ends, 1)
		if used++; used*4 > len(table)*3 {
			old := table
			table = make([]slot, 2*len(old))
			shift--
			for _, s := range old {
				if s.id == 0 {
					continue
				}
				at := uint64(s.id) * 0x9e3779b97f4a7c15 >> shift
				for table[at].id != 0 {
					at = (at + 1) & uint64(len(table)-1)
				}
				table[at] = s
			}
		}
	}
	// Sizes become starts, and starts become ends as the entries are filed.
	start := uint32(0)
	for g, size := range ends {
		ends[g] = start
		start += size
	}
	entries = make([]uint32, len(ids))
	for i, g := range groupOf {
		entries[ends[g]] = uint32(i)
		ends[g]++
	}
	return entries, ends
}

// shuffleEntries is the step "shuffle" of [DrawOrder]. It is ours because the outcome of rand.Shuffle is not promised to
// stay the same from one Go release to the next.
func shuffleEntries(stream *rand.ChaCha8, list []uint32) {
	for i := len(list) - 1; i > 0; i-- {
		j := drawBelow(stream, uint64(i)+1)
		list[i], list[j] = list[j], list[i]
	}
}

// drawBelow is the step "number below n" of [DrawOrder].
func drawBelow(stream *rand.ChaCha8, n uint64) uint64 {
	number, low := bits.Mul64(stream.Uint64(), n)
	if low < n { // 2^64 mod n is less than n, so the division is rarely needed
		return drawAgain(stream, n, number, low)
	}
	return number
}

func drawAgain(stream *rand.ChaCha8, n, number, low uint64) uint64 {
	for reject := -n % n; low < reject; {
		number, low = bits.Mul64(stream.Uint64(), n)
	}
	return number
}

// PackOrder is the byte form in which a draw event records an order, and over which [OrderDigest] goes: the number of
// entries n in 4 bytes, then each index in w bytes, all big-endian. w is the least number of bytes that holds n-1: 1 up
// to 256 entries, 2 up to 65,536, 3 up to 16,777,216, else 4. The order must be a permutation of 0..n-1, as DrawOrder
// returns it.
func PackOrder(order []uint32) []byte {
	w := orderWidth(len(order))
	packed := make([]byte, 0, 4+w*len(order))
	packed = binary.BigEndian.AppendUint32(packed, uint32(len(order)))
	for _, entry := range order {
		switch w {
		case 1:
			packed = append(packed, byte(entry))
		case 2:
			packed = append(packed, byte(entry>>8), byte(entry))
		case 3:
			packed = append(packed, byte(entry>>16), byte(entry>>8), byte(entry))
		default:
			packed = binary.BigEndian.AppendUint32(packed, entry)
		}
	}
	return packed
}

// UnpackOrder reads what [PackOrder] wrote. It is an error when packed is cut, has a tail, or is not a permutation: an
// order that gave an entry two places, or none.
func UnpackOrder(packed []byte) ([]uint32, error) {
	if len(packed) < 4 {
		return nil, errors.New("draw order: shorter than its count")
	}
	n := uint64(binary.BigEndian.Uint32(packed))
	packed = packed[4:]
	w := orderWidth(int(n))
	if uint64(len(packed)) != n*uint64(w) {
		return nil, fmt.Errorf("draw order: %d bytes for %d entries, not %d", len(packed), n, n*uint64(w))
	}
	order := make([]uint32, n)
	seen := make([]uint64, (n+63)/64)
	for place := range order {
		entry := uint32(0)
		for _, b := range packed[:w] {
			entry = entry<<8 | uint32(b)
		}
		packed = packed[w:]
		if uint64(entry) >= n {
			return nil, fmt.Errorf("draw order: place %d names entry %d of %d", place+1, entry, n)
		}
		if seen[entry/64]>>(entry%64)&1 != 0 {
			return nil, fmt.Errorf("draw order: place %d names entry %d a second time", place+1, entry)
		}
		seen[entry/64] |= 1 << (entry % 64)
		order[place] = entry
	}
	return order, nil
}

// OrderDigest is SHA-256 over the packed form of an order, see [PackOrder].
func OrderDigest(order []uint32) [32]byte { return sha256.Sum256(PackOrder(order)) }

// orderWidth is the least number of bytes that holds n-1.
func orderWidth(n int) int {
	switch {
	case n <= 1<<8:
		return 1
	case n <= 1<<16:
		return 2
	case n <= 1<<24:
		return 3
	default:
		return 4
	}
}
