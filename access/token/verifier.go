package token

import (
	"crypto/subtle"
	"strings"
)

// A verifier is what is kept of an operator's key in place of the key: its MAC. Like a token it has two forms (seed 004,
// Tokens: "Operator verifiers follow the same rule and are never downgraded from v2"):
//
//	1.<43 base64url>                 under SECRET itself
//	2.<8 hex digits kid>.<43 base64url>  under the key of purpose operator
//
// Whoever reads it learns nothing of a random key, and cannot test a guessed one without SECRET.

// Verifier is the verifier of key, 1 to MaxLen bytes, under the current secret. It panics on another length.
func (k *Keyring) Verifier(key string) string { return k.current.verifier(key, k.options.SignV2) }

// Verifies reports whether key is the one that a verifier was made of, under either secret. better is the verifier that
// should take its place, "" when there is none: one under the current secret, so that SECRET_PREVIOUS can go, and one of the second
// form where that is signed; never one of the first form in place of the second.
func (k *Keyring) Verifies(verifier, key string) (ok bool, better string) {
	if key == "" || len(key) > MaxLen {
		return false, ""
	}
	v2 := strings.HasPrefix(verifier, "2.")
	for _, ks := range []*keys{k.current, k.previous} {
		if ks == nil || subtle.ConstantTimeCompare([]byte(ks.verifier(key, v2)), []byte(verifier)) != 1 {
			continue
		}
		if ks != k.current || k.options.SignV2 && !v2 {
			better = k.current.verifier(key, v2 || k.options.SignV2)
		}
		return true, better
	}
	return false, ""
}

func (ks *keys) verifier(key string, v2 bool) string {
	if key == "" || len(key) > MaxLen {
		panic("token: a verifier of what can be no key")
	}
	pool, prefix := &ks.legacy, "1."
	if v2 {
		pool, prefix = &ks.purpose[PurposeOperator], "2."+ks.kid+"."
	}
	m := pool.get()
	defer pool.put(m)
	return prefix + string(m.sign(copy(m.text[:], key)))
}
