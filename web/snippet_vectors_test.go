package web_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
)

// vectorCase is a case of edge/connector/vectors.json, as edge/connector/README.md
// describes it, of which a script in a page can meet the members below.
type vectorCase struct {
	Name   string
	Config struct {
		PublicKey string
		Fail      string
		TimeoutMs int
	}
	Request struct {
		Method  string
		URL     string
		Headers map[string]string
		Cookies []string
	}
	Asks []struct {
		Path    string
		Query   map[string]string
		Headers map[string]string
		Answer  struct {
			Status  int
			Headers map[string]string
			JSON    json.RawMessage
			Body    string
			Fault   string
		}
	}
	Expect struct {
		Decision, Reason, Location, Return string
		Cookies                            map[string]*string
	}
}

// notForPages says why a case is none for a script in a page, or "".
func (c *vectorCase) notForPages() string {
	switch {
	case c.Request.Method != "" && c.Request.Method != "GET":
		return "a page is asked for by GET"
	case c.Request.Headers != nil:
		return "the script sees no request headers"
	case c.Config.PublicKey != "":
		return "no key of the site's owner is in a page"
	case len(c.Request.Cookies) > 1 || len(c.Request.Cookies) == 1 && !plainCookies(c.Request.Cookies[0]):
		return "one key and one token are stored"
	case !strings.HasPrefix(c.Request.URL, "https://shop.example/"):
		return "the shop of this test has one address"
	case len(c.Request.URL) > 4000:
		return "the shop's address here has another length (TestSnippetDoesNotSendLongAddresses)"
	case strings.Contains(c.Request.URL, "/../"):
		return "a browser resolves dot segments itself"
	}
	return ""
}

// plainCookies reports a header of the room's two cookies, each once, unquoted.
func plainCookies(line string) bool {
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(line, "; ") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || seen[name] || name != "qm_dk_rm1" && name != "qm_rm1" || strings.Contains(value, `"`) {
			return false
		}
		seen[name] = true
	}
	return true
}

// The script in the page decides as the connectors on servers do, case by case.
//
// Proves: connectors
func TestSnippetKeepsTheVectors(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("../edge/connector/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	b := shopper(t)
	s := newShop(t, "")
	d := newDesk(t, nil)
	away := httptest.NewServer(http.NotFoundHandler())
	nobody := away.URL
	away.Close()
	text := strings.NewReplacer("https://shop.example", s.base, "https://queue.example", d.URL)
	var all, original struct{ Cases []vectorCase }
	if err := json.Unmarshal([]byte(text.Replace(string(file))), &all); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(file, &original); err != nil {
		t.Fatal(err)
	}
	ran := 0
	b.open(s.base + "/pixel")
	for i, c := range all.Cases {
		if original.Cases[i].notForPages() != "" {
			continue
		}
		ran++
		t.Run(c.Name, func(t *testing.T) {
			defer func(outer *testing.T) { b.t = outer }(b.t)
			b.t = t
			runVector(t, b, s, d, nobody, c)
		})
	}
	if ran < 60 {
		t.Errorf("only %d cases were run", ran)
	}
}

func runVector(t *testing.T, b *tab, s *shop, d *desk, nobody string, c vectorCase) {
	server := d.URL
	over := make(chan struct{})
	defer close(over)
	d.forget()
	d.say(func(a ask) any {
		n := len(d.asked()) - 1
		if n >= len(c.Asks) {
			// A browser hides why a question failed; so the script asks at the other prefix, once, as after a 404.
			n = len(c.Asks) - 1
		}
		return answerer(func(w http.ResponseWriter, r *http.Request) {
			answer := c.Asks[n].Answer
			switch answer.Fault {
			case "reset":
				conn, _, _ := http.NewResponseController(w).Hijack()
				_ = conn.(*net.TCPConn).SetLinger(0)
				_ = conn.Close()
				return
			case "timeout":
				<-over
				return
			case "stall":
				w.Header().Set("Content-Length", "1000")
				_, _ = io.WriteString(w, `{"action":"pass",`)
				_ = http.NewResponseController(w).Flush()
				<-over
				return
			}
			for name, value := range answer.Headers {
				w.Header().Set(name, value)
			}
			w.WriteHeader(answer.Status)
			_, _ = io.WriteString(w, answer.Body+string(answer.JSON))
		})
	})
	refused := c.Asks[0].Answer.Fault == "refused"
	if refused {
		server = nobody
	}
	attributes := fmt.Sprintf(`data-room="rm1" data-base="%s" data-fail="%s"`, server, c.Config.Fail)
	if c.Config.TimeoutMs > 0 {
		attributes += fmt.Sprintf(` data-timeout="%d"`, c.Config.TimeoutMs)
	}
	kept := map[string]string{}
	if len(c.Request.Cookies) == 1 {
		for pair := range strings.SplitSeq(c.Request.Cookies[0], "; ") {
			name, value, _ := strings.Cut(pair, "=")
			kept[map[string]string{"qm_dk_rm1": "sess", "qm_rm1": "token"}[name]] = value
		}
	}
	stored, _ := json.Marshal(kept)
	b.text(fmt.Sprintf(`(localStorage.clear(), sessionStorage.clear(), localStorage.setItem("qm.door:rm1", %q), 0)`, stored))
	s.wear(tagOf(d.URL, attributes))
	b.open(c.Request.URL)

	s.decided(t, c.Expect.Decision+" "+reasonInABrowser(c.Expect.Reason))

	// Where it leads: the clean address, or the line with the way back.
	clean, _, _ := strings.Cut(c.Asks[0].Query["url"], "#")
	want := clean
	if c.Expect.Decision == "queue" || c.Expect.Decision == "closed" {
		line := c.Expect.Location
		if c.Expect.Decision == "closed" {
			line = server + "/w/rm1"
		}
		path, fragment, has := strings.Cut(line, "#")
		glue := "?"
		if strings.Contains(path, "?") {
			glue = "&"
		}
		want = path + glue + "qm_return=" + uriComponent(clean)
		if has {
			want += "#" + fragment
		}
	}
	awaitAddress(b, want)

	asks := d.asked()
	defer func() { // the next case begins here
		b.open(s.base + "/pixel")
		var got map[string]string
		raw := b.text(`localStorage.getItem("qm.door:rm1") || "{}"`)
		if err := json.Unmarshal([]byte(raw), &got); err != nil || fmt.Sprint(got) != fmt.Sprint(kept) {
			t.Errorf("kept %s, not %v", raw, kept)
		}
	}()
	if refused {
		if len(asks) != 0 {
			t.Errorf("asked %v", asks)
		}
		return
	}
	for i, a := range asks {
		if i >= len(c.Asks) {
			if c.Asks[0].Answer.Fault != "reset" { // Chromium itself asks again on another connection
				t.Errorf("asked %s as well", a.path)
			}
			continue
		}
		if a.path != c.Asks[i].Path || a.key != c.Asks[i].Headers["X-QM-Session"] || len(a.query) != len(c.Asks[i].Query) {
			t.Errorf("asked %s %v with the key %q", a.path, a.query, a.key)
		}
		for name, value := range c.Asks[i].Query {
			if got := a.query[name]; len(got) != 1 || got[0] != value {
				t.Errorf("asked with %s=%q, not %q", name, got, value)
			}
		}
	}
	if len(asks) < len(c.Asks) {
		t.Errorf("asked %d times", len(asks))
	}

	for name, value := range c.Expect.Cookies {
		member := map[string]string{"qm_dk_rm1": "sess", "qm_rm1": "token"}[name]
		delete(kept, member)
		if value != nil {
			kept[member] = *value
		}
	}
}

// reasonInABrowser is what a script can know: a redirect's status it cannot.
func reasonInABrowser(reason string) string {
	if reason == "status_302" {
		return "redirected"
	}
	return reason
}

// awaitAddress waits until the tab shows an address, be it one where nobody
// answers.
func awaitAddress(b *tab, want string) {
	b.t.Helper()
	limit := time.After(soon)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		got := ""
		if addresses, current, err := b.history(); err == nil { // the tab may be on its way between two processes
			got = addresses[current]
		}
		if got == want {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			if u, err := url.Parse(got); err == nil {
				got += fmt.Sprintf(" (back to %s)", u.Query().Get("qm_return"))
			}
			b.t.Fatalf("shows %s\nnot   %s", got, want)
		}
	}
}
