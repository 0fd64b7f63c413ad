package testenv

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPostgresGivesEachTestASchemaOfItsOwn(t *testing.T) {
	a, b := Postgres(t), Postgres(t)
	if a.Schema == b.Schema {
		t.Fatalf("both are %s", a.Schema)
	}
	for _, pg := range []*PG{a, b} {
		conn := pg.Conn(t)
		if _, err := conn.Exec(t.Context(), "create table journal (n int)"); err != nil {
			t.Fatal(err)
		}
		var schema string
		if err := conn.QueryRow(t.Context(), "select current_schema").Scan(&schema); err != nil || schema != pg.Schema {
			t.Fatalf("current schema %q, %v; want %q", schema, err, pg.Schema)
		}
	}
}

func TestPostgresDropsTheSchemaAfterTheTest(t *testing.T) {
	watcher := Postgres(t).Conn(t)
	var schema string
	t.Run("inner", func(t *testing.T) {
		inner := Postgres(t)
		schema = inner.Schema
		if _, err := inner.Conn(t).Exec(t.Context(), "create table left_behind ()"); err != nil {
			t.Fatal(err)
		}
	})
	var left int
	err := watcher.QueryRow(t.Context(), "select count(*) from pg_namespace where nspname = $1", schema).Scan(&left)
	if err != nil || left != 0 {
		t.Fatalf("%d schemas named %s remain, %v", left, schema, err)
	}
}

func TestOwnPostgresKeepsWhatItAcknowledged(t *testing.T) {
	s := OwnPostgres(t)
	ends := []struct {
		name string
		end  func()
	}{{"stop", s.Stop}, {"kill", s.Kill}, {"kill while paused", func() { s.Pause(); s.Kill() }}}
	if _, err := s.Conn(t).Exec(t.Context(), "create table kept (name text)"); err != nil {
		t.Fatal(err)
	}
	for i, c := range ends {
		if _, err := s.Conn(t).Exec(t.Context(), "insert into kept values ($1)", c.name); err != nil {
			t.Fatalf("before %s: %v", c.name, err)
		}
		c.end()
		if conn, err := net.Dial("tcp", s.Addr); err == nil {
			_ = conn.Close()
			t.Fatalf("after %s somebody listens still", c.name)
		}
		s.Start()
		var kept int
		if err := s.Conn(t).QueryRow(t.Context(), "select count(*) from kept").Scan(&kept); err != nil || kept != i+1 {
			t.Fatalf("after %s: %d rows, %v; want %d", c.name, kept, err, i+1)
		}
	}
	var fsync string
	if err := s.Conn(t).QueryRow(t.Context(), "show fsync").Scan(&fsync); err != nil || fsync != "on" {
		t.Fatalf("fsync is %q, %v", fsync, err)
	}
}

func TestOwnPostgresPausesOpenSessions(t *testing.T) {
	s := OwnPostgres(t)
	conn, err := pgx.Connect(t.Context(), s.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())

	s.Pause()
	answered := make(chan error, 1)
	go func() { answered <- conn.Ping(t.Context()) }()
	select {
	case err := <-answered:
		t.Fatalf("a paused server answered: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	s.Resume()
	if err := <-answered; err != nil {
		t.Fatalf("after Resume: %v", err)
	}
}

func TestValkeyForgetsTheKeysOfTheTest(t *testing.T) {
	outer := Valkey(t)
	client := outer.Client(t)
	set := func(key string) {
		t.Helper()
		if err := client.Do(t.Context(), client.B().Set().Key(key).Value("1").Build()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	set(outer.Prefix + "mine")
	var inner string
	t.Run("inner", func(t *testing.T) {
		inner = Valkey(t).Prefix
		for _, name := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
			set(inner + "{room}:" + name)
		}
	})
	for prefix, want := range map[string]int{inner: 0, outer.Prefix: 1} {
		keys, err := client.Do(t.Context(), client.B().Keys().Pattern(prefix+"*").Build()).AsStrSlice()
		if err != nil || len(keys) != want {
			t.Fatalf("%s has keys %v, %v; want %d", prefix, keys, err, want)
		}
	}
}

func TestOwnValkeyComesBackEmpty(t *testing.T) {
	s := OwnValkey(t)
	losses := map[string]func(){
		"stop":  func() { s.Stop(); s.Start() },
		"kill":  func() { s.Kill(); s.Start() },
		"flush": s.FlushAll,
	}
	for name, lose := range losses {
		if reply, err := call(s.Addr, "SET k v"); err != nil || reply != "+OK" {
			t.Fatalf("before %s: %q, %v", name, reply, err)
		}
		lose()
		if reply, err := call(s.Addr, "EXISTS k"); err != nil || reply != ":0" {
			t.Fatalf("after %s: %q, %v", name, reply, err)
		}
	}
}

func TestOwnValkeyPauses(t *testing.T) {
	s := OwnValkey(t)
	s.Pause()
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatalf("a paused server accepts no connection: %v", err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, err := conn.Read(make([]byte, 16)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a paused server answered %d bytes, %v", n, err)
	}
	s.Resume()
	_ = conn.SetReadDeadline(time.Now().Add(startLimit))
	if _, err := conn.Read(make([]byte, 16)); err != nil {
		t.Fatalf("after Resume: %v", err)
	}
}

func TestChromiumRuns(t *testing.T) {
	out, err := exec.Command(Chromium(t), "--version").Output()
	if err != nil || !strings.Contains(string(out), "Chrom") {
		t.Fatalf("%s, %v", out, err)
	}
}

// The servers must end with the test binary, also when it is killed: it re-executes itself, is
// killed with its servers running, and they have to go.
func TestServersEndWithTheTestBinary(t *testing.T) {
	if os.Getenv("TESTENV_CHILD") != "" {
		s, v := OwnPostgres(t), OwnValkey(t)
		os.Stdout.WriteString("servers " + s.Addr + " " + v.Addr + " " + s.cluster.dir + " " + v.instance.dir + "\n")
		select {}
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), "TESTENV_CHILD=1")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 4096)
	n, err := out.Read(line)
	fields := strings.Fields(string(line[:n]))
	_ = child.Process.Kill()
	_ = child.Wait()
	if err != nil || len(fields) != 5 || fields[0] != "servers" {
		t.Fatalf("the child said %q, %v", line[:n], err)
	}
	gone := until(startLimit, func() bool {
		for _, addr := range fields[1:3] {
			if conn, err := net.Dial("tcp", addr); err == nil {
				_ = conn.Close()
				return false
			}
		}
		for _, dir := range fields[3:] {
			if _, err := os.Stat(dir); err == nil {
				return false
			}
		}
		return true
	})
	if !gone {
		t.Fatalf("servers or their files outlive the test binary: %v", fields)
	}
}
