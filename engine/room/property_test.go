package room

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// party drives a desk by random commands and keeps book of what must never happen.
type party struct {
	*desk
	rt     *rapid.T
	w      *watch
	passed map[Ticket]bool // of this generation
	given  Ticket
}

// secret is that of the room's next draw.
func (p *party) secret() byte { return byte(16*p.s.Generation()) + byte(p.s.Draws()) + 1 }

func (p *party) visitor() int { return rapid.IntRange(1, 40).Draw(p.rt, "visitor") }

func (p *party) ticket() Ticket {
	return Ticket(rapid.IntRange(0, int(p.s.last)+1).Draw(p.rt, "ticket"))
}

func (p *party) settings() Settings {
	limit := func(name string, to int64) *int64 {
		if rapid.Bool().Draw(p.rt, name+" off") {
			return nil
		}
		return num(rapid.Int64Range(1, to).Draw(p.rt, name))
	}
	return settingsOf(func(s *Settings) {
		s.RatePerMinute = rapid.SampledFrom([]int64{0, 1, 60, 601, 6000}).Draw(p.rt, "rate")
		s.MaxConcurrent, s.PresenceSec = limit("slots", 6), limit("presence", 5)
		s.QueueMaxPerIP, s.PreQueueMaxPerIP = limit("queue", 4), limit("preQueue", 4)
		s.PassedTTLSec = rapid.Int64Range(1, 30).Draw(p.rt, "passedTtl")
		s.SessionTTLSec = rapid.Int64Range(1, 20).Draw(p.rt, "ttl")
		s.SessionMaxSec = rapid.Int64Range(1, 60).Draw(p.rt, "max")
		s.HoldScore = rapid.Int64Range(1, 100).Draw(p.rt, "hold")
		s.Protection.Mode = rapid.SampledFrom([]string{"", "off", "monitor", "enforce"}).Draw(p.rt, "protection")
	})
}

// command draws a command that means something to the room as it is, most of the time.
func (p *party) command() Command {
	g := p.s.Generation()
	if rapid.IntRange(0, 40).Draw(p.rt, "stale") == 0 {
		g++
	}
	doors := func() (list []Ticket) {
		p.s.doors.each(func(n Ticket, _ *door) bool {
			if rapid.Bool().Draw(p.rt, "seen") {
				list = append(list, n)
			}
			return true
		})
		slices.Sort(list)
		return list
	}
	switch k := rapid.IntRange(0, 60).Draw(p.rt, "command"); {
	case !p.s.Exists():
		return NewRoom{Settings: p.settings(), Mode: rapid.SampledFrom([]Mode{Active, Paused, Bypass, Idle}).Draw(p.rt, "mode")}
	case p.s.DrawDue(p.now) && k < 55:
		return DrawNow{Secret: Digest{p.secret()}, Head: Digest{byte(k)}}
	case k < 20:
		i := p.visitor()
		return TakePlace{Generation: g, Holder: who(i), Identity: Identity(i % 9), Score: uint8(rapid.IntRange(0, 110).Draw(p.rt, "score"))}
	case k < 32:
		return Tick{Presence: p.w, Doors: doors(), Sweep: k == 31}
	case k < 33:
		return Tick{}
	case k < 38:
		return Flush{Count: rapid.IntRange(-1, 8).Draw(p.rt, "count"), Presence: p.w}
	case k < 44:
		n := p.ticket()
		c := EnterDoor{Generation: g, Ticket: n, Door: Holder{byte(k)}}
		if rapid.Bool().Draw(p.rt, "owner") {
			c.Holder = p.s.Ticket(n).Holder
		} else {
			c.CodeAt = p.now - Instant(rapid.IntRange(0, 3).Draw(p.rt, "code"))
		}
		return c
	case k < 48:
		return GiveBack{Generation: g, Holder: who(p.visitor())}
	case k < 50:
		return EjectTicket{p.ticket()}
	case k < 52:
		return Reconfigure{Settings: p.settings()}
	case k < 55:
		return SetMode{Mode: rapid.SampledFrom([]Mode{Active, Active, Active, Paused, Bypass}).Draw(p.rt, "mode")}
	case k < 56:
		return PurgeLine{}
	case k < 59:
		if rapid.IntRange(0, 3).Draw(p.rt, "cancel") == 0 {
			return Reschedule{}
		}
		return Reschedule{OpensAt: p.now + Instant(rapid.IntRange(-1, 5000).Draw(p.rt, "opens")), Commitment: Commitment(Digest{p.secret()})}
	case k < 60:
		return CloseRoom{}
	default:
		return DeleteRoom{}
	}
}

// step is one command, and what must hold of what it led to.
func (p *party) step() {
	before := p.s.Summary()
	var line []Ticket
	for n, ok := p.s.line.First(); ok; n, ok = p.s.line.Next(n) {
		line = append(line, n)
	}
	c := p.command()
	events, err := p.do(c)
	if err != nil {
		return
	}
	for _, e := range events {
		switch b := e.Body.(type) {
		case *Create, *Close, *Delete:
			p.passed, p.given = map[Ticket]bool{}, 0
		case *Join:
			p.gives(b.Ticket)
		case *Eject:
			p.gives(b.To)
		case *Draw:
			for i := range b.Count {
				p.gives(b.First + Ticket(i))
			}
		case *Lapse:
			line = without(line, b.Tickets)
		case *Pass:
			p.passes(b, &before, line)
		}
	}
}

func without(line, gone []Ticket) []Ticket {
	return slices.DeleteFunc(line, func(n Ticket) bool { return slices.Contains(gone, n) })
}

func (p *party) gives(n Ticket) {
	if p.given++; n != p.given {
		p.rt.Fatalf("ticket %d was given after %d", n, p.given-1)
	}
}

func (p *party) passes(b *Pass, before *Summary, line []Ticket) {
	list := passedIn([]Event{{Body: b}})
	ghosts := len(passedIn([]Event{{Body: &Pass{Spans: b.Ghosts}}}))
	for i, n := range list {
		if p.passed[n] {
			p.rt.Fatalf("ticket %d passed twice", n)
		}
		if p.passed[n] = true; line[i] != n { // FIFO: exactly the front of the line, in order
			p.rt.Fatalf("ticket %d passed while %d was before it", n, line[i])
		}
	}
	if limit := before.Settings.MaxConcurrent; limit != nil && len(list) > ghosts && int64(p.s.slots) > *limit {
		p.rt.Fatalf("%d slots of %d are in use after a paid pass", p.s.slots, *limit)
	}
	if b.By == "flush" {
		return
	}
	switch {
	case before.Mode != Active || before.OpensAt != 0 || before.Settings.RatePerMinute == 0:
		p.rt.Fatalf("the clock passed in mode %s, opensAt %d, at rate %d", before.Mode, before.OpensAt, before.Settings.RatePerMinute)
	case len(b.Ghosts) > 0 && b.Ghosts[len(b.Ghosts)-1][1] == list[len(list)-1]:
		p.rt.Fatalf("ghost %d passed with no paid pass behind it", list[len(list)-1])
	case b.Credit > max(PassCost, before.Settings.RatePerMinute*1000):
		p.rt.Fatalf("credit %d is left at rate %d", b.Credit, before.Settings.RatePerMinute)
	}
}

// TestAnyHistory: Decide never writes, every event survives the journal, Check holds after each command, no ticket passes twice, the line
// is first in, first out, replay and snapshot and lean state are the state itself.
func TestAnyHistory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := &party{desk: openDesk(rt), rt: rt, passed: map[Ticket]bool{}}
		p.w = p.watching()
		p.do(NewRoom{Settings: p.settings(), Mode: Active})
		for range rapid.IntRange(1, 80).Draw(rt, "commands") {
			switch k := rapid.IntRange(0, 30).Draw(rt, "time"); {
			case k == 0:
				p.now -= Instant(rapid.IntRange(1, 100_000).Draw(rt, "back"))
			case k == 1:
				p.now += 2 * abandonedAfter
			case k == 2:
				p.w = p.watching() // another owner
				p.meter = NewMeter(p.s, p.now)
			case k < 20:
				p.now += Instant(rapid.IntRange(0, 1500).Draw(rt, "ms"))
			}
			if rapid.Bool().Draw(rt, "polls") {
				p.sees(p.w, p.ticket(), p.ticket())
			}
			p.step()
		}
		p.compare()
	})
}

// Whoever waits at the front with somebody to pass for is passed in the end: no state is a dead end.
func TestEverybodyPassesInTheEnd(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := &party{desk: openDesk(rt), rt: rt, passed: map[Ticket]bool{}}
		p.w = p.watching()
		p.do(NewRoom{Settings: p.settings(), Mode: Active})
		for range rapid.IntRange(1, 40).Draw(rt, "commands") {
			p.now += Instant(rapid.IntRange(0, 1500).Draw(rt, "ms"))
			p.step()
		}
		if !p.s.Exists() {
			p.must(NewRoom{Settings: p.settings(), Mode: Active})
		}
		if p.s.opensAt != 0 {
			p.now = max(p.now, p.s.opensAt)
			p.draw(p.secret())
		}
		p.must(SetMode{Mode: Active})
		p.must(Reconfigure{Settings: settingsOf(func(s *Settings) { s.RatePerMinute, s.HoldScore = 6000, 101 })})
		p.thrift = true
		p.wait(30_000, nil)
		if p.s.line.Len()+p.s.held.Len() > 0 {
			rt.Fatalf("%d still wait", p.s.line.Len()+p.s.held.Len())
		}
		p.wait(700_000, nil)
		if p.s.passes.live > 0 {
			rt.Fatalf("%d passes did not lapse", p.s.passes.live)
		}
		p.thrift = false
		p.compare()
	})
}
