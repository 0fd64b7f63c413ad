package httpapi

import (
	"log/slog"
	"net/http"
	"time"

	"qm/access"
	"qm/edge/connector"
)

// forwardTimeout is how long a proxy's question may take: a proxy adds at most 500 ms for its connection, and no site is held up longer
// than the 2 s of every connector.
const forwardTimeout = 1500 * time.Millisecond

// forward answers a proxy that holds a visitor's request back until it knows what becomes of it: nginx's auth_request, Caddy's and
// Traefik's forward authentication. It is the connector of edge/connector with this server as its queue, so that a site behind a proxy
// and a site with a connector of its own are told the same.
//
// What a proxy forwards is believed with the Public API key, and then ip= must name the visitor, or where the proxy is one of
// TRUSTED_PROXIES. Otherwise anybody could ask in anybody's name.
func (s *Server) forward(x *exchange) error {
	s.client(x)
	visitor := x.addr
	ip, named, conflict := param(x.r.URL.RawQuery, "ip")
	if named || !s.o.Proxies.TrustsPeer(x.r) {
		if err := s.o.Gate.Vouch(x.r, x.network, x.now); err != nil {
			if p, ok := problemOf(err); ok && Codes[p.Code].Status == http.StatusUnauthorized {
				return refuse("forward_untrusted") // not 401, which says to a proxy that the visitor is refused
			}
			return err
		}
		addr, ok := access.ParseAddr(ip)
		if conflict || !ok {
			return refuseField("invalid_ip", "ip", "")
		}
		visitor = addr
	}
	id, ok, err := x.query("roomId")
	if err != nil {
		return err
	}
	if !ok || !validRoomID(id) {
		return refuseField("invalid_room_id", "roomId", "")
	}
	fail, _, err := x.query("fail")
	if err != nil {
		return err
	}
	if fail != "" && fail != "open" && fail != "closed" {
		return refuseField("invalid_parameter", "fail", "fail is open or closed.")
	}
	inHeaders, _, err := x.query("headers")
	if err != nil {
		return err
	}
	if inHeaders != "" && inHeaders != "1" {
		return refuseField("invalid_parameter", "headers", "headers is 1, or absent.")
	}
	visited, origin, err := connector.Forwarded(x.r)
	if err != nil {
		return refuseField("invalid_forward", "", err.Error())
	}
	if x.head {
		visited.Method = http.MethodHead
	}
	middleware, err := connector.New(connector.Config{
		Room: id, Server: "http://queue", FailOpen: fail == "open", Timeout: forwardTimeout, Log: silent,
		Visitor: func(*http.Request) (string, string) { return origin, "" },
		Decided: func(_ *http.Request, d connector.Decision) { s.forwarded(id, d) },
		// The question comes from the visitor's own address, so that it counts as theirs.
		Transport: connector.InProcess{Handler: s, Host: x.r.Host, Address: visitor.String()},
	})
	if err != nil {
		return err
	}
	x.wrote = true
	x.status = connector.Judge(x.w, visited, middleware, inHeaders == "1")
	return nil
}

// silent is the log of a connector that lives for one question: [Server.forwarded] keeps the count.
var silent = slog.New(slog.DiscardHandler)

// forwarded counts a decision, and logs what was served undecided, once a second at most (domain.md rule 12).
func (s *Server) forwarded(id string, d connector.Decision) {
	s.metrics.forwards.WithLabelValues(string(d.Outcome)).Inc()
	if d.Outcome != connector.Open {
		return
	}
	now := s.o.Now().Unix()
	if last := s.openLogged.Load(); last != now && s.openLogged.CompareAndSwap(last, now) {
		s.o.Log.Warn("let a proxy serve a visitor undecided", "room", id, "reason", d.Reason)
	}
}
