package connector

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"testing"
)

// unpack reads an archive by the standard library's own readers.
func unpack(t *testing.T, kind Kind, artifact []byte) map[string]string {
	t.Helper()
	found := map[string]string{}
	switch kind {
	case JS:
		found["latest.js"] = string(artifact)
	case TGZ:
		gz, err := gzip.NewReader(bytes.NewReader(artifact))
		if err != nil {
			t.Fatal(err)
		}
		for r := tar.NewReader(gz); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			found[h.Name] = string(b)
		}
	case ZIP:
		r, err := zip.NewReader(bytes.NewReader(artifact), int64(len(artifact)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.File {
			in, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(in)
			if err != nil {
				t.Fatal(err)
			}
			found[f.Name] = string(b)
		}
	}
	return found
}

// TestEveryConnectorCanBeHandedOut: each folder is a connector, its archive holds the files that it names, and packing again gives
// the same bytes, so that a digest stays good.
func TestEveryConnectorCanBeHandedOut(t *testing.T) {
	if len(All()) == 0 {
		t.Fatal("there is no connector")
	}
	for _, m := range All() {
		again, err := load(m.Name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again.Artifact(), m.Artifact()) || again.SHA256() != m.SHA256() {
			t.Errorf("%s: packed twice, the bytes differ", m.Name)
		}
		inside := unpack(t, m.Kind, m.Artifact())
		if len(inside) != len(m.Files) {
			t.Errorf("%s: %d files inside, %d named", m.Name, len(inside), len(m.Files))
		}
		for name := range m.Files {
			if m.Kind != JS && inside[name] == "" {
				t.Errorf("%s: %s is empty or not there", m.Name, name)
			}
		}
		if found, ok := Named(m.Name); !ok || found != m {
			t.Errorf("%s is not found by its name", m.Name)
		}
	}
	if _, ok := Named("none"); ok {
		t.Error("there is a connector called none")
	}
}

func TestArchivesHoldWhatWasPacked(t *testing.T) {
	content := map[string][]byte{"b/two.txt": []byte("two"), "a.txt": bytes.Repeat([]byte("one "), 10_000)}
	for _, kind := range []Kind{TGZ, ZIP} {
		artifact, err := pack(kind, content)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"b/two.txt": "two", "a.txt": string(content["a.txt"])}
		if got := unpack(t, kind, artifact); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s holds something else", kind)
		}
	}
	if _, err := pack(JS, content); err == nil {
		t.Error("a js connector of two files was packed")
	}
	if _, err := pack("rar", content); err == nil {
		t.Error("a kind that is none was packed")
	}
}
