package connector_test

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"

	"qm/edge/connector"
)

// install unpacks a connector's artifact, as an integrator would, and returns the folder that it makes.
func install(t *testing.T, name string) string {
	t.Helper()
	m, ok := connector.Named(name)
	if !ok {
		t.Fatalf("there is no connector %s", name)
	}
	dir := t.TempDir()
	write := func(name string, r io.Reader) {
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	switch m.Kind {
	case connector.TGZ:
		gz, err := gzip.NewReader(bytes.NewReader(m.Artifact()))
		if err != nil {
			t.Fatal(err)
		}
		archive := tar.NewReader(gz)
		for {
			h, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			write(h.Name, archive)
		}
	case connector.ZIP:
		archive, err := zip.NewReader(bytes.NewReader(m.Artifact()), int64(len(m.Artifact())))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.File {
			in, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			write(f.Name, in)
			_ = in.Close()
		}
	default:
		t.Fatalf("%s is a %s", name, m.Kind)
	}
	made, err := os.ReadDir(dir)
	if err != nil || len(made) != 1 {
		t.Fatalf("%s unpacks into %v, not into one folder: %v", name, made, err)
	}
	return filepath.Join(dir, made[0].Name())
}

// output is what a program has written so far.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	address chan string // where it listens, once
	ended   chan struct{}
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// listens finds the address in the line with which a site, or PHP's own server, says that it is ready.
var listens = regexp.MustCompile(`(?:^ready |Development Server \()(http://[^\s)]+)`)

func (o *output) follow(r io.Reader) {
	defer close(o.ended)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	said := false
	for lines.Scan() {
		o.mu.Lock()
		o.text.WriteString(lines.Text() + "\n")
		o.mu.Unlock()
		if found := listens.FindStringSubmatch(lines.Text()); found != nil && !said {
			said = true
			o.address <- found[1]
		}
	}
}

// leash runs a program in the process group of a shell whose standard input comes from this process. When that ends, however it does,
// the shell ends the whole group: itself, the program and its children. The output is the program's alone, so that it ends with it.
const leash = `exec 3<&0; "$@" 3<&- </dev/null & exec >/dev/null 2>&1; cat <&3; kill -KILL 0`

// start runs a site until the test ends, and returns where it listens and what it says.
func start(t *testing.T, env map[string]string, program string, args ...string) (address string, said *output) {
	t.Helper()
	said = launch(t, env, program, args...)
	select {
	case address = <-said.address:
	case <-said.ended:
		t.Fatalf("%s has ended:\n%s", program, said)
	case <-t.Context().Done():
		t.Fatalf("%s is not ready", program)
	}
	return address, said
}

// launch runs a program until the test ends.
func launch(t *testing.T, env map[string]string, program string, args ...string) (said *output) {
	t.Helper()
	cmd := exec.Command("/bin/sh", append([]string{"-c", leash, "leash", program}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LC_ALL=C", "TZ=UTC"}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stop, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	said = &output{address: make(chan string, 1), ended: make(chan struct{})}
	go said.follow(read)
	t.Cleanup(func() {
		_ = stop.Close()
		_ = cmd.Wait()
		<-said.ended
		_ = read.Close()
		if t.Failed() {
			t.Logf("%s said:\n%s", program, said)
		}
	})
	return said
}
