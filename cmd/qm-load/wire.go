package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"
)

// wire is a lean keep-alive HTTP/1.1 client: it sends bytes that are ready and understands no more of an answer than where it
// ends, so that on two cores it is the server that is measured. Answers must have a Content-Length.
type wire struct {
	conn net.Conn
	buf  []byte
}

func dialWire(addr string) (*wire, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &wire{conn: conn, buf: make([]byte, 0, 4096)}, nil
}

var (
	headEnd       = []byte("\r\n\r\n")
	contentLength = []byte("\r\nContent-Length: ")
)

// roundTrip sends a request and reads its answer, whose body is good until the next call.
func (w *wire) roundTrip(request []byte) (status int, head, body []byte, err error) {
	if _, err := w.conn.Write(request); err != nil {
		return 0, nil, nil, err
	}
	w.buf = w.buf[:0]
	end, size := -1, 0
	for end < 0 || len(w.buf) < end+size {
		if len(w.buf) == cap(w.buf) {
			w.buf = append(w.buf, 0)[:len(w.buf)]
		}
		n, err := w.conn.Read(w.buf[len(w.buf):cap(w.buf)])
		if err != nil {
			return 0, nil, nil, fmt.Errorf("read an answer: %w", err)
		}
		w.buf = w.buf[:len(w.buf)+n]
		if end >= 0 {
			continue
		}
		if end = bytes.Index(w.buf, headEnd); end < 0 {
			continue
		}
		end += len(headEnd)
		i := bytes.Index(w.buf[:end], contentLength)
		if i < 0 {
			return 0, nil, nil, errors.New("an answer without Content-Length")
		}
		for _, c := range w.buf[i+len(contentLength):] {
			if c < '0' || c > '9' {
				break
			}
			size = size*10 + int(c-'0')
		}
	}
	if len(w.buf) < 12 {
		return 0, nil, nil, errors.New("an answer without a status")
	}
	status, err = strconv.Atoi(string(w.buf[9:12]))
	return status, w.buf[:end], w.buf[end : end+size], err
}

// fleet is a number of clients of one server.
type fleet struct {
	wires []*wire
	next  func(client, n int, into []byte) []byte // makes the n-th request of a client in into[:0]
}

func newFleet(addr string, clients int, next func(client, n int, into []byte) []byte) (*fleet, error) {
	f := &fleet{next: next}
	for range clients {
		w, err := dialWire(addr)
		if err != nil {
			f.close()
			return nil, err
		}
		f.wires = append(f.wires, w)
	}
	return f, nil
}

func (f *fleet) close() {
	for _, w := range f.wires {
		_ = w.conn.Close()
	}
}

// run lets all clients send until the slice is over and returns answers a second.
func (f *fleet) run(slice time.Duration) (float64, error) {
	var done atomic.Int64
	var client atomic.Int64
	elapsed, err := together(len(f.wires), slice, func(over *atomic.Bool) error {
		i := int(client.Add(1)) - 1
		w, request, own := f.wires[i], make([]byte, 0, 1024), 0
		for ; !over.Load(); own++ {
			request = f.next(i, own, request)
			status, _, body, err := w.roundTrip(request)
			if err != nil {
				return err
			}
			if status != 200 {
				return fmt.Errorf("answered %d: %s", status, body)
			}
		}
		done.Add(int64(own))
		return nil
	})
	return float64(done.Load()) / elapsed.Seconds(), err
}
