package connector

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Forward authentication: a proxy such as nginx, Caddy or Traefik holds a visitor's request back and asks about it, in a request of its own
// that has the visitor's headers and says in X-Forwarded-Method, -Proto, -Host and -Uri what was asked for. README.md, "Behind a proxy".

// Forwarded is the visitor's request that a proxy asks about, as a site would have received it, and the origin of the visitor's browser.
// An error says what the proxy left out or gave twice. The four headers are believed as they stand: whether the proxy may be is the
// caller's to judge.
func Forwarded(r *http.Request) (visited *http.Request, origin string, err error) {
	values := map[string]string{}
	var wrong []error
	for _, name := range []string{"X-Forwarded-Method", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Uri"} {
		switch given := r.Header[name]; {
		case len(given) != 1:
			wrong = append(wrong, fmt.Errorf("%s is given %d times, not once", name, len(given)))
		case strings.ContainsAny(given[0], ", \t") && name != "X-Forwarded-Uri":
			wrong = append(wrong, fmt.Errorf("%s is a list", name))
		default:
			values[name] = given[0]
		}
	}
	method, scheme, host, target := values["X-Forwarded-Method"], strings.ToLower(values["X-Forwarded-Proto"]), values["X-Forwarded-Host"], values["X-Forwarded-Uri"]
	if wrong == nil {
		if scheme != "http" && scheme != "https" {
			wrong = append(wrong, errors.New("X-Forwarded-Proto is neither http nor https"))
		}
		if method == "" {
			wrong = append(wrong, errors.New("X-Forwarded-Method is empty"))
		}
		if host == "" || strings.ContainsAny(host, `/?#@\`) {
			wrong = append(wrong, errors.New("X-Forwarded-Host is no host"))
		}
		if !strings.HasPrefix(target, "/") && target != "*" {
			wrong = append(wrong, errors.New("X-Forwarded-Uri is neither a path nor *"))
		}
	}
	if wrong != nil {
		return nil, "", errors.Join(wrong...)
	}
	visited = r.Clone(r.Context())
	visited.Method, visited.Host, visited.RequestURI = method, host, target
	visited.Body, visited.ContentLength = http.NoBody, 0
	return visited, scheme + "://" + host, nil
}

// Judge asks the middleware about a visitor's request and tells the proxy. Whoever is served gets 204: the proxy goes on to the site, with
// the cookies of X-QM-Cookie-Key and X-QM-Cookie-Token, if any, and the X-QM-Decision on its answer. Anything else is the answer for the
// visitor; where a proxy can see no more of it than 401 and headers, as nginx's auth_request, the headers say all of it; a
// queue that does not answer is 503 there. It returns the
// status that the proxy was given.
func Judge(w http.ResponseWriter, visited *http.Request, middleware func(http.Handler) http.Handler, inHeaders bool) int {
	said := &held{header: http.Header{}}
	served := false
	middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served = true })).ServeHTTP(said, visited)
	h := w.Header()
	if !served && !inHeaders {
		for name, values := range said.header {
			h[name] = values
		}
		w.WriteHeader(said.status)
		_, _ = w.Write(said.body.Bytes()) // the proxy may be gone; there is nobody to tell
		return said.status
	}
	h.Set("X-QM-Decision", said.header.Get("X-QM-Decision"))
	for _, cookie := range said.header["Set-Cookie"] {
		if strings.HasPrefix(cookie, keyCookie) {
			h.Set("X-QM-Cookie-Key", cookie)
		} else {
			h.Set("X-QM-Cookie-Token", cookie)
		}
	}
	if served {
		w.WriteHeader(http.StatusNoContent)
		return http.StatusNoContent
	}
	h.Set("X-QM-Status", fmt.Sprint(said.status))
	if l := said.header.Get("Location"); l != "" {
		h.Set("X-QM-Location", l)
	}
	if a := said.header.Get("Retry-After"); a != "" {
		h.Set("X-QM-Retry-After", a)
	}
	if strings.HasPrefix(said.header.Get("Content-Type"), "application/json") {
		h.Set("X-QM-Body", said.body.String())
	}
	if said.status == http.StatusServiceUnavailable {
		w.WriteHeader(said.status) // nobody refused the visitor; a proxy has its own page for that
		return said.status
	}
	w.WriteHeader(http.StatusUnauthorized)
	return http.StatusUnauthorized
}

// held keeps an answer until it is known whom it is for.
type held struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *held) Header() http.Header { return a.header }

func (a *held) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *held) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(b)
}

// InProcess carries a connector's questions to a queue in the same process: handler gets a request like one from a visitor at that address,
// and its answer comes back when it is whole.
type InProcess struct {
	Handler http.Handler
	Host    string // the queue's own host, as whoever asks knows it
	Address string // the visitor's address, without a port
}

// RoundTrip is http.RoundTripper's.
func (t InProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	asked := r.Clone(r.Context())
	asked.Host, asked.RequestURI, asked.RemoteAddr, asked.Body = t.Host, r.URL.RequestURI(), t.Address, http.NoBody
	said := &held{header: http.Header{}}
	t.Handler.ServeHTTP(said, asked)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	said.WriteHeader(http.StatusOK)
	return &http.Response{
		StatusCode: said.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: said.header,
		Body: io.NopCloser(&said.body), ContentLength: int64(said.body.Len()), Request: r,
	}, nil
}
