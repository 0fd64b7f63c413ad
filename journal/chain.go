package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
)

// The chain (domain.md rule 8; architecture.md, "The journal"). The hash of a record is SHA-256 over exactly these bytes:
//
//	prev                     32 bytes, the hash of the record before; all zero before seq 1
//	len(stream)  stream      UTF-8
//	8            seq         8 bytes, big-endian, two's complement
//	8            at          8 bytes, as seq: microseconds since 1970-01-01T00:00:00Z
//	len(kind)    kind        UTF-8
//	8            version     8 bytes, as seq
//	len(actor)   actor       UTF-8
//	len(cause)   cause       UTF-8
//	len(body)    body        the stored bytes of the JSON text, untouched
//
// where each length is 4 bytes, big-endian. prev alone has none: its length never varies. An auditor needs nothing but
// SHA-256. In Python, for a row of the table and the hash before it:
//
//	def field(b): return struct.pack(">I", len(b)) + b
//	def num(n):   return field(struct.pack(">q", n))
//	hashlib.sha256(prev + field(stream) + num(seq) + num(at_us) + field(kind) + num(version)
//	               + field(actor) + field(cause) + field(body)).digest()
//
// and in PostgreSQL the same form is int4send(octet_length(x)) || convert_to(x, 'UTF8') for a text and
// int4send(8) || int8send(n) for a number.

// Sum returns the chain hash of r, given the hash of the record before it. It reads every field of r but Hash.
func Sum(prev Hash, r *Record) Hash {
	s := scratches.Get().(*scratch)
	h := s.sum(prev, r)
	scratches.Put(s)
	return h
}

// Seal makes batch the continuation of head: it sets Seq to head.Seq+1, head.Seq+2 … and Hash to the chain hash, in place, and returns the head
// after the batch (its Epoch unchanged). Every other field must be final, Stream included. It allocates nothing.
func Seal(head Head, batch []Record) Head {
	s := scratches.Get().(*scratch)
	for i := range batch {
		head.Seq++
		batch[i].Seq = head.Seq
		head.Hash = s.sum(head.Hash, &batch[i])
		batch[i].Hash = head.Hash
	}
	scratches.Put(s)
	return head
}

// scratch holds the bytes that are hashed: one contiguous buffer is faster than many small writes to a hash state.
type scratch struct{ buf []byte }

var scratches = sync.Pool{New: func() any { return &scratch{buf: make([]byte, 0, 1024)} }}

// keepScratch bounds the buffer that a scratch keeps for the next record, so that one huge body does not stay allocated.
const keepScratch = 1 << 20

func (s *scratch) sum(prev Hash, r *Record) Hash {
	b := append(s.buf[:0], prev[:]...)
	b = appendField(b, r.Stream)
	b = appendNumber(b, r.Seq)
	b = appendNumber(b, r.At.UnixMicro())
	b = appendField(b, r.Kind)
	b = appendNumber(b, int64(r.Version))
	b = appendField(b, r.Actor)
	b = appendField(b, r.Cause)
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.Body)))
	b = append(b, r.Body...)
	h := Hash(sha256.Sum256(b))
	if cap(b) <= keepScratch {
		s.buf = b
	}
	return h
}

func appendField(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
	return append(b, s...)
}

func appendNumber(b []byte, n int64) []byte {
	b = append(b, 0, 0, 0, 8)
	return binary.BigEndian.AppendUint64(b, uint64(n))
}

// What can be wrong with a record's place in its chain; a [ChainError] wraps one of these.
var (
	// ErrGap: records are missing before this one.
	ErrGap = errors.New("gap")
	// ErrReorder: the record's seq was already passed: it is repeated or out of order.
	ErrReorder = errors.New("out of order")
	// ErrHash: the record, or the one before it, is not the one that was written.
	ErrHash = errors.New("wrong hash")
	// ErrStream: the record belongs to another stream.
	ErrStream = errors.New("foreign stream")
)

// ChainError names a record that does not continue its chain.
type ChainError struct {
	Stream string // the stream that was being checked
	Seq    int64  // the seq that the record says it has
	Want   int64  // the seq that was due
	Err    error  // ErrGap, ErrReorder, ErrHash or ErrStream
}

func (e *ChainError) Error() string {
	return fmt.Sprintf("journal: %s seq %d: %v (seq %d was due)", e.Stream, e.Seq, e.Err, e.Want)
}

func (e *ChainError) Unwrap() error { return e.Err }

// Check tells whether r is the record that follows prev: nil, or a *[ChainError].
func Check(prev Head, r *Record) error {
	s := scratches.Get().(*scratch)
	err := s.check(prev, r)
	scratches.Put(s)
	return err
}

func (s *scratch) check(prev Head, r *Record) error {
	var err error
	switch {
	case r.Stream != prev.Stream:
		err = ErrStream
	case r.Seq > prev.Seq+1:
		err = ErrGap
	case r.Seq < prev.Seq+1:
		err = ErrReorder
	case s.sum(prev.Hash, r) != r.Hash:
		err = ErrHash
	default:
		return nil
	}
	return &ChainError{Stream: prev.Stream, Seq: r.Seq, Want: prev.Seq + 1, Err: err}
}

// Chain checks the records of one stream, one after the other. It is not safe for concurrent use.
type Chain struct {
	head Head
	s    scratch
}

// NewChain starts a check after head; Head{Stream: name} checks from the first record.
func NewChain(head Head) *Chain { return &Chain{head: head} }

// Check takes the next record and moves on when it is good. After a *[ChainError] the chain stands where it stood.
func (c *Chain) Check(r *Record) error {
	if err := c.s.check(c.head, r); err != nil {
		return err
	}
	c.Follow(r)
	return nil
}

// Follow moves on to r without a look at it: a verifier that wants to name what else is wrong goes on like this after an
// error. Following a record that came too late would blame all the good ones after it, so that is ignored.
func (c *Chain) Follow(r *Record) {
	if r.Stream == c.head.Stream && r.Seq > c.head.Seq {
		c.head.Seq, c.head.Hash = r.Seq, r.Hash
	}
}

// Head returns the last record that was checked or followed.
func (c *Chain) Head() Head { return c.head }
