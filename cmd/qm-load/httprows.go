package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"qm/access/token"
)

// bareAnswer is what the bare handlers answer: as long as an answer of ours.
var bareAnswer = []byte(`{"state":"active","position":123456,"ahead":123455,"etaSec":null,"passed":false}`)

// bare is net/http and nothing else: it reads the body, if there is one, and answers.
func bare(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		_, _ = io.Copy(io.Discard, r.Body) // a body that breaks off is the client's affair
	}
	w.Header()["Content-Type"] = []string{"application/json; charset=utf-8"}
	_, _ = w.Write(bareAnswer)
}

// twoServers serves ours and the bare handler beside each other.
func twoServers(h *house) (ours, plain string, stop func(), err error) {
	ours, stopOurs, err := listen(h.web.HTTP())
	if err != nil {
		return "", "", nil, err
	}
	plain, stopPlain, err := listen(&http.Server{Handler: http.HandlerFunc(bare)})
	if err != nil {
		stopOurs()
		return "", "", nil, err
	}
	return ours, plain, func() { stopOurs(); stopPlain() }, nil
}

// compare sends the same requests to both servers.
func (b *bench) compare(ours, plain string, clients int, next func(client, n int, into []byte) []byte) (pairing, error) {
	candidate, err := newFleet(ours, clients, next)
	if err != nil {
		return pairing{}, err
	}
	defer candidate.close()
	base, err := newFleet(plain, clients, next)
	if err != nil {
		return pairing{}, err
	}
	defer base.close()
	return pair(b.rounds, func() (float64, error) { return base.run(b.slice) }, func() (float64, error) { return candidate.run(b.slice) })
}

// appendJoin makes the request of a visitor who joins for the first time.
func appendJoin(b []byte, room string, visitor uint64, forwarded bool) []byte {
	body := len(`{"roomId":""}`) + len(room)
	b = append(b, "POST /api/v1/join HTTP/1.1\r\nHost: qm\r\nUser-Agent: qm-load\r\nAccept: */*\r\nContent-Type: application/json\r\n"...)
	if forwarded {
		b = append(b, "X-Forwarded-For: "...)
		b = addressOf(visitor).AppendTo(b)
		b = append(b, "\r\n"...)
	}
	b = append(b, "Content-Length: "...)
	b = strconv.AppendInt(b, int64(body), 10)
	b = append(b, "\r\n\r\n{\"roomId\":\""...)
	b = append(b, room...)
	return append(b, `"}`...)
}

// measureHTTPJoins compares durable joins over HTTP, as a visitor makes them, with a bare POST handler. The whole of qm is at work: the
// journal in Postgres, the projection in Valkey.
func measureHTTPJoins(ctx context.Context, b *bench) (figures []figure, err error) {
	for _, c := range []struct {
		clients int
		bound   float64
	}{{500, 0.60}, {64, 0.45}} {
		f, err := b.httpJoins(ctx, c.clients, c.bound)
		if err != nil {
			return nil, err
		}
		figures = append(figures, f)
	}
	return figures, nil
}

func (b *bench) httpJoins(ctx context.Context, clients int, bound float64) (figure, error) {
	p, err := b.servers.place(ctx)
	if err != nil {
		return figure{}, err
	}
	defer p.drop()
	h, err := openHouse(ctx, p, houseOptions{projected: true})
	if err != nil {
		return figure{}, err
	}
	defer func() { _ = h.stop() }()
	if err := h.createRoom(ctx); err != nil {
		return figure{}, err
	}
	ours, plain, stop, err := twoServers(h)
	if err != nil {
		return figure{}, err
	}
	defer stop()
	var visitor atomic.Uint64
	r, err := b.compare(ours, plain, clients, func(_, _ int, into []byte) []byte {
		return appendJoin(into[:0], roomID, visitor.Add(1), true)
	})
	if err != nil {
		return figure{}, err
	}
	return atLeast(fmt.Sprintf("durable joins over HTTP, %d clients, in answers of a bare POST handler", clients), bound, r.ratio,
		"%.0f a second, bare %.0f", r.candidate, r.base), nil
}

// measureHTTPStatus compares polls in a line of a million with a bare handler.
func measureHTTPStatus(ctx context.Context, b *bench) ([]figure, error) {
	p, err := b.servers.place(ctx)
	if err != nil {
		return nil, err
	}
	defer p.drop()
	waiting := b.scale(1_000_000, 100_000)
	last, err := seed(ctx, p, waiting+1, waiting, 0)
	if err != nil {
		return nil, err
	}
	h, err := openHouse(ctx, p, houseOptions{projected: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = h.stop() }()
	if _, err := h.firstPoll(ctx, last); err != nil {
		return nil, err
	}
	ours, plain, stop, err := twoServers(h)
	if err != nil {
		return nil, err
	}
	defer stop()

	rnd := rand.New(rand.NewPCG(5, 6))
	requests := make([][]byte, 1<<14)
	for i := range requests {
		t := h.keys.SignVisitor(token.Visitor{Room: roomID, Ticket: 1 + rnd.Uint32N(uint32(waiting)), Generation: 1, IssuedAt: time.Now().UnixMilli()})
		requests[i] = fmt.Appendf(nil, "GET /api/v1/status?roomId=%s&token=%s HTTP/1.1\r\nHost: qm\r\nUser-Agent: qm-load\r\nAccept: */*\r\n\r\n", roomID, t)
	}
	r, err := b.compare(ours, plain, 64, func(client, n int, _ []byte) []byte { return requests[(client*257+n)%len(requests)] })
	if err != nil {
		return nil, err
	}
	return []figure{atLeast(fmt.Sprintf("status over HTTP, token check and exact position, %s waiting, in answers of a bare handler", grouped(waiting)),
		0.93, r.ratio, "%.0f a second, bare %.0f", r.candidate, r.base)}, nil
}
