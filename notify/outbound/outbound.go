// Package outbound makes the HTTP clients with which this server speaks to addresses that an operator typed: webhooks, alert pages, targets. They
// reach public addresses alone, whatever a name resolves to at the time, unless the configuration allows others (QM_ALLOW_PRIVATE_OUTBOUND).
package outbound

import (
	"context"
	"io"
	"net"
	"net/http"
	"time"

	"code.dny.dev/ssrf"
)

// Client is a client whose requests take timeout at most, and which follows no redirect: where an answer sends us is not what the operator typed.
func Client(allowPrivate bool, timeout time.Duration) *http.Client {
	dialer := &net.Dialer{Timeout: timeout}
	if !allowPrivate {
		dialer.Control = ssrf.New(ssrf.WithAnyPort()).Safe
	}
	return &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: timeout, ResponseHeaderTimeout: timeout,
			MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
			// No proxy of the environment: it would resolve names out of our sight.
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Look asks a target for its page and tells how long the answer's head took. failed: there was none in time, or it blames the server (500 and up).
func Look(ctx context.Context, client *http.Client, target string) (took time.Duration, failed bool) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return 0, true
	}
	r.Header.Set("User-Agent", "qm-probe")
	r.Header.Set("Cache-Control", "no-cache")
	began := time.Now()
	answer, err := client.Do(r)
	took = time.Since(began)
	if err != nil {
		return took, true
	}
	_, _ = io.CopyN(io.Discard, answer.Body, 256<<10) // so that the connection can be used again
	answer.Body.Close()
	return took, answer.StatusCode >= http.StatusInternalServerError
}
