package httpapi

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"qm/engine"
	"qm/web"
)

// While the room cannot be asked the page is there, in the visitor's language, takes no place, and comes back by itself.
//
// Proves: backend.down
func TestThePageInRetryMode(t *testing.T) {
	fail := &broken{}
	inMemory(t, Options{Engine: fail}, func(w *world) {
		fail.Engine = w.engine
		w.room("rm1", 60, `,"state":"paused","branding":{"name":"North & Sons"}`)
		b := w.browser("198.51.100.1")
		b.headers["Accept-Language"] = "de"
		for _, test := range []struct {
			what       string
			join, view error
			named      bool
		}{
			{"the journal is away", engine.ErrStorage, nil, true},
			{"nothing can be read", nil, engine.ErrStorage, false},
			{"another process has the room", nil, engine.ErrElsewhere, false},
			{"the mailbox is full", engine.ErrBusy, nil, true},
			{"the journal is damaged", nil, engine.ErrDamaged, false},
		} {
			fail.join, fail.view = test.join, test.view
			page := b.get("/w/rm1?qm_return=https%3A%2F%2Fshop.example%2Fa")
			fail.join, fail.view = nil, nil
			page.want(t, 503, "")
			for _, has := range []string{`data-state="backend"`, `"retry":true`, `<html lang="de"`, `http-equiv="refresh"`, "/assets/waiting-"} {
				if !strings.Contains(page.body, has) {
					t.Errorf("%s: the page has no %s", test.what, has)
				}
			}
			if named := strings.Contains(page.body, "North &amp; Sons"); named != test.named {
				t.Errorf("%s: the page names the room: %v", test.what, named)
			}
		}
		if n := w.waiting("rm1"); n != 0 {
			t.Errorf("%d places were taken", n)
		}
		b.get("/w/rm1").want(t, 200, "")
		if n := w.waiting("rm1"); n != 1 {
			t.Errorf("then %d places were taken", n)
		}
	})
}

// The short code is told to who holds the place, on the page and on the wire, and names that place to an operator, before and after a draw.
func TestTheShortCodeNamesThePlace(t *testing.T) {
	form := regexp.MustCompile(`<b id="ref">([0-9A-Z]{4}-[0-9A-Z]{4})</b>`)
	onEachStore(t, func(w *world) {
		w.room("rm1", 60, `,"state":"paused"`)
		w.crowd("rm1", 3)
		a := w.browser("198.51.100.1")
		ref, _ := a.join("rm1").json["ref"].(string)
		named := w.keys.ShortCodePlaces(ref, "rm1", 1)
		if len(named) != 1 || named[0].Ticket != a.ticket("rm1") {
			w.Fatalf("%q names %+v, and the ticket is %d", ref, named, a.ticket("rm1"))
		}
		if got := form.FindStringSubmatch(a.get("/w/rm1").body); got == nil || got[1] != ref {
			w.Errorf("the page shows %q, not %q", got, ref)
		}
		// Whoever has the token alone is not the owner.
		thief := w.browser("198.51.100.2")
		thief.jar["qm_rm1"] = a.jar["qm_rm1"]
		if got := thief.status("rm1").want(w.T, 200, ""); got.json["ref"] != nil {
			w.Errorf("another browser is told %s", got.body)
		}
		if got := form.FindStringSubmatch(thief.get("/w/rm1").body); got == nil || got[1] == ref {
			w.Errorf("another browser's page shows %q", got)
		}

		opens := time.Now().Add(w.pause(time.Minute, 3*time.Second))
		w.room("drop", 60, `,"opensAt":`+itoa(int(opens.UnixMilli())))
		b := w.browser("198.51.100.3")
		early, _ := b.join("drop").json["ref"].(string)
		if named := w.keys.ShortCodePlaces(early, "drop", 1); len(named) != 1 || named[0].Handle == 0 {
			w.Errorf("%q names %+v before the draw", early, named)
		}
		b.await("drop", func(a answer) bool { return a.json["token"] != nil }, "the draw")
		late, _ := b.join("drop").json["ref"].(string)
		if named := w.keys.ShortCodePlaces(late, "drop", 1); len(named) != 1 || named[0].Ticket != b.ticket("drop") {
			w.Errorf("%q names %+v after the draw", late, named)
		}
	})
}

// await asks for the status until it is as it should be.
func (b *browser) await(id string, done func(answer) bool, what string) {
	b.Helper()
	limit := time.After(30 * time.Second)
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	if b.exact {
		limit = time.After(time.Hour)
	}
	for !done(b.status(id)) {
		select {
		case <-again.C:
		case <-limit:
			b.Fatalf("%s did not come: %s", what, b.status(id).body)
		}
	}
}

// The first look after a draw says what happened, to a visitor without JavaScript too.
func TestThePageSaysThatAPlaceWasDrawn(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 1, `,"opensAt":`+itoa(int(time.Now().Add(time.Minute).UnixMilli())))
		for i := range 3 {
			w.browser(addrOf(i)).join("rm1")
		}
		b := w.browser("198.51.100.1")
		if page := b.get("/w/rm1"); !strings.Contains(page.body, `data-state="scheduled"`) {
			t.Errorf("before the opening: %.300s", page.body)
		}
		time.Sleep(61 * time.Second)
		for {
			page := b.get("/w/rm1")
			if page.status == 302 { // the first of four: they have passed
				return
			}
			if strings.Contains(page.body, `data-state="drawn"`) {
				break
			}
			if strings.Contains(page.body, `data-state="waiting"`) || strings.Contains(page.body, `data-state="near"`) {
				t.Fatal("the page does not say that the place was drawn")
			}
			time.Sleep(time.Second)
		}
		if page := b.get("/w/rm1"); !strings.Contains(page.body, `data-state="near"`) || !strings.Contains(page.body, `href="/w/rm1/draw"`) {
			t.Errorf("the look after it: %.300s", page.body)
		}
	})
}

// A line that has ended says so to whoever stood in it, leads to the site where that is open, and notices when it is there again.
func TestThePageOfALineThatHasEnded(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, `,"state":"paused","branding":{"name":"North"}`)
		b := w.browser("198.51.100.1")
		b.get("/w/rm1").want(t, 200, "")
		w.operator().do("DELETE", "/api/v1/admin/rooms/rm1", "").want(t, 200, "")
		page := b.get("/w/rm1?qm_return=https%3A%2F%2Fshop.example%2Fa%3Fb").want(t, 404, "")
		for _, has := range []string{`data-state="gone"`, `http-equiv="refresh" content="30"`, "&amp;qm_return=https%3A%2F%2Fshop.example%2Fa%3Fb"} {
			if !strings.Contains(page.body, has) {
				t.Errorf("who stood in the line is not shown %s", has)
			}
		}
		if got := w.browser("198.51.100.2").get("/w/rm1").want(t, 404, ""); !strings.Contains(got.body, `data-state="missing"`) || strings.Contains(got.body, "refresh") {
			t.Errorf("a stranger is shown %.300s", got.body)
		}
		w.room("rm1", 60, `,"state":"paused"`)
		if got := b.get("/w/rm1").want(t, 200, ""); !strings.Contains(got.body, `"lapsed":"reset"`) || b.ticket("rm1") != 1 {
			t.Errorf("made again, it shows %.300s", got.body)
		}
	})
}

// A browser that is sent back each time is sent on three times a minute, and then shown that it is its turn.
func TestRedirectsDoNotLoop(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, `,"state":"paused"`)
		b := w.browser("198.51.100.1")
		b.get("/w/rm1")
		w.flush("rm1", 1)
		for range maxHops {
			if got := b.get("/w/rm1"); got.status != 302 {
				t.Fatalf("sent on by %d", got.status)
			}
		}
		page := b.get("/w/rm1").want(t, 200, "")
		if !strings.Contains(page.body, `data-state="turn"`) || !regexp.MustCompile(`id="go"[^>]* href="https://shop.example/start\?from=line&amp;qm_code=`).MatchString(page.body) {
			t.Errorf("the fourth time: %.2000s", page.body)
		}
		delete(b.jar, hopCookie) // its minute is over
		if got := b.get("/w/rm1"); got.status != 302 {
			t.Errorf("a minute later: %d", got.status)
		}
		b.jar[hopCookie] = "-99"
		if got := b.get("/w/rm1"); got.status != 302 || b.jar[hopCookie] != "1" {
			t.Errorf("a strange cookie: %d, %v", got.status, b.jar)
		}
	})
}

// An inline host serves the page's files beneath its own prefix (seed 004, QM-467).
func TestAssetsOfAnInlineHost(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		b := w.browser("198.51.100.1")
		for _, name := range []string{"waiting.js", "waiting.css"} {
			path := web.AssetPath(name)
			plain, inline := b.get(path).want(t, 200, ""), b.get("/__qm"+path).want(t, 200, "")
			if plain.body != inline.body || inline.header.Get("Cache-Control") != web.AssetCacheControl || inline.header.Get("Content-Type") != plain.header.Get("Content-Type") {
				t.Errorf("%s differs beneath /__qm: %v", path, inline.header)
			}
			if got := b.get("/__qm/__qm" + path); got.status != 404 {
				t.Errorf("twice the prefix: %d", got.status)
			}
		}
	})
}
