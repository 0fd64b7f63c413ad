package connector

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheGoArchiveIsAModule: what the registry hands out builds in a module of somebody else's, without anything from a network.
func TestTheGoArchiveIsAModule(t *testing.T) {
	m, ok := Named("go")
	if !ok {
		t.Fatal("there is no Go connector")
	}
	if m.Version != Version {
		t.Errorf("the manifest says version %s, the code %s", m.Version, Version)
	}
	dir := t.TempDir()
	for name, content := range unpack(t, m.Kind, m.Artifact()) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{
		"go.mod": "module shop\n\ngo 1.24\n",
		"main.go": `package main

import (
	"fmt"

	"qm/edge/connector"
)

func main() {
	_, err := connector.New(connector.Config{Room: "x", Server: "queue.example/"})
	fmt.Println(err)
	_, err = connector.New(connector.Config{Room: "my-room", Server: "https://queue.example"})
	fmt.Println(err)
}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		c := exec.Command("go", args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	_, edit, ok := strings.Cut(m.Command(m.Install, "https://queue.example", "my-room"), " && go ")
	if !ok {
		t.Fatalf("the install command is %q", m.Install)
	}
	run(strings.Fields(edit)...)
	out := run("run", ".")
	if !strings.Contains(out, `the room "x"`) || !strings.Contains(out, `the server "queue.example/"`) || !strings.HasSuffix(out, "<nil>\n") {
		t.Errorf("the program says %q", out)
	}
}
