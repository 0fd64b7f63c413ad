package token

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"slices"
	"sync"
	"testing"
	"time"
)

func benchTokens(b *testing.B) (k *Keyring, tokens map[string]string) {
	v := Visitor{Room: "spring-drop", Ticket: 123456, Generation: 1, IssuedAt: testNow}
	k = keyring(b, Options{})
	return k, map[string]string{"legacy": k.SignVisitor(v), "v2": keyring(b, Options{SignV2: true}).SignVisitor(v)}
}

func BenchmarkVerifyVisitor(b *testing.B) {
	k, tokens := benchTokens(b)
	now := time.UnixMilli(testNow)
	for _, form := range []string{"legacy", "v2"} {
		b.Run(form, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := k.VerifyVisitor(tokens[form], "spring-drop", now); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSignVisitor(b *testing.B) {
	k, _ := benchTokens(b)
	v := Visitor{Room: "spring-drop", Ticket: 123456, Generation: 1, IssuedAt: testNow}
	dst := make([]byte, 0, MaxLen)
	b.ReportAllocs()
	for b.Loop() {
		dst = k.AppendVisitor(dst[:0], v)
	}
}

// BenchmarkVerifyRatio is the figure of the performance table: verification
// against a pooled HMAC-SHA256 of the same bytes, in alternating slices (base,
// candidate, base), the median of them all.
func BenchmarkVerifyRatio(b *testing.B) {
	k, tokens := benchTokens(b)
	now := time.UnixMilli(testNow)
	const calls = 2000
	type state struct {
		hash hash.Hash
		text [MaxLen]byte
		sum  [sha256.Size]byte
	}
	pool := sync.Pool{New: func() any { return &state{hash: hmac.New(sha256.New, []byte(testSecret))} }}
	for _, form := range []string{"legacy", "v2"} {
		token := tokens[form]
		base := func() time.Duration {
			start := time.Now()
			for range calls {
				s := pool.Get().(*state)
				n := copy(s.text[:], token[:len(token)-macChars-1])
				s.hash.Reset()
				s.hash.Write(s.text[:n])
				s.hash.Sum(s.sum[:0])
				pool.Put(s)
			}
			return time.Since(start)
		}
		candidate := func() time.Duration {
			start := time.Now()
			for range calls {
				if _, err := k.VerifyVisitor(token, "spring-drop", now); err != nil {
					b.Fatal(err)
				}
			}
			return time.Since(start)
		}
		b.Run(form, func(b *testing.B) {
			var ratios []float64
			for b.Loop() {
				before, own, after := base(), candidate(), base()
				ratios = append(ratios, 2*float64(own)/float64(before+after))
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}
