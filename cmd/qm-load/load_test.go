package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestPairComparesWithItsNeighbours(t *testing.T) {
	// A machine that gets slower and slower: only neighbours can be compared.
	speed := 1024.0
	slice := func(factor float64) func() (float64, error) {
		return func() (float64, error) { speed /= 1.1; return factor * speed, nil }
	}
	p, err := pair(5, slice(1), slice(3))
	if err != nil || p.ratio < 2.9 || p.ratio > 3.0 {
		t.Fatalf("ratio %v, %v; three times as fast, a little less beside the mean of two bases", p.ratio, err)
	}
}

func TestSpread(t *testing.T) {
	var s spread
	for i := range 1000 {
		s.add(time.Duration(i+1) * time.Millisecond)
	}
	q := s.quantiles()
	for _, c := range []struct{ got, want float64 }{{q.Median, 500}, {q.P95, 950}, {q.P99, 990}, {q.Longest, 1000}} {
		if c.got < c.want*0.99 || c.got > c.want*1.06 {
			t.Errorf("got %.1f ms, want about %.0f", c.got, c.want)
		}
	}
}

func TestWireReadsAnswers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(bare))
	defer server.Close()
	w, err := dialWire(strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.conn.Close()
	for range 3 {
		status, _, body, err := w.roundTrip(appendJoin(nil, "shop", 7, true))
		if err != nil || status != 200 || !bytes.Equal(body, bareAnswer) {
			t.Fatalf("%d %q %v", status, body, err)
		}
	}
}

// TestSurge sends visitors to a server that lets each pass at its second poll, and refuses every tenth.
func TestSurge(t *testing.T) {
	var came, polls atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/join", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Forwarded-For") == "" {
			t.Error("a visitor without an address")
		}
		n := came.Add(1)
		if n%10 == 0 {
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprint(w, `{"code":"rate_limited"}`)
			return
		}
		http.SetCookie(w, &http.Cookie{Name: "qm_shop", Value: fmt.Sprint(n)})
		fmt.Fprint(w, `{"position":5,"passed":false}`)
	})
	var seen sync.Map
	mux.HandleFunc("GET /api/v1/status", func(w http.ResponseWriter, r *http.Request) {
		polls.Add(1)
		c, err := r.Cookie("qm_shop")
		if err != nil || r.URL.Query().Get("roomId") != "shop" {
			t.Error("a poll that shows no place")
			return
		}
		_, before := seen.LoadOrStore(c.Value, true)
		fmt.Fprintf(w, `{"position":2,"passed":%t}`, before)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	var out, problems bytes.Buffer
	code := run(context.Background(), []string{"surge", "--url", server.URL, "--room", "shop", "--rate", "1000", "--visitors", "50",
		"--poll", "100ms", "--for", "1m", "--forwarded", "--json"}, &out, &problems)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, problems.String())
	}
	var got struct {
		Visitors surgeOutcome
		Refusals map[string]int
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := surgeOutcome{Came: 50, Joined: 45, Passed: 45}
	if got.Visitors != want || got.Refusals["join: 429 rate_limited"] != 5 || polls.Load() != 90 {
		t.Fatalf("got %+v, %d polls", got, polls.Load())
	}
}

func TestWrongFlags(t *testing.T) {
	for _, args := range [][]string{
		nil, {"nothing"}, {"bench", "--only", "lunch"}, {"bench", "more"}, {"bench", "--wrong"},
		{"surge", "--url", "shop"}, {"surge", "--rate", "0"}, {"surge", "--for", "48h"}, {"surge", "--poll", "1ms"},
	} {
		var out, problems bytes.Buffer
		if code := run(context.Background(), args, &out, &problems); code != 2 || problems.Len() == 0 {
			t.Errorf("%v: exit code %d, %q", args, code, problems.String())
		}
	}
}

// TestBenchWithoutServers measures what needs none, to see that a report comes out. Whether bounds are met is for benchmarks to say.
func TestBenchWithoutServers(t *testing.T) {
	var out, problems bytes.Buffer
	if code := run(context.Background(), []string{"bench", "--quick", "--json", "--only", "rank,line-memory"}, &out, &problems); code != 0 {
		t.Fatalf("exit code %d: %s", code, problems.String())
	}
	var r Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || len(r.Figures) != 2 {
		t.Fatalf("%s: %v", out.String(), err)
	}
	var table bytes.Buffer
	if err := r.print(&table); err != nil || strings.Count(table.String(), "\n| ") != 3 {
		t.Fatalf("%v\n%s", err, table.String())
	}
}
