package token

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"sync"
	"time"
)

const (
	// DefaultMaxAge is TOKEN_MAX_AGE_SEC where nothing else is configured (seed 004).
	DefaultMaxAge = 24 * time.Hour
	// MinMaxAge is the least that TOKEN_MAX_AGE_SEC may be (seed 004).
	MinMaxAge = time.Minute
	// MaxSkew is how far ahead of the present a token may have been issued (seed 004).
	MaxSkew = time.Minute
	// MaxLen is the longest text, in bytes, that is looked at as a token. The
	// longest that qm signs has about 300.
	MaxLen = 512

	macChars   = 43                              // 32 bytes in base64url
	maxPayload = (MaxLen - macChars - 1) * 3 / 4 // bytes of JSON
	minBody    = 4                               // characters; less holds no payload at all
)

// Options of a Keyring.
type Options struct {
	// SignV2 is TOKEN_SIGN_V2: sign with a key per purpose and a kid. Both forms
	// are verified either way.
	SignV2 bool
	// MaxAge is TOKEN_MAX_AGE_SEC: what a visitor token may be old; at least
	// MinMaxAge, DefaultMaxAge when zero.
	MaxAge time.Duration
}

// Keyring signs with one secret and verifies with that one and, during a
// rotation, the one before it. It is safe for concurrent use.
type Keyring struct {
	current  *keys
	previous *keys // nil outside a rotation
	options  Options
	rooms    names
}

// keys is all that follows from one secret.
type keys struct {
	kid     string // 8 hex digits
	legacy  macs
	purpose [purposes]macs
	short   []byte // of the short codes
	stamp   []byte // of the stamps of pages
	box     cipher.AEAD
}

// New makes a keyring of SECRET and SECRET_PREVIOUS; previous may be empty.
func New(secret, previous string, o Options) (*Keyring, error) {
	if secret == "" {
		return nil, errors.New("token: the secret is empty")
	}
	if o.MaxAge == 0 {
		o.MaxAge = DefaultMaxAge
	}
	if o.MaxAge < MinMaxAge {
		return nil, fmt.Errorf("token: a maximum age of %v is below %v", o.MaxAge, MinMaxAge)
	}
	k := &Keyring{options: o}
	var err error
	if k.current, err = derive(secret); err != nil {
		return nil, err
	}
	if previous != "" && previous != secret {
		if k.previous, err = derive(previous); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// NewSecret is a random secret for a process that was given none: what it
// signs dies with it.
func NewSecret() string { return rand.Text() + rand.Text() }

// MaxAge is what a visitor token may be old.
func (k *Keyring) MaxAge() time.Duration { return k.options.MaxAge }

// derive makes the keys of a secret (seed 004, "Tokens").
func derive(secret string) (*keys, error) {
	kid, err := hkdf.Key(sha256.New, []byte(secret), nil, "qm:kid", 4)
	if err != nil {
		return nil, fmt.Errorf("token: derive the key id: %w", err)
	}
	ks := &keys{kid: hex.EncodeToString(kid)}
	if ks.short, err = hkdf.Key(sha256.New, []byte(secret), nil, "qm:short-code", 32); err != nil {
		return nil, fmt.Errorf("token: derive the key of short codes: %w", err)
	}
	if ks.stamp, err = hkdf.Key(sha256.New, []byte(secret), nil, "qm:stamp", 32); err != nil {
		return nil, fmt.Errorf("token: derive the key of stamps: %w", err)
	}
	ks.legacy.keyed([]byte(secret))
	if ks.box, err = box(secret); err != nil {
		return nil, err
	}
	for p := range purposes {
		key, err := hkdf.Key(sha256.New, []byte(secret), nil, "qm:"+p.String(), 32)
		if err != nil {
			return nil, fmt.Errorf("token: derive the %v key: %w", p, err)
		}
		ks.purpose[p].keyed(key)
	}
	return ks, nil
}

// kidToSign is the kid that a new token of p carries; empty means legacy.
func (k *Keyring) kidToSign(p Purpose) string {
	if k.options.SignV2 || p.onlyV2() {
		return k.current.kid
	}
	return ""
}

// seal appends the token of payload, which carries kidToSign(p).
func (k *Keyring) seal(dst []byte, p Purpose, payload []byte) []byte {
	pool := &k.current.legacy
	if k.kidToSign(p) != "" {
		pool = &k.current.purpose[p]
	}
	start := len(dst)
	dst = base64.RawURLEncoding.AppendEncode(dst, payload)
	m := pool.get()
	n := copy(m.text[:], dst[start:])
	mac := m.sign(n)
	dst = append(dst, '.')
	dst = append(dst, mac...)
	pool.put(m)
	return dst
}

// open checks the form and the signature of a token and leaves its payload in
// c. The payload is read before the signature,
// since it names the key; nothing of it is believed until the signature holds.
func (k *Keyring) open(p Purpose, token string, c *claims) error {
	dot := len(token) - macChars - 1
	if dot < minBody || len(token) > MaxLen || token[dot] != '.' {
		return ErrMalformed
	}
	n, ok := decodeBody(&c.buf, token[:dot])
	if !ok {
		return ErrMalformed
	}
	if err := c.parse(n); err != nil {
		return err
	}
	if c.has&^fieldsOf[p] != 0 {
		return ErrPurpose
	}
	if c.has&fieldKid == 0 {
		if p.onlyV2() {
			return ErrPurpose
		}
		if k.current.legacy.verify(token, dot) || k.previous != nil && k.previous.legacy.verify(token, dot) {
			return nil
		}
		return ErrSignature
	}
	ks := k.current
	if string(c.bytes(c.kid)) != ks.kid {
		if ks = k.previous; ks == nil || string(c.bytes(c.kid)) != ks.kid {
			return ErrKey
		}
	}
	if !ks.purpose[p].verify(token, dot) {
		return ErrSignature
	}
	return nil
}

// body is base64url without padding whose unused trailing bits are zero.
var body = base64.RawURLEncoding.Strict()

func decodeBody(buf *[maxPayload]byte, text string) (n int, ok bool) {
	// The standard decoder steps over line breaks, and so can come out short.
	if len(text)%4 == 1 {
		return 0, false
	}
	n, err := body.Decode(buf[:], []byte(text))
	if err != nil || n != body.DecodedLen(len(text)) {
		return 0, false
	}
	return n, true
}

// macs is a pool of HMAC-SHA256 states under one key: a state that was used
// once restarts from the key's midstate, which saves two of the blocks.
type macs struct{ pool sync.Pool }

// mac is a state and the memory that a MAC needs, so that a call allocates nothing.
type mac struct {
	hash hash.Hash
	sum  [sha256.Size]byte
	text [MaxLen]byte
	sig  [macChars]byte
}

func (s *macs) keyed(key []byte) {
	s.pool.New = func() any { return &mac{hash: hmac.New(sha256.New, key)} }
}

func (s *macs) get() *mac  { return s.pool.Get().(*mac) }
func (s *macs) put(m *mac) { s.pool.Put(m) }

// sign is the encoded MAC of the first n bytes of m.text; good until m is put back.
func (m *mac) sign(n int) []byte {
	m.hash.Reset()
	m.hash.Write(m.text[:n])
	base64.RawURLEncoding.Encode(m.sig[:], m.hash.Sum(m.sum[:0]))
	return m.sig[:]
}

// verify compares encoded MACs: only the one canonical spelling can be equal.
func (s *macs) verify(token string, dot int) bool {
	m := s.get()
	n := copy(m.text[:], token)
	want := m.sign(dot)
	ok := subtle.ConstantTimeCompare(want, m.text[dot+1:n]) == 1
	s.put(m)
	return ok
}

// names keeps one string a room, so that a verified token can name its room
// without allocating. Only rooms of genuine tokens get here, and at most
// maxNames of them: beyond that a name is allocated anew each time.
type names struct {
	mu    sync.RWMutex
	known map[string]string
}

const maxNames = 4096

func (s *names) of(b []byte) string {
	s.mu.RLock()
	name, ok := s.known[string(b)]
	s.mu.RUnlock()
	if ok {
		return name
	}
	name = string(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = make(map[string]string)
	}
	if len(s.known) < maxNames {
		s.known[name] = name
	}
	return name
}
