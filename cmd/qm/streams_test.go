package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Ten thousand pages listen when the server is restarted: all come back, each with its place, and each at a time of its own.
//
// Proves: streams
func TestTenThousandStreamsComeBack(t *testing.T) {
	const pages = 10_000
	s, _ := durableStores(t)
	p := startQM(t, s, nil)
	p.createRoom(t, `"id":"shop","ratePerMinute":0,"queueMaxPerIp":null,"presenceSec":null`)

	a := &audience{t: t, addr: strings.TrimPrefix(p.url, "http://"), door: make(chan struct{}, 256)}
	work := make(chan int)
	var joining sync.WaitGroup
	list := make([]*page, pages)
	for range 64 {
		joining.Go(func() {
			for i := range work {
				v := newVisitor(i)
				for {
					answer, err := v.join(p, "shop")
					if err == nil && answer.status == http.StatusOK {
						break
					}
					if err != nil || answer.status != http.StatusServiceUnavailable {
						t.Errorf("a join: %v %v", answer, err)
						break
					}
				}
				list[i] = &page{audience: a, who: v, ticket: v.ticket("shop")}
			}
		})
	}
	for i := range pages {
		work <- i
	}
	close(work)
	joining.Wait()
	if t.Failed() {
		return
	}

	ctx, leave := context.WithCancel(t.Context())
	var listening sync.WaitGroup
	for _, one := range list {
		listening.Go(func() { one.listen(ctx) })
	}
	t.Cleanup(func() { leave(); listening.Wait() })
	eventually(t, "all pages listen", func() bool { return a.first.Load() == pages })

	p.stop() // in order, with ten thousand streams open
	eventually(t, "all streams have ended", func() bool { return a.ended.Load() == pages })
	p = startQM(t, s, map[string]string{"PORT": p.url[strings.LastIndexByte(p.url, ':')+1:]})
	eventually(t, "all pages are back", func() bool { return a.second.Load() == pages })

	a.mu.Lock()
	defer a.mu.Unlock()
	for _, broken := range a.broken {
		t.Error(broken)
	}
	if len(a.returns) != pages {
		t.Fatalf("%d of %d pages were told when to come back", len(a.returns), pages)
	}
	slices.Sort(a.returns)
	low, high := a.returns[0], a.returns[pages-1]
	if high-low < 5*time.Second {
		t.Errorf("the pages are to come back between %v and %v", low, high)
	}
	for part := range time.Duration(4) { // evenly
		from, to := low+(high-low)*part/4, low+(high-low)*(part+1)/4
		n := 0
		for _, d := range a.returns {
			if d >= from && d <= to {
				n++
			}
		}
		if n < pages/8 {
			t.Errorf("%d of %d come back between %v and %v", n, pages, from, to)
		}
	}
	if n := p.admin(t, "GET", "health", "", http.StatusOK).body["streams"]; n != float64(pages) {
		t.Errorf("the server knows of %v streams", n)
	}
}

// audience is what pages have seen together.
type audience struct {
	t    *testing.T
	addr string
	door chan struct{} // so many open their first stream at a time

	first, ended, second atomic.Int64

	mu      sync.Mutex
	returns []time.Duration // when each was told to come back as the server stopped
	broken  []string
}

func (a *audience) say(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.broken) < 10 {
		a.broken = append(a.broken, fmt.Sprintf(format, args...))
	}
}

// page is a browser's EventSource: it reads until the stream ends, waits as long as it was told to, and opens it anew.
type page struct {
	*audience
	who    *visitor
	ticket int
	retry  time.Duration
	heard  int // streams on which a frame came
}

func (p *page) listen(ctx context.Context) {
	p.retry = time.Second
	for ctx.Err() == nil {
		if p.heard == 0 {
			p.door <- struct{}{}
		}
		p.open(ctx)
		timer := time.NewTimer(p.retry)
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
	}
}

// open listens to one stream until it ends.
func (p *page) open(ctx context.Context) {
	inside := p.heard == 0
	arrived := func() {
		if inside {
			inside = false
			<-p.door
		}
	}
	defer arrived()
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		return // it is away
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer conn.Close()
	fmt.Fprintf(conn, "GET /api/v1/events?roomId=shop HTTP/1.1\r\nHost: qm\r\nX-Forwarded-For: %s\r\nCookie: qm_shop=%s; qms_shop=%s\r\n\r\n",
		p.who.address, p.who.cookies["qm_shop"], p.who.cookies["qms_shop"])
	frames, told := 0, time.Duration(0)
	in := bufio.NewReaderSize(conn, 1024)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			break
		}
		if text, ok := bytes.CutPrefix(line, []byte("retry: ")); ok {
			ms, err := strconv.Atoi(string(bytes.TrimSpace(text)))
			if err != nil || ms <= 0 {
				p.say("retry: %q", text)
			}
			p.retry = time.Duration(ms) * time.Millisecond
			told = p.retry
		}
		text, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			continue
		}
		var frame struct{ Position int }
		if err := json.Unmarshal(text, &frame); err != nil || frame.Position != p.ticket {
			p.say("ticket %d hears %s", p.ticket, text)
		}
		told = 0
		if frames++; frames > 1 {
			continue
		}
		arrived()
		switch p.heard++; p.heard {
		case 1:
			p.first.Add(1)
		case 2:
			p.second.Add(1)
		default:
			p.say("ticket %d has lost its stream once more than the server has stopped", p.ticket)
		}
	}
	if frames > 0 && p.heard == 1 {
		p.mu.Lock()
		if told > 0 {
			p.returns = append(p.returns, told)
		}
		p.mu.Unlock()
		p.ended.Add(1)
	}
}
