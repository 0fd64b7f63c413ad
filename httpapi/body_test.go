package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func FuzzParseObject(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"roomId":"r","token":null}`, ` { "a" : [1,{"b":"]}"}] , "c\u0064":"\"" } `, `{"a":1,"a":2}`, `{"a":-1.5e3,"b":true}`, `[]`, `{`, `{"a"}`,
		`{"a":1}x`, "{\"\xff\":1}", `{"a":"\ud800"}`, strings.Repeat(`{"a":`, 33) + "1" + strings.Repeat("}", 33), `{"":0}`, `{"\"":"\\"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := parseObject(b)
		var want map[string]json.RawMessage
		valid := json.Unmarshal(b, &want) == nil && want != nil
		if err != nil {
			if valid && shallow(b) && codeOf(err) != "duplicate_field" {
				t.Fatalf("%q is refused: %v", b, err)
			}
			return
		}
		if !valid || len(o) != len(want) {
			t.Fatalf("%q is read as %d members, not %d", b, len(o), len(want))
		}
		for _, m := range o {
			if string(m.raw) != string(want[m.name]) {
				t.Fatalf("%q: %q is %q, not %q", b, m.name, m.raw, want[m.name])
			}
			whole(m.raw)
			textOf(m.raw, 0, 100, true)
		}
	})
}

// TestALargeObjectTakesTimeInProportion: 150,000 names are compared with each other in half a minute, and looked up in a blink.
func TestALargeObjectTakesTimeInProportion(t *testing.T) {
	var b []byte
	for i := range 150_000 {
		b = append(b, `,"`+strconv.FormatInt(int64(i), 36)+`":1`...)
	}
	b[0] = '{'
	began := time.Now()
	o, err := parseObject(append(b, '}'))
	if err != nil || len(o) != 150_000 || time.Since(began) > 5*time.Second {
		t.Errorf("%d members, %v, after %v", len(o), err, time.Since(began))
	}
	if _, err := parseObject(append(b, `,"2s":1}`...)); err == nil || codeOf(err) != "duplicate_field" {
		t.Errorf("a late duplicate: %v", err)
	}
	if _, err := parseObject(append(b, `,"zzzz":1,"zzzz":1}`...)); err == nil || codeOf(err) != "duplicate_field" {
		t.Errorf("two late ones of one name: %v", err)
	}
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "a", `"\`, "\x00\x1f\n\r\t", "ü\u2028\U0001f600", "\xff\xfea\xc3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(appendString(nil, s), &got); err != nil {
			t.Fatalf("%q becomes %s: %v", s, appendString(nil, s), err)
		}
		if want := string([]rune(s)); got != want {
			t.Fatalf("%q comes back as %q", s, got)
		}
	})
}

func FuzzParam(f *testing.F) {
	for _, s := range []string{"token=a", "a=1&token=b&token=b", "token=a&token=b", "%74oken=x", "token", "token=%", "token=%zz&x", "&&=&token=+%2B", "tok+en=1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, ok, conflict := param(raw, "token")
		want, err := url.ParseQuery(raw)
		if err != nil || strings.Contains(raw, ";") {
			return // ParseQuery drops what it cannot read; a value of ours then is none that any rule takes
		}
		list := want["token"]
		if ok != (len(list) > 0) || conflict != (len(slices.Compact(slices.Sorted(slices.Values(list)))) > 1) {
			t.Fatalf("%q: %v %v, ParseQuery says %q", raw, ok, conflict, list)
		}
		if ok && got != list[0] {
			t.Fatalf("%q: %q, not %q", raw, got, list[0])
		}
	})
}

func TestCookiesAreReadAsTheyCome(t *testing.T) {
	h := http.Header{"Cookie": {`a=1; qm_rm1="quoted"; ; =x; qm_rm1=second;qm_rm1`, "qms_rm1=s=t"}}
	if got := slices.Collect(cookiesOf(h, placeCookie, "rm1")); !slices.Equal(got, []string{"quoted", "second"}) {
		t.Errorf("read %q", got)
	}
	if got := slices.Collect(cookiesOf(h, ownerCookie, "rm1")); !slices.Equal(got, []string{"s=t"}) {
		t.Errorf("read %q", got)
	}
}

func TestRoomIDs(t *testing.T) {
	for id, want := range map[string]bool{
		"abc": true, "a-c": true, "0-9": true, strings.Repeat("a", 64): true, "a--b": true,
		"": false, "ab": false, strings.Repeat("a", 65): false, "-ab": false, "ab-": false, "Abc": false, "a_c": false, "a.c": false, "äbc": false, "a c": false,
	} {
		if validRoomID(id) != want {
			t.Errorf("%q counts as %v", id, !want)
		}
	}
}

// codeOf is the code of a refusal; "" of anything else.
func codeOf(err error) string {
	if p := new(Problem); errors.As(err, &p) {
		return p.Code
	}
	return ""
}
