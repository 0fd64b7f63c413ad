package httpapi

import (
	"net/http"
	"slices"
	"sync"

	"qm/engine/room"
)

// checkins remembers which connectors asked for a report, and on which sites the script tag asked at the door, for the console's list
// of them (seed 004, GET /api/verify). It is what this process saw since it started: a hint for an operator, not worth a write for each report. Everybody may ask for a report, so what it
// keeps of a room is bounded, and those who showed no key never push out those who did.
type checkins struct {
	mu    sync.Mutex
	rooms map[string]*roomCheckins
}

// maxCheckins is how many are kept of a room, of those with a key and of those without each: the latest.
const maxCheckins = 32

type roomCheckins struct {
	generation uint32
	list       []checkin
}

// checkin is one installation, and what its last report came to.
type checkin struct {
	connector, version, origin string
	keyed                      bool
	first, last                room.Instant
	count                      int64
	failing                    []string
}

func (c *checkin) same(in *install) bool {
	return c.connector == in.connector && c.origin == in.origin && c.keyed == in.keyed
}

// note remembers the report of a room that exists. One that names no connector is somebody's look, and no installation.
func (c *checkins) note(r *report, generation uint32, now room.Instant) {
	if r.install.connector == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.keep(&r.install, generation, now)
	known.version, known.failing = r.install.version, r.failing()
}

// seen remembers that a page of a site asked at the door by the script tag, which browsers name by its origin. It is the sign that the tag is in
// place; whether all is well with it only a report says.
func (c *checkins) seen(id string, generation uint32, origin string, now room.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(&install{roomID: id, connector: "snippet", origin: origin}, generation, now)
}

// keep counts one more sign of an installation.
func (c *checkins) keep(in *install, generation uint32, now room.Instant) *checkin {
	if c.rooms == nil {
		c.rooms = make(map[string]*roomCheckins)
	}
	of := c.rooms[in.roomID]
	if of == nil || of.generation != generation {
		of = &roomCheckins{generation: generation}
		c.rooms[in.roomID] = of
	}
	i := slices.IndexFunc(of.list, func(known checkin) bool { return known.same(in) })
	if i < 0 {
		of.makeRoom(in.keyed)
		i = len(of.list)
		of.list = append(of.list, checkin{connector: in.connector, origin: in.origin, keyed: in.keyed, first: now})
	}
	known := &of.list[i]
	known.last = max(now, known.last)
	known.count++
	return known
}

// makeRoom forgets the one of a kind that was seen least lately, where there are as many as are kept.
func (of *roomCheckins) makeRoom(keyed bool) {
	oldest, n := -1, 0
	for i := range of.list {
		if of.list[i].keyed != keyed {
			continue
		}
		n++
		if oldest < 0 || of.list[i].last < of.list[oldest].last {
			oldest = i
		}
	}
	if n >= maxCheckins {
		of.list = slices.Delete(of.list, oldest, oldest+1)
	}
}

// of are the check-ins of a room's present generation, the latest first.
func (c *checkins) of(id string, generation uint32) []checkin {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.rooms[id]
	if of == nil || of.generation != generation {
		return nil
	}
	list := slices.Clone(of.list)
	slices.SortStableFunc(list, func(a, b checkin) int { return int(b.last - a.last) })
	return list
}

// forget drops what is kept of a room that is gone.
func (c *checkins) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.rooms, id)
}

// checkedIn is GET /api/admin/rooms/:id/connectors: the connectors that asked for a report of the room, as this process saw them since
// it started.
func (s *Server) checkedIn(x *exchange) error {
	if err := s.named(x); err != nil {
		return err
	}
	sum, _, err := s.summary(x.r.Context(), x.id)
	if err != nil {
		return err
	}
	b := append(x.buf[:0], `{"roomId":"`...)
	b = append(b, x.id...)
	b = append(append(b, '"'), `,"connectors":[`...)
	for i, c := range s.checkins.of(x.id, sum.Generation) {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"connector":`...), c.connector)
		b = appendTextOr(b, "version", c.version)
		newest := ""
		if known, ok := handoutOf(c.connector); ok {
			newest = known.version
		}
		b = appendTextOr(b, "newest", newest)
		b = appendTextOr(b, "origin", c.origin)
		b = appendBool(b, "keyed", c.keyed)
		b = appendBool(b, "ok", len(c.failing) == 0)
		b = appendStrings(b, "failing", c.failing)
		b = appendInt(b, "count", c.count)
		b = appendInstant(b, "firstSeenAt", c.first)
		b = append(appendInstant(b, "lastSeenAt", c.last), '}')
	}
	b = append(b, ']')
	b = appendInt(b, "since", s.started.UnixMilli())
	b = appendInt(b, "now", x.ms())
	x.buf = append(b, '}')
	x.json(http.StatusOK)
	return nil
}
