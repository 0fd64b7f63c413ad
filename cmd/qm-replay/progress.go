package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// progress says now and then how far a long run has come, on a line of its own that the next overwrites.
type progress struct {
	w     io.Writer // nil: nobody wants to know
	last  time.Time
	width int
}

// progressEvery is how often it speaks.
const progressEvery = 500 * time.Millisecond

func newProgress(w io.Writer, wanted bool) *progress {
	p := &progress{last: time.Now()}
	if wanted || isTerminal(w) {
		p.w = w
	}
	return p
}

func (p *progress) records(n int64) {
	if p.w == nil || time.Since(p.last) < progressEvery {
		return
	}
	p.say(fmt.Sprintf("%d records", n))
}

func (p *progress) say(text string) {
	if p.w == nil {
		return
	}
	p.last = time.Now()
	fmt.Fprintf(p.w, "\r%s%s", text, strings.Repeat(" ", max(p.width-len(text), 0)))
	p.width = len(text)
}

// end leaves the line.
func (p *progress) end() {
	if p.w != nil && p.width > 0 {
		fmt.Fprintf(p.w, "\r%s\r", strings.Repeat(" ", p.width))
		p.width = 0
	}
}
