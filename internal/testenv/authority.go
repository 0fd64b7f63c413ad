package testenv

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"testing"
	"time"
)

// Authority signs certificates that only those who have its Roots trust.
type Authority struct {
	Roots *x509.CertPool

	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority of its own for a test.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{Roots: x509.NewCertPool(), t: t}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "an authority of a test"}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert, a.key = a.sign(root, root, nil)
	a.Roots.AddCert(a.cert)
	return a
}

// Certificate is one for a host name or an address, good until a time.
func (a *Authority) Certificate(host string, until time.Time) *tls.Certificate {
	a.t.Helper()
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host}, NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		leaf.IPAddresses = []net.IP{ip}
	} else {
		leaf.DNSNames = []string{host}
	}
	c, key := a.sign(leaf, a.cert, a.key)
	return &tls.Certificate{Certificate: [][]byte{c.Raw}, PrivateKey: key, Leaf: c}
}

// sign makes a certificate and its key; without a signer it signs itself.
func (a *Authority) sign(c, issuer *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatalf("testenv: make a key: %v", err)
	}
	if signer == nil {
		signer = key
	}
	raw, err := x509.CreateCertificate(rand.Reader, c, issuer, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatalf("testenv: sign a certificate: %v", err)
	}
	signed, err := x509.ParseCertificate(raw)
	if err != nil {
		a.t.Fatalf("testenv: read a certificate: %v", err)
	}
	return signed, key
}
