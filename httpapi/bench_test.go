package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"qm/access/token"
	"qm/engine/room"
)

// line is a room with n waiting, and the token of its last.
func benchLine(b *testing.B, n int) (*Server, string) {
	b.Helper()
	w := newBenchWorld(b)
	set := room.DefaultSettings()
	set.Name, set.TargetURL = "Bench", testTarget
	ctx := b.Context()
	if _, err := w.engine.Create(ctx, "bench", "admin", set, room.Paused, time.Time{}); err != nil {
		b.Fatal(err)
	}
	for i := range n {
		if _, err := w.engine.Join(ctx, "bench", "a-session-of-the-bench-"+strconv.Itoa(i), prefixOf(w.server.o.Proxies.Client(&http.Request{RemoteAddr: addrOf(i) + ":1"})), 0); err != nil {
			b.Fatal(err)
		}
	}
	return w.server, w.keys.SignVisitor(token.Visitor{Room: "bench", Ticket: uint32(n), Generation: 1, IssuedAt: time.Now().UnixMilli()})
}

type discard struct{ h http.Header }

func (d *discard) Header() http.Header         { return d.h }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

// BenchmarkStatusHandler is the handler alone, without net/http.
func BenchmarkStatusHandler(b *testing.B) {
	s, t := benchLine(b, 1000)
	r, err := http.NewRequest("GET", "/api/v1/status?token="+t, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.RemoteAddr = "198.51.100.1:4711"
	d := &discard{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(d.h)
		s.ServeHTTP(d, r)
	}
}

// BenchmarkStatusRatio is status over HTTP against a bare handler that answers as many bytes, in alternating slices of one run (issue 2).
func BenchmarkStatusRatio(b *testing.B) {
	s, t := benchLine(b, 1000)
	body := []byte(`{"state":"paused","position":1000,"ahead":999,"etaSec":null,"passed":false}`)
	bare := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = w.Write(body)
	})
	path := "/api/v1/status?token=" + t
	base, candidate := dialTo(b, bare), dialTo(b, s)
	const calls = 2000
	run := func(c *benchConn) float64 {
		start := time.Now()
		for range calls {
			c.get(b, path)
		}
		return float64(time.Since(start))
	}
	run(base)
	run(candidate)
	var ratios []float64
	for b.Loop() {
		before, own, after := run(base), run(candidate), run(base)
		ratios = append(ratios, (before+after)/2/own)
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "ratio")
	b.ReportMetric(0, "ns/op")
}

// benchConn is one keep-alive connection that costs little on the client's side.
type benchConn struct {
	conn net.Conn
	in   *bufio.Reader
}

func dialTo(b *testing.B, h http.Handler) *benchConn {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: h}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close(); server.Close(); <-done })
	return &benchConn{conn, bufio.NewReader(conn)}
}

func (c *benchConn) get(b *testing.B, path string) {
	if _, err := fmt.Fprintf(c.conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path); err != nil {
		b.Fatal(err)
	}
	length := 0
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			b.Fatal(err)
		}
		if len(line) > 16 && string(line[:16]) == "Content-Length: " {
			length, _ = strconv.Atoi(string(line[16 : len(line)-2]))
		}
		if len(line) == 2 {
			break
		}
	}
	if _, err := io.CopyN(io.Discard, c.in, int64(length)); err != nil {
		b.Fatal(err)
	}
}
