package httpapi

import (
	"net/http"

	"qm/web"
)

// snippet serves the script tag that sites load (seed 004, Versioning policy: /snippet/* is unversioned). Anybody's page may load it, with
// an integrity attribute too, which needs CORS.
func (s *Server) snippet(x *exchange) error {
	if x.id != "qm.js" {
		return refuse("not_found")
	}
	body, etag := web.Snippet()
	h := x.w.Header()
	h.Set("Cache-Control", web.SnippetCacheControl)
	h.Set("ETag", etag)
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	x.buf = x.buf[:0]
	if known(x.r.Header["If-None-Match"], etag) {
		x.send(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Type", "text/javascript; charset=utf-8")
	h.Set("Content-Length", itoa(len(body)))
	x.buf = append(x.buf, body...)
	x.send(http.StatusOK)
	return nil
}
