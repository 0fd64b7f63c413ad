package httpapi

import (
	"net/http"

	"qm/docs"
)

// guide is /docs and /docs/:name: the guides of this build (seed 004, Unversioned surface).
func (s *Server) guide(x *exchange) error {
	page, ok := docs.Guide(x.id)
	if !ok {
		return refuse("not_found")
	}
	x.html(http.StatusOK, docs.Policy, page)
	return nil
}
