package engine

import (
	"os"
	"runtime/debug"
)

// ballast counts as live and is never touched, so it costs addresses and no memory.
var ballast []byte //nolint:unused // It is held, not used.

// TuneCollector sets the garbage collector for a process that holds rooms; main calls it once, first. A room's state has next to no
// pointers, so collecting it costs little, however long the line is: 40 % of what lives is enough headroom, where Go takes all
// of it again. What requests leave behind does cost, and most of all in a small heap, which would be collected every few
// megabytes: the ballast gives 13 MB of headroom from the start. GOGC in the environment has the last word.
func TuneCollector() {
	if os.Getenv("GOGC") == "" {
		ballast = make([]byte, 32<<20)
		debug.SetGCPercent(40)
	}
}
