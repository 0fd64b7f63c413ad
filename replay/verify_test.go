package replay

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"qm/engine/room"
	"qm/journal"
)

var update = flag.Bool("update", false, "write testdata/journals and testdata/events anew")

//go:generate go test . -run TestRecord -update

const journalDir = "../testdata/journals"

// brokenEntry is what broken.json says about a broken journal.
type brokenEntry struct {
	File string `json:"file"`
	What string `json:"what"`
	Head string `json:"head,omitempty"` // the head hash that was noted elsewhere
	Want []Code `json:"findings"`
}

// TestRecordJournals records all journals and compares them with testdata/journals; with -update it writes them.
func TestRecordJournals(t *testing.T) {
	files := map[string][]byte{"organisation.ndjson": ndjson(t, recordOrganisation(t).records())}
	for name, record := range recordings {
		files[name+".ndjson"] = ndjson(t, record(t).records())
	}
	var manifest []brokenEntry
	for _, b := range brokenJournals {
		if b.name == "" {
			b.name = string(b.want[0])
		}
		entry := brokenEntry{File: "broken-" + b.name + ".ndjson", What: b.what, Want: b.want}
		e := &editor{t: t, from: b.from(t)}
		e.records = e.from.records()
		b.edit(e)
		if !e.broken {
			e.seal()
		}
		text := ndjson(t, e.records)
		if e.bytes != nil {
			text = e.bytes(text)
		}
		if e.head != nil {
			entry.Head = hex.EncodeToString(e.head[:])
		}
		files[entry.File] = text
		manifest = append(manifest, entry)
	}
	text, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	files["broken.json"] = append(text, '\n')
	if *update {
		old, _ := filepath.Glob(filepath.Join(journalDir, "*.ndjson"))
		for _, f := range old {
			if strings.HasPrefix(filepath.Base(f), "kept-") {
				continue // what an earlier build wrote has to be read for ever
			}
			if err := os.Remove(f); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, want := range files {
		path := filepath.Join(journalDir, name)
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Errorf("%v; go generate ./replay writes it", err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the core records today; if the change is meant, go generate ./replay writes it anew", name)
		}
	}
}

func ndjson(t testing.TB, records []journal.Record) []byte {
	var b bytes.Buffer
	if _, err := Export(&b, Records(records)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestVerifyJournals walks testdata/journals: good ones verify, broken ones yield exactly the findings that broken.json
// names, and every check has a broken journal.
//
// Proves: draw.proof, journal.chain
func TestVerifyJournals(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(journalDir, "broken.json"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest []brokenEntry
	if err := json.Unmarshal(text, &manifest); err != nil {
		t.Fatal(err)
	}
	shown := map[Code]bool{State: true} // see TestVerifyState
	kinds := map[string]bool{}          // those that good journals show
	paths, _ := filepath.Glob(filepath.Join(journalDir, "*.ndjson"))
	good := 0
	for _, path := range paths {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			var want brokenEntry
			i := slices.IndexFunc(manifest, func(e brokenEntry) bool { return e.File == name })
			switch broken := strings.HasPrefix(name, "broken-"); {
			case broken && i < 0:
				t.Fatal("broken.json does not name it")
			case broken:
				want = manifest[i]
			default:
				good++
			}
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if want.File == "" {
				if err := Lines(bytes.NewReader(content))(func(r *journal.Record) error {
					kinds[strings.Clone(r.Kind)] = true
					return nil
				}); err != nil {
					t.Fatal(err)
				}
			}
			var o Options
			if want.Head != "" {
				o.Head = new(journal.Hash)
				if _, err := hex.Decode(o.Head[:], []byte(want.Head)); err != nil {
					t.Fatal(err)
				}
			}
			report, findings, err := Verify(Lines(bytes.NewReader(content)), o)
			if err != nil {
				t.Fatal(err)
			}
			var got []Code
			for _, f := range findings {
				got = append(got, f.Code)
				t.Log(f)
				if f.Seq == 0 || f.Room == "" || f.Invariant == "" || f.Invariant != f.Code.Invariant() {
					t.Errorf("finding without a room, seq or invariant: %+v", f)
				}
			}
			if !slices.Equal(got, want.Want) {
				t.Errorf("findings %v, want %v", got, want.Want)
			}
			if len(report.Rooms) != 1 || report.Rooms[0].Findings != len(findings) || report.Records == 0 {
				t.Errorf("report %+v", report)
			}
			if len(got) == 1 {
				shown[got[0]] = true
			}
		})
	}
	if good < 6 {
		t.Errorf("%d good journals", good)
	}
	for _, c := range Codes() {
		if !shown[c] {
			t.Errorf("no broken journal shows %s %s alone", c.Invariant(), c)
		}
	}
	for kind := range room.Kinds() {
		if !kinds[kind] {
			t.Errorf("no good journal has an event of kind %s", kind)
		}
	}
	for _, e := range manifest {
		if _, err := os.Stat(filepath.Join(journalDir, e.File)); err != nil {
			t.Error(err)
		}
	}
}

// TestVerifyState: no journal can make the core disagree with itself, so the check is replaced.
func TestVerifyState(t *testing.T) {
	_, findings, err := Verify(Records(recordSmall(t).records()), Options{check: func(s *room.State) error {
		if s.Summary().LastTicket == 8 {
			return errors.New("out of joint")
		}
		return nil
	}, MaxFindings: 3})
	if err != nil || len(findings) != 3 || findings[0].Code != State || !strings.Contains(findings[0].Text, "out of joint") {
		t.Errorf("%v %v", findings, err)
	}
}

// TestVerifyGivesUp: a room with too many findings is not looked at any further, and the report says so; other rooms are.
func TestVerifyGivesUp(t *testing.T) {
	records := recordSmall(t).records()[1:] // without its create, nothing that happens can have happened
	journal.Seal(journal.Head{Stream: records[0].Stream}, records)
	report, findings, err := Verify(Records(append(records, recordFull(t).records()...)), Options{MaxFindings: 5})
	if err != nil || len(findings) != 5 || len(report.Rooms) != 2 || !report.Rooms[0].Gave || report.Rooms[1].Gave || report.Rooms[1].Findings != 0 {
		t.Errorf("%+v %v %v", report, findings, err)
	}
}

// TestVerifyAfterRetention: a journal that begins with a later create is taken from there, and the report says so; one that begins with
// anything else lacks records.
func TestVerifyAfterRetention(t *testing.T) {
	records := recordGenerations(t).records()
	second := slices.IndexFunc(records[1:], func(r journal.Record) bool { return r.Kind == "create" }) + 1
	report, findings, err := Verify(Records(records[second:]), Options{})
	if err != nil || len(findings) != 0 || report.Rooms[0].First != int64(second)+1 {
		t.Errorf("%+v %v %v", report, findings, err)
	}
	if f, err := Fold(Records(records[second:]), records[0].Stream, 0); err != nil || f.Head.Seq != int64(len(records)) {
		t.Errorf("%+v %v", f.Head, err)
	}
	_, findings, err = Verify(Records(records[second+1:]), Options{})
	if err != nil || len(findings) == 0 || findings[0].Code != Gap {
		t.Errorf("%v %v", findings, err)
	}
}

// TestVerifyOtherStreams: of a stream of no room the chain is verified, and its events are left alone.
func TestVerifyOtherStreams(t *testing.T) {
	records := recordSmall(t).records()
	for i := range records {
		records[i].Stream, records[i].Kind = "$other", "operator"
	}
	journal.Seal(journal.Head{Stream: "$other"}, records)
	report, findings, err := Verify(Records(records), Options{})
	if err != nil || len(findings) != 0 || report.Rooms[0].Events {
		t.Errorf("%+v %v %v", report, findings, err)
	}
	records[3].Actor = "somebody else"
	if _, findings, err = Verify(Records(records), Options{}); err != nil || len(findings) != 1 || findings[0].Code != Hash || findings[0].Seq != 4 {
		t.Errorf("%v %v", findings, err)
	}
}
