package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"qm/access/token"
)

// Planted cookies by the hundred neither cost the place nor make an answer that a proxy would refuse; they go bit by bit.
func TestPlantedCookiesDoNotShutAVisitorOut(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 0, "")
		jar := map[string]string{}
		for i := range 300 {
			jar[fmt.Sprintf("qm_planted-%03d", i)], jar[fmt.Sprintf("qms_planted-%03d", i)] = "x", "x"
		}
		for answers := 0; ; answers++ {
			var line strings.Builder
			for name, value := range jar {
				fmt.Fprintf(&line, "%s=%s; ", name, value)
			}
			rec := w.bare("POST", "/api/v1/join", "", `{"roomId":"rm1"}`, http.Header{"Cookie": {line.String()}, "Content-Type": {"application/json"}})
			if rec.Code != 200 {
				t.Fatalf("join: %d %s", rec.Code, rec.Body)
			}
			set, size := rec.Result().Cookies(), 0
			for _, c := range set {
				size += len(c.Raw) + len("Set-Cookie: \r\n")
				if jar[c.Name] = c.Value; c.MaxAge < 0 {
					delete(jar, c.Name)
				}
			}
			if size > 4000 {
				t.Fatalf("%d cookies of %d bytes in one answer", len(set), size)
			}
			if len(set) == 2 { // the place's own
				break
			}
			if answers > 40 {
				t.Fatalf("%d cookies are still held", len(jar))
			}
		}
		if len(jar) != 2*8 {
			t.Errorf("%d cookies are held, of 8 rooms", len(jar))
		}
		if n := w.waiting("rm1"); n != 1 {
			t.Errorf("one browser has %d places", n)
		}
	})
}

// Whatever a browser sends as cookies: what is read is ours and well formed, a genuine cookie is found whatever stands around it, and
// what is expired is never the room's own nor too much.
func FuzzCookies(f *testing.F) {
	keys, err := token.New("the secret of the tests", "", token.Options{})
	if err != nil {
		f.Fatal(err)
	}
	now := time.UnixMilli(1_796_000_000_000)
	s := &Server{o: Options{Keys: keys, RoomCookieCap: 2}}
	place := keys.SignVisitor(token.Visitor{Room: "rm1", Ticket: 7, Generation: 1, IssuedAt: now.UnixMilli()})
	session := token.NewSession()
	for _, seed := range []string{
		"", "qm_rm1=garbage; qms_rm1=null", `qm_rm1="; qms_rm1="";`, ";;=;==", "qm_=x; qm_dk_=; qms_=", "qm_dk_rm1=a; qm_dk_rm2=b; qm_rm2=c; qms_rm3=d; qm_rm4=e",
		"qm_RM1=x; QM_rm1=y", "qm_rm1 = x", "qm_a\x00b=1", "qm_rm1=%00", "\u00a0qm_rm1=x", `qm_rm1="unclosed; qms_rm1=x"`,
	} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		genuine := "qm_rm1=" + place + "; qms_rm1=" + session
		h := http.Header{"Cookie": {before, before + ";" + genuine + ";" + after, after}}
		for name, value := range cookies(h) {
			if strings.ContainsAny(name, ";=") || strings.Contains(value, ";") {
				t.Fatalf("a cookie %q of %q", name, value)
			}
		}
		found := false
		for v := range cookiesOf(h, placeCookie, "rm1") {
			found = found || v == place
		}
		if !found {
			t.Fatalf("the genuine place is not among %q", h)
		}
		known := sessions(h, "rm1")
		for _, id := range known {
			if !token.ValidSession(id) {
				t.Fatalf("%q is a session of %q", id, h)
			}
		}
		if !strings.Contains(before, "qms_rm1") && (len(known) == 0 || known[0] != session) {
			t.Fatalf("the genuine session is not the first of %q", known)
		}
		x := &exchange{r: &http.Request{Header: h}, now: now}
		gone := s.tooMany(x, "rm1")
		if len(gone) > maxExpired {
			t.Fatalf("%d cookies go at once", len(gone))
		}
		seen := map[string]bool{}
		for _, name := range gone {
			if seen[name] || name == "qm_rm1" || name == "qms_rm1" || name == "qm_dk_rm1" || !strings.Contains(before+";"+after, name) {
				t.Fatalf("%q goes of %q", name, h)
			}
			seen[name] = true
		}
	})
}
