package token

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func keyring(t testing.TB, o Options) *Keyring {
	t.Helper()
	k, err := New(testSecret, testPrevious, o)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestNewRefuses(t *testing.T) {
	if _, err := New("", "", Options{}); err == nil {
		t.Error("an empty secret was taken")
	}
	if _, err := New("s", "", Options{MaxAge: 59 * time.Second}); err == nil {
		t.Error("a maximum age below a minute was taken")
	}
	k, err := New("s", "s", Options{})
	if err != nil || k.MaxAge() != DefaultMaxAge || k.previous != nil {
		t.Errorf("defaults: %v, %v, previous %v", err, k.MaxAge(), k.previous)
	}
	if a, b := NewSecret(), NewSecret(); a == b || len(a) < 32 {
		t.Errorf("secrets %q and %q", a, b)
	}
}

// RFC 5869 by hand, with nothing but HMAC: extract under a salt of zeros, then
// one block of expand, which is all that 32 bytes take.
//
// Proves: token.forms
func TestDerivedKeysAreHKDF(t *testing.T) {
	mac := func(key []byte, parts ...[]byte) []byte {
		m := hmac.New(sha256.New, key)
		for _, p := range parts {
			m.Write(p)
		}
		return m.Sum(nil)
	}
	prk := mac(make([]byte, sha256.Size), []byte(testSecret))
	expand := func(info string, n int) []byte { return mac(prk, []byte(info), []byte{1})[:n] }
	ks, err := derive(testSecret)
	if err != nil {
		t.Fatal(err)
	}
	if want := hex.EncodeToString(expand("qm:kid", 4)); ks.kid != want {
		t.Errorf("kid %s, want %s", ks.kid, want)
	}
	for p := range purposes {
		m := ks.purpose[p].get()
		got := string(m.sign(copy(m.text[:], "some text")))
		if want := base64.RawURLEncoding.EncodeToString(mac(expand("qm:"+p.String(), 32), []byte("some text"))); got != want {
			t.Errorf("%v: the key is not HKDF's", p)
		}
	}
}

func visitors() *rapid.Generator[Visitor] {
	return rapid.Custom(func(t *rapid.T) Visitor {
		v := Visitor{
			Room:       rapid.StringMatching(`[a-z0-9][a-z0-9-]{1,62}[a-z0-9]`).Draw(t, "room"),
			Generation: rapid.Uint32Min(1).Draw(t, "generation"),
			IssuedAt:   rapid.Int64Range(0, maxInstant).Draw(t, "issued"),
		}
		if rapid.Bool().Draw(t, "pre-queued") {
			v.Handle = rapid.Uint32Min(1).Draw(t, "handle")
		} else {
			v.Ticket = rapid.Uint32().Draw(t, "ticket")
		}
		return v
	})
}

// What is signed comes back, in both forms, from every keyring that may verify
// it, and is byte for byte what the reference implementation signs.
//
// Proves: token.payload
func TestVisitorRoundTrip(t *testing.T) {
	legacy, v2 := keyring(t, Options{}), keyring(t, Options{SignV2: true})
	rotated, err := New("the next secret", testSecret, Options{})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		v := visitors().Draw(rt, "visitor")
		now := time.UnixMilli(v.IssuedAt)
		signed := map[string]string{
			legacy.SignVisitor(v): legacyToken(testSecret, string(v.payload(nil, ""))),
			v2.SignVisitor(v):     v2Token(t, testSecret, "visitor", string(v.payload(nil, "KID"))),
		}
		for token, want := range signed {
			if token != want {
				rt.Fatalf("signed %s, want %s", token, want)
			}
			for _, k := range []*Keyring{legacy, v2, rotated} {
				if got, err := k.VerifyVisitor(token, v.Room, now); err != nil || got != v {
					rt.Fatalf("got %+v, %v; want %+v", got, err, v)
				}
				if got, err := k.VerifyVisitorAnyRoom(token, now); err != nil || got != v {
					rt.Fatalf("any room: got %+v, %v; want %+v", got, err, v)
				}
				if _, err := k.VerifyVisitor(token, v.Room+"x", now); !errors.Is(err, ErrOtherRoom) {
					rt.Fatalf("another room: %v", err)
				}
			}
			if !json.Valid(v.payload(nil, "")) {
				rt.Fatal("the payload is not JSON")
			}
		}
	})
}

// Any change of any byte is refused.
func TestEveryByteCounts(t *testing.T) {
	for _, o := range []Options{{}, {SignV2: true}} {
		k := keyring(t, o)
		v := Visitor{Room: "spring-drop", Ticket: 7, Generation: 1, IssuedAt: testNow}
		token := k.SignVisitor(v)
		now := time.UnixMilli(testNow)
		for i := range len(token) {
			for _, c := range []byte("A.b_=\n\x00\xff") {
				if token[i] == c {
					continue
				}
				changed := token[:i] + string([]byte{c}) + token[i+1:]
				if got, err := k.VerifyVisitor(changed, v.Room, now); err == nil {
					t.Fatalf("byte %d as %q: took %+v", i, c, got)
				}
			}
			if _, err := k.VerifyVisitor(token[:i], v.Room, now); err == nil {
				t.Fatalf("took a token cut at %d", i)
			}
		}
	}
}

func TestSignRefusesWhatIsNoPlace(t *testing.T) {
	k := keyring(t, Options{})
	for name, v := range map[string]Visitor{
		"nothing":       {},
		"no generation": {Room: "spring-drop", Ticket: 1},
		"both":          {Room: "spring-drop", Ticket: 1, Handle: 1, Generation: 1},
		"a quote":       {Room: `a"b`, Ticket: 1, Generation: 1},
		"long":          {Room: strings.Repeat("a", 65), Ticket: 1, Generation: 1},
		"before 1970":   {Room: "spring-drop", Ticket: 1, Generation: 1, IssuedAt: -1},
	} {
		if !panics(func() { k.SignVisitor(v) }) {
			t.Errorf("%s: signed", name)
		}
	}
	if !panics(func() { k.SignCode(Code{Room: "spring-drop", Ticket: 1}) }) {
		t.Error("a code without a generation: signed")
	}
	for _, p := range []Purpose{PurposeVisitor, PurposeCode, purposes, 255} {
		if !panics(func() { k.SignReference(p, Reference{ID: "x", ExpiresAt: 1}) }) {
			t.Errorf("a reference for purpose %v: signed", p)
		}
	}
	if !panics(func() { k.SignReference(PurposeSession, Reference{ID: "a b"}) }) {
		t.Error("a reference with a space: signed")
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

func TestReferencesAndCodes(t *testing.T) {
	now := time.UnixMilli(testNow)
	for _, o := range []Options{{}, {SignV2: true}} {
		k := keyring(t, o)
		ref := Reference{ID: strings.Repeat("x", 128), IssuedAt: testNow, ExpiresAt: testNow + 1000}
		signed := []Purpose{PurposeMonitor, PurposeSession, PurposeOperator}
		for _, p := range signed {
			token := k.SignReference(p, ref)
			for _, q := range signed {
				got, err := k.VerifyReference(q, token, now)
				if p == q && (err != nil || got != ref) {
					t.Errorf("%v, %+v: got %+v, %v", p, o, got, err)
				}
				if p != q && err == nil {
					t.Errorf("%+v: a token for %v was taken for %v", o, p, q)
				}
			}
			if _, err := k.VerifyVisitor(token, "x", now); !errors.Is(err, ErrPurpose) {
				t.Errorf("%+v: a token for %v as a visitor: %v", o, p, err)
			}
		}
		if _, err := k.VerifyReference(PurposeVisitor, "x", now); !errors.Is(err, ErrPurpose) {
			t.Errorf("a visitor reference: %v", err)
		}
		early := k.SignReference(PurposeSession, Reference{ID: "x", IssuedAt: testNow + 60001, ExpiresAt: testNow + 90000})
		if _, err := k.VerifyReference(PurposeSession, early, now); !errors.Is(err, ErrFuture) {
			t.Errorf("a reference of the future: %v", err)
		}
		c := Code{Room: "spring-drop", Ticket: 3, Generation: 2, IssuedAt: testNow}
		if got, err := k.VerifyCode(k.SignCode(c), c.Room, now); err != nil || got != c {
			t.Errorf("%+v: code %+v, %v", o, got, err)
		}
	}
}

// The recorded values were made by another implementation: a port must come to
// the same (seed 004, QM-469).
//
// Proves: token.refresh
func TestRefreshJitterVectors(t *testing.T) {
	recorded, err := os.ReadFile(filepath.Join(vectorDir, "refresh.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vectors []struct {
			Payload struct {
				R       string
				N, Q, G uint32
				Iat     int64
			}
			RefreshAfterMs, JitterMs int64
		}
	}
	if err := json.Unmarshal(recorded, &file); err != nil || len(file.Vectors) == 0 {
		t.Fatalf("%d vectors, %v", len(file.Vectors), err)
	}
	for _, v := range file.Vectors {
		p := Visitor{Room: v.Payload.R, Ticket: v.Payload.N, Handle: v.Payload.Q, Generation: v.Payload.G, IssuedAt: v.Payload.Iat}
		after := time.Duration(v.RefreshAfterMs) * time.Millisecond
		jitter := time.Duration(v.JitterMs) * time.Millisecond
		if got := p.RefreshJitter(after); got != jitter {
			t.Errorf("%+v: jitter %v, want %v", p, got, jitter)
		}
		due := time.UnixMilli(p.IssuedAt).Add(after)
		if p.RefreshDue(after, due.Add(-time.Millisecond)) || !p.RefreshDue(after, due) {
			t.Errorf("%+v: due at the wrong time", p)
		}
		if got := p.RefreshAt(after); !got.Equal(due.Add(jitter)) {
			t.Errorf("%+v: ends at %v", p, got)
		}
	}
}

func TestRefreshAfter(t *testing.T) {
	if got := RefreshAfter(86400*time.Second, 7200*time.Second); got != time.Hour {
		t.Errorf("due after %v", got)
	}
	if got := RefreshAfter(61*time.Second, time.Hour); got != 30500*time.Millisecond {
		t.Errorf("due after %v", got)
	}
	bypass := Visitor{Room: "spring-drop", Generation: 1}
	if bypass.RefreshDue(time.Hour, time.UnixMilli(testNow)) {
		t.Error("a bypass pass is due")
	}
	if got := bypass.RefreshJitter(-time.Hour); got != 0 {
		t.Errorf("no window, jitter %v", got)
	}
}

func TestRefreshJitterStaysInItsWindow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		v := visitors().Draw(rt, "visitor")
		after := time.Duration(rapid.Int64Range(0, 1e9).Draw(rt, "after")) * time.Millisecond
		if j := v.RefreshJitter(after); j < 0 || j > after/10 {
			rt.Fatalf("jitter %v of %v", j, after)
		}
	})
}

func TestSessions(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		s := NewSession()
		if !ValidSession(s) || seen[s] {
			t.Fatalf("session %q", s)
		}
		seen[s] = true
	}
	for _, s := range []string{"", strings.Repeat("a", 15), strings.Repeat("a", 129), strings.Repeat("a", 20) + " ", strings.Repeat("é", 20)} {
		if ValidSession(s) {
			t.Errorf("took %q", s)
		}
	}
	if !ValidSession(strings.Repeat("_", 16)) || !ValidSession(strings.Repeat("-", 128)) {
		t.Error("the bounds are not in")
	}
}

func TestDoorKeys(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g, n := rapid.Uint32Min(1).Draw(rt, "g"), rapid.Uint32Min(1).Draw(rt, "n")
		key := NewDoorKey(g, n)
		gotG, gotN, ok := ParseDoorKey(key)
		if !ok || gotG != g || gotN != n {
			rt.Fatalf("%s: %d, %d, %v", key, gotG, gotN, ok)
		}
		if len(key) > 48 || strings.Trim(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
			rt.Fatalf("%q does not fit a header", key)
		}
		sum := sha256.Sum256([]byte(key))
		if d := DigestDoorKey(key); !bytes.Equal(d[:], sum[:16]) || d == DigestDoorKey(NewDoorKey(g, n)) {
			rt.Fatalf("digest %x", d)
		}
	})
	secret := "AAAAAAAAAAAAAAAAAAAAAA"
	for _, key := range []string{
		"", "ds1", "ds1.", "ds1.1.1", "ds1.1.1.", "ds1.1.1." + secret + "A", "ds1.1.1." + secret[1:], "ds2.1.1." + secret,
		"ds1.0.1." + secret, "ds1.1.0." + secret, "ds1.01.1." + secret, "ds1.+1.1." + secret, "ds1.1.4294967296." + secret,
		"ds1.1.1.AAAAAAAAAAAAAAAAAAAAAB", "ds1.1.1.AAAAAAAAAAAAAAAAAAAA.A", "ds1.1.1." + secret + ".x",
	} {
		if g, n, ok := ParseDoorKey(key); ok {
			t.Errorf("took %q as %d, %d", key, g, n)
		}
	}
}

func TestRoomNamesAreBounded(t *testing.T) {
	var s names
	for i := range maxNames + 100 {
		name := fmt.Sprintf("room-%d", i)
		if got := s.of([]byte(name)); got != name {
			t.Fatalf("%q for %q", got, name)
		}
	}
	if len(s.known) != maxNames {
		t.Errorf("%d names kept", len(s.known))
	}
}

// No text panics, and whatever is taken is exactly a token that we sign.
func FuzzVerify(f *testing.F) {
	for _, file := range makeVectors(f) {
		for _, v := range file.Vectors {
			f.Add(v.Token, v.Now)
		}
	}
	k := keyring(f, Options{})
	f.Fuzz(func(t *testing.T, token string, ms int64) {
		now := time.UnixMilli(ms)
		v, err := k.VerifyVisitorAnyRoom(token, now)
		if err == nil {
			if _, err := k.VerifyVisitor(token, v.Room, now); err != nil || !v.valid() {
				t.Fatalf("%q: %+v, %v", token, v, err)
			}
		}
		for p := range purposes {
			_, _ = k.VerifyReference(p, token, now)
		}
		_, _ = k.VerifyCode(token, "spring-drop", now)
		ParseDoorKey(token)
	})
}

// The parser never panics, takes only JSON, and reads what encoding/json reads.
func FuzzPayload(f *testing.F) {
	for _, file := range makeVectors(f) {
		for _, v := range file.Vectors {
			if b, _, ok := strings.Cut(v.Token, "."); ok {
				payload, _ := base64.RawURLEncoding.DecodeString(b)
				f.Add(payload)
			}
		}
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		var c claims
		if len(payload) > maxPayload || c.parse(copy(c.buf[:], payload)) != nil {
			return
		}
		var want struct {
			R       string
			N, Q, G uint32
			Iat     int64
			Exp     int64
			Kid     string
		}
		if err := json.Unmarshal(payload, &want); err != nil {
			t.Fatalf("%q is not JSON: %v", payload, err)
		}
		if string(c.bytes(c.room)) != want.R || c.ticket != want.N || c.handle != want.Q || c.generation != want.G ||
			c.issued != want.Iat || c.expires != want.Exp || string(c.bytes(c.kid)) != want.Kid {
			t.Fatalf("%q: read %+v, want %+v", payload, c, want)
		}
	})
}
