package faultnet

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds the wait for what must come; nothing is judged by how long it took.
const patience = 30 * time.Second

// echo starts a server that sends everything back, and returns its address.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	t.Cleanup(func() { _ = listener.Close(); <-ended })
	return listener.Addr().String()
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := conn.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, conn net.Conn, want string) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Fatalf("got %q, %v; want %q", got, err, want)
	}
}

// ended checks that the peer has closed the connection.
func ended(t *testing.T, conn net.Conn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	if n, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read %d bytes, %v; want the end of the connection", n, err)
	}
}

// refused checks that a new connection is closed, be it before or after the dial returns.
func refused(t *testing.T, addr string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer conn.Close()
	ended(t, conn)
}

// await waits until the counters show what the test needs to go on.
func await(t *testing.T, p *Proxy, what string, shown func(Counts) bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !shown(p.Counts()); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s never shows: %+v", what, p.Counts())
		}
	}
}

// silent checks that nothing comes for a while.
func silent(t *testing.T, conn net.Conn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := conn.Read(make([]byte, 64)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read %d bytes, %v; want silence", n, err)
	}
}

func TestPassesBytesAndTheEndOfOneDirection(t *testing.T) {
	p := New(t, echo(t))
	conn := dial(t, p.Addr())
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB: more than any one buffer holds.
	go func() {
		_, _ = conn.Write(sent)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	got, err := io.ReadAll(conn)
	if err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("%d bytes came back, %v; want %d", len(got), err, len(sent))
	}
	c := p.Counts()
	if want := (Counts{Accepted: 1, Bytes: 2 * int64(len(sent))}); c != want {
		t.Fatalf("counts %+v, want %+v", c, want)
	}
}

func TestCutEndsOpenConnectionsAndRefusesNewOnes(t *testing.T) {
	p := New(t, echo(t))
	conn := dial(t, p.Addr())
	send(t, conn, "a")
	receive(t, conn, "a")

	p.Cut()
	ended(t, conn)
	refused(t, p.Addr())
	await(t, p, "the refusal", func(c Counts) bool { return c.Refused >= 1 })
	if c := p.Counts(); c.Severed != 1 || c.Refused != 1 {
		t.Fatalf("counts %+v, want 1 severed and 1 refused", c)
	}

	p.Restore()
	again := dial(t, p.Addr())
	send(t, again, "b")
	receive(t, again, "b")
}

func TestStallHoldsOpenAndNewConnectionsUntilRestored(t *testing.T) {
	p := New(t, echo(t))
	open := dial(t, p.Addr())
	send(t, open, "a")
	receive(t, open, "a")

	p.Stall()
	send(t, open, "b")
	late := dial(t, p.Addr())
	send(t, late, "c")
	await(t, p, "a stall of both", func(c Counts) bool { return c.Held >= 2 })
	silent(t, open)
	silent(t, late)
	if c := p.Counts(); c.Accepted != 1 {
		t.Fatalf("the target was reached in a stall: %+v", c)
	}

	p.Restore()
	receive(t, open, "b")
	receive(t, late, "c")
}

func TestCutEndsAStall(t *testing.T) {
	p := New(t, echo(t))
	conn := dial(t, p.Addr())
	p.Stall()
	send(t, conn, "a")
	await(t, p, "the stall", func(c Counts) bool { return c.Held >= 1 })
	p.Cut()
	ended(t, conn)
}

func TestSlowDelaysButDelivers(t *testing.T) {
	p := New(t, echo(t))
	conn := dial(t, p.Addr())
	p.Slow(20 * time.Millisecond)
	begun := time.Now()
	send(t, conn, "a")
	receive(t, conn, "a")
	if took := time.Since(begun); took < 40*time.Millisecond {
		t.Fatalf("there and back took %v, less than two delays", took)
	}
	if c := p.Counts(); c.Delayed != 2 {
		t.Fatalf("counts %+v, want 2 delayed", c)
	}
	p.Slow(time.Hour)
	send(t, conn, "b")
	await(t, p, "the delay", func(c Counts) bool { return c.Delayed == 3 })
	p.Restore() // It does not wait out a delay that has begun.
	receive(t, conn, "b")
}

func TestADeadTargetClosesTheConnection(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := listener.Addr().String()
	_ = listener.Close()
	refused(t, New(t, dead).Addr())
}

func TestEndsWithTheTestInEveryFault(t *testing.T) {
	faults := map[string]func(*Proxy){
		"none":  func(*Proxy) {},
		"cut":   (*Proxy).Cut,
		"stall": (*Proxy).Stall,
		"slow":  func(p *Proxy) { p.Slow(time.Hour) },
	}
	target := echo(t)
	for name, set := range faults {
		t.Run(name, func(t *testing.T) {
			p := New(t, target)
			conn := dial(t, p.Addr())
			send(t, conn, "a")
			receive(t, conn, "a")
			set(p)
			_, _ = conn.Write([]byte("b"))                          // A cut may have closed it.
			if late, err := net.Dial("tcp", p.Addr()); err == nil { // Nor is a new one sure to be taken.
				t.Cleanup(func() { _ = late.Close() })
			}
		})
	}
	// TestMain finds what they left behind.
}
