package room

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"testing"

	"pgregory.net/rapid"
)

// holders is where a test keeps the digests behind its references, as the core keeps them in a column.
type holders struct{ column[Holder] }

func (s *holders) of(ref uint32) Holder { return s.at(ref) }

func TestHolderIndexAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x holderIndex
		var s holders
		m := map[Holder]uint32{}
		known := []Holder{{}}
		last := uint32(0)
		next := func() Holder {
			var h Holder
			binary.BigEndian.PutUint32(h[12:], uint32(len(known)))
			known = append(known, h)
			return h
		}
		some := func(t *rapid.T) Holder { return known[rapid.IntRange(0, len(known)-1).Draw(t, "holder")] }
		put := func(t *rapid.T, h Holder) {
			last++
			s.set(last, h)
			if got, want := x.Put(h, last, s.of), m[h]; got != want {
				t.Fatalf("Put replaced %d, want %d", got, want)
			}
			m[h] = last
		}
		t.Repeat(map[string]func(*rapid.T){
			"joins": func(t *rapid.T) {
				for range rapid.IntRange(1, 1500).Draw(t, "k") {
					put(t, next())
				}
			},
			"put": func(t *rapid.T) { put(t, some(t)) },
			"delete": func(t *rapid.T) {
				first := rapid.IntRange(0, len(known)-1).Draw(t, "first")
				for _, h := range known[first:min(len(known), first+rapid.IntRange(1, 1200).Draw(t, "k"))] {
					ref, ok := x.Delete(h, s.of)
					if want := m[h]; ref != want || ok != (want != 0) {
						t.Fatalf("Delete = %d, %v, want %d", ref, ok, want)
					}
					delete(m, h)
				}
			},
			"": func(t *rapid.T) {
				if x.Len() != len(m) {
					t.Fatalf("Len = %d, want %d", x.Len(), len(m))
				}
				h := some(t)
				if ref, ok := x.Get(h, s.of); ref != m[h] || ok != (m[h] != 0) {
					t.Fatalf("Get = %d, %v, want %d", ref, ok, m[h])
				}
				if rapid.IntRange(0, 9).Draw(t, "all") == 0 {
					for _, h := range known {
						if ref, _ := x.Get(h, s.of); ref != m[h] {
							t.Fatalf("Get = %d, want %d", ref, m[h])
						}
					}
				}
			},
		})
	})
}

// TestHolderIndexMemory: 7 to 10 bytes a holder at any size, also right after growing.
func TestHolderIndexMemory(t *testing.T) {
	const holderCount = 400_000
	s := randomHolders(holderCount)
	var x holderIndex
	most, least := 0.0, 100.0
	for ref := uint32(1); ref <= holderCount; ref++ {
		x.Put(s.at(ref), ref, s.of)
		if ref > 20_000 && ref%1000 == 0 {
			bytes := 8 * len(x.segments)
			var seen *indexSegment
			for _, seg := range x.segments {
				if seg != seen {
					bytes += 6*cap(seg.refs) + 64
				}
				seen = seg
			}
			most, least = max(most, float64(bytes)/float64(ref)), min(least, float64(bytes)/float64(ref))
		}
	}
	t.Logf("bytes a holder: %.2f to %.2f", least, most)
	if most > 11 {
		t.Errorf("%.2f bytes a holder, want at most 11", most)
	}
}

// TestHolderIndexAsksRarely: a stranger's look-up, one per join, hardly ever has to fetch a holder.
func TestHolderIndexAsksRarely(t *testing.T) {
	s := randomHolders(100_000)
	var x holderIndex
	for ref := uint32(1); ref <= 50_000; ref++ {
		x.Put(s.at(ref), ref, s.of)
	}
	asked := 0
	of := func(ref uint32) Holder { asked++; return s.at(ref) }
	for ref := uint32(50_001); ref <= 100_000; ref++ {
		if _, ok := x.Get(s.at(ref), of); ok {
			t.Fatal("found a stranger")
		}
	}
	if asked > 5_000 {
		t.Errorf("%d holders fetched for 50,000 strangers", asked)
	}
}

// TestHolderIndexSurvivesCollisions: digests whose hashes agree in every bit only cost time.
func TestHolderIndexSurvivesCollisions(t *testing.T) {
	var x holderIndex
	var s holders
	var h Holder
	binary.LittleEndian.PutUint64(h[:8], 0x9e3779b97f4a7c15) // multiplies to zero whatever the rest is
	for ref := uint32(1); ref <= 2000; ref++ {
		binary.LittleEndian.PutUint32(h[8:], ref)
		s.set(ref, h)
		x.Put(h, ref, s.of)
	}
	for ref := uint32(1); ref <= 2000; ref++ {
		if got, ok := x.Delete(s.at(ref), s.of); !ok || got != ref {
			t.Fatalf("Delete = %d, %v, want %d", got, ok, ref)
		}
	}
}

func TestIdentityCountsAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c identityCounts
		m := map[Identity]uint32{}
		ids := rapid.OneOf(
			rapid.Map(rapid.Uint64Range(0, 40), func(v uint64) Identity { return Identity(v) }),
			rapid.Map(rapid.Uint64(), func(v uint64) Identity { return Identity(v) }),
			rapid.Map(rapid.Uint64Range(0, 500), func(v uint64) Identity { return Identity(v << 40) }),
		)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				id, delta := ids.Draw(t, "id"), rapid.SampledFrom([]int{1, 1, 1, -1, -1, 0, 5, -5}).Draw(t, "delta")
				want := uint32(0)
				if id != 0 {
					want = uint32(max(int(m[id])+delta, 0))
				}
				if got := c.Add(id, delta); got != want {
					t.Fatalf("Add(%d, %d) = %d, want %d", id, delta, got, want)
				}
				if m[id] = want; want == 0 {
					delete(m, id)
				}
			},
			"": func(t *rapid.T) {
				if c.Len() != len(m) {
					t.Fatalf("Len = %d, want %d", c.Len(), len(m))
				}
				for id, want := range m {
					if got := c.Get(id); got != want {
						t.Fatalf("Get(%d) = %d, want %d", id, got, want)
					}
				}
				if id := ids.Draw(t, "probe"); c.Get(id) != m[id] {
					t.Fatalf("Get(%d) = %d, want %d", id, c.Get(id), m[id])
				}
			},
		})
	})
}

// TestIdentityCountsDrain: whoever is at zero leaves nothing behind, even after many came and went.
func TestIdentityCountsDrain(t *testing.T) {
	var c identityCounts
	for round := range 3 {
		for id := Identity(1); id <= 20_000; id++ {
			c.Add(id*7919, round+1)
		}
		for id := Identity(20_000); id >= 1; id-- {
			if got := c.Add(id*7919, -round-1); got != 0 {
				t.Fatalf("count of %d is %d", id, got)
			}
		}
		if c.Len() != 0 || c.ids != nil {
			t.Fatalf("%d identities left in %d slots", c.Len(), len(c.ids))
		}
	}
}

func randomHolders(n uint32) *holders {
	s := new(holders)
	rnd := rand.New(rand.NewPCG(5, 6))
	for ref := uint32(1); ref <= n; ref++ {
		h := s.ptr(ref)
		binary.LittleEndian.PutUint64(h[:8], rnd.Uint64())
		binary.LittleEndian.PutUint64(h[8:], rnd.Uint64())
	}
	return s
}

func BenchmarkHolderIndexPut(b *testing.B) {
	s := randomHolders(1_000_000)
	var x holderIndex
	ref := uint32(0)
	for b.Loop() {
		if ref == 1_000_000 {
			x, ref = holderIndex{}, 0
		}
		ref++
		x.Put(s.at(ref), ref, s.of)
	}
}

func BenchmarkHolderIndexGet(b *testing.B) {
	s := randomHolders(1_000_000)
	var x holderIndex
	for ref := uint32(1); ref <= 1_000_000; ref++ {
		x.Put(s.at(ref), ref, s.of)
	}
	ref, sum := uint32(0), uint32(0)
	for b.Loop() {
		ref = (ref + 7919) % 1_000_000
		got, _ := x.Get(s.at(ref+1), s.of)
		sum += got
	}
	runtime.KeepAlive(sum)
}

func BenchmarkHolderIndexDeletePut(b *testing.B) {
	s := randomHolders(1_000_000)
	var x holderIndex
	for ref := uint32(1); ref <= 1_000_000; ref++ {
		x.Put(s.at(ref), ref, s.of)
	}
	ref := uint32(0)
	for b.Loop() {
		ref = (ref + 7919) % 1_000_000
		x.Delete(s.at(ref+1), s.of)
		x.Put(s.at(ref+1), ref+1, s.of)
	}
}
