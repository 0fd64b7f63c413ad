package token

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write testdata/tokens from the reference implementation in this file")

const vectorDir = "../../testdata/tokens"

// The reference implementation: seed 004's words, by the shortest way that the
// standard library offers, sharing nothing with the keyring.

func referenceMAC(key []byte, text string) string {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

func referenceHKDF(t testing.TB, secret, info string, n int) []byte {
	t.Helper()
	key, err := hkdf.Key(sha256.New, []byte(secret), nil, info, n)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func referenceKid(t testing.TB, secret string) string {
	return hex.EncodeToString(referenceHKDF(t, secret, "qm:kid", 4))
}

func legacyToken(secret, payload string) string {
	b := base64.RawURLEncoding.EncodeToString([]byte(payload))
	return b + "." + referenceMAC([]byte(secret), b)
}

// v2Token signs payload, in which KID stands for the kid.
func v2Token(t testing.TB, secret, purpose, payload string) string {
	payload = strings.ReplaceAll(payload, "KID", referenceKid(t, secret))
	b := base64.RawURLEncoding.EncodeToString([]byte(payload))
	return b + "." + referenceMAC(referenceHKDF(t, secret, "qm:"+purpose, 32), b)
}

// vector is one token and what a verifier says about it at an instant.
type vector struct {
	Name    string          `json:"name"`
	Purpose string          `json:"purpose"`
	Token   string          `json:"token"`
	Room    string          `json:"room,omitempty"` // the room asked for
	Now     int64           `json:"nowMs"`
	Want    json.RawMessage `json:"want,omitempty"`  // the payload, without kid
	Error   string          `json:"error,omitempty"` // malformed key signature purpose expired future other_room
}

type vectorFile struct {
	About    string            `json:"about"`
	Secret   string            `json:"secret"`
	Previous string            `json:"secretPrevious,omitempty"`
	MaxAge   int               `json:"tokenMaxAgeSec"`
	Keys     map[string]string `json:"derivedHex"` // what HKDF makes of secret, by info
	Vectors  []vector          `json:"vectors"`
}

var errorNamed = map[string]error{
	"malformed": ErrMalformed, "key": ErrKey, "signature": ErrSignature, "purpose": ErrPurpose,
	"expired": ErrExpired, "future": ErrFuture, "other_room": ErrOtherRoom,
}

const (
	testSecret   = "a secret of the tests, used nowhere else"
	testPrevious = "the secret before that one"
	testNow      = int64(1764525600000)
)

func makeVectors(t testing.TB) map[string]vectorFile {
	legacy := func(p string) string { return legacyToken(testSecret, p) }
	v2 := func(purpose, p string) string { return v2Token(t, testSecret, purpose, p) }
	derived := map[string]string{"qm:kid": referenceKid(t, testSecret)}
	for p := range purposes {
		derived["qm:"+p.String()] = hex.EncodeToString(referenceHKDF(t, testSecret, "qm:"+p.String(), 32))
	}
	file := func(about string, vs ...vector) vectorFile {
		for i := range vs {
			if vs[i].Now == 0 {
				vs[i].Now = testNow
			}
			if vs[i].Room == "" && (vs[i].Purpose == "visitor" || vs[i].Purpose == "code") {
				vs[i].Room = "spring-drop"
			}
		}
		return vectorFile{about, testSecret, testPrevious, 86400, derived, vs}
	}
	good := func(name, purpose, token, want string) vector {
		return vector{Name: name, Purpose: purpose, Token: token, Want: json.RawMessage(want)}
	}
	bad := func(name, purpose, token, err string) vector {
		return vector{Name: name, Purpose: purpose, Token: token, Error: err}
	}
	at := func(v vector, now int64) vector { v.Now = now; return v }
	of := func(v vector, room string) vector { v.Room = room; return v }
	const (
		ticket   = `{"r":"spring-drop","n":123456,"g":1,"iat":1764525600000}`
		handle   = `{"r":"spring-drop","q":77,"g":2,"iat":1764525600000}`
		bypass   = `{"r":"spring-drop","n":0,"g":1,"iat":1764525600000}`
		ticketV2 = `{"r":"spring-drop","n":123456,"g":1,"iat":1764525600000,"kid":"KID"}`
		handleV2 = `{"r":"spring-drop","q":77,"g":2,"iat":1764525600000,"kid":"KID"}`
		session  = `{"s":"01JDZ3K4C5","iat":1764525600000,"exp":1764568800000}`
		monitor  = `{"m":"01JDZ3K4C5","iat":1764525600000,"exp":1764568800000}`
		operator = `{"o":"01JDZ3K4C5","iat":1764525600000,"exp":1764568800000}`
		max      = `{"r":"spring-drop","n":4294967295,"g":4294967295,"iat":1764525600000}`
	)
	withKid := func(p string) string { return strings.TrimSuffix(p, "}") + `,"kid":"KID"}` }
	day := int64(86400000)
	// The last of 43 characters carries four bits; the next character of the
	// alphabet decodes to the same bytes in a lax decoder.
	lax := func(token string) string {
		const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
		last := token[len(token)-1]
		return token[:len(token)-1] + string(alphabet[strings.IndexByte(alphabet, last)+1])
	}
	flip := func(token string) string {
		b := []byte(token)
		if b[len(b)-2] == 'A' {
			b[len(b)-2] = 'B'
		} else {
			b[len(b)-2] = 'A'
		}
		return string(b)
	}
	return map[string]vectorFile{
		"legacy.json": file("The legacy form: keyed with the secret itself, no kid.",
			good("ticket", "visitor", legacy(ticket), ticket),
			good("pre-queue handle", "visitor", legacy(handle), handle),
			good("bypass pass", "visitor", legacy(bypass), bypass),
			good("largest numbers", "visitor", legacy(max), max),
			good("fields in another order, with spaces", "visitor",
				legacy("{ \"iat\":1764525600000 ,\"g\": 1,\n\"n\":5,\"r\":\"spring-drop\"}\n"), `{"r":"spring-drop","n":5,"g":1,"iat":1764525600000}`),
			good("console session", "session", legacy(session), session),
			good("monitor link", "monitor", legacy(monitor), monitor),
			good("operator", "operator", legacy(operator), operator),
			good("signed with the previous secret", "visitor", legacyToken(testPrevious, ticket), ticket),
			at(good("just at its greatest age", "visitor", legacy(ticket), ticket), testNow+day),
			at(good("60 s ahead", "visitor", legacy(ticket), ticket), testNow-60000),
		),
		"v2.json": file("v2: a key per purpose and a kid.",
			good("ticket", "visitor", v2("visitor", ticketV2), ticket),
			good("pre-queue handle", "visitor", v2("visitor", handleV2), handle),
			good("console session", "session", v2("session", withKid(session)), session),
			good("monitor link", "monitor", v2("monitor", withKid(monitor)), monitor),
			good("operator", "operator", v2("operator", withKid(operator)), operator),
			good("hand-over code", "code", v2("code", ticketV2), ticket),
			good("signed with the previous secret", "visitor", v2Token(t, testPrevious, "visitor", ticketV2), ticket),
			at(good("code at its greatest age", "code", v2("code", ticketV2), ticket), testNow+60000),
			at(good("session in its last millisecond", "session", v2("session", withKid(session)), session), 1764568799999),
		),
		"refused.json": file("What must be refused, and why.",
			bad("empty", "visitor", "", "malformed"),
			bad("null", "visitor", "null", "malformed"),
			bad("undefined", "visitor", "undefined", "malformed"),
			bad("a dot", "visitor", ".", "malformed"),
			bad("two short parts", "visitor", "a.b", "malformed"),
			bad("three parts", "visitor", "a.b.c", "malformed"),
			bad("three long parts", "visitor", legacy(ticket)+".x", "malformed"),
			bad("too long", "visitor", strings.Repeat("A", 8192), "malformed"),
			bad("a payload that is an array", "visitor", legacy("[]"), "malformed"),
			bad("an empty object", "visitor", legacy("{}"), "malformed"),
			bad("padded", "visitor", legacy(ticket)+"=", "malformed"),
			bad("last byte changed", "visitor", flip(legacy(ticket)), "signature"),
			bad("trailing bits set", "visitor", lax(legacy(ticket)), "signature"),
			bad("another secret", "visitor", legacyToken("another", ticket), "signature"),
			bad("another secret, v2", "visitor", v2Token(t, "another", "visitor", ticketV2), "key"),
			bad("known kid, wrong key", "visitor", v2("session", ticketV2), "signature"),
			bad("a kid on a token keyed with the secret", "visitor", legacy(strings.ReplaceAll(ticketV2, "KID", referenceKid(t, testSecret))), "signature"),
			bad("the purpose's key without a kid", "visitor", v2("visitor", ticket), "signature"),
			bad("both n and q", "visitor", legacy(`{"r":"spring-drop","n":1,"q":1,"g":1,"iat":1764525600000}`), "malformed"),
			bad("neither n nor q", "visitor", legacy(`{"r":"spring-drop","g":1,"iat":1764525600000}`), "malformed"),
			bad("no room", "visitor", legacy(`{"n":1,"g":1,"iat":1764525600000}`), "malformed"),
			bad("no generation", "visitor", legacy(`{"r":"spring-drop","n":1,"iat":1764525600000}`), "malformed"),
			bad("no time", "visitor", legacy(`{"r":"spring-drop","n":1,"g":1}`), "malformed"),
			bad("handle 0", "visitor", legacy(`{"r":"spring-drop","q":0,"g":1,"iat":1764525600000}`), "malformed"),
			bad("generation 0", "visitor", legacy(`{"r":"spring-drop","n":1,"g":0,"iat":1764525600000}`), "malformed"),
			bad("negative", "visitor", legacy(`{"r":"spring-drop","n":-1,"g":1,"iat":1764525600000}`), "malformed"),
			bad("fraction", "visitor", legacy(`{"r":"spring-drop","n":1.5,"g":1,"iat":1764525600000}`), "malformed"),
			bad("exponent", "visitor", legacy(`{"r":"spring-drop","n":1e3,"g":1,"iat":1764525600000}`), "malformed"),
			bad("leading zero", "visitor", legacy(`{"r":"spring-drop","n":01,"g":1,"iat":1764525600000}`), "malformed"),
			bad("too large", "visitor", legacy(`{"r":"spring-drop","n":4294967296,"g":1,"iat":1764525600000}`), "malformed"),
			bad("a number as text", "visitor", legacy(`{"r":"spring-drop","n":"1","g":1,"iat":1764525600000}`), "malformed"),
			bad("null as a number", "visitor", legacy(`{"r":"spring-drop","n":null,"g":1,"iat":1764525600000}`), "malformed"),
			bad("a room that is a number", "visitor", legacy(`{"r":1,"n":1,"g":1,"iat":1764525600000}`), "malformed"),
			bad("a field twice", "visitor", legacy(`{"r":"spring-drop","n":1,"n":2,"g":1,"iat":1764525600000}`), "malformed"),
			bad("an unknown field", "visitor", legacy(`{"r":"spring-drop","n":1,"g":1,"iat":1764525600000,"passed":true}`), "malformed"),
			bad("more after the object", "visitor", legacy(ticket+"{}"), "malformed"),
			at(bad("past its greatest age", "visitor", legacy(ticket), "expired"), testNow+day+1),
			at(bad("more than 60 s ahead", "visitor", legacy(ticket), "future"), testNow-60001),
			of(bad("of another room", "visitor", legacy(ticket), "other_room"), "autumn-drop"),
			bad("a session as a visitor", "visitor", legacy(session), "purpose"),
			bad("a visitor as a session", "session", legacy(ticket), "purpose"),
			bad("a monitor link as a session", "session", legacy(monitor), "purpose"),
			bad("a v2 monitor link as a session", "session", v2("monitor", withKid(session)), "signature"),
			at(bad("a session at its end", "session", legacy(session), "expired"), 1764568800000),
			bad("a legacy visitor token as a code", "code", legacy(ticket), "purpose"),
			bad("a v2 visitor token as a code", "code", v2("visitor", ticketV2), "signature"),
			bad("a code as a visitor token", "visitor", v2("code", ticketV2), "signature"),
			bad("a code for a pre-queue entry", "code", v2("code", handleV2), "purpose"),
			at(bad("a code past its minute", "code", v2("code", ticketV2), "expired"), testNow+60001),
			of(bad("a code of another room", "code", v2("code", ticketV2), "other_room"), "autumn-drop"),
		),
	}
}

// Proves: token.forms
func TestVectors(t *testing.T) {
	for name, made := range makeVectors(t) {
		path := filepath.Join(vectorDir, name)
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", " ")
		if err := enc.Encode(made); err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(path, buf.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		recorded, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(recorded, buf.Bytes()) {
			t.Errorf("%s is not what the reference implementation makes; tokens are a contract", name)
		}
		var file vectorFile
		if err := json.Unmarshal(recorded, &file); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		k, err := New(file.Secret, file.Previous, Options{MaxAge: time.Duration(file.MaxAge) * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range file.Vectors {
			t.Run(strings.TrimSuffix(name, ".json")+"/"+v.Name, func(t *testing.T) { checkVector(t, k, v) })
		}
	}
}

func checkVector(t *testing.T, k *Keyring, v vector) {
	now := time.UnixMilli(v.Now)
	var got string
	var err error
	switch v.Purpose {
	case "visitor":
		var p Visitor
		if p, err = k.VerifyVisitor(v.Token, v.Room, now); err == nil {
			got = string(p.payload(nil, ""))
		}
	case "code":
		var c Code
		if c, err = k.VerifyCode(v.Token, v.Room, now); err == nil {
			got = string(Visitor{Room: c.Room, Ticket: c.Ticket, Generation: c.Generation, IssuedAt: c.IssuedAt}.payload(nil, ""))
		}
	default:
		for p := range purposes {
			if p.String() == v.Purpose {
				var ref Reference
				if ref, err = k.VerifyReference(p, v.Token, now); err == nil {
					b, _ := json.Marshal(ref.IssuedAt)
					e, _ := json.Marshal(ref.ExpiresAt)
					got = `{"` + v.Purpose[:1] + `":"` + ref.ID + `","iat":` + string(b) + `,"exp":` + string(e) + `}`
				}
			}
		}
	}
	if v.Error != "" {
		if want := errorNamed[v.Error]; want == nil || !errors.Is(err, want) {
			t.Fatalf("got %q, %v; want the error %q", got, err, v.Error)
		}
		return
	}
	var want bytes.Buffer
	if cerr := json.Compact(&want, v.Want); cerr != nil {
		t.Fatal(cerr)
	}
	if err != nil || got != want.String() {
		t.Fatalf("got %q, %v; want %s", got, err, want.String())
	}
}
