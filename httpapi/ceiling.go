package httpapi

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
)

// ceiling is how many connections may be open. What comes beyond it is told so at once, health excepted (seed 004, Health: "exempt from
// connection-ceiling shedding"): those who are served are served well, and the stores keep the files that they need.
type ceiling struct {
	open  atomic.Int64
	most  int64
	spare int64 // so many more are open for the time that a refusal takes
}

// Files that a process needs for itself: stores, listener, logs.
const ownFiles = 256

// ceilingOf makes the ceiling of a process that may open so many files (0: nobody knows) and is to serve so many streams. It returns how
// many streams fit below it: one connection in sixteen is for everything else, so that streams cannot shut joins out.
func ceilingOf(files, streams int) (*ceiling, int) {
	most, spare := streams+max(streams/4, 4096), 1024
	if files > 0 {
		usable := files - min(ownFiles, files/4)
		spare = max(usable/32, 1)
		most = max(min(most, usable-spare), 1)
	}
	return &ceiling{most: int64(most), spare: int64(spare)}, min(streams, max(most-most/16, 1))
}

// connection is what is known of the connection of a request.
type connection struct {
	conn net.Conn
	late bool // opened beyond the ceiling
}

type connectionKey struct{}

// connectionOf is nil for a request that did not come through [Server.HTTP].
func connectionOf(ctx context.Context) *connection {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return c
}

// opened counts a connection as it is accepted.
func (l *ceiling) opened(ctx context.Context, conn net.Conn) context.Context {
	n := l.open.Add(1)
	if n > l.most+l.spare {
		_ = conn.Close() // not even a refusal can be afforded
	}
	return context.WithValue(ctx, connectionKey{}, &connection{conn, n > l.most})
}

// changed counts a connection that is closed, or that net/http has nothing more to do with.
func (l *ceiling) changed(_ net.Conn, state http.ConnState) {
	if state == http.StateClosed || state == http.StateHijacked {
		l.open.Add(-1)
	}
}

// kept counts a connection that was taken over: n is 1, and -1 when it is closed.
func (l *ceiling) kept(n int64) { l.open.Add(n) }

// sheds reports whether a request is not to be served, because its connection came beyond the ceiling and there is still no room.
func (l *ceiling) sheds(x *exchange) bool {
	if l.open.Load() <= l.most {
		return false
	}
	if x.route != nil && x.route.vital {
		return false
	}
	c := connectionOf(x.r.Context())
	return c != nil && c.late
}
