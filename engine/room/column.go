package room

import (
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	columnPageBits   = 12
	columnPageValues = 1 << columnPageBits
	columnMaxPage    = 1<<(32-columnPageBits) - 1
	columnFirstSize  = 64
)

// column keeps one value for each ticket or handle, in pages of 4,096 (architecture.md, "Line"). A value that was never
// set is zero and costs nothing while no other in its page was set. Page 0 starts small and grows, so that a room with
// a few visitors costs little; every other page is allocated whole. The zero column is empty and ready.
//
// A column must not be copied by assignment and then changed; use clone.
type column[T comparable] struct {
	pages [][]T // nil, or columnPageValues long; page 0 may be shorter
}

// at is the value at i, zero when none was set.
func (c *column[T]) at(i uint32) (v T) {
	if p := int(i >> columnPageBits); p < len(c.pages) {
		if page, j := c.pages[p], int(i%columnPageValues); j < len(page) {
			return page[j]
		}
	}
	return v
}

// set writes the value at i. A zero where nothing is stored allocates nothing.
func (c *column[T]) set(i uint32, v T) {
	var zero T
	if p, j := int(i>>columnPageBits), int(i%columnPageValues); p < len(c.pages) && j < len(c.pages[p]) {
		c.pages[p][j] = v
	} else if v != zero {
		*c.ptr(i) = v
	}
}

// ptr is where the value at i lies; the page is allocated when it is absent. The pointer holds until the next ptr, set
// or drop of this column.
func (c *column[T]) ptr(i uint32) *T {
	p, j := int(i>>columnPageBits), int(i%columnPageValues)
	for len(c.pages) <= p {
		c.pages = append(c.pages, nil)
	}
	if j >= len(c.pages[p]) {
		size := columnPageValues
		if p == 0 {
			for size = max(columnFirstSize, 2*len(c.pages[0])); size <= j; size *= 2 {
			}
		}
		page := make([]T, size)
		copy(page, c.pages[p])
		c.pages[p] = page
	}
	return &c.pages[p][j]
}

// drop forgets every value of a page: of i with i/4096 == page.
func (c *column[T]) drop(page int) {
	if page >= 0 && page < len(c.pages) {
		c.pages[page] = nil
	}
}

// clear forgets every value.
func (c *column[T]) clear() { c.pages = nil }

// clone is a column with the same values that shares nothing with c.
func (c *column[T]) clone() column[T] {
	twin := column[T]{pages: make([][]T, len(c.pages))}
	for p, page := range c.pages {
		twin.pages[p] = append([]T(nil), page...)
	}
	return twin
}

// stored is how many values there is memory for.
func (c *column[T]) stored() (n int) {
	for _, page := range c.pages {
		n += len(page)
	}
	return n
}

// filled is how many values of a page a snapshot stores: all up to the last that is not zero.
func (c *column[T]) filled(page int) int {
	var zero T
	n := len(c.pages[page])
	for n > 0 && c.pages[page][n-1] == zero {
		n--
	}
	return n
}

// integer is what a column of numbers may hold. Signed values are stored in two's complement.
type integer interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// appendIntegers appends the snapshot form of a column of numbers to b. Columns with the same values have the same form:
//
//	uvarint pages that hold a value other than zero, then for each of them, in order:
//	uvarint pages skipped since the one before, uvarint values, the values in their own width, little-endian
func appendIntegers[T integer](b []byte, c *column[T]) []byte {
	width := integerWidth[T]()
	return appendColumn(b, c, width, func(b []byte, values []T) {
		switch width {
		case 1:
			for i, v := range values {
				b[i] = byte(v)
			}
		case 2:
			for i, v := range values {
				binary.LittleEndian.PutUint16(b[2*i:], uint16(v))
			}
		case 4:
			for i, v := range values {
				binary.LittleEndian.PutUint32(b[4*i:], uint32(v))
			}
		default:
			for i, v := range values {
				binary.LittleEndian.PutUint64(b[8*i:], uint64(v))
			}
		}
	})
}

// decodeIntegers reads what appendIntegers wrote and returns what follows it in b. Damaged input is refused with an
// error; whatever it claims, memory stays within a small multiple of 4,096 values for each page that b really holds,
// plus 24 MiB.
func decodeIntegers[T integer](b []byte) (column[T], []byte, error) {
	width := integerWidth[T]()
	return decodeColumn(b, width, func(values []T, b []byte) {
		switch width {
		case 1:
			for i := range values {
				values[i] = T(b[i])
			}
		case 2:
			for i := range values {
				values[i] = T(binary.LittleEndian.Uint16(b[2*i:]))
			}
		case 4:
			for i := range values {
				values[i] = T(binary.LittleEndian.Uint32(b[4*i:]))
			}
		default:
			for i := range values {
				values[i] = T(binary.LittleEndian.Uint64(b[8*i:]))
			}
		}
	})
}

// integerWidth is the size of a T in bytes.
func integerWidth[T integer]() int {
	var v T
	return binary.Size(v)
}

// appendDigests and decodeDigests do the same for columns of holders: 16 bytes a value, as they are.
func appendDigests[T ~[16]byte](b []byte, c *column[T]) []byte {
	return appendColumn(b, c, 16, func(b []byte, values []T) {
		for i := range values {
			digest := [16]byte(values[i])
			copy(b[16*i:], digest[:])
		}
	})
}

func decodeDigests[T ~[16]byte](b []byte) (column[T], []byte, error) {
	return decodeColumn(b, 16, func(values []T, b []byte) {
		for i := range values {
			values[i] = T(b[16*i : 16*i+16])
		}
	})
}

func appendColumn[T comparable](b []byte, c *column[T], width int, put func(b []byte, values []T)) []byte {
	pages := 0
	for p := range c.pages {
		if c.filled(p) > 0 {
			pages++
		}
	}
	b = binary.AppendUvarint(b, uint64(pages))
	next := 0
	for p := range c.pages {
		n := c.filled(p)
		if n == 0 {
			continue
		}
		b = binary.AppendUvarint(b, uint64(p-next))
		b = binary.AppendUvarint(b, uint64(n))
		start := len(b)
		b = append(b, make([]byte, n*width)...)
		put(b[start:], c.pages[p][:n])
		next = p + 1
	}
	return b
}

var errColumnShort = errors.New("column: snapshot ends early")

func decodeColumn[T comparable](b []byte, width int, take func(values []T, b []byte)) (column[T], []byte, error) {
	var c, none column[T]
	var zero T
	pages, b, ok := snapshotUvarint(b)
	if !ok {
		return none, nil, errColumnShort
	}
	next := uint64(0)
	for ; pages > 0; pages-- {
		var skipped, n uint64
		if skipped, b, ok = snapshotUvarint(b); !ok {
			return none, nil, errColumnShort
		}
		if n, b, ok = snapshotUvarint(b); !ok {
			return none, nil, errColumnShort
		}
		if skipped > columnMaxPage || next+skipped > columnMaxPage {
			return none, nil, fmt.Errorf("column: snapshot skips %d pages after page %d, beyond the last", skipped, next)
		}
		page := next + skipped
		if n == 0 || n > columnPageValues {
			return none, nil, fmt.Errorf("column: snapshot stores %d values in page %d, not 1 to %d", n, page, columnPageValues)
		}
		size := int(n) * width
		if len(b) < size {
			return none, nil, errColumnShort
		}
		last := uint32(page<<columnPageBits + n - 1)
		c.ptr(last)
		take(c.pages[page][:n], b[:size])
		if c.at(last) == zero {
			return none, nil, fmt.Errorf("column: snapshot of page %d ends in a zero", page)
		}
		b = b[size:]
		next = page + 1
	}
	return c, b, nil
}
