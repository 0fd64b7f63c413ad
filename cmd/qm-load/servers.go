package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// servers are the Postgres and the Valkey to measure on: those of DATABASE_URL and VALKEY_URL, or ones of our own, which
// scripts/servers.sh starts with fsync on.
type servers struct {
	postgres, valkey string
	stderr           io.Writer
	shell            *exec.Cmd
	leash            io.Closer // the shell ends its servers when this closes, however we end
}

func newServers(stderr io.Writer) *servers {
	return &servers{postgres: os.Getenv("DATABASE_URL"), valkey: os.Getenv("VALKEY_URL"), stderr: stderr}
}

// serversScript starts both, says where they are, and ends them when its standard input closes.
const serversScript = `set -euo pipefail
. "$1"
dir=$(mktemp -d)
trap 'servers_stop; rm -rf "$dir"' EXIT
trap '' INT
chmod 755 "$dir"
servers_start "$dir" durable
echo "$POSTGRES_URL"
echo "$VALKEY_URL"
cat >/dev/null`

// start makes sure that both are there.
func (s *servers) start() error {
	if s.postgres != "" && s.valkey != "" {
		return nil
	}
	script, err := findScript()
	if err != nil {
		return err
	}
	s.shell = exec.Command("bash", "-c", serversScript, "qm-load", script)
	s.shell.Stderr = s.stderr
	s.shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt ends us first
	out, err := s.shell.StdoutPipe()
	if err != nil {
		return err
	}
	if s.leash, err = s.shell.StdinPipe(); err != nil {
		return err
	}
	if err := s.shell.Start(); err != nil {
		return fmt.Errorf("start the servers: %w", err)
	}
	lines := bufio.NewScanner(out)
	for _, location := range []*string{&s.postgres, &s.valkey} {
		if !lines.Scan() {
			return errors.New("start the servers: they did not come up; set DATABASE_URL and VALKEY_URL instead")
		}
		if *location == "" {
			*location = strings.TrimSpace(lines.Text())
		}
	}
	return nil
}

func (s *servers) stop() {
	if s.shell != nil {
		_ = s.leash.Close()
		_ = s.shell.Wait()
		s.shell = nil
	}
}

// findScript looks for scripts/servers.sh from the working directory upwards.
func findScript() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		script := filepath.Join(dir, "scripts", "servers.sh")
		if _, err := os.Stat(script); err == nil {
			return script, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no servers to measure on: run this inside the repository, or set DATABASE_URL and VALKEY_URL")
		}
		dir = parent
	}
}

// place is an empty schema in Postgres and a key prefix in Valkey for one subject.
type place struct {
	database, valkey string
	prefix           string
	drop             func()
}

// place makes one. Each subject has its own, so that none measures another's leftovers.
func (s *servers) place(ctx context.Context) (*place, error) {
	if err := s.start(); err != nil {
		return nil, err
	}
	var random [6]byte
	_, _ = rand.Read(random[:]) // never fails
	name := "qm_load_" + hex.EncodeToString(random[:])
	u, err := url.Parse(s.postgres)
	if err != nil {
		return nil, errors.New("DATABASE_URL is not a URL")
	}
	query := u.Query()
	query.Set("search_path", name)
	u.RawQuery = query.Encode()
	p := &place{database: u.String(), valkey: s.valkey, prefix: name + ":"}
	execute := func(ctx context.Context, sql string) error {
		conn, err := pgx.Connect(ctx, p.database)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
		return errors.Join(err, conn.Close(ctx))
	}
	if err := execute(ctx, "create schema "+name); err != nil {
		return nil, fmt.Errorf("make a schema in Postgres: %w", err)
	}
	p.drop = func() {
		ctx := context.WithoutCancel(ctx)
		if err := execute(ctx, "drop schema "+name+" cascade; checkpoint"); err != nil {
			fmt.Fprintf(s.stderr, "qm-load: schema %s stays behind: %v\n", name, err)
		}
		if err := forget(ctx, p); err != nil {
			fmt.Fprintf(s.stderr, "qm-load: keys %s* stay behind: %v\n", p.prefix, err)
		}
	}
	return p, nil
}
