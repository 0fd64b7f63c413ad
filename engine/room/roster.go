package room

// roster keeps one row per ticket in order of arrival: live passes, door sessions. Rows end in any order; iteration is
// always in order of arrival, so whatever is decided by walking it is the same on every replay.
type roster[T any] struct {
	rows []rosterRow[T]
	at   map[Ticket]int
	live int
}

type rosterRow[T any] struct {
	ticket Ticket // 0: ended
	row    T
}

func (r *roster[T]) get(n Ticket) *T {
	if i, ok := r.at[n]; ok {
		return &r.rows[i].row
	}
	return nil
}

// put adds a row at the end, or replaces the ticket's row where it stands.
func (r *roster[T]) put(n Ticket, row T) {
	if i, ok := r.at[n]; ok {
		r.rows[i].row = row
		return
	}
	if r.at == nil {
		r.at = make(map[Ticket]int)
	}
	r.at[n] = len(r.rows)
	r.rows = append(r.rows, rosterRow[T]{n, row})
	r.live++
}

func (r *roster[T]) remove(n Ticket) {
	i, ok := r.at[n]
	if !ok {
		return
	}
	delete(r.at, n)
	r.rows[i] = rosterRow[T]{}
	r.live--
	if len(r.rows) >= 32 && r.live < len(r.rows)/2 {
		r.compact()
	}
}

func (r *roster[T]) compact() {
	kept := make([]rosterRow[T], 0, r.live+r.live/4)
	at := make(map[Ticket]int, r.live)
	for _, row := range r.rows {
		if row.ticket != 0 {
			at[row.ticket] = len(kept)
			kept = append(kept, row)
		}
	}
	r.rows, r.at = kept, at
}

// each walks the live rows in order of arrival until fn returns false. fn must not add or remove rows.
func (r *roster[T]) each(fn func(Ticket, *T) bool) {
	for i := range r.rows {
		if row := &r.rows[i]; row.ticket != 0 && !fn(row.ticket, &row.row) {
			return
		}
	}
}

func (r *roster[T]) clone() roster[T] {
	c := *r
	c.compact()
	return c
}
