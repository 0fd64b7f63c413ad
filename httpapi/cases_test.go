package httpapi

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"qm/access/token"
	"qm/engine/room"
	"qm/journal"
)

// The cases of shared black-box tests, by their numbers. Each runs over HTTP on every pair of stores.

// Proves: join
func TestCase1HeadAndOptionsTakeNoPlace(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 60, `,"state":"paused"`)
		a := w.browser("198.51.100.1")
		a.join("rm1")
		seq := w.stats("rm1").num(w.T, "seq")
		for _, b := range []*browser{w.browser("198.51.100.2"), a} {
			for _, probe := range []struct{ method, path string }{
				{"HEAD", "/api/v1/join"}, {"OPTIONS", "/api/v1/join"}, {"PUT", "/api/v1/join"},
				{"HEAD", "/api/v1/status?roomId=rm1"}, {"HEAD", "/api/v1/check?roomId=rm1"}, {"HEAD", "/w/rm1"}, {"HEAD", "/api/v1/events?roomId=rm1"},
			} {
				got := b.do(probe.method, probe.path, "")
				if got.header["Set-Cookie"] != nil {
					w.Errorf("%s %s sets %q", probe.method, probe.path, got.header["Set-Cookie"])
				}
				if probe.method != "OPTIONS" && strings.HasSuffix(probe.path, "/join") {
					if got.status != 405 || !strings.Contains(got.header.Get("Allow"), "POST") {
						w.Errorf("%s %s answers %d, Allow %q", probe.method, probe.path, got.status, got.header.Get("Allow"))
					}
				}
				if probe.method == "PUT" {
					got.want(w.T, 405, "method_not_allowed")
				}
				if probe.method == "HEAD" && got.body != "" {
					w.Errorf("HEAD %s answers with a body", probe.path)
				}
			}
		}
		if now := w.stats("rm1").num(w.T, "seq"); now != seq || w.waiting("rm1") != 1 {
			w.Errorf("the room went from event %d to %d, %d waiting", seq, now, w.waiting("rm1"))
		}
	})
}

// Proves: fifo
func TestCase2ARefreshIsNoArrival(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 60, `,"state":"paused"`)
		a, b := w.browser("198.51.100.1"), w.browser("198.51.100.2")
		for range 6 {
			if got := a.join("rm1"); got.num(w.T, "position") != 1 || got.num(w.T, "ahead") != 0 {
				w.Errorf("A's join answers %s", got.body)
			}
		}
		if got := b.join("rm1"); got.num(w.T, "position") != 2 || a.ticket("rm1") != 1 || b.ticket("rm1") != 2 {
			w.Errorf("A has %d, B %d: %s", a.ticket("rm1"), b.ticket("rm1"), got.body)
		}
	})
}

// Proves: fifo
func TestCase3ARefusedJoinBurnsNoNumber(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 60, `,"state":"paused"`)
		a, b, bad := w.browser("198.51.100.1"), w.browser("198.51.100.2"), w.browser("198.51.100.3")
		a.join("rm1")
		for i := range 50 {
			wrong := []struct {
				body, code string
				status     int
			}{
				{`{"roomId":"r-unknown"}`, "room_not_found", 404}, {`{"roomId":12}`, "invalid_room_id", 400},
				{`{"roomId":"rm1","token":{"a":1}}`, "invalid_token_field", 400}, {`{"roomId":"rm1"`, "invalid_json", 400},
				{`{"roomId":"R1"}`, "invalid_room_id", 400},
			}[i%5]
			got := bad.post("/api/v1/join", wrong.body).want(w.T, wrong.status, wrong.code)
			if got.header["Set-Cookie"] != nil || got.json["token"] != nil {
				w.Errorf("a refusal gives %s %q", got.body, got.header["Set-Cookie"])
			}
		}
		if got := b.join("rm1"); got.num(w.T, "ahead") != 1 || b.ticket("rm1") != a.ticket("rm1")+1 {
			w.Errorf("B has ticket %d: %s", b.ticket("rm1"), got.body)
		}
	})
}

// Proves: owner.cookie
func TestCase4APassDoesNotTravel(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 600, "")
		a := w.browser("198.51.100.1")
		a.join("rm1")
		door := a.untilPassed("rm1")
		secret := a.jar["qm_rm1"]
		if strings.Contains(door, secret) || strings.Contains(door, a.jar["qms_rm1"]) || !strings.HasPrefix(door, "https://shop.example/start?from=line&qm_code=") || !strings.HasSuffix(door, "#top") {
			w.Errorf("A is sent to %s", door)
		}
		code := strings.TrimSuffix(door[strings.Index(door, "qm_code=")+8:], "#top")

		// The browser itself goes to the shop: the code is spent there, once.
		shop := w.browser("198.51.100.9")
		for _, two := range []string{"&code=none", "&code=", "&c%6fde=none"} { // of two codes neither is one, and none is spent
			for _, query := range []string{"code=" + code + two, two[1:] + "&code=" + code} {
				if got := shop.get("/api/v1/check?roomId=rm1&" + query); got.json["action"] != "queue" || got.json["sess"] != nil {
					w.Errorf("%s: %s", query, got.body)
				}
			}
		}
		first := shop.get("/api/v1/check?roomId=rm1&code="+code).want(w.T, 200, "")
		if first.json["action"] != "pass" || first.json["sess"] == nil || first.json["token"] == nil {
			w.Fatalf("the code opens nothing: %s", first.body)
		}
		b := w.browser("198.51.100.2")
		if got := b.get("/api/v1/check?roomId=rm1&code=" + code); got.json["action"] != "queue" {
			w.Errorf("the code is good a second time: %s", got.body)
		}
		if got := b.get("/api/v1/check?roomId=rm1&token=" + secret); got.json["action"] != "queue" || got.json["sess"] != nil {
			w.Errorf("a bare token passes: %s", got.body)
		}
		if got := b.get("/api/v1/status?roomId=rm1&token=" + secret); strings.Contains(got.body, "qm_code") {
			w.Errorf("another browser is given a code: %s", got.body)
		}
		b.jar["qm_rm1"] = secret
		if got := b.get("/w/rm1"); got.status != 302 && got.status != 200 || b.jar["qm_rm1"] == secret {
			w.Errorf("the second browser takes over the place: %d", got.status)
		}
		// The door session goes on by its key, as the snippet sends it.
		shop.headers["X-QM-Session"] = first.json["sess"].(string)
		if got := shop.check("rm1"); got.json["action"] != "pass" || got.json["reason"] != "session" {
			w.Errorf("the door session does not stand: %s", got.body)
		}
		// And the owning browser is let in by its cookies, and given a fresh key.
		if got := a.check("rm1"); got.json["action"] != "pass" || got.json["sess"] == nil || got.json["sess"] == first.json["sess"] {
			w.Errorf("the owner is not let in: %s", got.body)
		}
	})
}

// untilPassed polls as a page does, and says where the visitor is sent.
func (b *browser) untilPassed(id string) string {
	b.Helper()
	for range 120 {
		if got := b.status(id); got.json["passed"] == true {
			return got.json["redirectUrl"].(string)
		}
		time.Sleep(time.Second)
	}
	b.Fatal("nobody passed within two minutes")
	return ""
}

// Proves: outflow
func TestCase5ResumeIsNoBurst(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 60, "")
		defer w.keepPolling("rm1", w.crowd("rm1", 500))()
		time.Sleep(3 * time.Second)
		w.operator().post("/api/v1/admin/rooms/rm1/state", `{"state":"paused"}`).want(w.T, 200, "")
		pause := w.pause(30*time.Second, 6*time.Second)
		time.Sleep(pause)
		before := w.stats("rm1").num(w.T, "passes")
		w.operator().post("/api/v1/admin/rooms/rm1/state", `{"state":"active"}`).want(w.T, 200, "")
		resumed := time.Now()
		time.Sleep(2 * time.Second)
		if n := w.stats("rm1").num(w.T, "passes") - before; n > 3 {
			w.Errorf("%d passed in the two seconds after the resume", n)
		}
		if n := between(w.passes("rm1"), resumed.Add(-pause), resumed); n > 1 {
			w.Errorf("%d passed during the pause", n)
		}
	})
}

// Proves: outflow
func TestCase6QuietTimeIsNotSaved(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 60, "")
		time.Sleep(w.pause(time.Minute, 10*time.Second))
		opened := time.Now()
		defer w.keepPolling("rm1", w.crowd("rm1", 100))()
		time.Sleep(11 * time.Second)
		list := w.passes("rm1")
		if n := between(list, opened.Add(-time.Second), opened.Add(time.Second)); w.exact && n < 1 || n > 2 {
			w.Errorf("%d passed within a second", n)
		}
		if n := between(list, opened.Add(-time.Second), opened.Add(10*time.Second)); w.exact && n < 9 || n > 12 {
			w.Errorf("%d passed within ten seconds", n)
		}
	})
}

// Proves: eta
func TestCase7TheETAIsNullWhenNobodyIsLetIn(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 60, `,"state":"paused"`)
		crowd := w.crowd("rm1", 10)
		defer w.keepPolling("rm1", crowd)()
		last := crowd[9]
		expect := func(null bool) {
			w.Helper()
			eta, wait := last.status("rm1").json["etaSec"], w.stats("rm1").json["estWaitSec"]
			for what, v := range map[string]any{"etaSec": eta, "estWaitSec": wait} {
				n, ok := v.(float64)
				if null && v != nil || !null && (!ok || n < 1 || n > 120) {
					w.Errorf("%s is %v", what, v)
				}
			}
		}
		op := w.operator()
		expect(true)
		op.post("/api/v1/admin/rooms/rm1/state", `{"state":"active"}`).want(w.T, 200, "")
		op.post("/api/v1/admin/rooms/rm1/rate", `{"ratePerMinute":0}`).want(w.T, 200, "")
		expect(true)
		op.post("/api/v1/admin/rooms/rm1/rate", `{"rate":60}`).want(w.T, 200, "")
		expect(false)
		op.post("/api/v1/admin/rooms/rm1/state", `{"state":"paused"}`).want(w.T, 200, "")
		expect(true)
		op.post("/api/v1/admin/rooms/rm1/state", `{"state":"active"}`).want(w.T, 200, "")
		expect(false)
	})
}

// Proves: outflow
func TestCase8ARateChangeInTheRush(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 60, "")
		defer w.keepPolling("rm1", w.crowd("rm1", 2000))()
		for _, rate := range []int{60, 600, 30} {
			w.operator().post("/api/v1/admin/rooms/rm1/rate", `{"ratePerMinute":`+itoa(rate)+`}`).want(w.T, 200, "")
			from := time.Now()
			span := w.pause(10*time.Second, 4*time.Second)
			time.Sleep(span)
			// A second's earnings either way: the change counts from its instant. On a crowded machine a tick may come late.
			want, got := rate*int(span/time.Second)/60, between(w.passes("rm1"), from, from.Add(span))
			if slack := rate/60 + 1; w.exact && got < want-slack || got > want+slack {
				w.Errorf("%d passed in %v at %d a minute", got, span, rate)
			}
		}
		last := room.Ticket(0)
		for _, p := range w.passes("rm1") {
			if p.ticket <= last {
				w.Errorf("ticket %d passed after %d", p.ticket, last)
			}
			last = p.ticket
		}
	})
}

// Proves: drop
func TestCase9ASecondEntryBeatsNobodysFirst(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 0, `,"opensAt":`+ms(time.Now().Add(w.pause(time.Minute, 8*time.Second))))
		var all []*browser
		for range 16 {
			all = append(all, w.browser("198.51.100.7"))
		}
		for i := range 50 {
			all = append(all, w.browser(addrOf(i)))
		}
		for _, b := range all {
			got := b.join("rm1")
			if got.json["state"] != "scheduled" || got.json["scheduled"] != true || got.json["preQueued"] != true || got.json["position"] != nil ||
				got.json["ahead"] != nil || got.json["opensAt"] == nil || got.json["now"] == nil || got.json["preCount"] == nil {
				w.Fatalf("before the opening join answers %s", got.body)
			}
		}
		proof := w.browser("198.51.100.8").get("/api/v1/rooms/rm1").want(w.T, 200, "")
		if c, _ := proof.json["commitment"].(string); len(c) != 64 || proof.json["secret"] != nil {
			w.Errorf("before the draw the room says %s", proof.body)
		}
		for w.stats("rm1").json["effectiveState"] == "scheduled" {
			time.Sleep(time.Second)
		}
		var firsts, seconds int
		for i, b := range all {
			old := b.jar["qm_rm1"]
			got := b.status("rm1").want(w.T, 200, "")
			if got.json["token"] == nil || b.jar["qm_rm1"] == old {
				w.Fatalf("after the draw status answers %s", got.body)
			}
			position := got.num(w.T, "position")
			if again := b.join("rm1").num(w.T, "position"); again != position {
				w.Errorf("status says place %d, join %d", position, again)
			}
			switch {
			case position <= 51 && i < 16:
				firsts++
			case position > 51:
				seconds++
				if i >= 16 {
					w.Errorf("somebody's first entry stands at %d", position)
				}
			}
		}
		if firsts != 1 || seconds != 15 {
			w.Errorf("of the sixteen entries %d are among the firsts and %d behind", firsts, seconds)
		}
		proof = w.browser("198.51.100.8").get("/api/v1/rooms/rm1").want(w.T, 200, "")
		for _, name := range []string{"secret", "head", "seed", "commitment"} {
			if s, _ := proof.json[name].(string); len(s) != 64 {
				w.Errorf("after the draw %s is %v", name, proof.json[name])
			}
		}
	})
}

// Proves: ghosts
func TestCase10TheSeventeenthOfAnAddress(t *testing.T) {
	for _, when := range []struct{ more, code string }{
		{`,"state":"paused"`, "queue_identity_limit"},
		{`,"opensAt":` + "OPENS", "prequeue_identity_limit"},
	} {
		for _, addr := range []func(i int) string{
			func(int) string { return "198.51.100.7" },
			func(i int) string { return "2001:db8:1:2:" + itoa(i+1) + "::1" },
		} {
			t.Run(when.code+" "+addr(0), func(t *testing.T) {
				onEachStore(t, func(w *world) {
					w.room("rm1", 60, strings.ReplaceAll(when.more, "OPENS", ms(time.Now().Add(time.Hour))))
					for i := range 16 {
						w.browser(addr(i)).join("rm1")
					}
					b := w.browser(addr(16))
					got := b.post("/api/v1/join", `{"roomId":"rm1"}`).want(w.T, 429, when.code)
					if got.header["Set-Cookie"] != nil || got.json["token"] != nil || len(b.jar) > 0 {
						w.Errorf("a refused join gives %s %q", got.body, got.header["Set-Cookie"])
					}
					if s := w.stats("rm1"); s.num(w.T, "waiting")+s.num(w.T, "preQueue") != 16 {
						w.Errorf("the room has %s", s.body)
					}
					w.browser("198.51.100.99").join("rm1")
				})
			})
		}
	}
}

// damaged are tokens that are none (case 13), made of a good one.
func damaged(good string) []string {
	last := "A"
	if strings.HasSuffix(good, "A") {
		last = "B"
	}
	list := base64.RawURLEncoding.EncodeToString([]byte(`[]`)) + good[strings.IndexByte(good, '.'):]
	return []string{
		"null", "undefined", ".", "a.b", "a.b.c", strings.Repeat("A", 8<<10), "%00", "", " ", list, good[:len(good)-1] + last,
		good[:len(good)-1], good + "A", strings.Replace(good, ".", "..", 1), strings.ToUpper(good),
	}
}

// Proves: token.payload
func TestCase13DamagedTokensNeverMakeA500(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 60, `,"state":"paused","queueMaxPerIp":null`)
		w.room("rm2", 60, `,"state":"paused"`)
		a := w.browser("198.51.100.1")
		a.join("rm1")
		good := a.jar["qm_rm1"]
		before := w.waiting("rm1")
		joined := 0
		for i, bad := range append(damaged(good), w.keys.SignVisitor(token.Visitor{Room: "rm2", Ticket: 1, Generation: 1, IssuedAt: time.Now().UnixMilli()})) {
			query := strings.NewReplacer("%", "%25", " ", "%20").Replace(bad)
			if bad == "%00" {
				query = bad
			}
			for _, path := range []string{"/api/v1/status?roomId=rm1&token=", "/api/v1/events?roomId=rm1&token=", "/api/status?token=", "/events?token="} {
				if i == len(damaged(good)) && !strings.Contains(path, "roomId") {
					continue // rm2's own token, without a word about rm1
				}
				got := w.browser(addrOf(i)).get(path+query).want(w.T, 401, "invalid_token")
				if got.header["Set-Cookie"] != nil {
					w.Errorf("%.20q gives %q", bad, got.header["Set-Cookie"])
				}
			}
			c := w.browser(addrOf(i))
			c.jar["qm_rm1"] = bad
			c.status("rm1").want(w.T, 401, "invalid_token")
			c.get("/api/v1/check?roomId=rm1&token="+query).want(w.T, 200, "")
			if got := c.get("/api/v1/check?roomId=rm1&sess=" + query + "&code=" + query); got.json["action"] != "queue" {
				w.Errorf("%.20q passes: %s", bad, got.body)
			}
			body, _ := jsonString(bad)
			d := w.browser(addrOf(i))
			d.jar["qm_rm1"], d.jar["qms_rm1"] = bad, "short"
			d.post("/api/v1/join", `{"roomId":"rm1","token":`+body+`}`).want(w.T, 200, "")
			joined++
			// A broken cookie beside a good one loses no place.
			e := w.browser("198.51.100.1")
			e.headers["Cookie"] = "qm_rm1=" + bad + "; qms_rm1=x; qms_rm1=" + a.jar["qms_rm1"] + "; qm_rm1=" + good
			if !strings.ContainsAny(bad, "\x00") && len(bad) < 1000 {
				if got := e.status("rm1"); got.status != 200 || got.num(w.T, "position") != 1 {
					w.Errorf("beside %.20q the good cookie counts for nothing: %d %s", bad, got.status, got.body)
				}
				if got := e.post("/api/v1/join", `{"roomId":"rm1"}`); got.json["position"] != 1.0 {
					w.Errorf("beside %.20q the owner loses the place: %s", bad, got.body)
				}
			}
		}
		if n := w.waiting("rm1"); n != before+joined {
			w.Errorf("%d waiting, not %d", n, before+joined)
		}
	})
}

func TestCase15NothingPersonalIsCacheable(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 600, "")
		a := w.browser("198.51.100.1")
		for _, got := range []answer{
			a.join("rm1"), a.status("rm1"), a.check("rm1"), a.get("/w/rm1"), a.get("/w/unknown"), a.get("/api/v1/nothing"),
			a.get("/api/v1/join"), a.get("/healthz"), a.get("/"), a.get("/api/v1/admin/rooms"), a.get("/assets/nothing.js"),
		} {
			if c := got.header.Get("Cache-Control"); !strings.Contains(c, "no-store") {
				w.Errorf("%d %.60s has Cache-Control %q", got.status, got.body, c)
			}
		}
		a.untilPassed("rm1")
		moved := a.get("/w/rm1")
		if moved.status != 302 && moved.status != 303 && moved.status != 307 || !strings.Contains(moved.header.Get("Cache-Control"), "no-store") {
			w.Errorf("the page moves on by %d, %q", moved.status, moved.header.Get("Cache-Control"))
		}
		page := w.browser("198.51.100.2").get("/w/rm1").body
		from := strings.Index(page, "/assets/")
		if from < 0 {
			w.Fatal("the page links no assets")
		}
		path := page[from : from+strings.IndexByte(page[from:], '"')]
		if got := a.get(path).want(w.T, 200, ""); got.header.Get("Cache-Control") != "public, max-age=31536000, immutable" {
			w.Errorf("%s has Cache-Control %q", path, got.header.Get("Cache-Control"))
		}
	})
}

// Proves: generation
func TestCase16ARoomDeletedAndMadeAgain(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 60, `,"state":"paused"`)
		a := w.browser("198.51.100.1")
		a.join("rm1")
		old := a.jar["qm_rm1"]
		w.operator().do("DELETE", "/api/v1/admin/rooms/rm1", "").want(w.T, 200, "")
		a.status("rm1").want(w.T, 404, "room_not_found")
		if got := a.check("rm1").want(w.T, 200, ""); got.json["action"] != "pass" || got.json["reason"] != "no_room" {
			w.Errorf("check of no room: %s", got.body)
		}
		w.room("rm1", 60, `,"state":"paused"`)
		if got := a.status("rm1").want(w.T, 200, ""); got.json["expired"] != true || got.json["reason"] != "room_reset" {
			w.Errorf("status of the old place: %s", got.body)
		}
		if got := a.check("rm1"); got.json["action"] != "queue" || got.json["clearToken"] != true {
			w.Errorf("check of the old place: %s", got.body)
		}
		got := a.post("/api/v1/join", `{"roomId":"rm1","token":"`+old+`"}`).want(w.T, 200, "")
		was, _ := w.keys.VerifyVisitor(old, "rm1", time.Now())
		is, err := w.keys.VerifyVisitor(a.jar["qm_rm1"], "rm1", time.Now())
		if err != nil || is.Generation <= was.Generation || got.json["position"] != 1.0 {
			w.Errorf("the new place is %+v after %+v: %s", is, was, got.body)
		}
	})
}

// Proves: join
func TestCase19TwentyJoinsAtOnceOneVisitor(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 60, `,"state":"paused"`)
		w.browser("198.51.100.2").join("rm1")
		a := w.browser("198.51.100.1")
		a.join("rm1")
		var all sync.WaitGroup
		tickets := make([]uint32, 20)
		for i := range tickets {
			all.Go(func() {
				twin := w.browser(a.addr)
				twin.jar["qm_rm1"], twin.jar["qms_rm1"] = a.jar["qm_rm1"], a.jar["qms_rm1"]
				got := twin.post("/api/v1/join", `{"roomId":"rm1","token":"`+a.jar["qm_rm1"]+`"}`)
				if got.status != http.StatusOK {
					w.Errorf("join answers %d %s", got.status, got.body)
					return
				}
				tickets[i] = twin.ticket("rm1")
			})
		}
		all.Wait()
		for _, n := range tickets {
			if n != 2 {
				w.Errorf("tickets %v for one visitor", tickets)
				break
			}
		}
		// The same for a session that has no place yet.
		fresh := token.NewSession()
		for i := range tickets {
			all.Go(func() {
				twin := w.browser("198.51.100.3")
				twin.jar["qms_rm1"] = fresh
				twin.post("/api/v1/join", `{"roomId":"rm1"}`).want(w.T, 200, "")
				tickets[i] = twin.ticket("rm1")
			})
		}
		all.Wait()
		for _, n := range tickets {
			if n != 3 {
				w.Errorf("tickets %v for one session", tickets)
				break
			}
		}
		if n := w.waiting("rm1"); n != 3 {
			w.Errorf("%d waiting", n)
		}
	})
}

// A surge over HTTP: no ticket twice, none missing, each answered position true (issue 2).
func TestASurgeOfJoins(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 0, "")
		const n = 10_000
		var all sync.WaitGroup
		got := make([]uint32, n)
		for i := range n {
			all.Go(func() {
				b := w.browser(addrOf(i))
				for {
					a := b.post("/api/v1/join", `{"roomId":"rm1"}`)
					if a.status == http.StatusServiceUnavailable {
						continue // who asks again with the session finds the place
					}
					if a.status != http.StatusOK {
						w.Errorf("join answers %d %s", a.status, a.body)
						return
					}
					got[i] = b.ticket("rm1")
					return
				}
			})
		}
		all.Wait()
		seen := make([]bool, n+1)
		for _, ticket := range got {
			if ticket < 1 || ticket > n || seen[ticket] {
				w.Fatalf("ticket %d twice or beyond", ticket)
			}
			seen[ticket] = true
		}
		next := room.Ticket(1)
		err := w.engine.Read(context.Background(), "rm1", 0, func(r *journal.Record) error {
			if r.Kind == "join" {
				next++
			}
			return nil
		})
		if err != nil || next != n+1 {
			w.Errorf("%d joins in the journal: %v", next-1, err)
		}
	})
}

func ms(t time.Time) string { return itoa(int(t.UnixMilli())) }
