package token

import (
	"math/bits"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func shortRing(t testing.TB, secret, previous string) *Keyring {
	t.Helper()
	k, err := New(secret, previous, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestAShortCodeNamesItsPlaceAndNoOther(t *testing.T) {
	k := shortRing(t, "the secret", "")
	form := regexp.MustCompile(`^[0-9A-HJKMNP-TV-Z]{4}-[0-9A-HJKMNP-TV-Z]{4}$`)
	rapid.Check(t, func(t *rapid.T) {
		v := Visitor{Room: "rm1", Generation: rapid.Uint32Range(1, 1<<31).Draw(t, "g")}
		number := rapid.Uint32Min(1).Draw(t, "number")
		if rapid.Bool().Draw(t, "pre-queue") {
			v.Handle = number
		} else {
			v.Ticket = number
		}
		code := k.ShortCode(v)
		if !form.MatchString(code) {
			t.Fatalf("%+v has the code %q", v, code)
		}
		// As people say and write it.
		for _, said := range []string{code, strings.ToLower(code), strings.ReplaceAll(code, "-", " "), strings.NewReplacer("0", "o", "1", "l", "-", "").Replace(code)} {
			if got := k.ShortCodePlaces(said, "rm1", v.Generation); len(got) != 1 || got[0] != v {
				t.Fatalf("%q of %+v names %+v", said, v, got)
			}
		}
	})
}

func TestShortCodesOfALineAreDistinctAndSayNothing(t *testing.T) {
	k := shortRing(t, "the secret", "")
	seen := map[string]bool{}
	var last uint64
	apart := 0
	const line = 20_000
	for n := uint32(1); n <= line; n++ {
		code := k.ShortCode(Visitor{Room: "rm1", Generation: 3, Ticket: n})
		if seen[code] {
			t.Fatalf("%s twice", code)
		}
		seen[code] = true
		at, _ := parseShort(code)
		apart += bits.OnesCount64(at ^ last)
		last = at
	}
	// Neighbours have nothing in common: half of 40 bits differ on average.
	if mean := float64(apart) / line; mean < 19.5 || mean > 20.5 {
		t.Errorf("neighbours differ in %.2f bits of 40", mean)
	}
}

// A code is good for its own room and generation, and stays what it is from one version of qm to the next: people write it down.
func TestAShortCodeBelongsToItsLine(t *testing.T) {
	k := shortRing(t, "the secret", "")
	for n := uint32(1); n <= 500; n++ {
		code := k.ShortCode(Visitor{Room: "rm1", Generation: 2, Ticket: n})
		for _, v := range append(k.ShortCodePlaces(code, "rm2", 2), k.ShortCodePlaces(code, "rm1", 3)...) {
			if v.Ticket == n {
				t.Errorf("%s of ticket %d names it in another line too", code, n)
			}
		}
	}
	if got := k.ShortCode(Visitor{Room: "rm1", Generation: 2, Ticket: 1}); got != "2ZFN-P7E9" {
		t.Errorf("the first ticket's code has become %s", got)
	}
}

// A code that was misheard in one place names nobody, nearly always.
func TestAMisheardShortCodeNamesNobody(t *testing.T) {
	k := shortRing(t, "the secret", "")
	wrong, named := 0, 0
	for n := uint32(1); n <= 200; n++ {
		code := k.ShortCode(Visitor{Room: "rm1", Generation: 1, Ticket: n})
		for i := range code {
			for _, c := range shortAlphabet {
				if code[i] == '-' || rune(code[i]) == c {
					continue
				}
				wrong++
				for _, v := range k.ShortCodePlaces(code[:i]+string(c)+code[i+1:], "rm1", 1) {
					if v.Ticket <= 1_000_000 && v.Handle == 0 {
						named++
					}
				}
			}
		}
	}
	if named > 2 {
		t.Errorf("%d of %d wrong codes name a place in a line of a million", named, wrong)
	}
}

func TestWhatIsNoShortCode(t *testing.T) {
	k := shortRing(t, "the secret", "")
	if code := k.ShortCode(Visitor{Room: "rm1", Generation: 1}); code != "" {
		t.Errorf("a bypass pass has the code %s", code)
	}
	for _, code := range []string{"", "-", "K7Q2", "K7Q2-M9T", "K7Q2-M9TXX", "K7Q2-M9T!", "K7Q2-M9TÜ", "\x00\x00\x00\x00\x00\x00\x00\x00", strings.Repeat("-", 1<<20)} {
		if got := k.ShortCodePlaces(code, "rm1", 1); got != nil {
			t.Errorf("%.20q names %v", code, got)
		}
	}
}

func TestAShortCodeOutlivesARotation(t *testing.T) {
	before := shortRing(t, "old", "").ShortCode(Visitor{Room: "rm1", Generation: 1, Ticket: 77})
	during := shortRing(t, "new", "old").ShortCodePlaces(before, "rm1", 1)
	found := false
	for _, v := range during {
		found = found || v.Ticket == 77
	}
	if !found {
		t.Errorf("%s names %v after the rotation", before, during)
	}
}
