package room

import "slices"

// Minute is what happened in a room during one minute of its clock: a row of the room's history. Rows are a fold over events like all
// else, so a rebuilt room gives the same ones. A minute without events has no row: its depth is that of the row before.
type Minute struct {
	Minute     int64  `json:"minute"`   // Unix time in minutes
	Joined     uint32 `json:"joined"`   // tickets and pre-queue entries taken
	Passed     uint32 `json:"passed"`   // by clock and flush, ghosts included
	Entered    uint32 `json:"entered"`  // door sessions opened
	Lapsed     uint32 `json:"lapsed"`   // places that time ended: passes not used, door sessions, abandoned tickets
	Left       uint32 `json:"left"`     // places given back
	Removed    uint32 `json:"removed"`  // ejected, or purged
	WaitSum    uint64 `json:"waitSum"`  // ms that those passed had waited, added up
	WaitMost   uint64 `json:"waitMost"` // ms, of the one who had waited longest
	Depth      uint32 `json:"depth"`    // waiting, held ones included, after the minute's last event
	DepthMost  uint32 `json:"depthMost"`
	PreQueue   uint32 `json:"preQueue"` // entries, after the minute's last event
	Doors      uint32 `json:"doors"`    // door sessions, after the minute's last event
	Generation uint32 `json:"g"`        // after the minute's last event
}

// MinutesKept is how many rows a room keeps of itself; whoever wants more writes them down in time.
const MinutesKept = 64

const msPerMinute = 60_000

// Minutes returns the rows that the room still has, the oldest first; the last one is not over as long as its minute is not.
func (s *State) Minutes() []Minute { return slices.Clone(s.minutes) }

// LastMinute is the newest row; ok is false when there is none.
func (s *State) LastMinute() (m Minute, ok bool) {
	if len(s.minutes) == 0 {
		return Minute{}, false
	}
	return s.minutes[len(s.minutes)-1], true
}

// minute is the row of the room's present minute.
func (s *State) minute() *Minute {
	now := int64(s.at / msPerMinute)
	if n := len(s.minutes); n > 0 && s.minutes[n-1].Minute == now {
		return &s.minutes[n-1]
	}
	if len(s.minutes) == MinutesKept {
		s.minutes = append(s.minutes[:0], s.minutes[1:]...)
	}
	if s.minutes == nil {
		s.minutes = make([]Minute, 0, MinutesKept)
	}
	s.minutes = append(s.minutes, Minute{Minute: now, DepthMost: uint32(s.depth())})
	return &s.minutes[len(s.minutes)-1]
}

func (s *State) depth() int { return s.line.Len() + s.held.Len() }

// settle writes down how the room stands after an event.
func (m *Minute) settle(s *State) {
	m.Depth = uint32(s.depth())
	m.DepthMost = max(m.DepthMost, m.Depth)
	m.PreQueue, m.Doors, m.Generation = uint32(s.entries.Len()), uint32(s.doors.live), s.generation
}

// waited adds one who passed.
func (m *Minute) waited(ms Instant) {
	wait := uint64(max(ms, 0))
	m.Passed++
	m.WaitSum += wait
	m.WaitMost = max(m.WaitMost, wait)
}
