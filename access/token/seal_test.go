package token

import "testing"

// Proves: token.forms
func TestSeal(t *testing.T) {
	sealed := ring(t, "old", "", false).Seal([]byte("secret"), "a")
	for _, c := range []struct {
		name, about string
		ring        *Keyring
		old, ok     bool
	}{
		{"the same secret", "a", ring(t, "old", "", true), false, true},
		{"during a rotation", "a", ring(t, "new", "old", false), true, true},
		{"after it", "a", ring(t, "new", "", false), false, false},
		{"about something else", "b", ring(t, "old", "", false), false, false},
	} {
		plain, old, ok := c.ring.Open(sealed, c.about)
		if ok != c.ok || old != c.old || ok && string(plain) != "secret" {
			t.Errorf("%s: %q, %v, %v", c.name, plain, old, ok)
		}
	}
	k := ring(t, "old", "", false)
	for i := range sealed {
		broken := append([]byte(nil), sealed...)
		broken[i] ^= 1
		if _, _, ok := k.Open(broken, "a"); ok {
			t.Errorf("opened with byte %d changed", i)
		}
		if _, _, ok := k.Open(sealed[:i], "a"); ok {
			t.Errorf("opened %d bytes of it", i)
		}
	}
	if again := k.Seal([]byte("secret"), "a"); string(again) == string(sealed) {
		t.Error("sealed alike twice")
	}
}
