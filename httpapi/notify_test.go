package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"qm/access/token"
	"qm/journal/postgres"
	"qm/notify"
	"qm/notify/turn"
)

// postbox is a world in which mails are sent, and where they arrive.
type postbox struct {
	*world
	turns   *turn.Service
	filed   notify.Registrations
	letters chan notify.Letter

	mu   sync.Mutex
	down error // of the mail server
}

func (p *postbox) Open(context.Context) (notify.Delivery, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p, p.down
}

func (p *postbox) Send(_ context.Context, l notify.Letter) error { p.letters <- l; return nil }
func (p *postbox) Close()                                        {}

func (p *postbox) set(down error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
}

// onEachStoreMailing runs a case on every pair of stores, with EMAIL_NOTIFY.
func onEachStoreMailing(t *testing.T, test func(p *postbox)) {
	t.Parallel()
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) {
			run := func(t *testing.T) {
				eo := s.open(t)
				p := &postbox{letters: make(chan notify.Letter, 100), filed: notify.NewLedger(time.Now)}
				if j, ok := eo.Journal.(*postgres.Journal); ok {
					p.filed = j.Registrations()
				}
				p.world = newWorld(t, eo, Options{})
				p.exact = s.bubble
				p.start()
				test(p)
			}
			if s.bubble {
				synctest.Test(t, run)
				return
			}
			t.Parallel()
			run(t)
		})
	}
}

func (p *postbox) start() {
	p.Helper()
	var err error
	p.turns, err = turn.New(turn.Options{
		Rooms: p.engine, Registrations: p.filed, Post: p, PublicURL: "https://queue.example", Secret: "the secret of the tests",
		Word: func(l turn.Letter, place, withdraw string) (notify.Letter, error) {
			return notify.Letter{Subject: string(l.Mail) + " " + l.Locale, Text: place, HTML: l.Brand + "/" + l.RoomName}, nil
		},
		Link: func(at notify.Place, now time.Time) string {
			return p.keys.SignWithdraw(token.Visitor{Room: at.Room, Generation: at.Generation, Ticket: at.Ticket, Handle: at.Handle, IssuedAt: now.UnixMilli()})
		},
	})
	if err != nil {
		p.Fatal(err)
	}
	queue := notify.NewMemory(slog.New(slog.DiscardHandler), time.Now, notify.NewKinds(p.turns.Kind()))
	p.turns.Use(queue)
	p.server.o.Turns = p.turns
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = p.turns.Run(ctx) })
	running.Go(func() { _ = queue.Run(ctx) })
	p.Cleanup(func() { stop(); running.Wait() })
}

// next is the next mail.
func (p *postbox) next() notify.Letter {
	p.Helper()
	select {
	case l := <-p.letters:
		return l
	case <-time.After(p.pause(2*time.Minute, 30*time.Second)):
		p.Fatal("no mail came")
		return notify.Letter{}
	}
}

// none waits for a while in which no mail may come.
func (p *postbox) none() {
	p.Helper()
	select {
	case l := <-p.letters:
		p.Errorf("%q was mailed to %s", l.Subject, l.To)
	case <-time.After(p.pause(5*time.Minute, 2*time.Second)):
	}
}

// erased waits until nothing is held of the address of a place.
func (p *postbox) erased(at notify.Place) {
	p.Helper()
	for deadline := time.After(p.pause(2*time.Minute, 30*time.Second)); ; {
		r, _, err := p.filed.Find(context.Background(), at)
		if err != nil {
			p.Fatal(err)
		}
		if r.Address == "" {
			return
		}
		select {
		case <-deadline:
			p.Fatalf("the address of %+v is still there", at)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (b *browser) mailTo(room, address string) answer {
	b.Helper()
	return b.post("/api/v1/notify", `{"roomId":"`+room+`","token":"`+b.jar["qm_"+room]+`","email":"`+address+`"}`)
}

// held is what an answer says is held: the masked address, "" for null; ok is false when nothing is said.
func (a answer) held() (masked string, ok bool) {
	told, ok := a.json["notify"]
	if m, is := told.(map[string]any); is {
		masked, _ = m["emailMasked"].(string)
	}
	return masked, ok
}

func (p *postbox) at(b *browser, room string) notify.Place {
	p.Helper()
	v, err := p.keys.VerifyVisitor(b.jar["qm_"+room], room, time.Now())
	if err != nil {
		p.Fatal(err)
	}
	return filedAt(v)
}

func TestNotifyRefuses(t *testing.T) {
	onEachStoreMailing(t, func(p *postbox) {
		p.room("rm1", 60, `,"state":"paused"`)
		a, b := p.browser("198.51.100.1"), p.browser("198.51.100.2")
		a.join("rm1")
		b.join("rm1")
		place := a.jar["qm_rm1"]
		nobody := func() *browser { return p.browser(addrOf(time.Now().Nanosecond())) }

		// No place, or one that the URL alone names.
		for _, path := range []string{"/api/v1/notify", "/api/notify", "/api/v1/notify?token=" + place} {
			nobody().post(path, `{"email":"a@example.com"}`).want(p.T, 401, "invalid_token")
		}
		nobody().post("/api/v1/notify", "").want(p.T, 401, "invalid_token")
		for _, broken := range []string{"null", ".", strings.Repeat("A", 8192), place + "x"} {
			nobody().post("/api/v1/notify", `{"token":"`+broken+`","email":"a@example.com"}`).want(p.T, 401, "invalid_token")
		}
		for body, code := range map[string]string{
			`{"token":5}`: "invalid_token_field", `{"email":5}`: "invalid_email", `{"roomId":"A B"}`: "invalid_room_id", `[]`: "invalid_json",
			`{"email":"a"}`: "invalid_email", `{"email":"a@example.com\r\nBcc: b@example.com"}`: "invalid_email", `{"email":"a@b, c@d.example"}`: "invalid_email",
		} {
			x := nobody()
			x.jar["qm_rm1"], x.jar["qms_rm1"] = a.jar["qm_rm1"], a.jar["qms_rm1"]
			x.post("/api/v1/notify", body).want(p.T, 400, code)
		}
		if got := a.get("/api/v1/notify").want(p.T, 405, "method_not_allowed"); got.header.Get("Allow") != "POST, OPTIONS" {
			p.Errorf("Allow: %s", got.header.Get("Allow"))
		}

		// Another browser that shows the token.
		a.mailTo("rm1", "anna@example.com").want(p.T, 200, "")
		thief := p.browser("198.51.100.66")
		thief.jar["qm_rm1"] = place
		thief.mailTo("rm1", "thief@example.com").want(p.T, 403, "not_your_place")
		thief.post("/api/v1/notify", `{"token":"`+place+`"}`).want(p.T, 403, "not_your_place")
		thief.jar["qms_rm1"] = b.jar["qms_rm1"]
		thief.post("/api/v1/notify", `{"token":"`+place+`","email":""}`).want(p.T, 403, "not_your_place")
		if r, _, _ := p.filed.Find(context.Background(), p.at(a, "rm1")); r.Address != "anna@example.com" {
			p.Errorf("filed is %q after a theft was refused", r.Address)
		}

		// Too many changes of one place, too many places of one address.
		for i := range notify.ChangesPerPlace {
			b.mailTo("rm1", fmt.Sprintf("b%d@example.com", i)).want(p.T, 200, "")
		}
		b.mailTo("rm1", "more@example.com").want(p.T, 429, "notify_change_limit")
		for i := range notify.PlacesPerAddress + 1 {
			x := p.browser(addrOf(1000 + i))
			x.join("rm1")
			if got := x.mailTo("rm1", "victim@example.com"); i < notify.PlacesPerAddress {
				got.want(p.T, 200, "")
			} else {
				got.want(p.T, 429, "notify_address_limit")
			}
		}

		// A client that does nothing else.
		busy := p.browser("198.51.100.77")
		for range notifyLimitPerMin {
			busy.post("/api/v1/notify", `{}`).want(p.T, 401, "invalid_token")
		}
		busy.post("/api/v1/notify", `{}`).want(p.T, 429, "rate_limited")

		// The turn has come; the place was left.
		p.operator().post("/api/v1/admin/rooms/rm1/flush", `{"count":1}`).want(p.T, 200, "")
		a.mailTo("rm1", "late@example.com").want(p.T, 409, "turn_has_come")
		left := b.jar["qm_rm1"]
		session := b.jar["qms_rm1"]
		b.post("/api/v1/leave", `{"roomId":"rm1"}`).want(p.T, 200, "")
		b.jar["qm_rm1"], b.jar["qms_rm1"] = left, session
		b.mailTo("rm1", "b@example.com").want(p.T, 409, "stale_ticket")
		b.post("/api/v1/notify", `{"token":"`+left+`"}`).want(p.T, 200, "")

		p.room("rm2", 60, `,"state":"bypass"`)
		c := p.browser("198.51.100.3")
		c.join("rm2")
		c.mailTo("rm2", "c@example.com").want(p.T, 409, "turn_has_come")

		p.server.o.Turns = nil
		p.browser("198.51.100.4").post("/api/v1/notify", `{"email":"a@example.com"}`).want(p.T, 400, "notifications_disabled")
		if _, ok := c.join("rm2").held(); ok {
			p.Error("a server that sends no mails states what it holds")
		}
	})
}

// Proves: notify
func TestCase16NotifyOfAnEndedGeneration(t *testing.T) {
	onEachStoreMailing(t, func(p *postbox) {
		p.room("rm1", 60, `,"state":"paused"`)
		a := p.browser("198.51.100.1")
		a.join("rm1")
		a.mailTo("rm1", "a@example.com").want(p.T, 200, "")
		was, old := p.at(a, "rm1"), a.jar["qm_rm1"]
		p.operator().do("DELETE", "/api/v1/admin/rooms/rm1", "").want(p.T, 200, "")
		p.erased(was)
		p.room("rm1", 60, `,"state":"paused"`)
		a.mailTo("rm1", "a@example.com").want(p.T, 409, "stale_ticket")
		a.post("/api/v1/notify", `{"token":"`+old+`"}`).want(p.T, 409, "stale_ticket")
		got := a.post("/api/v1/join", `{"roomId":"rm1","token":"`+old+`"}`).want(p.T, 200, "")
		if masked, ok := got.held(); masked != "" || !ok {
			p.Errorf("the new line knows %q, %v", masked, ok)
		}
		a.mailTo("rm1", "a@example.com").want(p.T, 200, "")
	})
}

func TestJoinStatesWhatIsHeld(t *testing.T) {
	onEachStoreMailing(t, func(p *postbox) {
		p.room("rm1", 60, `,"state":"paused"`)
		a := p.browser("198.51.100.1")
		want := func(got answer, want string) {
			p.Helper()
			if masked, ok := got.want(p.T, 200, "").held(); masked != want || !ok {
				p.Errorf("held is %q (%v), want %q: %s", masked, ok, want, got.body)
			}
		}
		want(a.join("rm1"), "")
		want(a.mailTo("rm1", "Anna@Example.com"), "A•••@example.com")
		got := a.join("rm1")
		want(got, "A•••@example.com")
		told := got.json["notify"].(map[string]any)
		if at, _ := told["requestedAt"].(float64); at == 0 || got.json["now"] == nil || told["delivery"] != "pending" {
			p.Errorf("join says %s", got.body)
		}
		if page := a.get("/w/rm1"); !strings.Contains(page.body, "A•••@example.com") || strings.Contains(page.body, "Anna@") {
			p.Error("the page's first paint does not say what is held, or says all of it")
		}
		if page := p.browser("198.51.100.9").get("/w/rm1"); strings.Contains(page.body, "•••") || !strings.Contains(page.body, `id="mailme"`) {
			p.Error("somebody else's page")
		}
		if box := a.get("/notify/box?lang=th"); box.status != 200 || !strings.Contains(box.body, `id="mailForm"`) || box.header.Get("Cache-Control") != "no-store" {
			p.Errorf("the box is %d %s", box.status, box.body)
		}
		// Status never says it.
		if got := a.status("rm1"); strings.Contains(got.body, "notify") {
			p.Errorf("status says %s", got.body)
		}
		want(a.post("/api/v1/notify", `{"roomId":"rm1"}`), "") // the cookie names the place
		want(a.join("rm1"), "")
	})
}

// One mail when the turn is near and one when it has come, in the language of whoever asked; then the address is gone.
//
// Proves: notify
func TestTurnsAreMailedOnceEach(t *testing.T) {
	onEachStoreMailing(t, func(p *postbox) {
		p.room("rm1", 1, `,"state":"paused","branding":{"name":"Spring Shop"}`)
		p.crowd("rm1", 12)
		a := p.browser("198.51.100.1")
		a.headers["Accept-Language"] = "th-TH,th;q=0.9"
		a.join("rm1")
		a.mailTo("rm1", "a@example.com").want(p.T, 200, "")
		b := p.browser("198.51.100.2")
		b.join("rm1")
		b.mailTo("rm1", "b@example.com").want(p.T, 200, "")
		b.post("/api/v1/notify", `{"token":"`+b.jar["qm_rm1"]+`"}`).want(p.T, 200, "")
		p.operator().post("/api/v1/admin/rooms/rm1/state", `{"state":"active"}`).want(p.T, 200, "")
		p.none() // thirteen and twelve minutes away

		p.operator().post("/api/v1/admin/rooms/rm1/flush", `{"count":4}`).want(p.T, 200, "")
		if l := p.next(); l.To != "a@example.com" || l.Subject != "near th" || l.HTML != "Spring Shop/Room" || l.Text != "https://queue.example/w/rm1?lang=th" {
			p.Errorf("mailed %+v", l)
		}
		if told, _ := a.join("rm1").json["notify"].(map[string]any); told["delivery"] != "near" {
			p.Errorf("join says %v", told)
		}
		p.operator().post("/api/v1/admin/rooms/rm1/flush", `{"count":100}`).want(p.T, 200, "")
		if l := p.next(); l.To != "a@example.com" || l.Subject != "turn th" {
			p.Errorf("mailed %+v", l)
		}
		p.erased(p.at(a, "rm1"))
		p.none()
		if masked, ok := a.join("rm1").held(); masked != "" || !ok {
			p.Errorf("%q is held after the last mail", masked)
		}
	})
}

// Who is near when asking knows it, and is mailed when the turn comes; so is everybody when the queue is switched off.
func TestNobodyIsToldTwiceWhatTheySee(t *testing.T) {
	onEachStoreMailing(t, func(p *postbox) {
		p.room("rm1", 1, "")
		p.crowd("rm1", 3)
		a := p.browser("198.51.100.1")
		a.join("rm1")
		a.mailTo("rm1", "a@example.com").want(p.T, 200, "")
		p.operator().post("/api/v1/admin/rooms/rm1/state", `{"state":"bypass"}`).want(p.T, 200, "")
		if l := p.next(); l.Subject != "turn en" {
			p.Errorf("mailed %+v", l)
		}
		p.erased(p.at(a, "rm1"))
	})
}

// The registration follows a handle to the ticket that it is drawn as.
func TestARegistrationFollowsTheDraw(t *testing.T) {
	onEachStoreMailing(t, func(p *postbox) {
		opens := time.Now().Add(p.pause(time.Minute, 3*time.Second))
		p.room("rm1", 0, `,"opensAt":`+fmt.Sprint(opens.UnixMilli()))
		a := p.browser("198.51.100.1")
		a.join("rm1")
		a.mailTo("rm1", "a@example.com").want(p.T, 200, "")
		entry := a.jar["qm_rm1"]
		<-time.After(time.Until(opens.Add(time.Second)))
		a.join("rm1")
		n := p.at(a, "rm1")
		if n.Ticket == 0 {
			p.Fatalf("not drawn: %+v", n)
		}
		got := a.post("/api/v1/join", `{"roomId":"rm1","token":"`+entry+`"}`)
		if masked, _ := got.held(); masked != "a•••@example.com" {
			p.Errorf("the drawn place holds %q", masked)
		}
		// An old tab still shows the handle, and means the ticket.
		a.post("/api/v1/notify", `{"token":"`+entry+`"}`).want(p.T, 200, "")
		a.post("/api/v1/notify", `{"token":"`+entry+`","email":"b@example.com"}`).want(p.T, 200, "")
		p.operator().post("/api/v1/admin/rooms/rm1/flush", `{"count":1}`).want(p.T, 200, "")
		if l := p.next(); l.To != "b@example.com" || l.Subject != "turn en" {
			p.Errorf("mailed %+v", l)
		}
	})
}

// What an operator discards, and what a visitor gives up, is not written to any more.
func TestDiscardedPlacesAreNotMailed(t *testing.T) {
	onEachStoreMailing(t, func(p *postbox) {
		p.room("rm1", 60, `,"state":"paused"`)
		var all []*browser
		for i := range 3 {
			b := p.browser(addrOf(i))
			b.join("rm1")
			b.mailTo("rm1", fmt.Sprintf("v%d@example.com", i)).want(p.T, 200, "")
			all = append(all, b)
		}
		at := []notify.Place{p.at(all[0], "rm1"), p.at(all[1], "rm1"), p.at(all[2], "rm1")}
		// The eject's new place holds nothing, even for whoever shows the old token at once.
		p.operator().post("/api/v1/admin/rooms/rm1/eject", fmt.Sprintf(`{"ticket":%d}`, at[0].Ticket)).want(p.T, 200, "")
		got := all[0].post("/api/v1/join", `{"roomId":"rm1","token":"`+all[0].jar["qm_rm1"]+`"}`).want(p.T, 200, "")
		if masked, ok := got.held(); masked != "" || !ok || p.at(all[0], "rm1") == at[0] {
			p.Errorf("after the eject: %s", got.body)
		}
		all[1].post("/api/v1/leave", `{"roomId":"rm1"}`).want(p.T, 200, "")
		p.operator().post("/api/v1/admin/rooms/rm1/purge", "{}").want(p.T, 200, "")
		for _, a := range at {
			p.erased(a)
		}
		p.operator().post("/api/v1/admin/rooms/rm1/state", `{"state":"active"}`).want(p.T, 200, "")
		p.none()
	})
}

// A turn that ran out before it could be told follows its owner, and nobody else, to the new place.
func TestARegistrationFollowsARejoin(t *testing.T) {
	onEachStoreMailing(t, func(p *postbox) {
		p.set(fmt.Errorf("%w: the mail server is away", notify.ErrNotNow))
		p.room("rm1", 0, `,"passedTtlSec":1`)
		a, b := p.browser("198.51.100.1"), p.browser("198.51.100.2")
		for _, v := range []*browser{a, b} {
			v.join("rm1")
			v.mailTo("rm1", v.addr+"@example.com").want(p.T, 200, "")
		}
		was := b.jar["qm_rm1"]
		p.operator().post("/api/v1/admin/rooms/rm1/flush", `{"count":2}`).want(p.T, 200, "")
		// The clock writes the end of a pass down within a second or two.
		for deadline := time.After(p.pause(time.Minute, 30*time.Second)); ; {
			if got := a.status("rm1"); got.json["expired"] == true {
				if got = p.operator().get("/api/v1/admin/rooms/rm1/journal?kind=lapse"); strings.Contains(got.body, `"lapse"`) {
					break
				}
			}
			select {
			case <-deadline:
				p.Fatal("the pass does not run out")
			case <-time.After(100 * time.Millisecond):
			}
		}
		thief := p.browser("198.51.100.66")
		if masked, _ := thief.post("/api/v1/join", `{"roomId":"rm1","token":"`+was+`"}`).held(); masked != "" {
			p.Errorf("a stranger's place holds %q", masked)
		}
		got := a.post("/api/v1/join", `{"roomId":"rm1","token":"`+a.jar["qm_rm1"]+`"}`).want(p.T, 200, "")
		if masked, _ := got.held(); masked != "1•••@example.com" {
			p.Errorf("the new place holds %q: %s", masked, got.body)
		}
		p.set(nil)
		// This turn lasts until it could be told; one that is over is worth no mail.
		p.operator().post("/api/v1/admin/rooms", `{"id":"rm1","passedTtlSec":600}`).want(p.T, 200, "")
		p.operator().post("/api/v1/admin/rooms/rm1/flush", `{"count":10}`).want(p.T, 200, "")
		if l := p.next(); l.To != "198.51.100.1@example.com" || l.Subject != "turn en" {
			p.Errorf("mailed %+v", l)
		}
	})
}

// The link in a mail asks before it does anything, and then needs nothing but itself.
//
// Proves: notify
func TestMailsEndByTheirLink(t *testing.T) {
	onEachStoreMailing(t, func(p *postbox) {
		p.room("rm1", 1, `,"state":"paused"`)
		p.crowd("rm1", 12)
		a := p.browser("198.51.100.1")
		a.join("rm1")
		a.mailTo("rm1", "a@example.com").want(p.T, 200, "")
		p.operator().post("/api/v1/admin/rooms/rm1/state", `{"state":"active"}`).want(p.T, 200, "")
		p.operator().post("/api/v1/admin/rooms/rm1/flush", `{"count":4}`).want(p.T, 200, "")
		link, ok := strings.CutPrefix(p.next().Withdraw, "https://queue.example")
		if !ok {
			p.Fatal("the link leads elsewhere")
		}
		mailer := p.browser("198.51.100.99")
		asked := mailer.get(link)
		mailer.do("HEAD", link, "")
		if asked.status != 200 || !strings.Contains(asked.body, `method="post"`) || !strings.Contains(asked.body, "No more mails?") || asked.header.Get("Cache-Control") != "no-store" {
			p.Errorf("the link shows %d %s", asked.status, asked.body)
		}
		if masked, _ := a.join("rm1").held(); masked == "" {
			p.Error("a look at the link has ended the mails")
		}
		for _, bad := range []string{"", "?t=", "?t=x", link[len(notify.WithdrawPath):] + "&t=x", "?t=" + a.jar["qm_rm1"], strings.Replace(link, "t=", "t=A", 1)[len(notify.WithdrawPath):]} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				if got := mailer.do(method, notify.WithdrawPath+bad, ""); got.status != 400 || !strings.Contains(got.body, "This link does not work") {
					p.Errorf("%s %q answers %d", method, bad, got.status)
				}
			}
		}
		mailer.headers["Content-Type"] = "application/x-www-form-urlencoded"
		if got := mailer.post(link, "List-Unsubscribe=One-Click"); got.status != 200 || !strings.Contains(got.body, "Your address is erased") {
			p.Errorf("the post answers %d %s", got.status, got.body)
		}
		if masked, _ := a.join("rm1").held(); masked != "" {
			p.Error("the mails have not ended")
		}
		p.operator().post("/api/v1/admin/rooms/rm1/flush", `{"count":100}`).want(p.T, 200, "")
		p.none()
	})
}
