package testenv

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// PostgresVariable is the environment variable that names a running server for [Postgres]: a URL
// whose user may create schemas, and roles where a test needs them.
const PostgresVariable = "QM_TEST_POSTGRES_URL"

const postgresHint = "run scripts/deps.sh as root, or set " + PostgresVariable

// PG is a place in a PostgreSQL server where one test may do as it likes.
type PG struct {
	// DSN is a URL for pgx (and for DATABASE_URL) whose search_path is Schema alone.
	DSN string
	// Addr is the server's host:port, for a proxy to stand in front of.
	Addr string
	// Schema exists and is empty at first. It is dropped after the test.
	Schema string

	t testing.TB
}

// Postgres gives the test an empty schema in the shared server.
//
// Advisory locks, LISTEN channels and roles are not kept apart by a schema. A test that depends on
// having them for itself takes [OwnPostgres].
func Postgres(t testing.TB) *PG {
	t.Helper()
	dsn := os.Getenv(PostgresVariable)
	if dsn == "" {
		var err error
		if dsn, err = sharedPostgres(); err != nil {
			t.Fatalf("testenv: %v", err)
		}
	}
	pg := &PG{t: t}
	pg.open(dsn)
	t.Cleanup(pg.drop)
	return pg
}

// Via returns the DSN with another host:port in it, such as a proxy's.
func (pg *PG) Via(addr string) string {
	u, _ := url.Parse(pg.DSN) // open has parsed it once.
	u.Host = addr
	return u.String()
}

// Conn opens a connection that is closed after the test.
func (pg *PG) Conn(t testing.TB) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), pg.DSN)
	if err != nil {
		t.Fatalf("testenv: connect to Postgres: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// open creates the schema and fills in the fields.
func (pg *PG) open(dsn string) {
	pg.t.Helper()
	u, err := url.Parse(dsn)
	if err != nil || u.Host == "" {
		pg.t.Fatalf("testenv: %s must be a URL such as postgres://user@127.0.0.1:5432/db", PostgresVariable)
	}
	pg.Addr = u.Host
	if u.Port() == "" {
		pg.Addr += ":5432"
	}
	pg.Schema = unique(pg.t)
	query := u.Query()
	query.Set("search_path", pg.Schema)
	u.RawQuery = query.Encode()
	pg.DSN = u.String()
	if err := pg.execute("create schema " + pg.Schema); err != nil {
		pg.t.Fatalf("testenv: create a schema in Postgres: %v (%s)", err, postgresHint)
	}
}

// drop removes the schema. A test that still holds locks in it has left a connection open.
func (pg *PG) drop() {
	err := pg.execute("set lock_timeout = '10s'; set client_min_messages = warning; drop schema " + pg.Schema + " cascade")
	if err != nil {
		pg.t.Errorf("testenv: drop schema %s: %v (a pool or transaction left open?)", pg.Schema, err)
	}
}

// execute runs SQL on a connection of its own. It takes no context of the test, which is over when
// cleanups run.
func (pg *PG) execute(sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	conn, err := pgx.Connect(ctx, pg.DSN)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
	return errors.Join(err, conn.Close(ctx))
}

// PGServer is a PostgreSQL server that belongs to one test, with fsync on: what it acknowledged
// survives [PGServer.Kill].
type PGServer struct {
	PG
	cluster *cluster
}

// OwnPostgres starts a server for this test alone, which takes one to two seconds. Its address stays
// the same over Stop, Kill and Start.
func OwnPostgres(t testing.TB) *PGServer {
	t.Helper()
	c, err := newCluster(true)
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	t.Cleanup(func() {
		if err := c.remove(); err != nil {
			t.Errorf("testenv: %v", err)
		}
	})
	s := &PGServer{PG: PG{t: t}, cluster: c}
	s.Start()
	s.open(c.dsn())
	return s
}

// Start starts the server after [PGServer.Stop] or [PGServer.Kill] and waits until it answers.
func (s *PGServer) Start() {
	s.t.Helper()
	s.must("start Postgres", s.cluster.start())
}

// Stop ends the server in order: sessions are cut and everything is written out.
func (s *PGServer) Stop() {
	s.t.Helper()
	s.must("stop Postgres", s.cluster.stop(syscall.SIGINT))
}

// Kill ends the server and its sessions with SIGKILL.
func (s *PGServer) Kill() {
	s.t.Helper()
	s.must("kill Postgres", s.cluster.kill())
}

// Pause stops the server's processes with SIGSTOP: connections stay open and nothing answers. It
// returns when all of them stand still. Linux only.
func (s *PGServer) Pause() {
	s.t.Helper()
	s.must("pause Postgres", s.cluster.pause())
}

// Resume undoes [PGServer.Pause].
func (s *PGServer) Resume() {
	s.t.Helper()
	s.must("resume Postgres", s.cluster.resume())
}

func (s *PGServer) must(what string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("testenv: %s: %v", what, err)
	}
}

// sharedPostgres starts the server of this test binary. It is never stopped here: its guard does
// that when the binary has ended. It writes nothing through to the disk, since nobody kills it.
var sharedPostgres = sync.OnceValues(func() (string, error) {
	c, err := newCluster(false)
	if err != nil {
		return "", err
	}
	if err := c.start(); err != nil {
		return "", errors.Join(err, c.remove())
	}
	shared.cluster = c
	return c.dsn(), nil
})

// cluster is a data directory and the server that runs on it, if one does.
type cluster struct {
	programs string // where initdb and postgres are
	dir      string
	port     int
	durable  bool
	as       *syscall.Credential
	server
}

func newCluster(durable bool) (*cluster, error) {
	programs, err := postgresPrograms()
	if err != nil {
		return nil, err
	}
	as, err := servant()
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := dataDir("qm-postgres-", as)
	if err != nil {
		return nil, err
	}
	c := &cluster{programs: programs, dir: dir, port: port, durable: durable, as: as}
	initdb := exec.Command(filepath.Join(programs, "initdb"), "--pgdata="+c.data(), "--username=qm", "--auth=trust",
		"--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
	initdb.Dir, initdb.Env, initdb.SysProcAttr = dir, environ(dir), attributes(as)
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("make a Postgres data directory: %w:\n%s", err, out), c.remove())
	}
	return c, nil
}

func (c *cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *cluster) dsn() string {
	return "postgres://qm@" + loopback(c.port) + "/postgres?sslmode=disable"
}

func (c *cluster) start() error {
	args := []string{"-D", c.data(), "-p", strconv.Itoa(c.port), "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories=", "-c", "max_connections=300", "-c", "shared_buffers=64MB"}
	if !c.durable {
		args = append(args, "-c", "fsync=off", "-c", "full_page_writes=off")
	}
	return c.server.start(c.dir, c.as, c.answers, filepath.Join(c.programs, "postgres"), args...)
}

// answers tells whether the server takes a query.
func (c *cluster) answers() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.dsn())
	if err != nil {
		return false
	}
	err = conn.Ping(ctx)
	return errors.Join(err, conn.Close(ctx)) == nil
}

// remove ends the server, if it runs, and removes its files.
func (c *cluster) remove() error {
	return errors.Join(c.server.remove(), os.RemoveAll(c.dir))
}

// postgresPrograms returns the directory with initdb and postgres: the newest of Debian's, or the
// one on PATH.
func postgresPrograms() (string, error) {
	best, newest := "", -1
	debian, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	for _, path := range debian {
		bin := filepath.Dir(path)
		version, err := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
		if err == nil && version > newest {
			best, newest = bin, version
		}
	}
	if best != "" {
		return best, nil
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return strings.TrimSuffix(filepath.Dir(path), "/"), nil
		}
	}
	return "", errors.New("no PostgreSQL found: " + postgresHint)
}
