// Package testenv finds or starts the real parts that tests run against: PostgreSQL, Valkey,
// Chromium, and the programs that connectors live in. Only tests may import it (internal/archtest holds that).
//
// A part that is missing fails the test with one line that says how to install it. Nothing is
// skipped: a suite that passes without its database has proved nothing (architecture.md, "Tests").
//
// [Postgres] and [Valkey] share one server among all tests and keep them apart with a schema or a
// key prefix of their own. The shared server is the one that QM_TEST_POSTGRES_URL or
// QM_TEST_VALKEY_URL names; without it each test binary starts one at first use. [OwnPostgres] and
// [OwnValkey] give a test a server that it may stop, stall and kill.
//
// No server outlives the test binary, however that one ends, and none keeps a goroutine of the
// binary, so that goleak sees only what the code under test left behind.
//
// The methods of what this package returns end the test with Fatal when they fail, so they are to
// be called on the test's own goroutine.
package testenv

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// startLimit bounds a server's start. It is generous because a suite loads every core.
	startLimit = 60 * time.Second
	// stopLimit bounds a stop, after which the server is killed and the test fails.
	stopLimit = 20 * time.Second
	// pollEvery is the pause between two looks at something that the system announces by no event.
	pollEvery = 5 * time.Millisecond
)

// until calls ready until it reports true or the limit is over.
func until(limit time.Duration, ready func() bool) bool {
	for deadline := time.Now().Add(limit); ; time.Sleep(pollEvery) {
		if ready() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

// unique returns a name of at most 48 bytes of a-z, 0-9 and _ that no other test has, beginning
// like the test's own so that a leftover can be traced to it.
func unique(t testing.TB) string {
	readable := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '_'
	}, strings.TrimPrefix(t.Name(), "Test"))
	if len(readable) > 28 {
		readable = readable[:28]
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // Never fails: crypto/rand ends the program instead.
	return "t_" + readable + "_" + hex.EncodeToString(random[:])
}

// freePort returns a TCP port of the loopback that nobody listens on. It lies below the range from
// which systems take the ports of outgoing connections, so that it stays free while the server that
// will have it is stopped.
func freePort() (int, error) {
	for range 200 {
		port := 12000 + mathrand.IntN(20000)
		l, err := net.Listen("tcp", loopback(port))
		if err != nil {
			continue
		}
		return port, l.Close()
	}
	return 0, fmt.Errorf("find a free port between 12000 and 32000: all that were tried are taken")
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// servant is the user whom servers run as: nil for the user of the test itself. Postgres refuses to
// run as root, so root's servers drop to the distribution's postgres user or to nobody.
func servant() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		if errUID == nil && errGID == nil && uid != 0 {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, fmt.Errorf("find a user for servers: root may not run Postgres, and there is no user postgres or nobody")
}

// dataDir makes a directory that belongs to the servant. It is not t.TempDir, whose parents only the
// test's own user may enter.
func dataDir(pattern string, as *syscall.Credential) (string, error) {
	dir, err := os.MkdirTemp("", pattern)
	if err != nil {
		return "", fmt.Errorf("make a data directory: %w", err)
	}
	if as != nil {
		if err := os.Chown(dir, int(as.Uid), int(as.Gid)); err != nil {
			_ = os.RemoveAll(dir)
			return "", fmt.Errorf("give the data directory to uid %d: %w", as.Uid, err)
		}
	}
	return dir, nil
}
