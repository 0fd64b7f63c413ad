//go:build !race

// Under the race detector a sync.Pool drops some of what it is given, on purpose.

package token

import (
	"testing"
	"time"
)

func TestVerifyAllocatesNothing(t *testing.T) {
	now := time.UnixMilli(testNow)
	for _, o := range []Options{{}, {SignV2: true}} {
		k := keyring(t, o)
		v := Visitor{Room: "spring-drop", Ticket: 123456, Generation: 1, IssuedAt: testNow}
		token := k.SignVisitor(v)
		if n := testing.AllocsPerRun(1000, func() {
			if _, err := k.VerifyVisitor(token, "spring-drop", now); err != nil {
				t.Fatal(err)
			}
			if _, err := k.VerifyVisitorAnyRoom(token, now); err != nil {
				t.Fatal(err)
			}
		}); n >= 1 {
			t.Errorf("%+v: %v allocations", o, n)
		}
		dst := make([]byte, 0, MaxLen)
		if n := testing.AllocsPerRun(1000, func() { dst = k.AppendVisitor(dst[:0], v) }); n >= 1 {
			t.Errorf("%+v: signing takes %v allocations", o, n)
		}
	}
}
