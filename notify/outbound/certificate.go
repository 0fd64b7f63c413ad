package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"code.dny.dev/ssrf"
)

// ErrNoCertificate: the address is not one of TLS.
var ErrNoCertificate = errors.New("outbound: the address has no certificate")

// Expiry asks an https address for its certificate and tells until when that is good. Whether it is good otherwise is not asked: one that has
// expired is just what has to be seen.
func Expiry(ctx context.Context, allowPrivate bool, target string) (time.Time, error) {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return time.Time{}, ErrNoCertificate
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	d := tls.Dialer{
		NetDialer: &net.Dialer{},
		Config:    &tls.Config{ServerName: u.Hostname(), InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}, //nolint:gosec // nothing is sent, and only a date is read
	}
	if !allowPrivate {
		d.NetDialer.Control = ssrf.New(ssrf.WithAnyPort()).Safe
	}
	c, err := d.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return time.Time{}, fmt.Errorf("look at a certificate: %w", err)
	}
	defer c.Close()
	certificates := c.(*tls.Conn).ConnectionState().PeerCertificates
	if len(certificates) == 0 {
		return time.Time{}, ErrNoCertificate
	}
	return certificates[0].NotAfter, nil
}
