package engine

// RoomHealth is how one room does in this process.
type RoomHealth struct {
	Room    string
	Owned   bool
	Damaged string // what is wrong with the journal; "" when nothing
	Lag     int64  // events that the shared projection is behind
}

// Health is what readiness rests on.
type Health struct {
	Ready      bool   // joins can be made durable, and the shared projection (if any) can be reached
	JournalErr string // why the journal cannot be reached; "" when it can
	SharedErr  string // the same of the shared projection
	Rooms      []RoomHealth
}

// Health tells how the engine does, without waiting for I/O.
func (e *Engine) Health() Health {
	var h Health
	e.mu.Lock()
	switch {
	case e.listErr != nil:
		h.JournalErr = e.listErr.Error()
	case e.listedAt.IsZero():
		h.JournalErr = "not looked at yet"
	case e.o.Now().Sub(e.listedAt) > 2*callerWait:
		h.JournalErr = "does not answer"
	}
	if e.pingErr != nil {
		h.SharedErr = e.pingErr.Error()
	}
	e.mu.Unlock()
	for _, r := range e.runners() {
		r.mu.Lock()
		one := RoomHealth{Room: r.id, Owned: r.phase == owned, Damaged: r.damaged}
		if r.phase == stranded && h.JournalErr == "" {
			h.JournalErr = "room " + r.id + " has lost its journal"
		}
		r.mu.Unlock()
		one.Lag = r.publisher.lag.Load()
		h.Rooms = append(h.Rooms, one)
	}
	h.Ready = h.JournalErr == "" && h.SharedErr == ""
	return h
}
