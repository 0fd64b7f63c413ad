package projection

import (
	"context"
	"fmt"
	"reflect"

	"qm/engine/room"
)

// Image is all that a projection holds of a room, in a form that can be compared.
type Image struct {
	Position Position
	Summary  room.Summary
	Tickets  []room.Place  // of ticket i+1
	Handles  []room.Place  // of handle i+1
	Passable []room.Ticket // the line, in order, as ranks are counted in
	Counts   []int         // how many of them there are in each page of 4,096 tickets
}

// Dumper is a Store that can show all it holds.
type Dumper interface {
	// Dump reads a room whole, as of one seq. ErrNoRoom when there is no projection of it.
	Dump(ctx context.Context, stream string) (Image, error)
}

// ImageOf is the image that a faultless projection of s holds. Its Position is zero: a state does not know its own.
func ImageOf(s *room.State) Image {
	i := Image{Summary: s.Summary()}
	i.Tickets = make([]room.Place, 0, i.Summary.LastTicket)
	i.Handles = make([]room.Place, 0, i.Summary.LastHandle)
	i.Counts = make([]int, i.Summary.LastTicket/room.LinePageTickets+1)
	for n := room.Ticket(1); n <= i.Summary.LastTicket; n++ {
		p := s.Ticket(n)
		i.Tickets = append(i.Tickets, p)
		if p.Status == room.Waiting && !p.Held {
			i.Passable = append(i.Passable, n)
			i.Counts[n/room.LinePageTickets]++
		}
	}
	for q := room.Handle(1); q <= i.Summary.LastHandle; q++ {
		i.Handles = append(i.Handles, s.Handle(q))
	}
	return i
}

// Difference is a field in which two images of a room differ.
type Difference struct {
	Where string // for instance "summary.Waiting" or "ticket 17.Holder"
	Want  string
	Got   string
}

func (d Difference) String() string { return d.Where + ": want " + d.Want + ", got " + d.Got }

// Diff names the fields in which two images differ, positions aside; at most limit of them, all if it is 0.
func Diff(want, got Image, limit int) []Difference {
	d := differ{limit: limit}
	d.fields("summary", &want.Summary, &got.Summary)
	d.places("ticket", want.Tickets, got.Tickets)
	d.places("handle", want.Handles, got.Handles)
	for i := range max(len(want.Passable), len(got.Passable)) {
		w, g := at(want.Passable, i), at(got.Passable, i)
		if w != g {
			// Whatever follows is shifted; one difference says it.
			d.add(fmt.Sprintf("line, place %d", i+1), w, g)
			break
		}
	}
	for i := range max(len(want.Counts), len(got.Counts)) {
		if w, g := at(want.Counts, i), at(got.Counts, i); w != g {
			d.add(fmt.Sprintf("count of page %d", i), w, g)
		}
	}
	return d.found
}

func at[T any](list []T, i int) (v T) {
	if i < len(list) {
		return list[i]
	}
	return v
}

type differ struct {
	limit int
	found []Difference
}

func (d *differ) full() bool { return d.limit > 0 && len(d.found) >= d.limit }

func (d *differ) add(where string, want, got any) {
	if !d.full() {
		d.found = append(d.found, Difference{Where: where, Want: show(want), Got: show(got)})
	}
}

func show(v any) string {
	switch v := v.(type) {
	case room.Holder:
		return fmt.Sprintf("%x", v[:])
	case []string:
		return fmt.Sprintf("%#v", v) // which tells an empty list from none
	}
	return fmt.Sprintf("%+v", v)
}

func (d *differ) places(what string, want, got []room.Place) {
	for i := 0; i < max(len(want), len(got)) && !d.full(); i++ {
		if w, g := at(want, i), at(got, i); w != g {
			d.fields(fmt.Sprintf("%s %d", what, i+1), &w, &g)
		}
	}
}

// fields compares two structs of the same type field by field, and what pointers point to.
func (d *differ) fields(where string, want, got any) {
	w, g := reflect.ValueOf(want).Elem(), reflect.ValueOf(got).Elem()
	for i := range w.NumField() {
		name := where + "." + w.Type().Field(i).Name
		wf, gf := w.Field(i), g.Field(i)
		if wf.Kind() == reflect.Pointer && wf.Type().Elem().Kind() == reflect.Struct && !wf.IsNil() && !gf.IsNil() {
			d.fields(name, wf.Interface(), gf.Interface())
			continue
		}
		if !reflect.DeepEqual(wf.Interface(), gf.Interface()) {
			d.add(name, deref(wf), deref(gf))
		}
	}
}

func deref(v reflect.Value) any {
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		return v.Elem().Interface()
	}
	return v.Interface()
}
