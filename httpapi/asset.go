package httpapi

import (
	"net/http"
	"strings"

	"qm/web"
)

// asset serves a file of this build, which its name identifies by its content, under /assets and, for an inline host, under
// /__qm/assets (seed 004, QM-467).
func (s *Server) asset(x *exchange) error {
	path := strings.TrimPrefix(x.r.URL.Path, "/__qm")
	body, kind, ok := web.Asset(path)
	if !ok {
		return refuse("not_found")
	}
	h := x.w.Header()
	h.Set("Cache-Control", web.AssetCacheControl)
	h.Set("Content-Type", kind)
	h.Set("Vary", "Accept-Encoding")
	if takesGzip(x.r.Header) {
		body = web.Packed(path)
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", itoa(len(body)))
	x.status, x.wrote = http.StatusOK, true
	x.w.WriteHeader(http.StatusOK)
	if !x.head {
		_, _ = x.w.Write(body)
	}
	return nil
}

// takesGzip reports whether a client says that it reads gzip, and not that it would rather not.
func takesGzip(h http.Header) bool {
	for part := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		coding, weight, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			return !strings.HasPrefix(strings.TrimSpace(weight), "q=0") || strings.ContainsAny(weight, "123456789")
		}
	}
	return false
}
