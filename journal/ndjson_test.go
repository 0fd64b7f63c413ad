package journal

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func lines(batch []Record) []byte {
	var out []byte
	for i := range batch {
		out = AppendLine(out, &batch[i])
	}
	return out
}

func readAll(t *testing.T, rd io.Reader) ([]Record, error) {
	t.Helper()
	var got []Record
	err := ReadLines(rd, func(r *Record) error {
		kept := *r
		kept.Body = bytes.Clone(r.Body)
		got = append(got, kept)
		return nil
	})
	return got, err
}

func TestLineForm(t *testing.T) {
	batch := pair()
	want := `{"stream":"production/shop","seq":2,"at":"2026-01-02T03:04:05.123456Z","kind":"join","version":2,"actor":"visitor",` +
		`"cause":"01JGFJJZ00000000000000000B","body":{"n":1,"note":"Ünïcode \u00fc"},"hash":"a0aca6c25230d2dabf82fd4f81a7377fd2fd5020101504511328ab5c350072fe"}` + "\n"
	if got := string(AppendLine(nil, &batch[1])); got != want {
		t.Fatalf("got  %swant %s", got, want)
	}
}

func TestLinesRoundTrip(t *testing.T) {
	bodies := []string{
		`{}`, `{ "a" :	1 }`, `{"a":"\u0041\ud83d\ude00\/"}`, `{"a":1.0e+2,"a":1}`, ` {"lead":1}`, "{\n \"broken\":\r\n 1}",
		`{"hash":"` + strings.Repeat("0", 64) + `"}`, `{"x":"` + strings.Repeat("y", 600<<10) + `"}`, `{"s":"<>&\""}`,
	}
	batch := make([]Record, len(bodies))
	for i := range batch {
		batch[i] = pair()[i%2]
		batch[i].Body = []byte(bodies[i])
		batch[i].Stream = "production/\"shop\" \\ ü"
	}
	Seal(Head{Stream: batch[0].Stream}, batch)
	var file bytes.Buffer
	w := NewLineWriter(&file)
	for i := range batch {
		if err := w.Write(&batch[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(file.Bytes(), []byte("\n")); n != len(batch) {
		t.Fatalf("%d lines for %d records", n, len(batch))
	}
	got, err := readAll(t, iotest.HalfReader(&file))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(batch, got) { // before cmp, which is slow on the long body
		t.Fatal(cmp.Diff(batch, got))
	}
	chain := NewChain(Head{Stream: batch[0].Stream})
	for i := range got {
		if err := chain.Check(&got[i]); err != nil {
			t.Fatal(err)
		}
	}
}

// A file cut anywhere yields the whole lines before the cut and says that the last one is torn.
func TestLinesTorn(t *testing.T) {
	whole := lines(pair())
	first := bytes.IndexByte(whole, '\n') + 1
	for cut := range len(whole) {
		got, err := readAll(t, bytes.NewReader(whole[:cut]))
		switch records := bytes.Count(whole[:cut+1], []byte("\n")); {
		case cut == 0 || cut == first || cut == first-1 || cut == len(whole)-1: // at a line's end, its break kept or lost
			if err != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
		default:
			var bad *LineError
			if !errors.Is(err, ErrTorn) || !errors.As(err, &bad) || bad.Line != records+1 || len(got) != records {
				t.Fatalf("cut at %d: %d records, %v", cut, len(got), err)
			}
		}
	}
}

func TestLinesDamaged(t *testing.T) {
	batch := pair()
	good := string(lines(batch[:1]))
	second := string(lines(batch[1:]))
	for name, line := range map[string]string{
		"blank":        "\n",
		"not JSON":     "hello\n",
		"order":        strings.Replace(second, `"seq":2,`, ``, 1),
		"seq":          strings.Replace(second, `"seq":2`, `"seq":x`, 1),
		"time":         strings.Replace(second, `T03:04`, `T33:04`, 1),
		"precision":    strings.Replace(second, `.123456Z`, `.123Z`, 1),
		"version":      strings.Replace(second, `"version":2`, `"version":70000`, 1),
		"body":         strings.Replace(second, `"n":1`, `"n":`, 1),
		"hash digit":   strings.Replace(second, `"hash":"`, `"hash":"g`, 1),
		"hash length":  strings.Replace(second, `"hash":"`, `"hash":"0`, 1),
		"torn inside":  second[:40] + "\n",
		"control":      strings.Replace(second, `visitor`, "visi\ttor", 1),
		"UTF-8":        strings.Replace(second, `visitor`, "visi\xfftor", 1),
		"text unended": strings.Replace(second, `"visitor",`, `"visitor\",`, 1),
		"trailing":     strings.TrimSuffix(second, "\n") + " \n",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readAll(t, strings.NewReader(good+line+good))
			var bad *LineError
			if !errors.As(err, &bad) || bad.Line != 2 || errors.Is(err, ErrTorn) || len(got) != 1 {
				t.Fatalf("%d records, %v", len(got), err)
			}
		})
	}
}

func TestReadLinesStops(t *testing.T) {
	stop, calls := errors.New("stop"), 0
	err := ReadLines(bytes.NewReader(lines(pair())), func(*Record) error { calls++; return stop })
	if !errors.Is(err, stop) || calls != 1 {
		t.Fatalf("%d calls, %v", calls, err)
	}
	if err := ReadLines(iotest.ErrReader(io.ErrClosedPipe), func(*Record) error { return nil }); !errors.Is(err, io.ErrClosedPipe) {
		t.Fatalf("got %v", err)
	}
}

func FuzzReadLines(f *testing.F) {
	f.Add(lines(pair()))
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := readAll(t, bytes.NewReader(in))
		if err != nil {
			return
		}
		again, err := readAll(t, bytes.NewReader(lines(got)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, again); diff != "" {
			t.Fatal(diff)
		}
	})
}
