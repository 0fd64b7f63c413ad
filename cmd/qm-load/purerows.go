package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"time"

	"qm/access/token"
	"qm/engine/room"
)

// These subjects need no server: they measure pure code beside pure code.

const benchSecret = "qm-load-measures-with-a-secret-of-its-own"

// measureTokens compares the verification of a visitor's token with a pooled HMAC-SHA256 of the same bytes.
func measureTokens(_ context.Context, b *bench) ([]figure, error) {
	const calls = 20_000
	type state struct {
		mac  hash.Hash
		text [token.MaxLen]byte
		sum  [sha256.Size]byte
	}
	pool := sync.Pool{New: func() any { return &state{mac: hmac.New(sha256.New, []byte(benchSecret))} }}
	now := time.Now()
	var figures []figure
	for _, v2 := range []bool{false, true} {
		keys, err := token.New(benchSecret, "", token.Options{SignV2: v2})
		if err != nil {
			return nil, err
		}
		text := keys.SignVisitor(token.Visitor{Room: "spring-drop", Ticket: 123_456, Generation: 1, IssuedAt: now.UnixMilli()})
		signed := text[:strings.LastIndexByte(text, '.')]
		base := func() (float64, error) {
			start := time.Now()
			for range calls {
				s := pool.Get().(*state)
				n := copy(s.text[:], signed)
				s.mac.Reset()
				s.mac.Write(s.text[:n])
				s.mac.Sum(s.sum[:0])
				pool.Put(s)
			}
			return float64(time.Since(start).Nanoseconds()) / calls, nil
		}
		verify := func() (float64, error) {
			start := time.Now()
			for range calls {
				if _, err := keys.VerifyVisitor(text, "spring-drop", now); err != nil {
					return 0, err
				}
			}
			return float64(time.Since(start).Nanoseconds()) / calls, nil
		}
		p, err := pair(4*b.rounds, base, verify)
		if err != nil {
			return nil, err
		}
		allocations := allocationsOf(func() { _, err = verify() }) / calls
		if err != nil {
			return nil, err
		}
		form := "legacy form"
		if v2 {
			form = "v2 form"
		}
		if allocations < 0.001 { // what the runtime itself allocated meanwhile
			allocations = 0
		}
		figures = append(figures,
			atMost("token verification, "+form+": allocations", 0, allocations, ""),
			atMost("token verification, "+form+": time in pooled HMAC-SHA256s of the same bytes", 2.2, p.ratio, "%.0f ns, the HMAC %.0f ns", p.candidate, p.base))
	}
	return figures, nil
}

// allocationsOf counts what f allocates, and whatever else the process does meanwhile: the least of five runs.
func allocationsOf(f func()) float64 {
	least := ^uint64(0)
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		least = min(least, after.Mallocs-before.Mallocs)
	}
	return float64(least)
}

// measureRank reads exact positions in a line of a million of whom a quarter has gone.
func measureRank(_ context.Context, b *bench) ([]figure, error) {
	const tickets = 1_000_000
	rnd := rand.New(rand.NewPCG(1, 2))
	var line room.Line
	for n := room.Ticket(1); n <= tickets*4/3; n++ {
		line.Add(n)
	}
	for line.Len() > tickets {
		line.Remove(room.Ticket(1 + rnd.IntN(tickets*4/3)))
	}
	probes := make([]room.Ticket, 1<<16)
	for i := range probes {
		probes[i], _ = line.Select(rnd.IntN(line.Len()))
	}
	var times []float64
	sum := 0
	for range 5 * b.rounds {
		start := time.Now()
		for _, n := range probes {
			sum += line.Rank(n)
		}
		times = append(times, float64(time.Since(start).Nanoseconds())/float64(len(probes)))
	}
	runtime.KeepAlive(sum)
	return []figure{atMost("exact position, 1,000,000 waiting and a quarter gone, ns", 20, median(times), "")}, nil
}

// measureLineMemory weighs the order alone.
func measureLineMemory(context.Context, *bench) ([]figure, error) {
	const tickets = 1_000_000
	var line room.Line
	before := liveHeap()
	for n := room.Ticket(1); n <= tickets; n++ {
		line.Add(n)
	}
	bytes := float64(liveHeap()-before) / tickets
	runtime.KeepAlive(&line)
	return []figure{atMost("memory a waiting ticket, the order alone, bytes", 0.2, bytes, "")}, nil
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// measureDraw compares a draw with one plain shuffle of as many, and looks where those with many entries land.
func measureDraw(_ context.Context, b *bench) ([]figure, error) {
	const entries, identities, many, each = 1_000_000, 300_000, 10_000, 16
	rnd := rand.New(rand.NewPCG(7, 8))
	names := make([]room.Identity, identities)
	for i := range names {
		names[i] = room.Identity(rnd.Uint64() | 1)
	}
	// The first many identities have each entries; the others share the rest, at least one each.
	ids := make([]room.Identity, 0, entries)
	for i := range many * each {
		ids = append(ids, names[i%many])
	}
	ids = append(ids, names[many:]...)
	for len(ids) < entries {
		ids = append(ids, names[many+rnd.IntN(identities-many)])
	}
	rnd.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	plain := make([]uint32, entries)
	for i := range plain {
		plain[i] = uint32(i)
	}
	seed := sha256.Sum256([]byte("qm-load draw"))
	var order []uint32
	p, err := pair(b.rounds+4, func() (float64, error) {
		start := time.Now()
		rand.New(rand.NewChaCha8(seed)).Shuffle(entries, func(i, j int) { plain[i], plain[j] = plain[j], plain[i] })
		return time.Since(start).Seconds() * 1000, nil
	}, func() (float64, error) {
		start := time.Now()
		order = room.DrawOrder(seed, ids)
		return time.Since(start).Seconds() * 1000, nil
	})
	if err != nil {
		return nil, err
	}
	has := make(map[room.Identity]bool, many)
	for _, name := range names[:many] {
		has[name] = true
	}
	sum := 0.0
	for place, entry := range order {
		if id := ids[entry]; has[id] {
			sum += float64(place) / identities
			delete(has, id)
		}
	}
	mean := sum / many
	fair := figure{What: "draw: mean first place of an identity with 16 entries", Bound: "0.50 ± 0.02", Measured: mean,
		Met: mean >= 0.48 && mean <= 0.52, Detail: "of 10,000 such identities, in rounds of all identities"}
	return []figure{
		atMost("draw of 1,000,000 entries over 300,000 identities, in plain ChaCha8 shuffles of 1,000,000", 8, p.ratio, "%.0f ms, the shuffle %.0f ms", p.candidate, p.base),
		fair,
	}, nil
}
