package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// residentVerb is how a bench calls itself: memory is measured in a process that has done nothing else.
const residentVerb = "resident"

// residence is what such a process reports.
type residence struct {
	Before, After, Idle int64 // resident bytes: with an almost empty room, right after the last join, and a while later
	Live                int64 // bytes of live heap, garbage aside
}

// warmTickets wait before the first look, so that what a process takes once is not counted.
const warmTickets = 2000

// measureResident weighs all of qm at work: engine, HTTP surface, journal in Postgres, projection in Valkey.
func measureResident(ctx context.Context, b *bench) ([]figure, error) {
	p, err := b.servers.place(ctx)
	if err != nil {
		return nil, err
	}
	defer p.drop()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	tickets := b.scale(1_000_000, 200_000)
	child := exec.CommandContext(ctx, self, residentVerb, "--tickets", strconv.Itoa(tickets), "--prefix", p.prefix)
	child.Env = append(os.Environ(), "DATABASE_URL="+p.database, "VALKEY_URL="+p.valkey)
	child.Stderr = os.Stderr
	out, err := child.Output()
	if err != nil {
		return nil, fmt.Errorf("the process to be weighed: %w", err)
	}
	var r residence
	if err := json.Unmarshal(out, &r); err != nil {
		return nil, err
	}
	each := func(bytes int64) float64 { return float64(bytes-r.Before) / float64(tickets-warmTickets) }
	return []figure{atMost(fmt.Sprintf("memory a waiting ticket, all of qm by resident memory at %s, bytes", grouped(tickets)), 120, each(r.Idle),
		"%.0f right after the last join; the process has %d MB, its live heap is %d MB", each(r.After), r.Idle>>20, r.Live>>20)}, nil
}

func runResident(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("qm-load "+residentVerb, flag.ContinueOnError)
	tickets := flags.Int("tickets", 1_000_000, "how many wait in the end")
	prefix := flags.String("prefix", "", "of the keys in Valkey")
	if err := parse(flags, args, stderr); err != nil {
		return err
	}
	p := &place{database: os.Getenv("DATABASE_URL"), valkey: os.Getenv("VALKEY_URL"), prefix: *prefix}
	h, err := openHouse(ctx, p, houseOptions{projected: true})
	if err != nil {
		return err
	}
	report, err := h.weigh(ctx, *tickets)
	if err := errors.Join(err, h.stop()); err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(report)
}

func (h *house) weigh(ctx context.Context, tickets int) (r residence, err error) {
	const callers = 500
	if err = h.createRoom(ctx); err != nil {
		return r, err
	}
	if err = h.fill(ctx, callers, warmTickets); err != nil {
		return r, err
	}
	if r.Before, err = residentBytes(); err != nil {
		return r, err
	}
	if err = h.fill(ctx, callers, tickets-warmTickets); err != nil {
		return r, err
	}
	if r.After, err = residentBytes(); err != nil {
		return r, err
	}
	select {
	case <-ctx.Done():
		return r, ctx.Err()
	case <-time.After(10 * time.Second): // the runtime gives back what a surge left over
	}
	if r.Idle, err = residentBytes(); err != nil {
		return r, err
	}
	r.Live = int64(liveHeap())
	return r, nil
}

// residentBytes asks the system how much memory this process has.
func residentBytes() (int64, error) {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("resident memory can be read on Linux alone: %w", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
			return kb << 10, err
		}
	}
	return 0, errors.New("the system does not say how much memory this process has")
}
