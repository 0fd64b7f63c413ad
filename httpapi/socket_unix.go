//go:build unix

package httpapi

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// sendBuffer is how many bytes the system keeps for a page that does not read, about: some tens of frames.
const sendBuffer = 16 << 10

// socket is the wire of a page whose connection was taken over: a descriptor and nothing more. What the net package and the runtime's
// poller keep of a connection, a kilobyte and a half, is for goroutines that wait on it, and nobody waits here.
type socket struct {
	fd     int
	closed func() // counts it no more
}

func isSocket(c net.Conn) bool {
	switch c.(type) {
	case *net.TCPConn, *net.UnixConn:
		return true
	}
	return false
}

// newSocket makes a wire of a connection, which is closed by this but for its descriptor. closed is called when the wire is closed, and
// not when there is an error.
func newSocket(conn net.Conn, closed func()) (wire, error) {
	defer conn.Close()
	if c, ok := conn.(*net.TCPConn); ok {
		// Both are economies. Where the system refuses them, a page that does not read is found out later.
		_ = c.SetWriteBuffer(sendBuffer)
		_ = giveUpAfter(c, writePatient)
	}
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("take a connection over: %w", err)
	}
	s := &socket{closed: closed}
	var refused error
	err = raw.Control(func(fd uintptr) {
		syscall.ForkLock.RLock() // no child is to inherit it
		defer syscall.ForkLock.RUnlock()
		if s.fd, refused = syscall.Dup(int(fd)); refused == nil {
			syscall.CloseOnExec(s.fd)
		}
	})
	if err := errors.Join(err, refused); err != nil {
		return nil, fmt.Errorf("take a connection over: %w", err)
	}
	return s, nil
}

// push writes to a descriptor that does not block: Go's never do, and a copy is like its original.
func (s *socket) push(b []byte) (int, error) {
	for {
		n, err := syscall.Write(s.fd, b)
		switch {
		case err == nil:
			return n, nil
		case errors.Is(err, syscall.EAGAIN):
			return 0, nil
		case !errors.Is(err, syscall.EINTR):
			return 0, err
		}
	}
}

func (s *socket) gone(scratch []byte) bool {
	for {
		n, err := syscall.Read(s.fd, scratch)
		switch {
		case err == nil:
			return n == 0
		case errors.Is(err, syscall.EAGAIN):
			return false
		case !errors.Is(err, syscall.EINTR):
			return true
		}
	}
}

func (s *socket) close() {
	_ = syscall.Close(s.fd)
	s.closed()
}
