//go:build unix && !linux

package httpapi

import (
	"net"
	"time"
)

// giveUpAfter is Linux's. Elsewhere a page that has vanished is found out once the system's buffer is full.
func giveUpAfter(*net.TCPConn, time.Duration) error { return nil }
