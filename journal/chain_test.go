package journal

import (
	"encoding/hex"
	"errors"
	"testing"
	"time"
)

// pair is a stream of two records, as sealed.
func pair() []Record {
	batch := []Record{
		{Stream: "production/shop", At: time.UnixMicro(1767323045000000).UTC(), Kind: "create", Version: 1, Actor: "op-1",
			Cause: "01JGFJJZ00000000000000000A", Body: []byte(`{"capacity": 3}`)},
		{Stream: "production/shop", At: time.UnixMicro(1767323045123456).UTC(), Kind: "join", Version: 2, Actor: "visitor",
			Cause: "01JGFJJZ00000000000000000B", Body: []byte(`{"n":1,"note":"Ünïcode \u00fc"}`)},
	}
	Seal(Head{Stream: "production/shop"}, batch)
	return batch
}

// The golden hashes were computed by the Python lines in chain.go: if they move, every stored journal is broken.
func TestSealGolden(t *testing.T) {
	batch := pair()
	for i, want := range []string{
		"81bf9cfd5d54e4a1ba116d138f61dde56e8bee7474a489e4cd34bca6f845c326",
		"a0aca6c25230d2dabf82fd4f81a7377fd2fd5020101504511328ab5c350072fe",
	} {
		if got := hex.EncodeToString(batch[i].Hash[:]); got != want {
			t.Errorf("seq %d: hash %s, want %s", batch[i].Seq, got, want)
		}
	}
}

func TestSealReturnsTheNewHead(t *testing.T) {
	batch := pair()
	more := []Record{batch[0], batch[1]}
	head := Seal(Head{Stream: "production/shop", Seq: 2, Hash: batch[1].Hash, Epoch: 7}, more)
	if head.Seq != 4 || head.Epoch != 7 || head.Hash != more[1].Hash || more[0].Seq != 3 || more[1].Seq != 4 {
		t.Fatalf("head %+v after seqs %d, %d", head, more[0].Seq, more[1].Seq)
	}
	if more[0].Hash != Sum(batch[1].Hash, &more[0]) {
		t.Fatal("the first record does not hang on the head")
	}
}

func TestSealDoesNotAllocate(t *testing.T) {
	batch := pair()
	Seal(Head{}, batch)
	if n := testing.AllocsPerRun(100, func() { Seal(Head{}, batch) }); n >= 1 {
		t.Fatalf("%v allocations a batch", n)
	}
}

// Every field is covered, and no byte can move from one field to its neighbour.
func TestSumCoversEveryField(t *testing.T) {
	base := pair()[0]
	seen := map[Hash]string{Sum(Hash{}, &base): "the record itself"}
	for name, edit := range map[string]func(*Record){
		"stream":       func(r *Record) { r.Stream += "x" },
		"seq":          func(r *Record) { r.Seq++ },
		"at":           func(r *Record) { r.At = r.At.Add(time.Microsecond) },
		"kind":         func(r *Record) { r.Kind += "x" },
		"version":      func(r *Record) { r.Version++ },
		"actor":        func(r *Record) { r.Actor += "x" },
		"cause":        func(r *Record) { r.Cause += "x" },
		"body":         func(r *Record) { r.Body = []byte(`{"capacity":3}`) },
		"actor->cause": func(r *Record) { r.Actor, r.Cause = "op-", "1"+r.Cause },
	} {
		r := base
		edit(&r)
		h := Sum(Hash{}, &r)
		if other, dup := seen[h]; dup {
			t.Errorf("an edit of %s has the hash of %s", name, other)
		}
		seen[h] = name
	}
	if _, dup := seen[Sum(Hash{1}, &base)]; dup {
		t.Error("the hash before does not count")
	}
}

// Proves: journal.chain
func TestChain(t *testing.T) {
	batch := make([]Record, 6)
	for i := range batch {
		batch[i] = pair()[0]
	}
	Seal(Head{Stream: "production/shop"}, batch)
	edited := append([]Record(nil), batch...)
	edited[2].Body = []byte(`{"capacity": 4}`)
	foreign := append([]Record(nil), batch...)
	foreign[1].Stream = "production/other"
	swapped := append([]Record(nil), batch...)
	swapped[2], swapped[3] = swapped[3], swapped[2]

	type finding struct {
		seq, want int64
		err       error
	}
	for _, c := range []struct {
		name    string
		records []Record
		want    []finding
	}{
		{"good", batch, nil},
		{"gap", append(append([]Record(nil), batch[:2]...), batch[4:]...), []finding{{5, 3, ErrGap}}},
		{"edited", edited, []finding{{3, 3, ErrHash}}},
		{"foreign", foreign, []finding{{2, 2, ErrStream}, {3, 2, ErrGap}}},
		{"repeated", append(append([]Record(nil), batch[:3]...), batch[2:]...), []finding{{3, 4, ErrReorder}}},
		{"swapped", swapped, []finding{{4, 3, ErrGap}, {3, 5, ErrReorder}}},
		{"start cut", batch[1:], []finding{{2, 1, ErrGap}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			chain := NewChain(Head{Stream: "production/shop"})
			var got []finding
			for i := range c.records {
				r := &c.records[i]
				if err := chain.Check(r); err != nil {
					var bad *ChainError
					if !errors.As(err, &bad) || bad.Stream != "production/shop" {
						t.Fatalf("%v (%T)", err, err)
					}
					got = append(got, finding{bad.Seq, bad.Want, bad.Err})
					chain.Follow(r)
				}
			}
			if len(got) != len(c.want) {
				t.Fatalf("found %v, want %v", got, c.want)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("found %v, want %v", got[i], c.want[i])
				}
			}
			if head := chain.Head(); head.Seq != 6 || head.Hash != batch[5].Hash {
				t.Errorf("ended at seq %d", head.Seq)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	batch := pair()
	if err := Check(Head{Stream: "production/shop", Seq: 1, Hash: batch[0].Hash}, &batch[1]); err != nil {
		t.Fatal(err)
	}
	if err := Check(Head{Stream: "production/shop", Seq: 1}, &batch[1]); !errors.Is(err, ErrHash) {
		t.Fatalf("got %v, want ErrHash", err)
	}
}
