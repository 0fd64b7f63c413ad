package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"qm/access/token"
	"qm/engine"
	"qm/engine/room"
)

// The demo (QM_DEMO=1): a room whose line moves, so that a newcomer sees one. Synthetic visitors join it like anybody else, through
// the engine; when they have passed they give their place back.
const (
	demoRoom  = "demo"
	demoRate  = 40 // a minute
	demoCrowd = 12 // synthetic visitors kept waiting
)

type demo struct {
	engine *engine.Engine
	target string
	log    *slog.Logger
	crowd  []demoVisitor
	made   int
}

type demoVisitor struct {
	session string
	ticket  room.Ticket
}

// run keeps the crowd until ctx ends.
func (d *demo) run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if err := d.step(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, engine.ErrElsewhere) {
			d.log.Warn("the demo room does not move", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// step looks after the synthetic visitors, as their browsers would each second.
func (d *demo) step(ctx context.Context) error {
	view, err := d.engine.View(ctx, demoRoom)
	if err == nil {
		var sum room.Summary
		if sum, _, err = view.Summary(ctx); err == nil && !sum.Exists {
			err = room.ErrRoomNotFound
		}
	}
	if err != nil {
		if err := d.create(ctx); err != nil {
			return err
		}
		if view, err = d.engine.View(ctx, demoRoom); err != nil {
			return err
		}
	}
	waiting := d.crowd[:0]
	for _, v := range d.crowd {
		_, place, err := view.Ticket(ctx, v.ticket)
		if err != nil {
			return err
		}
		switch {
		case place.Status == room.Waiting:
			d.engine.Seen(demoRoom, v.ticket)
			waiting = append(waiting, v)
		case place.Live():
			if _, err := d.engine.Leave(ctx, demoRoom, v.session); err != nil {
				return err
			}
		}
	}
	d.crowd = waiting
	for len(d.crowd) < demoCrowd {
		v := demoVisitor{session: token.NewSession()}
		// 203.0.113.0/24 is for documentation: nobody's address.
		network := netip.PrefixFrom(netip.AddrFrom4([4]byte{203, 0, 113, byte(d.made)}), 32)
		d.made++
		ans, err := d.engine.Join(ctx, demoRoom, v.session, network, 0)
		if err != nil {
			return err
		}
		if v.ticket = ans.Place.Ticket; v.ticket == 0 {
			return nil // the operator plays with the room: bypass, or a drop
		}
		d.crowd = append(d.crowd, v)
	}
	return nil
}

func (d *demo) create(ctx context.Context) error {
	s := room.DefaultSettings()
	s.Name, s.TargetURL, s.RatePerMinute = "Demo room", d.target, demoRate
	s.Branding = room.Branding{Name: "Demo shop", Message: "This is a demo: the visitors before you are synthetic."}
	_, err := d.engine.Create(ctx, demoRoom, "demo", s, room.Active, time.Time{})
	if err != nil && !errors.Is(err, room.ErrRoomExists) {
		return fmt.Errorf("create the demo room: %w", err)
	}
	return nil
}
