package postgres

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"qm/journal"
)

// copyOut is what PostgreSQL sends for readSQL.
func copyOut(batch []journal.Record) []byte {
	b := append([]byte(nil), copyHeader...)
	b = append(b, 0, 0, 0, 0)
	field := func(p []byte) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
		b = append(b, p...)
	}
	for _, r := range batch {
		b = append(b, 0, 8)
		field(binary.BigEndian.AppendUint64(nil, uint64(r.Seq)))
		field(binary.BigEndian.AppendUint64(nil, uint64(r.At.UnixMicro()-epoch2000)))
		field(binary.BigEndian.AppendUint16(nil, uint16(r.Version)))
		field(r.Hash[:])
		field([]byte(r.Kind))
		field([]byte(r.Actor))
		field([]byte(r.Cause))
		field(r.Body)
	}
	return append(b, 0xff, 0xff)
}

func some3() []journal.Record {
	batch := make([]journal.Record, 3)
	for i := range batch {
		batch[i] = journal.Record{Stream: "s", At: time.UnixMicro(1234567 + int64(i)).UTC(), Kind: []string{"join", "pass", "pass"}[i], Version: i + 1,
			Actor: "visitor", Cause: fmt.Sprint("cause", i), Body: []byte(`{"n":1}`)}
	}
	journal.Seal(journal.Head{Stream: "s"}, batch)
	return batch
}

// However the bytes are cut into messages, the rows are the same.
func TestDecoderTakesAnyCut(t *testing.T) {
	want := some3()
	sent := copyOut(want)
	for size := 1; size <= len(sent); size++ {
		var got []journal.Record
		d := decoder{stream: "s", fn: func(r *journal.Record) error {
			kept := *r
			kept.Body = bytes.Clone(r.Body)
			got = append(got, kept)
			return nil
		}}
		for from := 0; from < len(sent); from += size {
			if _, err := d.Write(sent[from:min(from+size, len(sent))]); err != nil {
				t.Fatalf("messages of %d bytes: %v", size, d.stop)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || !d.ended {
			t.Fatalf("messages of %d bytes: ended %v, %s", size, d.ended, diff)
		}
	}
}

func TestDecoderRefuses(t *testing.T) {
	batch := some3()
	good := copyOut(batch)
	row := len(copyHeader) + 4
	for name, edit := range map[string]func([]byte){
		"header":  func(b []byte) { b[0] = 'X' },
		"columns": func(b []byte) { b[row+1] = 7 },
		"seq":     func(b []byte) { b[row+5] = 4 },
		"hash":    func(b []byte) { b[row+35] = 31 },
		"null":    func(b []byte) { copy(b[row+fixedPart:], "\xff\xff\xff\xff") },
	} {
		sent := bytes.Clone(good)
		edit(sent)
		d := decoder{stream: "s", fn: func(*journal.Record) error { return nil }}
		if _, err := d.Write(sent); !errors.Is(err, errStop) || d.stop == nil {
			t.Errorf("%s: got %v, %v", name, err, d.stop)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	sent := copyOut(some3())
	head, rows := sent[:len(copyHeader)+4], sent[len(copyHeader)+4:len(sent)-2]
	b.ReportAllocs()
	d := decoder{stream: "s", fn: func(*journal.Record) error { return nil }}
	_, _ = d.Write(head)
	for b.Loop() {
		_, _ = d.Write(rows)
	}
}
