package journal

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// The NDJSON form of a journal: one record a line, its fields always in this order, no spaces between them:
//
//	{"stream":"production/shop","seq":1,"at":"2026-01-02T03:04:05.000000Z","kind":"create","version":1,"actor":"op","cause":"01J…","body":{…},"hash":"<64 hex digits>"}
//
// body is the stored text itself, byte for byte, so that the hashes can be checked from the file alone. A body that could not stand in
// a line like that (one with a line break, or not an object, as only somebody who edits rows would make it) is written as a JSON string that holds it.

// ErrTorn says that the last line of an NDJSON journal breaks off in the middle: the writer died, or the file was cut.
var ErrTorn = errors.New("the last line is torn off")

// LineError names the line of an NDJSON journal that cannot be read, counted from 1.
type LineError struct {
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("journal: line %d: %v", e.Line, e.Err) }

func (e *LineError) Unwrap() error { return e.Err }

const (
	lineTime = "2006-01-02T15:04:05.000000Z"
	lineTail = len(`,"hash":""}`) + 2*HashSize
	maxLine  = 2*MaxBody + 1<<20
)

// AppendLine appends the NDJSON line of r to dst, line break included.
func AppendLine(dst []byte, r *Record) []byte {
	dst = append(dst, `{"stream":`...)
	dst = appendText(dst, r.Stream)
	dst = append(dst, `,"seq":`...)
	dst = strconv.AppendInt(dst, r.Seq, 10)
	dst = append(dst, `,"at":"`...)
	dst = r.At.UTC().AppendFormat(dst, lineTime)
	dst = append(dst, `","kind":`...)
	dst = appendText(dst, r.Kind)
	dst = append(dst, `,"version":`...)
	dst = strconv.AppendInt(dst, int64(r.Version), 10)
	dst = append(dst, `,"actor":`...)
	dst = appendText(dst, r.Actor)
	dst = append(dst, `,"cause":`...)
	dst = appendText(dst, r.Cause)
	dst = append(dst, `,"body":`...)
	if len(r.Body) > 0 && r.Body[0] == '{' && bytes.IndexByte(r.Body, '\n') < 0 && bytes.IndexByte(r.Body, '\r') < 0 {
		dst = append(dst, r.Body...)
	} else {
		dst = appendText(dst, string(r.Body))
	}
	dst = append(dst, `,"hash":"`...)
	dst = hex.AppendEncode(dst, r.Hash[:])
	return append(dst, "\"}\n"...)
}

func appendText(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil {
				panic(err) // a string always marshals
			}
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// LineWriter writes records as NDJSON. Its buffer must be flushed at the end.
type LineWriter struct {
	w   *bufio.Writer
	buf []byte
}

// NewLineWriter returns a LineWriter to w.
func NewLineWriter(w io.Writer) *LineWriter { return &LineWriter{w: bufio.NewWriterSize(w, 64<<10)} }

// Write adds a record. It can be handed to [Journal.Read] as it is.
func (w *LineWriter) Write(r *Record) error {
	w.buf = AppendLine(w.buf[:0], r)
	_, err := w.w.Write(w.buf)
	return err
}

// Flush hands on what is still in the buffer.
func (w *LineWriter) Flush() error { return w.w.Flush() }

// ReadLines calls fn for each record of an NDJSON journal, in file order, until fn returns an error, which it returns. It takes exactly the
// form that [LineWriter] writes; what is not is a *[LineError], one that wraps [ErrTorn] when the last line has no end. It checks the
// form of lines only: chain and order are for a [Chain]. The record and its Body are only valid during the call of fn.
func ReadLines(rd io.Reader, fn func(*Record) error) error {
	in := bufio.NewReaderSize(rd, 256<<10)
	var (
		r     Record
		names = lineReader{}
		long  []byte
	)
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			for long = long[:0]; errors.Is(err, bufio.ErrBufferFull); line, err = in.ReadSlice('\n') {
				if long = append(long, line...); len(long) > maxLine {
					return &LineError{n, fmt.Errorf("it is longer than %d bytes", maxLine)}
				}
			}
			long = append(long, line...)
			line = long
		}
		if err != nil && err != io.EOF {
			return fmt.Errorf("journal: read line %d: %w", n, err)
		}
		whole := err == nil
		if !whole && len(line) == 0 {
			return nil
		}
		if whole {
			line = line[:len(line)-1]
		}
		if bad := names.parse(line, &r); bad != nil {
			if !whole {
				return &LineError{n, ErrTorn}
			}
			return &LineError{n, bad}
		}
		if bad := fn(&r); bad != nil {
			return bad
		}
		if !whole {
			return nil // complete but for the line break, as editors leave it
		}
	}
}

// lineReader remembers the texts that repeat from line to line, so that they are allocated once.
type lineReader struct {
	stream, kind, actor, cause string
}

func (l *lineReader) parse(line []byte, r *Record) error {
	p := parser{rest: line}
	p.text(`{"stream":`, &l.stream)
	r.Seq = p.number(`,"seq":`)
	r.At = p.time(`,"at":"`)
	p.text(`","kind":`, &l.kind)
	version := p.number(`,"version":`)
	p.text(`,"actor":`, &l.actor)
	p.text(`,"cause":`, &l.cause)
	p.expect(`,"body":`)
	if p.err != nil {
		return p.err
	}
	cut := len(p.rest) - lineTail
	if cut < 0 {
		return errors.New("no hash at the end")
	}
	body, tail := p.rest[:cut], parser{rest: p.rest[cut:]}
	tail.expect(`,"hash":"`)
	if tail.err == nil {
		if _, err := hex.Decode(r.Hash[:], tail.rest[:2*HashSize]); err != nil {
			return fmt.Errorf("hash: %w", err)
		}
		tail.rest = tail.rest[2*HashSize:]
		tail.expect(`"}`)
	}
	if tail.err != nil {
		return tail.err
	}
	if len(body) > 0 && body[0] == '"' {
		var text string
		if err := json.Unmarshal(body, &text); err != nil {
			return fmt.Errorf("body: %w", err)
		}
		body = []byte(text)
	} else if !ValidBody(body) {
		return errors.New("body is not a JSON object")
	}
	if version < 1 || version > math.MaxInt16 {
		return errors.New("version is out of range")
	}
	r.Stream, r.Kind, r.Version, r.Actor, r.Cause, r.Body = l.stream, l.kind, int(version), l.actor, l.cause, body
	return nil
}

// parser takes a line apart from the left; after the first error it does nothing more.
type parser struct {
	rest []byte
	err  error
}

func (p *parser) expect(lit string) {
	if p.err != nil {
		return
	}
	if len(p.rest) < len(lit) || string(p.rest[:len(lit)]) != lit {
		p.err = fmt.Errorf("%s is missing where it belongs", lit)
		return
	}
	p.rest = p.rest[len(lit):]
}

// text reads a JSON string into s, leaving s alone when it is there already.
func (p *parser) text(lit string, s *string) {
	if p.expect(lit); p.err != nil {
		return
	}
	if len(p.rest) == 0 || p.rest[0] != '"' {
		p.err = fmt.Errorf("no text after %s", lit)
		return
	}
	for i, escaped := 1, false; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '\\':
			escaped = true
			i++
		case c == '"':
			raw := p.rest[1:i]
			quoted := p.rest[:i+1]
			p.rest = p.rest[i+1:]
			switch {
			case escaped:
				if err := json.Unmarshal(quoted, s); err != nil {
					p.err = fmt.Errorf("after %s: %w", lit, err)
				}
			case !utf8.Valid(raw):
				p.err = fmt.Errorf("the text after %s is not UTF-8", lit)
			case string(raw) != *s:
				*s = string(raw)
			}
			return
		case c < ' ':
			p.err = fmt.Errorf("control character in the text after %s", lit)
			return
		}
	}
	p.err = fmt.Errorf("the text after %s does not end", lit)
}

func (p *parser) number(lit string) int64 {
	if p.expect(lit); p.err != nil {
		return 0
	}
	i := 0
	for i < len(p.rest) && (p.rest[i] == '-' || '0' <= p.rest[i] && p.rest[i] <= '9') {
		i++
	}
	n, err := strconv.ParseInt(string(p.rest[:i]), 10, 64)
	if err != nil {
		p.err = fmt.Errorf("after %s: %w", lit, err)
	}
	p.rest = p.rest[i:]
	return n
}

func (p *parser) time(lit string) time.Time {
	if p.expect(lit); p.err != nil {
		return time.Time{}
	}
	if len(p.rest) < len(lineTime) {
		p.err = fmt.Errorf("no time after %s", lit)
		return time.Time{}
	}
	at, err := time.Parse(lineTime, string(p.rest[:len(lineTime)]))
	if err != nil {
		p.err = fmt.Errorf("after %s: %w", lit, err)
	}
	p.rest = p.rest[len(lineTime):]
	return at
}
