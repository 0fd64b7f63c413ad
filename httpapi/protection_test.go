package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"qm/access/score"
	"qm/access/token"
	"qm/journal"
)

// aBrowser sends what a browser sends.
func (w *world) aBrowser(addr string) *browser {
	b := w.browser(addr)
	b.headers["User-Agent"] = "Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0"
	b.headers["Accept-Language"] = "de"
	return b
}

// aTool sends what a program sends that takes no trouble.
func (w *world) aTool(addr string) *browser {
	b := w.browser(addr)
	b.headers["User-Agent"] = "curl/8.5.0"
	return b
}

var stampIn = regexp.MustCompile(`"stamp":"([\w-]+)"`)

// stamp opens the waiting page and returns what it got on its way.
func (b *browser) stamp(id string) string {
	b.Helper()
	a := b.get("/w/" + id)
	m := stampIn.FindStringSubmatch(a.body)
	if a.status != 200 || m == nil {
		b.Fatalf("no stamp on the page: %d %.2000s", a.status, a.body)
	}
	return m[1]
}

// knock joins with a stamp and more members.
func (b *browser) knock(id, stamp, more string) answer {
	b.Helper()
	return b.post("/api/v1/join", `{"roomId":"`+id+`","stamp":"`+stamp+`"`+more+`}`)
}

// doorOf is a room's part of the security view.
func (w *world) doorOf(id string) map[string]any {
	w.Helper()
	rooms := w.operator().get("/api/v1/admin/security?roomId="+id).want(w.T, 200, "").list(w.T, "rooms")
	if len(rooms) != 1 {
		w.Fatalf("%d rooms", len(rooms))
	}
	return rooms[0]
}

func (w *world) verdicts(id string) map[string]any { return w.doorOf(id)["verdicts"].(map[string]any) }

// joinsOf counts the places that a room's journal has.
func (w *world) joinsOf(id string) (n int) {
	w.Helper()
	err := w.engine.Read(context.Background(), id, 0, func(r *journal.Record) error {
		if r.Kind == "join" || r.Kind == "enqueue" {
			n++
		}
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
	return n
}

// Off judges nobody; monitor counts and changes nothing; enforce refuses and holds, and writes nothing of those it refuses.
//
// Proves: security, protection
func TestProtection(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("off", 6000, "")
		w.aTool("203.0.113.1").join("off")
		if d := w.doorOf("off"); d["mode"] != "off" || d["scored"] != 0.0 {
			w.Errorf("off: %v", d)
		}

		w.room("mon", 6000, `,"protection":{"mode":"monitor"}`)
		if p := fmt.Sprint(w.stats("mon").json["protection"]); p != "map[holdScore:70 mode:monitor threshold:80 work:false]" {
			w.Error(p)
		}
		tool := w.aTool("203.0.113.1")
		tool.join("mon")
		tool.untilPassed("mon")
		d := w.doorOf("mon")
		if v := w.verdicts("mon"); v["would_refuse"] != 1.0 || d["scored"] != 1.0 || fmt.Sprint(d["flagged"]) != "map[kept:1 passed:1]" {
			w.Errorf("monitor: %v", d)
		}
		latest := d["recent"].([]any)[0].(map[string]any)
		if latest["score"] != 95.0 || latest["passed"] != true || latest["ticket"] != 1.0 || fmt.Sprint(latest["reasons"]) != "[tool_agent no_language no_page]" {
			w.Errorf("%v", latest)
		}

		w.room("enf", 6000, `,"protection":{"mode":"enforce","holdScore":50}`)
		w.aTool("203.0.113.1").post("/api/v1/join", `{"roomId":"enf"}`).want(w.T, 403, "blocked_by_protection")
		plain := w.aTool("203.0.113.1").get("/w/enf?lang=en&plain=1")
		if plain.status != 403 || !strings.Contains(plain.body, "You cannot join here") {
			w.Errorf("without a script: %d %.300s", plain.status, plain.body)
		}
		if !strings.Contains(plain.body, "JavaScript seems to be off") || !strings.Contains(plain.body, `id="again" href="/w/enf?lang=en"`) {
			w.Errorf("who is refused without a script is not told to switch it on: %s", plain.body)
		}
		if n := w.joinsOf("enf"); n != 0 {
			w.Errorf("%d places for those who were refused", n)
		}
		reader := w.aBrowser("203.0.113.2")
		reader.knock("enf", reader.stamp("enf"), "").want(w.T, 200, "")
		n := reader.ticket("enf")
		reader.headers["User-Agent"] = "curl/8.5.0" // whatever it looks like later, the place is there
		reader.knock("enf", "x", `,"marks":"webdriver,headless"`).want(w.T, 200, "")
		if reader.ticket("enf") != n || w.joinsOf("enf") != 1 {
			w.Error("a place was lost, or taken twice")
		}
		held := w.aBrowser("203.0.113.3")
		a := held.knock("enf", held.stamp("enf"), `,"marks":"webdriver"`) // 50, and 15 where it was there at once
		if a.want(w.T, 200, "").json["held"] != true {
			w.Errorf("%s is not held", a.body)
		}
		if v := w.verdicts("enf"); v["refused"] != 2.0 || v["held"] != 1.0 || v["let_in"] != 1.0 {
			w.Errorf("%v", v)
		}
		// Raising holdScore lets them go; bypass judges nobody.
		w.operator().post("/api/v1/admin/rooms", `{"id":"enf","protection":{"mode":"enforce","holdScore":80}}`).want(w.T, 200, "")
		held.untilPassed("enf")
		w.operator().post("/api/v1/admin/rooms", `{"id":"enf","protection":{"mode":"enforce","threshold":90,"work":true}}`).want(w.T, 200, "")
		w.operator().post("/api/v1/admin/rooms", `{"id":"enf","protection":{"mode":"monitor"}}`).want(w.T, 200, "")
		if p := fmt.Sprint(w.stats("enf").json["protection"]); p != "map[holdScore:80 mode:monitor threshold:90 work:true]" {
			w.Errorf("what was not named has changed: %s", p)
		}
		w.operator().post("/api/v1/admin/rooms/enf/state", `{"state":"bypass"}`).want(w.T, 200, "")
		w.aTool("203.0.113.9").post("/api/v1/join", `{"roomId":"enf"}`).want(w.T, 200, "")

		all := w.operator().get("/api/v1/admin/security").want(w.T, 200, "")
		if len(all.list(w.T, "rooms")) != 3 || all.json["refusals"].(map[string]any)["blocked_by_protection"] != 2.0 {
			w.Errorf("%s", all.body)
		}
		w.operator().get("/api/v1/admin/security?roomId=none-such").want(w.T, 404, "room_not_found")
		w.operator().get("/api/v1/admin/security?roomId=!").want(w.T, 400, "invalid_room_id")
	})
}

// In a room with protection the page takes no place by itself: its script does, or its second look where none runs. Elsewhere, and when
// the browser holds a place, nothing is different.
func TestPageWithProtection(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("enf", 0, `,"protection":{"mode":"enforce"}`)
		b := w.aBrowser("203.0.113.1")
		page := b.get("/w/enf?lang=en&qm_return=https%3A%2F%2Fshop.example%2Fa%3Fb%3Dc").body
		again := regexp.MustCompile(`http-equiv="refresh" content="1; url=([^"]+)"`).FindStringSubmatch(page)
		if again == nil || w.joinsOf("enf") != 0 {
			w.Fatalf("%d places; %.1500s", w.joinsOf("enf"), page)
		}
		next := strings.ReplaceAll(again[1], "&amp;", "&")
		if !strings.Contains(next, "qm_return=https%3A%2F%2Fshop.example%2Fa%3Fb%3Dc") {
			w.Errorf("%s forgets where the visitor wanted to go", next)
		}
		b.get(next)
		if b.ticket("enf") != 1 || !slices.Contains(w.reasons("enf"), "no_script") {
			w.Errorf("without a script: %v", w.doorOf("enf"))
		}
		if page := b.get("/w/enf").body; stampIn.MatchString(page) || w.joinsOf("enf") != 1 {
			w.Error("who holds a place is asked for another")
		}
		w.aBrowser("203.0.113.2").do("HEAD", "/w/enf", "")
		if w.joinsOf("enf") != 1 {
			w.Error("HEAD takes a place")
		}
	})
}

// reasons are those that counted in a room.
func (w *world) reasons(id string) (ids []string) {
	for _, r := range w.doorOf(id)["reasons"].([]any) {
		if r := r.(map[string]any); r["count"] != 0.0 {
			ids = append(ids, r["id"].(string))
		}
	}
	return ids
}

// A proof of work takes the place of the refusal, for one place each.
//
// Proves: protection
func TestProofOfWork(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("enf", 0, `,"protection":{"mode":"enforce","work":true}`)
		tool := w.aTool("203.0.113.1")
		a := tool.post("/api/v1/join", `{"roomId":"enf"}`).want(w.T, 403, "blocked_by_protection")
		asked := a.json["work"].(map[string]any)
		if asked["parts"] != float64(token.WorkParts) || asked["bits"] != float64(token.WorkBits) {
			w.Errorf("%v", asked)
		}
		stamp := asked["stamp"].(string)
		done := solve(stamp)
		w.aTool("203.0.113.77").knock("enf", stamp, `,"marks":"webdriver","work":"`+done+`"`).want(w.T, 403, "blocked_by_protection") // another network's
		tool.knock("enf", stamp, `,"marks":"webdriver","work":"`+strings.Replace(done, ".", ".0", 1)+`"`).want(w.T, 403, "blocked_by_protection")
		tool.knock("enf", stamp, `,"marks":"webdriver","work":"`+done+`"`).want(w.T, 200, "")
		w.aTool("203.0.113.1").knock("enf", stamp, `,"marks":"webdriver","work":"`+done+`"`).want(w.T, 403, "blocked_by_protection") // spent
		if v := w.verdicts("enf"); v["worked"] != 1.0 || v["offered"] != 4.0 || v["refused"] != 0.0 {
			w.Errorf("%v", v)
		}
		if w.joinsOf("enf") != 1 {
			w.Errorf("%d places", w.joinsOf("enf"))
		}
	})
}

// solve does a proof of work as the page does.
func solve(stamp string) string {
	parts := make([]string, token.WorkParts)
	for i := range parts {
		for n := uint64(0); ; n++ {
			parts[i] = strconv.FormatUint(n, 36)
			if token.WorkedPart(stamp, i, parts[i]) {
				break
			}
		}
	}
	return strings.Join(parts, ".")
}

// A token whose place is another browser's counts against whoever shows it; one's own does not.
func TestReplayedTokenCounts(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("mon", 0, `,"protection":{"mode":"monitor"}`)
		anna, ben := w.aBrowser("203.0.113.1"), w.aBrowser("203.0.113.2")
		anna.knock("mon", anna.stamp("mon"), "").want(w.T, 200, "")
		anna.knock("mon", "", `,"token":"`+anna.jar["qm_mon"]+`"`).want(w.T, 200, "")
		if slices.Contains(w.reasons("mon"), "token_replayed") {
			w.Errorf("her own: %v", w.reasons("mon"))
		}
		ben.knock("mon", ben.stamp("mon"), `,"token":"`+anna.jar["qm_mon"]+`"`).want(w.T, 200, "")
		if !slices.Contains(w.reasons("mon"), "token_replayed") {
			w.Errorf("another's: %v", w.reasons("mon"))
		}
	})
}

// What a page reports is bounded, and what it reports wrongly costs no more than saying nothing.
func TestKnockIsBounded(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("mon", 0, `,"protection":{"mode":"monitor"}`)
		long := strings.Repeat("webdriver,", 1_000)
		w.aBrowser("203.0.113.1").knock("mon", long, `,"marks":"`+long+`","work":"`+long+`"`).want(w.T, 200, "")
		if got := w.reasons("mon"); !slices.Equal(got, []string{"no_page"}) {
			w.Errorf("%v", got)
		}
		for _, more := range []string{`,"marks":7`, `,"work":[]`} {
			w.aBrowser("203.0.113.2").knock("mon", "x", more).want(w.T, 400, "invalid_field")
		}
		for i := range 3 * maxRecent {
			b := w.browser(addrOf(i))
			b.join("mon")
		}
		var view securityView
		if err := json.Unmarshal([]byte(w.operator().get("/api/v1/admin/security").body), &view); err != nil || len(view.Rooms[0].Recent) != maxRecent {
			w.Errorf("%d are kept: %v", len(view.Rooms[0].Recent), err)
		}
		for i, j := range view.Rooms[0].Recent {
			if want := int64(3*maxRecent + 1 - i); *j.Ticket != want {
				w.Fatalf("the %dth latest is ticket %d, not %d", i, *j.Ticket, want)
			}
		}
	})
}

// The guides' table of reasons is the code's own.
func TestReasonsAreInTheGuide(t *testing.T) {
	const begin, end = "<!-- reasons: a test holds this table to package access/score -->\n", "<!-- end of reasons -->"
	table := "| reason | points | what it says |\n| --- | --- | --- |\n"
	for _, r := range score.Reasons {
		table += fmt.Sprintf("| `%s` | %d | %s |\n", r.ID, r.Points, r.Sentence)
	}
	holdTable(t, "../docs/OPERATIONS.md", begin, end, table)
	holdTable(t, "../docs/th/OPERATIONS.md", begin, end, inThai(t, table))
}
