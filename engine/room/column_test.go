package room

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestColumnAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c column[int64]
		m := map[uint32]int64{}
		index := rapid.OneOf(rapid.Uint32Range(0, 300), rapid.Uint32Range(0, 5*columnPageValues))
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				i, v := index.Draw(t, "i"), rapid.Int64().Draw(t, "v")
				c.set(i, v)
				m[i] = v
			},
			"ptr": func(t *rapid.T) {
				i := index.Draw(t, "i")
				*c.ptr(i)++
				m[i]++
			},
			"drop": func(t *rapid.T) {
				page := rapid.IntRange(-1, 6).Draw(t, "page")
				c.drop(page)
				for i := range m {
					if int(i/columnPageValues) == page {
						delete(m, i)
					}
				}
			},
			"clone": func(t *rapid.T) {
				twin := c.clone()
				i := index.Draw(t, "i")
				*c.ptr(i)++
				if twin.at(i) != m[i] {
					t.Fatalf("a clone shares memory")
				}
				c = twin
			},
			"snapshot": func(t *rapid.T) {
				b := appendIntegers(nil, &c)
				back, rest, err := decodeIntegers[int64](append(b, 7))
				if err != nil || len(rest) != 1 {
					t.Fatalf("decode: %d left, %v", len(rest), err)
				}
				if again := appendIntegers(nil, &back); !bytes.Equal(again, b) {
					t.Fatalf("the same values have two forms")
				}
				c = back
			},
			"": func(t *rapid.T) {
				for i, v := range m {
					if c.at(i) != v {
						t.Fatalf("at(%d) = %d, want %d", i, c.at(i), v)
					}
				}
				if i := index.Draw(t, "probe"); c.at(i) != m[i] || c.at(i+1<<20) != 0 {
					t.Fatalf("at(%d) = %d, want %d", i, c.at(i), m[i])
				}
			},
		})
	})
}

// TestColumnWidths stores the extremes of every width and of digests.
func TestColumnWidths(t *testing.T) {
	checkIntegers[int8](t, -128, 127)
	checkIntegers[uint8](t, 255)
	checkIntegers[int16](t, -32768, 32767)
	checkIntegers[uint16](t, 65535)
	checkIntegers[int32](t, -1<<31, 1<<31-1)
	checkIntegers[Ticket](t, 1, 1<<32-1)
	checkIntegers[int64](t, -1<<63, 1<<63-1)
	checkIntegers[Identity](t, 1, 1<<64-1)

	var c column[Holder]
	c.set(9, Holder{1, 15: 2})
	c.set(9000, Holder{15: 3})
	b := appendDigests(nil, &c)
	back, rest, err := decodeDigests[Holder](b)
	if err != nil || len(rest) != 0 || back.at(9) != c.at(9) || back.at(9000) != c.at(9000) || back.at(10) != (Holder{}) {
		t.Errorf("digests: %v, %d left", err, len(rest))
	}
}

func checkIntegers[T integer](t *testing.T, values ...T) {
	t.Helper()
	var c column[T]
	for i, v := range values {
		c.set(uint32(i*5000+3), v)
	}
	b := appendIntegers(nil, &c)
	back, rest, err := decodeIntegers[T](b)
	if err != nil || len(rest) != 0 {
		t.Fatalf("%T: %v, %d left", values[0], err, len(rest))
	}
	for i, v := range values {
		if got := back.at(uint32(i*5000 + 3)); got != v {
			t.Errorf("%T: %v came back as %v", v, v, got)
		}
	}
}

// TestColumnMemory: zeros cost nothing, a small room little, and a dropped page is freed.
func TestColumnMemory(t *testing.T) {
	var c column[int64]
	c.set(1<<31, 0)
	if len(c.pages) != 0 {
		t.Error("a zero allocated")
	}
	c.set(3, 1)
	if len(c.pages[0]) != columnFirstSize {
		t.Errorf("a small room's page holds %d", len(c.pages[0]))
	}
	c.set(5000, 1)
	c.drop(1)
	if c.pages[1] != nil || c.at(5000) != 0 {
		t.Error("a dropped page is still there")
	}
}

func TestDecodeColumnRefusesDamage(t *testing.T) {
	var c column[uint16]
	c.set(3, 7)
	c.set(5000, 8)
	good := appendIntegers(nil, &c)
	for cut := range good {
		if _, _, err := decodeIntegers[uint16](good[:cut]); err == nil {
			t.Fatalf("cut at %d was accepted", cut)
		}
	}
	for name, b := range map[string][]byte{
		"no values":        {1, 0, 0},
		"too many values":  slices.Concat([]byte{1, 0}, binary.AppendUvarint(nil, 4097), make([]byte, 9000)),
		"ends in a zero":   {1, 0, 2, 1, 0, 0, 0},
		"page beyond last": slices.Concat([]byte{1}, binary.AppendUvarint(nil, columnMaxPage+1), []byte{1, 1, 1}),
		"pages overflow":   slices.Concat([]byte{2, 3, 1, 1, 1}, binary.AppendUvarint(nil, 1<<64-2), []byte{1, 1, 1}),
		"many pages":       slices.Concat(binary.AppendUvarint(nil, 1<<62), []byte{0, 1, 1, 1}),
	} {
		if _, _, err := decodeIntegers[uint16](b); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func FuzzDecodeColumn(f *testing.F) {
	var c column[int64]
	c.set(3, -7)
	c.set(9000, 8)
	f.Add(appendIntegers(nil, &c))
	var d column[Holder]
	d.set(2, Holder{1})
	f.Add(appendDigests(nil, &d))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, _, err := decodeIntegers[int64](b); err == nil {
			if back, _, err := decodeIntegers[int64](appendIntegers(nil, &c)); err != nil || len(back.pages) != len(c.pages) {
				t.Fatalf("integers accepted but not stable: %v", err)
			}
		}
		if c, _, err := decodeDigests[Holder](b); err == nil {
			if back, _, err := decodeDigests[Holder](appendDigests(nil, &c)); err != nil || len(back.pages) != len(c.pages) {
				t.Fatalf("digests accepted but not stable: %v", err)
			}
		}
	})
}

func BenchmarkColumnSnapshot(b *testing.B) {
	var c column[int64]
	for i := range uint32(1_000_000) {
		c.set(i, int64(i)+1)
	}
	var buf []byte
	for b.Loop() {
		buf = appendIntegers(buf[:0], &c)
		back, _, err := decodeIntegers[int64](buf)
		if err != nil {
			b.Fatal(err)
		}
		runtime.KeepAlive(back)
	}
	b.SetBytes(8_000_000)
}
