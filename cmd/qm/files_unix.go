//go:build unix

package main

import (
	"math"
	"syscall"
)

// openFiles is how many files this process may have open; 0 when the system does not say. The Go runtime has raised the limit as far
// as it may before main runs.
func openFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(uint64(limit.Cur), math.MaxInt32))
}
