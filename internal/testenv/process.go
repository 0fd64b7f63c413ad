package testenv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// guardScript ends the server $1 and removes its directory $2 when its standard input closes, which
// happens when the test binary is gone, for whatever reason. The loop waits at most 5 s.
const guardScript = `cat >/dev/null
kill -CONT "$1"; kill -QUIT "$1"
n=0
while kill -0 "$1" && [ "$n" -lt 100 ]; do sleep 0.05; n=$((n+1)); done
kill -KILL "$1"
rm -rf "$2"`

// process is one running server and the guard that ends it with the test binary.
type process struct {
	cmd   *exec.Cmd
	guard *exec.Cmd
	leash io.Closer // the guard waits for its end
	log   string    // path of what the server wrote
}

// environ is what servers see: nothing of the developer's own PG* variables or locale.
func environ(dir string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C", "TZ=UTC"}
}

// attributes put a server into a session of its own, so that an interrupt at the terminal reaches
// the test binary alone and the guard ends the server in order.
func attributes(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: as, Setsid: true}
}

// launch starts a server whose files are in dir.
func launch(dir string, as *syscall.Credential, path string, args ...string) (*process, error) {
	p := &process{log: filepath.Join(dir, "log")}
	// Files, not pipes: a pipe would need a goroutine here, and "go test" would wait for its end.
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the server's log: %w", err)
	}
	defer log.Close()

	p.cmd = exec.Command(path, args...)
	p.cmd.Dir, p.cmd.Env, p.cmd.SysProcAttr = dir, environ(dir), attributes(as)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(path), err)
	}

	p.guard = exec.Command("/bin/sh", "-c", guardScript, "guard", strconv.Itoa(p.pid()), dir)
	p.guard.SysProcAttr = attributes(nil)
	if p.leash, err = p.guard.StdinPipe(); err == nil {
		err = p.guard.Start()
	}
	if err != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		return nil, fmt.Errorf("start the guard of %s: %w", filepath.Base(path), err)
	}
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// end sends the signal to the server, waits for it to exit and calls the guard off. A server that
// ignores the signal is killed, which is an error.
func (p *process) end(s syscall.Signal) error {
	_ = p.guard.Process.Kill()
	_ = p.leash.Close()
	_ = p.guard.Wait()

	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal the server: %w", err)
	}
	ended := until(stopLimit, func() bool { return !running(p.pid()) })
	if !ended {
		_ = p.cmd.Process.Kill()
	}
	_ = p.cmd.Wait() // Its exit status says how it was ended, which we know.
	if !ended {
		return fmt.Errorf("the server ignored signal %v for %v:\n%s", s, stopLimit, p.tail())
	}
	return nil
}

// family is the server and all its descendants, ancestors first.
func (p *process) family() []int {
	parents := map[int]int{}
	entries, _ := filepath.Glob("/proc/[0-9]*")
	for _, entry := range entries {
		pid, _ := strconv.Atoi(filepath.Base(entry))
		if _, parent, ok := status(pid); ok {
			parents[pid] = parent
		}
	}
	family := []int{p.pid()}
	for i := 0; i < len(family); i++ {
		for pid, parent := range parents {
			if parent == family[i] {
				family = append(family, pid)
			}
		}
	}
	return family
}

// pause stops the server and its children, and returns when the system confirms that each of them
// stands still. The parent is first, so that it starts no child that is missed.
func (p *process) pause() error {
	if _, _, ok := status(p.pid()); !ok {
		return errors.New("pause the server: it is not running, or this system has no /proc")
	}
	stopped, quiet := map[int]bool{}, 0
	still := func() bool {
		quiet++
		for _, pid := range p.family() {
			if !stopped[pid] {
				_ = syscall.Kill(pid, syscall.SIGSTOP)
				stopped[pid], quiet = true, 0
			}
			if state, _, ok := status(pid); ok && state != 'T' && state != 'Z' {
				quiet = 0
			}
		}
		// Twice: a child born while we read the table shows in the next look.
		return quiet == 2
	}
	if !until(stopLimit, still) {
		return fmt.Errorf("pause the server: it still ran after %v", stopLimit)
	}
	return nil
}

// resume lets the server and its children go on.
func (p *process) resume() {
	for _, pid := range p.family() {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
}

// kill ends the server and its children at once, as a loss of power would, and returns when all are
// gone.
func (p *process) kill() error {
	_ = p.pause() // It must not start a child while we count them.
	family := p.family()
	for _, pid := range family {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err := p.end(syscall.SIGKILL); err != nil {
		return err
	}
	for _, pid := range family {
		if !until(stopLimit, func() bool { return !running(pid) }) {
			return fmt.Errorf("kill the server: its child %d lives on", pid)
		}
	}
	return nil
}

// tail returns the end of the server's log, for a failure message.
func (p *process) tail() string {
	const limit = 2000
	log, err := os.ReadFile(p.log)
	if err != nil {
		return "(no log: " + err.Error() + ")"
	}
	if len(log) > limit {
		log = log[len(log)-limit:]
	}
	return string(bytes.TrimSpace(log))
}

// running tells whether the process exists and has not ended; one that ended and was not waited for
// does not run.
func running(pid int) bool {
	if state, _, ok := status(pid); ok {
		return state != 'Z' && state != 'X'
	}
	if _, err := os.Stat("/proc/self"); err == nil {
		return false
	}
	return syscall.Kill(pid, 0) == nil
}

// status reads a process's state letter and parent from /proc.
func status(pid int) (state byte, parent int, ok bool) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, false
	}
	// The name, in parentheses, may hold anything, so the fields are counted from its end.
	_, rest, found := strings.Cut(string(line[bytes.LastIndexByte(line, ')'):]), " ")
	fields := strings.Fields(rest)
	if !found || len(fields) < 2 {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return fields[0][0], parent, err == nil
}
