//go:build unix

package httpapi

import (
	"errors"
	"net"
	"syscall"
)

// sendBuffer is how many bytes the system keeps for a page that does not read, about: some tens of frames.
const sendBuffer = 16 << 10

// socket is the wire of a page whose connection was taken over. Go's sockets never block; what asks them directly does not wait.
type socket struct {
	conn   net.Conn
	closed func() // counts it no more
}

func isSocket(c net.Conn) bool {
	switch c.(type) {
	case *net.TCPConn, *net.UnixConn:
		return true
	}
	return false
}

func newSocket(conn net.Conn, closed func()) wire {
	if c, ok := conn.(*net.TCPConn); ok {
		// Both are economies. Where the system refuses them, a page that does not read is found out later.
		_ = c.SetWriteBuffer(sendBuffer)
		_ = giveUpAfter(c, writePatient)
	}
	return &socket{conn, closed}
}

func (s *socket) push(b []byte) (n int, err error) {
	raw, err := s.conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return 0, err
	}
	failed := raw.Write(func(fd uintptr) bool {
		n, err = again(func() (int, error) { return syscall.Write(int(fd), b) })
		return true // never wait
	})
	if errors.Is(err, syscall.EAGAIN) {
		return 0, failed
	}
	return max(n, 0), errors.Join(err, failed)
}

func (s *socket) gone(scratch []byte) bool {
	raw, err := s.conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return true
	}
	var n int
	failed := raw.Read(func(fd uintptr) bool {
		n, err = again(func() (int, error) { return syscall.Read(int(fd), scratch) })
		return true
	})
	if errors.Is(err, syscall.EAGAIN) {
		return failed != nil
	}
	return n <= 0 || failed != nil
}

func (s *socket) close() {
	_ = s.conn.Close()
	s.closed()
}

// again repeats what a signal has interrupted.
func again(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}
