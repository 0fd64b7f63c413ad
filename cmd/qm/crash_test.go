package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"
)

// Case 18: kill -9 in the rush, twenty times. Each lane has a database of its own, and waits out the dead owner's lease beside
// the others.
//
// Proves: restart
func TestKillInASurge(t *testing.T) {
	t.Parallel()
	const lanes, kills = 5, 4
	for lane := range lanes {
		t.Run(fmt.Sprint("lane ", lane), func(t *testing.T) {
			t.Parallel()
			s, vk := durableStores(t)
			random := rand.New(rand.NewPCG(uint64(lane), 18))
			c := &crowd{}
			p := startQM(t, s, nil)
			p.createRoom(t, `"id":"shop","ratePerMinute":3000,"queueMaxPerIp":null,"presenceSec":null`)
			for kill := range kills {
				before := c.acknowledged()
				done := c.surge(p)
				eventually(t, "the surge is under way", func() bool { return c.acknowledged() > before })
				<-time.After(time.Duration(random.IntN(500)) * time.Millisecond) // the random instant
				p.kill()
				<-done
				if lane == 0 && kill == 1 {
					vk.FlushAll() // case 18, also with Valkey wiped
				}
				p = startQM(t, s, nil)
			}
			eventually(t, "the room is taken again", func() bool {
				a, err := newVisitor(1<<24).join(p, "shop")
				return err == nil && a.status == http.StatusOK
			})
			c.findAgain(t, p)
			proved(t, s)
			p.stop()
			proved(t, s)
			t.Logf("%d joins were acknowledged over %d kills", c.acknowledged(), kills)
		})
	}
}

// crowd is visitors who joined and were told their ticket.
type crowd struct {
	mu     sync.Mutex
	joined []joined
	made   int
	broken []string // what was seen that must not be
}

type joined struct {
	who    *visitor
	ticket int
}

func (c *crowd) acknowledged() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.joined)
}

// surge lets visitors join one after the other, eight at a time, until the process is gone; the channel is closed then.
func (c *crowd) surge(p *process) <-chan struct{} {
	done := make(chan struct{})
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			last := 0
			for {
				c.mu.Lock()
				c.made++
				v := newVisitor(c.made)
				c.mu.Unlock()
				a, err := v.join(p, "shop")
				if err != nil {
					return // killed
				}
				if a.status != http.StatusOK {
					continue // being taken over, or too long in the mailbox
				}
				n := v.ticket("shop")
				c.mu.Lock()
				if n <= last {
					c.broken = append(c.broken, fmt.Sprintf("ticket %d was given after ticket %d", n, last))
				}
				c.joined = append(c.joined, joined{v, n})
				c.mu.Unlock()
				last = n
			}
		})
	}
	go func() {
		workers.Wait()
		close(done)
	}()
	return done
}

// findAgain lets everybody who was told a ticket come back: each has the same one.
func (c *crowd) findAgain(t *testing.T, p *process) {
	t.Helper()
	for _, broken := range c.broken {
		t.Error(broken)
	}
	seen := make(map[int]bool)
	for _, j := range c.joined {
		if seen[j.ticket] {
			t.Errorf("ticket %d was given to two visitors", j.ticket)
		}
		seen[j.ticket] = true
	}
	work := make(chan joined)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for j := range work {
				a, err := j.who.join(p, "shop")
				if err != nil || a.status != http.StatusOK || j.who.ticket("shop") != j.ticket {
					t.Errorf("who was told ticket %d comes back to %d: %d %v %v", j.ticket, j.who.ticket("shop"), a.status, a.body, err)
				}
			}
		})
	}
	for _, j := range c.joined {
		work <- j
	}
	close(work)
	workers.Wait()
}
