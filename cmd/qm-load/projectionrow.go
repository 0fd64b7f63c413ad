package main

import (
	"context"
	"strconv"
	"time"

	client "github.com/valkey-io/valkey-go"

	"qm/engine/room"
	"qm/projection"
	"qm/projection/valkey"
)

// measureProjection compares batches of joins, published, with one HSET a ticket by DoMulti on the same server.
func measureProjection(ctx context.Context, b *bench) ([]figure, error) {
	p, err := b.servers.place(ctx)
	if err != nil {
		return nil, err
	}
	defer p.drop()
	store, err := valkey.Open(ctx, p.valkey, valkey.Options{Prefix: p.prefix})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	c, err := valkeyClient(p)
	if err != nil {
		return nil, err
	}
	defer c.Close()

	s := room.New()
	s.Apply(room.Event{At: seedStart, Body: &room.Create{Generation: 1, Mode: room.Active, Settings: roomSettings()}})
	seq := int64(1)
	if err := store.Reset(ctx, stream, 1, seq, s); err != nil {
		return nil, err
	}
	n := uint64(0)
	batch := func() []room.Event {
		events := make([]room.Event, commitRows)
		for i := range events {
			n++
			events[i] = visit(n)
		}
		return events
	}
	hashes := func() (float64, error) {
		events := batch()
		n -= commitRows // the pages take the same tickets
		start := time.Now()
		commands := make(client.Commands, 0, len(events))
		for _, e := range events {
			j := e.Body.(*room.Join)
			commands = append(commands, c.B().Hset().Key(p.prefix+"t:"+strconv.Itoa(int(j.Ticket))).FieldValue().
				FieldValue("status", "1").FieldValue("holder", client.BinaryString(j.Holder[:])).
				FieldValue("at", strconv.FormatInt(int64(e.At), 10)).Build())
		}
		for _, answer := range c.DoMulti(ctx, commands...) {
			if err := answer.Error(); err != nil {
				return 0, err
			}
		}
		return float64(len(events)) / time.Since(start).Seconds(), nil
	}
	pages := func() (float64, error) {
		events := batch()
		for _, e := range events {
			s.Apply(e)
		}
		start := time.Now()
		err := store.Apply(ctx, projection.Batch{Room: stream, Epoch: 1, After: seq, Events: events, State: s})
		elapsed := time.Since(start)
		seq += int64(len(events))
		return float64(len(events)) / elapsed.Seconds(), err
	}
	r, err := pair(b.scale(400, 100), hashes, pages)
	if err != nil {
		return nil, err
	}
	bytes, err := memoryOf(ctx, c, p.prefix+"qm:")
	if err != nil {
		return nil, err
	}
	return []figure{
		atLeast("projection to Valkey, batches of 1,000, in HSETs a ticket by DoMulti", 6, r.ratio, "%.0f tickets a second, HSET %.0f", r.candidate, r.base),
		atMost("the same: bytes a ticket in Valkey", 40, float64(bytes)/float64(n), "of %s tickets, by MEMORY USAGE of all keys", grouped(int(n))),
	}, nil
}

// memoryOf adds up what the keys that begin with a prefix take.
func memoryOf(ctx context.Context, c client.Client, prefix string) (total int64, err error) {
	keys, err := keysOf(ctx, c, prefix)
	if err != nil {
		return 0, err
	}
	for _, key := range keys {
		n, err := c.Do(ctx, c.B().MemoryUsage().Key(key).Samples(0).Build()).AsInt64()
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}
