package engine

import (
	"math"
	"sync"

	"qm/engine/room"
)

// promises remembers, in a byte a ticket, what wait a ticket was told when it was given, so that the room can say how wrong its
// ETAs were (contract.md 10). It is this process's own record: what is lost with it was not judged.
type promises struct {
	mu     sync.Mutex
	pages  map[room.Ticket]*[promisePage]uint8
	record ETARecord
}

const promisePage = 4096

// ETARecord is how right a room's ETAs were, over the passes of this process's tenure.
type ETARecord struct {
	Judged int64 // passes whose ticket had been told a wait
	Within int64 // of them, those that came within a quarter of it, or 10 s
}

// promiseStep is the ratio between one remembered wait and the next: a wait is remembered within 4 percent.
const promiseStep = 1.07

func packWait(sec int64) uint8 {
	return uint8(min(1+math.Round(math.Log1p(float64(max(sec, 0)))/math.Log(promiseStep)), 255))
}

func unpackWait(v uint8) float64 { return math.Pow(promiseStep, float64(v-1)) - 1 }

// note follows durable events: summary and state are the room's after them.
func (p *promises) note(events []room.Event, summary *room.Summary, state *room.State, judged func(ratio float64)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var last int64 = -1
	var packed uint8
	told := func(n room.Ticket, at room.Instant) {
		ahead := max(summary.Waiting-1-int(summary.LastTicket-n), 0)
		sec, ok := summary.ETA(ahead, at)
		if !ok {
			return
		}
		if sec != last { // neighbours are told the same
			last, packed = sec, packWait(sec)
		}
		p.set(n, packed)
	}
	for _, e := range events {
		switch b := e.Body.(type) {
		case *room.Create, *room.Close, *room.Delete:
			p.pages = nil
		case *room.Join:
			told(b.Ticket, e.At)
		case *room.Draw:
			for i := range room.Ticket(b.Count) {
				told(b.First+i, e.At)
			}
		case *room.Pass:
			if b.By != "clock" {
				continue // an operator's flush is no forecast
			}
			for _, span := range b.Spans {
				for n := span[0]; n <= span[1]; n++ {
					p.judge(n, e.At, state, judged)
				}
			}
		}
	}
}

func (p *promises) set(n room.Ticket, v uint8) {
	page := p.pages[n/promisePage]
	if page == nil {
		if p.pages == nil {
			p.pages = make(map[room.Ticket]*[promisePage]uint8)
		}
		page = new([promisePage]uint8)
		p.pages[n/promisePage] = page
	}
	page[n%promisePage] = v
}

func (p *promises) judge(n room.Ticket, at room.Instant, state *room.State, judged func(float64)) {
	page := p.pages[n/promisePage]
	if page == nil || page[n%promisePage] == 0 {
		return
	}
	told := unpackWait(page[n%promisePage])
	page[n%promisePage] = 0
	if n%promisePage == promisePage-1 {
		delete(p.pages, n/promisePage) // whoever of it is still held will not be judged
	}
	place := state.Ticket(n)
	if !place.Live() {
		return // gone in the same batch
	}
	was := float64(at-place.JoinedAt) / 1000
	p.record.Judged++
	if math.Abs(was-told) <= max(told/4, 10) {
		p.record.Within++
	}
	judged((was + 1) / (told + 1))
}

// ETARecord tells how right the room's ETAs were while this process owned it.
func (e *Engine) ETARecord(roomID string) ETARecord {
	r := e.known(roomID)
	if r == nil {
		return ETARecord{}
	}
	r.promises.mu.Lock()
	defer r.promises.mu.Unlock()
	return r.promises.record
}
