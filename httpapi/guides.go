package httpapi

import (
	"net/http"
	"strings"

	"qm/docs"
)

// progress is /progress: what this build implements of each contract, made of the tests that prove it (seed 004).
func (s *Server) progress(x *exchange) error {
	x.html(http.StatusOK, docs.Policy, docs.Progress())
	return nil
}

// guide is /docs and /docs/:name, and /docs/th and /docs/th/:name in Thai: the guides of this build (seed 004, Unversioned surface).
func (s *Server) guide(x *exchange) error {
	_, name, _ := strings.Cut(x.r.URL.Path, "/docs/")
	page, ok := docs.Guide(name)
	if !ok {
		return refuse("not_found")
	}
	x.html(http.StatusOK, docs.Policy, page)
	return nil
}
