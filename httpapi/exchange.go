package httpapi

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"qm/access"
)

// exchange is one request and its answer. It is pooled: nothing may keep it, or a slice of its buffers, after its handler has returned.
type exchange struct {
	w     http.ResponseWriter
	r     *http.Request
	route *route
	now   time.Time
	head  bool // HEAD on a GET route: answer as GET would, change nothing (contract.md 2)
	wrote bool

	status int
	code   string // of the refusal, "" when there was none

	id      string         // what stands for the wildcard of the route's path
	addr    netip.Addr     // the client's address; invalid when unknown
	network access.Network // what counts as one client (contract.md 3)
	actor   access.Actor   // on admin routes
	frame   frame

	buf []byte // the body of the answer
	in  []byte // the body of the request
}

var exchanges = sync.Pool{New: func() any { return &exchange{buf: make([]byte, 0, 1024)} }}

// maxKept is the largest buffer that a pooled exchange keeps, in bytes.
const maxKept = 64 << 10

func (x *exchange) release() {
	if cap(x.buf) > maxKept || cap(x.in) > maxKept {
		return
	}
	*x = exchange{buf: x.buf[:0], in: x.in[:0]}
	exchanges.Put(x)
}

// Header values as they are stored, so that setting one allocates nothing. Never written to.
var (
	valueJSON    = []string{"application/json; charset=utf-8"}
	valueHTML    = []string{"text/html; charset=utf-8"}
	valueNoStore = []string{"no-store"}
	valueNoSniff = []string{"nosniff"}
	valueNoRefer = []string{"no-referrer"}
	valueOrigin  = []string{"Origin"}
	valueAny     = []string{"*"}
)

// json answers with x.buf. Everything here is personal or an operator's, and so never stored (contract.md 12).
func (x *exchange) json(status int) {
	h := x.w.Header()
	h["Content-Type"] = valueJSON
	x.send(status)
}

func (x *exchange) send(status int) {
	x.status, x.wrote = status, true
	x.w.WriteHeader(status)
	if !x.head {
		// The client may be gone; there is nobody to tell.
		_, _ = x.w.Write(x.buf)
	}
}

// redirect answers 302 to a location (contract.md 12: never a permanent one).
func (x *exchange) redirect(location string) {
	x.w.Header().Set("Location", location)
	x.buf = x.buf[:0]
	x.send(http.StatusFound)
}

// ms is the exchange's time in epoch milliseconds.
func (x *exchange) ms() int64 { return x.now.UnixMilli() }
