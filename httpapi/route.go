package httpapi

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"qm/access"
	"qm/engine/room"
)

// handler answers an exchange, or says why not.
type handler func(*exchange) error

// route is one address and what may be done there.
type route struct {
	name  string // the metrics' label
	paths []string

	get, post, delete handler

	admin  bool        // under /api/admin; set for all routes with a role
	open   bool        // judges its credential itself
	free   bool        // its POST and DELETE do
	role   access.Role // what GET needs; NoRole: everyone may
	write  access.Role // what POST and DELETE need
	cors   bool        // other origins may read it, as the room's policy says
	public bool        // every origin may read it: nothing in it is about whoever asks
	vital  bool        // answered beyond the ceiling of connections, too
	page   bool        // people look at it: refusals are pages

	allow string
	ok    map[string]prometheus.Counter // answered 200, by method: counted without looking for labels
}

// wildcard is the routes of a path with one variable segment, by what follows it.
type wildcard struct {
	prefix string
	after  map[string]*route
}

// index prepares the routes for find.
func (s *Server) index(routes []*route) {
	s.fixed = make(map[string]*route)
	for _, r := range routes {
		var verbs []string
		if r.get != nil {
			verbs = append(verbs, http.MethodGet, http.MethodHead)
		}
		if r.post != nil {
			verbs = append(verbs, http.MethodPost)
		}
		if r.delete != nil {
			verbs = append(verbs, http.MethodDelete)
		}
		r.allow = strings.Join(append(verbs, http.MethodOptions), ", ")
		r.admin = r.admin || r.role != access.NoRole || r.write != access.NoRole
		for _, path := range r.paths {
			if rest, ok := strings.CutPrefix(path, "api:"); ok {
				s.add("/api/v1/"+rest, r)
				s.add("/api/"+rest, r)
				continue
			}
			s.add(path, r)
		}
	}
}

func (s *Server) add(path string, r *route) {
	prefix, after, ok := strings.Cut(path, "{id}")
	if !ok {
		s.fixed[path] = r
		return
	}
	for _, w := range s.wild {
		if w.prefix == prefix {
			w.after[after] = r
			return
		}
	}
	s.wild = append(s.wild, wildcard{prefix, map[string]*route{after: r}})
}

// find is the route of a path and the value of its variable segment; nil when there is none. Paths are taken as they stand:
// no cleaning, and so no permanent redirects (contract.md 12), which is why this is not http.ServeMux.
func (s *Server) find(path string) (*route, string) {
	if r := s.fixed[path]; r != nil {
		return r, ""
	}
	for _, w := range s.wild {
		rest, ok := strings.CutPrefix(path, w.prefix)
		if !ok || rest == "" {
			continue
		}
		id, after := rest, ""
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			id, after = rest[:i], rest[i:]
		}
		if r := w.after[after]; r != nil && id != "" {
			return r, id
		}
	}
	return nil, ""
}

// dispatch hands the exchange to its route's handler of its method.
func (s *Server) dispatch(x *exchange) error {
	r := x.route
	if r == nil {
		if strings.HasPrefix(x.r.URL.Path, "/api/") || x.r.URL.Path == "/api" {
			return refuse("not_found")
		}
		return s.notFoundPage(x)
	}
	switch {
	case r.cors:
		s.cors(x)
	case r.public:
		x.w.Header()["Access-Control-Allow-Origin"] = valueAny
	}
	run, need := handler(nil), r.write
	switch x.r.Method {
	case http.MethodGet:
		run, need = r.get, r.role
	case http.MethodHead:
		run, need = r.get, r.role
		x.head = true
	case http.MethodPost:
		run = r.post
	case http.MethodDelete:
		run = r.delete
	case http.MethodOptions:
		return s.preflight(x)
	}
	if run == nil {
		return &Problem{Code: "method_not_allowed", Allow: r.allow}
	}
	if r.admin {
		s.client(x)
		if !r.open && !(r.free && (x.r.Method == http.MethodPost || x.r.Method == http.MethodDelete)) {
			actor, err := s.o.Gate.Authenticate(x.r, x.network, x.now)
			if err != nil {
				return err
			}
			if err := actor.Require(need); err != nil {
				return err
			}
			x.actor = actor
		}
	}
	return run(x)
}

// cors lets a browser origin of the room's policy read the answer (seed 004, Edge check; returnOrigins and tagOrigins). A room that
// does not exist has nothing to hide, and the tag on a page has to learn that it may let the visitor go.
func (s *Server) cors(x *exchange) (allowed bool) {
	h := x.w.Header()
	h["Vary"] = valueOrigin
	origin := x.r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	id, ok, conflict := param(x.r.URL.RawQuery, "roomId")
	if !ok || conflict || !validRoomID(id) {
		return false
	}
	sum, _, err := s.summary(x.r.Context(), id)
	switch {
	case isNoRoom(err):
		h.Set("Access-Control-Allow-Origin", "*")
		return true
	case err != nil || !tagOrigin(sum.Settings, origin):
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Credentials", "true")
	return true
}

// preflight answers OPTIONS with the CORS decision of the real method (seed 004, Versioning policy).
func (s *Server) preflight(x *exchange) error {
	h := x.w.Header()
	h.Set("Allow", x.route.allow)
	if h.Get("Access-Control-Allow-Origin") != "" {
		h.Set("Access-Control-Allow-Methods", x.route.allow)
		h.Set("Access-Control-Allow-Headers", "Content-Type, X-QM-Session")
		h.Set("Access-Control-Max-Age", "600")
	}
	x.buf = x.buf[:0]
	x.send(http.StatusNoContent)
	return nil
}

// tagOrigin reports whether pages of an origin may read a door check: tagOrigins, else returnOrigins, and always the target's.
func tagOrigin(set *room.Settings, origin string) bool {
	list := set.TagOrigins
	if list == nil {
		list = set.ReturnOrigins
	}
	for _, o := range list {
		if o == origin {
			return true
		}
	}
	return originOf(set.TargetURL) == origin
}
