package notify_test

import (
	"net/mail"
	"strings"
	"testing"

	"qm/notify"
)

func TestParseAddress(t *testing.T) {
	for in, want := range map[string]string{
		"a@example.com":                  "a@example.com",
		"  A.b+tag@Example.COM ":         "A.b+tag@example.com",
		"o'neil@mail.example.co.uk":      "o'neil@mail.example.co.uk",
		"x@bücher.example":               "x@xn--bcher-kva.example",
		"x@a-b.example":                  "x@a-b.example",
		strings.Repeat("a", 64) + "@e.x": strings.Repeat("a", 64) + "@e.x",
	} {
		if got, ok := notify.ParseAddress(in); !ok || got != want {
			t.Errorf("%q is %q, %v", in, got, ok)
		}
	}
	for _, in := range []string{
		"", " ", "@", "a", "a@", "@example.com", "a@b", "a b@example.com", "a@example.com, b@example.com", "a@example.com;b@example.com",
		"a@example.com\r\nBcc: b@example.com", "a\r\n@example.com", "a\x00@example.com", "\"a b\"@example.com", "a(c)@example.com", "<a@example.com>",
		"Name <a@example.com>", "a@[127.0.0.1]", "a@127.0.0.1", "a@localhost", "a@-x.example", "a@x-.example", "a@x..example", "a@.example", "a@example.",
		".a@example.com", "a.@example.com", "a..b@example.com", "a@b@example.com", "ü@example.com", "a@exa mple.com", "a@example.com>",
		strings.Repeat("a", 65) + "@example.com", "a@" + strings.Repeat("b", 64) + ".com", "a@" + strings.Repeat("b.", 130) + "com", "a@exam_ple.com",
	} {
		if got, ok := notify.ParseAddress(in); ok {
			t.Errorf("%q was taken as %q", in, got)
		}
	}
}

func TestMask(t *testing.T) {
	for in, want := range map[string]string{"anna@example.com": "a•••@example.com", "a@example.com": "a•••@example.com", "": ""} {
		if got := notify.Mask(in); got != want {
			t.Errorf("%q is shown as %q", in, got)
		}
	}
}

// What is taken is one address to everybody else, too, and cannot end a header.
func FuzzParseAddress(f *testing.F) {
	f.Add("a@example.com")
	f.Add("x@bücher.example")
	f.Add("0@0.\xff")
	f.Fuzz(func(t *testing.T, in string) {
		got, ok := notify.ParseAddress(in)
		if !ok {
			return
		}
		a, err := mail.ParseAddress(got)
		if err != nil || a.Address != got || a.Name != "" || strings.ContainsAny(got, "\r\n\t <>,;:\"()") {
			t.Errorf("%q was taken as %q: %v", in, got, err)
		}
		if again, ok := notify.ParseAddress(got); !ok || again != got {
			t.Errorf("%q is %q when read again", got, again)
		}
	})
}
