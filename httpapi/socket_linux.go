package httpapi

import (
	"net"
	"syscall"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT of linux/tcp.h, which package syscall does not name.
const tcpUserTimeout = 18

// giveUpAfter lets the system end a connection whose peer has not taken what was sent for so long: a page that has vanished without
// a word does not count as seen for minutes.
func giveUpAfter(c *net.TCPConn, d time.Duration) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var refused error
	err = raw.Control(func(fd uintptr) {
		refused = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(d.Milliseconds()))
	})
	if err != nil {
		return err
	}
	return refused
}
