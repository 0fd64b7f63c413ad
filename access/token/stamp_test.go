package token

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"
)

// work solves a stamp as a page does.
func work(stamp string) string {
	parts := make([]string, WorkParts)
	for i := range parts {
		for n := range uint64(1 << 40) {
			parts[i] = strconv.FormatUint(n, 36)
			if WorkedPart(stamp, i, parts[i]) {
				break
			}
		}
	}
	return strings.Join(parts, ".")
}

func TestStamps(t *testing.T) {
	old, err := New("the secret before", "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	k, err := New("a secret", "the secret before", Options{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := New("another secret", "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1_800_000_000_000)
	anna, ben := []byte("anna"), []byte("ben")
	stamp := k.Stamp("rm1", anna, now)
	if again := k.Stamp("rm1", anna, now); again == stamp {
		t.Error("two stamps are one")
	}
	if age, err := k.VerifyStamp(stamp, "rm1", anna, now.Add(90*time.Second)); err != nil || age != 90*time.Second {
		t.Error(age, err)
	}
	if age, err := k.VerifyStamp(old.Stamp("rm1", anna, now), "rm1", anna, now); err != nil || age != 0 {
		t.Error("of the secret before:", age, err)
	}
	for name, c := range map[string]struct {
		stamp, room string
		client      []byte
		at          time.Time
		want        error
	}{
		"another room":    {stamp, "rm2", anna, now, ErrSignature},
		"another client":  {stamp, "rm1", ben, now, ErrSignature},
		"another secret":  {other.Stamp("rm1", anna, now), "rm1", anna, now, ErrSignature},
		"room and client": {k.Stamp("rm", []byte("1anna"), now), "rm1", anna, now, ErrSignature},
		"too old":         {stamp, "rm1", anna, now.Add(StampLife + time.Millisecond), ErrExpired},
		"not made yet":    {stamp, "rm1", anna, now.Add(-MaxSkew - time.Millisecond), ErrFuture},
		"cut":             {stamp[:len(stamp)-1], "rm1", anna, now, ErrMalformed},
		"longer":          {stamp + "A", "rm1", anna, now, ErrMalformed},
		"empty":           {"", "rm1", anna, now, ErrMalformed},
		"altered":         {"B" + stamp[1:], "rm1", anna, now, ErrSignature},
	} {
		if _, err := k.VerifyStamp(c.stamp, c.room, c.client, c.at); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestWork(t *testing.T) {
	done := work("a stamp")
	if !Worked("a stamp", done) {
		t.Fatalf("%s is no proof", done)
	}
	parts := strings.Split(done, ".")
	for name, w := range map[string]string{
		"another stamp's":  work("another stamp"),
		"one part":         parts[0],
		"a part missing":   strings.Join(parts[1:], "."),
		"a part more":      done + ".0",
		"in another order": strings.Join(append(append([]string{}, parts[1:]...), parts[0]), "."),
		"empty":            "",
		"empty parts":      strings.Repeat(".", WorkParts-1),
		"a long part":      strings.Replace(done, parts[0], "00000000"+parts[0], 1),
	} {
		if Worked("a stamp", w) {
			t.Errorf("%s is taken for a proof: %s", name, w)
		}
	}
}

func FuzzStamp(f *testing.F) {
	k, err := New("a secret", "", Options{})
	if err != nil {
		f.Fatal(err)
	}
	now := time.UnixMilli(1_800_000_000_000)
	good := k.Stamp("rm1", []byte("anna"), now)
	f.Add(good, "1.2.3")
	f.Add(good+"=", "")
	f.Fuzz(func(t *testing.T, stamp, work string) {
		if _, err := k.VerifyStamp(stamp, "rm1", []byte("anna"), now); err == nil && stamp != good {
			t.Fatalf("%q is taken for a stamp", stamp)
		}
		Worked(stamp, work)
	})
}
