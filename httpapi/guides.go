package httpapi

import (
	"net/http"

	"qm/docs"
)

// progress is /progress: what this build implements of each contract, made of the tests that prove it (seed 004).
func (s *Server) progress(x *exchange) error {
	x.html(http.StatusOK, docs.Policy, docs.Progress())
	return nil
}

// guide is /docs and /docs/:name: the guides of this build (seed 004, Unversioned surface).
func (s *Server) guide(x *exchange) error {
	page, ok := docs.Guide(x.id)
	if !ok {
		return refuse("not_found")
	}
	x.html(http.StatusOK, docs.Policy, page)
	return nil
}
