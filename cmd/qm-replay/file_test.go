package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"qm/replay"
)

const journals = "../../testdata/journals"

func path(name string) string { return filepath.Join(journals, name) }

// outcome is what a call came to.
type outcome struct {
	code        int
	out, stderr string
}

func call(t *testing.T, env map[string]string, stdin string, args ...string) outcome {
	t.Helper()
	var out, stderr bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(stdin), &out, &stderr, func(name string) string { return env[name] })
	return outcome{code, out.String(), stderr.String()}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(path(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestFile(t *testing.T) {
	two := read(t, "doors.ndjson") + read(t, "small.ndjson")
	tests := []struct {
		name  string
		args  []string
		stdin string
		code  int
		out   []string // what standard output must contain, in order
		not   string   // what it must not contain
		err   string   // what standard error must contain
	}{
		{"verify good", []string{"verify", path("surge.ndjson")}, "", 0, []string{"surge: ", " records up to seq ", "head ", "all holds"}, "", ""},
		{"verify standard input", []string{"verify", "-"}, two, 0, []string{"doors: ", "small: "}, "", ""},
		{"verify one room", []string{"verify", "--room", "small", "-"}, two, 0, []string{"small: "}, "doors", ""},
		{"options after FILE", []string{"verify", "-", "--room", "small"}, two, 0, []string{"small: "}, "doors", ""},
		{"verify broken", []string{"verify", path("broken-pass_twice.ndjson")}, "", 1, []string{"small seq 15 I8 pass_twice: ticket 1 passes a second time\n", "1 finding"}, "", ""},
		{"verify torn", []string{"verify", path("broken-torn.ndjson")}, "", 1, []string{"small seq 14 I1 torn: line 14: "}, "", ""},
		{"verify a bad line", []string{"verify", path("broken-line.ndjson")}, "", 1, []string{"small seq 15 I1 line: line 15: "}, "", ""},
		{"verify what is no journal", []string{"verify", "-"}, "hello\n", 1, []string{"- seq 0 I1 line: line 1: "}, "", ""},
		{"verify nothing", []string{"verify", "-"}, "", 2, nil, "", "has no records"},
		{"verify an absent room", []string{"verify", "--room", "other", path("surge.ndjson")}, "", 2, nil, "", `no records of room "other"`},
		{"verify json", []string{"verify", "--json", path("broken-hash.ndjson")}, "", 1, []string{`{"stream":"production/small","room":"small","seq":4,"invariant":"I1","code":"hash","text":"`}, "finding\n", "1 finding"},
		{"verify a noted head that is there", []string{"verify", "--head", head(t, "small.ndjson", -1), path("small.ndjson")}, "", 0, nil, "", ""},
		{"verify an older noted head", []string{"verify", "--head", head(t, "small.ndjson", 3), path("small.ndjson")}, "", 0, nil, "", ""},
		{"verify a noted head that is gone", []string{"verify", "--head", head(t, "small.ndjson", -1), path("broken-head.ndjson")}, "", 1, []string{"small seq 11 I1 head: "}, "", ""},
		{"verify a head that is none", []string{"verify", "--head", "abc", path("small.ndjson")}, "", 2, nil, "", "64 hex digits"},
		{"show", []string{"show", path("ghosts.ndjson")}, "", 0, []string{"ghosts, generation 1\n", "ticket 1 joins", "tickets 2 to 3 pass by the clock", "ticket 6 gives its slot back"}, "", ""},
		{"show one ticket", []string{"show", "--ticket", "3", path("drop-killed.ndjson")}, "", 0, []string{"ticket 3\n", "drawn from the pre-queue, place 3 of 29", "passed by the clock, with a slot, "}, "joins", ""},
		{"show an absent ticket", []string{"show", "--ticket", "3000", path("small.ndjson")}, "", 2, nil, "", "no ticket 3000"},
		{"show json", []string{"show", "--json", path("small.ndjson")}, "", 0, []string{`"kind":"create"`, `"text":"generation 1 created`}, "", ""},
		{"show a broken one as far as it goes", []string{"show", path("broken-torn.ndjson")}, "", 1, []string{"ticket 1 joins", "I1 torn"}, "", ""},
		{"export one room", []string{"export", "--room", "small", "-"}, two, 0, []string{read(t, "small.ndjson")}, "doors", ""},
		{"export a torn file", []string{"export", path("broken-torn.ndjson")}, "", 1, []string{`"kind":"create"`}, "torn", "torn"},
		{"draw", []string{"draw", path("drop.ndjson")}, "", 0, []string{"29 entries of 13 identities", "commitment: yes", "the draw holds"}, "NO", ""},
		{"draw json", []string{"draw", "--json", path("drop.ndjson")}, "", 0, []string{`"holds":true`}, "", ""},
		{"draw of another secret", []string{"draw", path("broken-draw_commitment.ndjson")}, "", 1, []string{"commitment: NO", "does NOT hold", "I14 draw_commitment"}, "", ""},
		{"draw of another order", []string{"draw", path("broken-draw_order.ndjson")}, "", 1, []string{"recorded: NO"}, "", ""},
		{"draw where none was", []string{"draw", path("small.ndjson")}, "", 0, []string{"no draw has been made"}, "", ""},
		{"help", []string{"--help"}, "", 0, []string{"Usage:"}, "", ""},
		{"help of a verb", []string{"verify", "--help"}, "", 0, []string{"Usage:"}, "", ""},
		{"no verb", nil, "", 2, nil, "", "which verb?"},
		{"unknown verb", []string{"mend"}, "", 2, nil, "", `no verb "mend"`},
		{"unknown option", []string{"verify", "--fix", "-"}, "", 2, nil, "", "-fix"},
		{"option of another verb", []string{"verify", "--ticket", "1", "-"}, "", 2, nil, "", "-ticket"},
		{"two files", []string{"verify", "a", "b"}, "", 2, nil, "", "one FILE"},
		{"no such file", []string{"verify", path("absent.ndjson")}, "", 2, nil, "", "no such file"},
		{"a directory", []string{"verify", journals}, "", 2, nil, "", "directory"},
		{"no such room id", []string{"verify", "--room", "Shop!", "-"}, "", 2, nil, "", "no room id"},
		{"no database", []string{"verify"}, "", 2, nil, "", "DATABASE_URL"},
		{"diff without Valkey", []string{"diff", path("small.ndjson")}, "", 2, nil, "", "VALKEY_URL"},
		{"rebuild from a file", []string{"rebuild", path("small.ndjson")}, "", 2, nil, "", "takes no FILE"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := call(t, nil, test.stdin, test.args...)
			if got.code != test.code {
				t.Errorf("exit code %d, want %d", got.code, test.code)
			}
			rest := got.out
			for _, want := range test.out {
				i := strings.Index(rest, want)
				if i < 0 {
					t.Errorf("the answer lacks %q", want)
					continue
				}
				rest = rest[i+len(want):]
			}
			if test.not != "" && strings.Contains(got.out, test.not) {
				t.Errorf("the answer contains %q", test.not)
			}
			if !strings.Contains(got.stderr, test.err) {
				t.Errorf("standard error lacks %q", test.err)
			}
			if test.code == unable && got.stderr == "" {
				t.Error("it could not run and does not say why")
			}
			if t.Failed() {
				t.Logf("stdout:\n%s\nstderr:\n%s", got.out, got.stderr)
			}
		})
	}
}

// head is the hash of the nth record of a recorded journal, from 0; -1 is the last.
func head(t *testing.T, name string, nth int) string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(read(t, name)), "\n")
	if nth < 0 {
		nth += len(lines)
	}
	var record struct {
		Hash string `json:"hash"`
	}
	if err := json.Unmarshal([]byte(lines[nth]), &record); err != nil {
		t.Fatal(err)
	}
	return record.Hash
}

// TestFindingsAreJSONLines: each line of --json is a finding, whatever was wrong.
func TestFindingsAreJSONLines(t *testing.T) {
	files, err := filepath.Glob(path("broken-*.ndjson"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if filepath.Base(f) == "broken-head.ndjson" {
			continue // sound but for the head hash that was noted
		}
		got := call(t, nil, "", "verify", "--json", f)
		if got.code != reported {
			t.Errorf("%s: exit code %d", f, got.code)
		}
		for line := range strings.Lines(got.out) {
			var finding replay.Finding
			if err := json.Unmarshal([]byte(line), &finding); err != nil || finding.Invariant == "" || finding.Room == "" || finding.Text == "" {
				t.Errorf("%s: %q: %v", f, line, err)
			}
		}
	}
}

// TestProgress: a long run says how far it is, where somebody wants to know.
func TestProgress(t *testing.T) {
	p := newProgress(&bytes.Buffer{}, false)
	p.say("nobody hears this")
	var w bytes.Buffer
	p = newProgress(&w, true)
	p.last = p.last.Add(-progressEvery)
	p.records(10_000)
	p.records(20_000) // too soon
	p.end()
	if got := w.String(); !strings.Contains(got, "10000 records") || strings.Contains(got, "20000") || !strings.HasSuffix(got, "\r") {
		t.Errorf("%q", got)
	}
}
