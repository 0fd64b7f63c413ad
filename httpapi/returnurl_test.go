package httpapi

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"qm/engine/room"
)

// Case 14: the return address cannot leave the shop.
//
// Proves: return
func TestCase14TheReturnAddressCannotLeaveTheShop(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 60, "")
		for i, wanted := range []string{
			"//evil.example/", `/\evil.example`, "https:evil.example", "https://shop.example@evil.example/", "https://shop.example.evil.example/",
			"javascript:alert(1)", "%2F%2Fevil.example", "https://shop.example/\r\nSet-Cookie: a=b", "https:///evil.example", `https://shop.example\@evil.example/`,
			"https://evil.example#@shop.example/", "https://evil.example?https://shop.example/", "https://shop%2Eexample/", "http://shop.example/", "https://shop.example:8443/",
			"data:text/html,x", "/basket", "basket", "ht\ntps://shop.example/", " https://shop.example/", "https://shop.example/\x00", `https://shop.example/\..\`, "\x80",
			"https://[::1", "https://" + strings.Repeat("a", maxReturn), "https://shop.example./",
		} {
			b := w.browser(addrOf(i))
			page := b.get("/w/rm1?qm_return=" + url.QueryEscape(wanted))
			if page.status != http.StatusOK || !strings.Contains(page.body, "You are next") && !strings.Contains(page.body, "before you") {
				t := page.body
				w.Errorf("%q: the page answers %d %.200s", wanted, page.status, t)
			}
			if strings.Contains(page.body, "evil") || strings.Contains(page.body, "returnUrl") || len(page.header.Values("Set-Cookie")) != 2 {
				w.Errorf("%q is on the page, or in %v", wanted, page.header)
			}
			w.flush("rm1", 1)
			asked := b.get("/api/v1/status?roomId=rm1&qm_return=" + url.QueryEscape(wanted))
			if door, _ := asked.json["redirectUrl"].(string); !strings.HasPrefix(door, "https://shop.example/start?from=line&qm_code=") || !strings.HasSuffix(door, "#top") {
				w.Errorf("%q: status sends to %q", wanted, door)
			}
			moved := b.get("/w/rm1?qm_return=" + url.QueryEscape(wanted))
			if to := moved.header.Get("Location"); moved.status != http.StatusFound || !strings.HasPrefix(to, "https://shop.example/start?from=line&qm_code=") {
				w.Errorf("%q: the page sends to %d %q", wanted, moved.status, to)
			}
		}
	})
}

// An honoured one brings the visitor back to exactly where they wanted to be, whichever way the page asks.
func TestAVisitorComesBackToThePageTheyWanted(t *testing.T) {
	code := regexp.MustCompile(`([?&])qm_code=[A-Za-z0-9_.-]+`)
	onEachStore(t, func(w *world) {
		w.room("rm1", 60, `,"returnOrigins":["https://café.example","http://localhost:3000"]`)
		for i, c := range []struct{ wanted, back string }{
			{"https://shop.example/a?b=2&a=1&b=3&c=%20+%2B&&d#x?y&z", ""},
			{"https://shop.example", ""},
			{"https://shop.example/?", ""},
			{"https://shop.example/#", ""},
			{"https://shop.example:443/%7Eme//x/../%zz", ""},
			{"HTTPS://Shop.Example/A", ""},
			{"https://xn--caf-dma.example/menu", ""},
			{"http://localhost:3000/?next=https://evil.example/", ""},
			{`https://shop.example/?q=\&r=/\e`, ""},
			{"https://shop.example/?a=1&qm_code=old.code&b=2#f", "https://shop.example/?a=1&b=2#f"},
			{"https://shop.example/?qm_code=old", "https://shop.example/"},
			{"https://shop.example/?my_qm_code=1", ""},
		} {
			if c.back == "" {
				c.back = c.wanted
			}
			b := w.browser(addrOf(i))
			param := "qm_return=" + url.QueryEscape(c.wanted)
			page := b.get("/w/rm1?" + param)
			shown, _ := jsonString(c.back)
			if !strings.Contains(page.body, `"returnUrl":`+strings.NewReplacer("&", `\u0026`, "<", `\u003c`).Replace(shown)) && !strings.Contains(page.body, `"returnUrl":`+shown) {
				w.Errorf("%s is not on the page", c.back)
			}
			if keeps := "&amp;qm_return=" + url.QueryEscape(c.back) + `"`; strings.Count(page.body, keeps) != 16 {
				w.Errorf("%d languages keep %s", strings.Count(page.body, keeps), c.back)
			}
			w.flush("rm1", 1)
			body, _ := jsonString(c.wanted)
			doors := map[string]string{
				"status": b.get("/api/v1/status?roomId=rm1&" + param).json["redirectUrl"].(string),
				"join":   b.post("/api/v1/join", `{"roomId":"rm1","qm_return":`+body+`}`).json["redirectUrl"].(string),
				"page":   b.get("/w/rm1?" + param).header.Get("Location"),
			}
			for who, door := range doors {
				found := code.FindStringSubmatch(door)
				if found == nil || strings.Count(door, "qm_code=") != 1+strings.Count(c.back, "my_qm_code=") {
					w.Errorf("%s sends to %s, without one code", who, door)
					continue
				}
				// What a site takes out again leaves the address as it was.
				if got := code.ReplaceAllString(door, ""); got != c.back {
					w.Errorf("%s sends to %s, not to %s", who, got, c.back)
				}
			}
		}
		// Two that disagree are neither, and nonsense is none.
		b := w.browser("203.0.113.99")
		b.join("rm1")
		w.flush("rm1", 1)
		for _, query := range []string{"&qm_return=https%3A%2F%2Fshop.example%2Fa&qm_return=https%3A%2F%2Fshop.example%2Fb", "&qm_return=", ""} {
			if door := b.get("/api/v1/status?roomId=rm1" + query).json["redirectUrl"].(string); !strings.HasPrefix(door, "https://shop.example/start?") {
				w.Errorf("%q sends to %s", query, door)
			}
		}
		for _, value := range []string{"7", "null", `{"a":1}`, `"\u0000"`} {
			if a := b.post("/api/v1/join", `{"roomId":"rm1","qm_return":`+value+`}`); a.status != 200 || !strings.HasPrefix(a.json["redirectUrl"].(string), "https://shop.example/start?") {
				w.Errorf("qm_return %s: %d %s", value, a.status, a.body)
			}
		}
	})
}

// flush lets n through at once.
func (w *world) flush(id string, n int) {
	w.Helper()
	w.operator().post("/api/v1/admin/rooms/"+id+"/flush", `{"count":`+itoa(n)+`}`).want(w.T, 200, "")
}

// Whatever is asked for, a browser that follows what is honoured arrives at an origin of the policy, and at nothing else than it asked for.
func FuzzReturnURL(f *testing.F) {
	set := &room.Settings{TargetURL: "https://shop.example/start", ReturnOrigins: []string{"http://localhost:3000", "https://xn--caf-dma.example"}}
	for _, seed := range []string{
		"https://shop.example/a?b#c", "//evil.example/", `/\evil.example`, "https:evil.example", "https://shop.example@evil.example/", "HTTPS://SHOP.example:443",
		"https://shop.example.evil.example/", "javascript:alert(1)", "%2F%2Fevil.example", "https://shop.example/\r\nx", "http://localhost:3000/?qm_code=1&qm_code=2#x",
		"https://café.example/", "https://shop.example?qm_code", "https://shop.example#?qm_code=1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, wanted string) {
		back := returnURL(set, wanted)
		if back == "" {
			return
		}
		u, err := url.Parse(withCode(back, "the.code"))
		if err != nil && !strings.Contains(back, "%") { // a browser lets broken escapes of a path stand
			t.Fatalf("%q leads to %q: %v", wanted, back, err)
		}
		scheme, rest, _ := strings.Cut(back, "://")
		host := rest
		if i := strings.IndexAny(rest, `/?#\`); i >= 0 {
			host = rest[:i]
		}
		switch strings.ToLower(scheme + "://" + host) {
		case "https://shop.example", "https://shop.example:", "https://shop.example:443", "http://localhost:3000", "https://xn--caf-dma.example", "https://xn--caf-dma.example:", "https://xn--caf-dma.example:443":
		default:
			t.Fatalf("%q leads to %q", wanted, back)
		}
		if strings.ContainsFunc(back, func(c rune) bool { return c <= ' ' || c > '~' }) {
			t.Fatalf("%q leads to %q", wanted, back)
		}
		if !strings.Contains(wanted, "qm_code") && back != wanted {
			t.Fatalf("%q became %q", wanted, back)
		}
		if err == nil {
			if got := u.Query()["qm_code"]; len(got) == 0 || got[len(got)-1] != "the.code" {
				t.Fatalf("%q carries the codes %q", u, got)
			}
		}
		if again := returnURL(set, back); again != back {
			t.Fatalf("%q leads to %q and then to %q", wanted, back, again)
		}
	})
}
