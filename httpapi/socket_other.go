//go:build !unix

package httpapi

import "net"

// Without the sockets of Unix every stream stays a handler of net/http.
func isSocket(net.Conn) bool { return false }

func newSocket(net.Conn, func()) (wire, error) {
	panic("httpapi: no connection is taken over on this system")
}
