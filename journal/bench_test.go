package journal

import (
	"bytes"
	"fmt"
	"testing"
)

// surge returns n records like those of a surge.
func surge(n int) []Record {
	batch := make([]Record, n)
	for i := range batch {
		batch[i] = pair()[1]
		batch[i].Kind = "join"
		batch[i].Body = fmt.Appendf(nil, `{"g":1,"n":%d,"h":"%032x","i":"%016x","score":%d}`, i, i*0x9e3779b97f4a7c, i*0x7f4a7c15, i%100)
	}
	return batch
}

func perRecord(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/record")
}

func BenchmarkSeal(b *testing.B) {
	batch := surge(1000)
	b.ReportAllocs()
	for b.Loop() {
		Seal(Head{}, batch)
	}
	perRecord(b, len(batch))
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			m := NewMemory()
			batch := surge(size)
			head := Head{Stream: batch[0].Stream}
			b.ReportAllocs()
			for b.Loop() {
				if head.Seq >= 1_000_000 {
					m, head = NewMemory(), Head{Stream: batch[0].Stream}
				}
				head = Seal(head, batch)
				if err := m.Append(b.Context(), 0, batch); err != nil {
					b.Fatal(err)
				}
			}
			perRecord(b, size)
		})
	}
}

func BenchmarkRead(b *testing.B) {
	m := NewMemory()
	batch := surge(10_000)
	Seal(Head{Stream: batch[0].Stream}, batch)
	if err := m.Append(b.Context(), 0, batch); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		chain := NewChain(Head{Stream: batch[0].Stream})
		if err := m.Read(b.Context(), batch[0].Stream, 0, chain.Check); err != nil {
			b.Fatal(err)
		}
	}
	perRecord(b, len(batch))
}

func BenchmarkReadLines(b *testing.B) {
	batch := surge(10_000)
	Seal(Head{Stream: batch[0].Stream}, batch)
	file := lines(batch)
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		chain := NewChain(Head{Stream: batch[0].Stream})
		if err := ReadLines(bytes.NewReader(file), chain.Check); err != nil {
			b.Fatal(err)
		}
	}
	perRecord(b, len(batch))
}
