package token

import (
	"strings"
	"testing"
)

func ring(t *testing.T, secret, previous string, v2 bool) *Keyring {
	t.Helper()
	k, err := New(secret, previous, Options{SignV2: v2})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// A verifier lives through a rotation when its key is used meanwhile, and never goes back to the first form.
//
// Proves: token.forms
func TestVerifiers(t *testing.T) {
	const key = "qmo_01jz_A"
	old, oldV2 := ring(t, "old", "", false).Verifier(key), ring(t, "old", "", true).Verifier(key)
	now, nowV2 := ring(t, "new", "", false).Verifier(key), ring(t, "new", "", true).Verifier(key)
	if !strings.HasPrefix(old, "1.") || !strings.HasPrefix(oldV2, "2.") || old == now || oldV2 == nowV2 || strings.Contains(old, key) {
		t.Fatalf("verifiers %q %q", old, oldV2)
	}
	for _, c := range []struct {
		name, verifier, key string
		ring                *Keyring
		ok                  bool
		better              string
	}{
		{"current", now, key, ring(t, "new", "old", false), true, ""},
		{"current v2", nowV2, key, ring(t, "new", "old", true), true, ""},
		{"v2 where the first form is signed", nowV2, key, ring(t, "new", "old", false), true, ""},
		{"first form where v2 is signed", now, key, ring(t, "new", "", true), true, nowV2},
		{"previous", old, key, ring(t, "new", "old", false), true, now},
		{"previous to v2", old, key, ring(t, "new", "old", true), true, nowV2},
		{"previous v2 stays v2", oldV2, key, ring(t, "new", "old", false), true, nowV2},
		{"after the rotation", old, key, ring(t, "new", "", false), false, ""},
		{"another key", now, key + "x", ring(t, "new", "old", false), false, ""},
		{"no key", now, "", ring(t, "new", "old", false), false, ""},
		{"a key as long as a body", now, strings.Repeat("k", MaxLen+1), ring(t, "new", "old", false), false, ""},
		{"no verifier", "", key, ring(t, "new", "old", false), false, ""},
		{"v2 of one secret as the other's", strings.Replace(oldV2, "2."+oldV2[2:10], "2."+nowV2[2:10], 1), key, ring(t, "new", "old", true), false, ""},
	} {
		if ok, better := c.ring.Verifies(c.verifier, c.key); ok != c.ok || better != c.better {
			t.Errorf("%s: %v, %q", c.name, ok, better)
		}
	}
}
