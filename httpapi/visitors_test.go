package httpapi

import (
	"context"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"qm/access/token"
	"qm/engine/room"
	"qm/journal"
	"qm/projection"
)

// texts are the sentences of a story, or of a page of the journal.
func (a answer) texts(member string) (list []string) {
	events, _ := a.json[member].([]any)
	for _, e := range events {
		text, _ := e.(map[string]any)["text"].(string)
		list = append(list, text)
	}
	return list
}

func (a answer) says(t *testing.T, member string, parts ...string) {
	t.Helper()
	all := strings.Join(a.texts(member), "\n")
	for _, part := range parts {
		if !strings.Contains(all, part) {
			t.Errorf("%q is not in %s", part, all)
		}
	}
}

const visitorsPath = "/api/v1/admin/rooms/rm1/visitors?"

// Proves: visitors
func TestHelpDeskFindsAVisitor(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 60, `,"state":"paused"`)
		list := []*browser{w.browser(addrOf(0)), w.browser(addrOf(1)), w.browser(addrOf(2))}
		refs := make([]string, len(list))
		for i, b := range list {
			refs[i] = b.join("rm1").json["ref"].(string)
		}
		viewer, _ := w.hire("viewer")
		got := viewer.get(visitorsPath+"ticket=2").want(t, 200, "")
		if got.json["state"] != "waiting" || got.num(t, "position") != 2 || got.num(t, "ahead") != 1 || got.num(t, "generation") != 1 ||
			got.json["ref"] != refs[1] || got.json["session"] != nil || got.json["passExpiresInSec"] != nil || got.json["truncated"] != false {
			t.Errorf("the second in line: %s", got.body)
		}
		got.says(t, "story", "joined the line, 1 ahead")
		// A raw identifier of the visitor's is nowhere: neither their session, nor their token, nor their address.
		for _, secret := range []string{list[1].jar["qms_rm1"], list[1].jar["qm_rm1"], list[1].addr} {
			if secret == "" || strings.Contains(got.body, secret) {
				t.Errorf("%q is in %s", secret, got.body)
			}
		}
		if digest, _ := got.json["binding"].(map[string]any)["browser"].(string); !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(digest) {
			t.Errorf("the binding is %v", got.json["binding"])
		}
		// As people say and type it.
		spoken := strings.ToLower(strings.ReplaceAll(refs[1], "-", " "))
		spoken = strings.NewReplacer("0", "o", "1", "l").Replace(spoken)
		for _, ref := range []string{refs[1], strings.ReplaceAll(refs[1], "-", ""), spoken, " " + refs[1] + " "} {
			if got := viewer.get(visitorsPath+"ref="+url.QueryEscape(ref)).want(t, 200, ""); got.num(t, "ticket") != 2 {
				t.Errorf("%q names %s", ref, got.body)
			}
		}

		// Let in, at the door, thrown out, gone.
		w.operator().post("/api/v1/admin/rooms/rm1/flush", `{"count":2}`).want(t, 200, "")
		if got = viewer.get(visitorsPath + "ticket=2"); got.json["state"] != "passed" || got.json["position"] != nil || got.num(t, "passExpiresInSec") < 500 {
			t.Errorf("let in: %s", got.body)
		}
		if a := list[1].check("rm1"); a.json["action"] != "pass" {
			t.Fatalf("the door answers %s", a.body)
		}
		got = viewer.get(visitorsPath + "ticket=2")
		session, _ := got.json["session"].(map[string]any)
		if got.json["state"] != "inside" || session["open"] != true || session["endsInSec"].(float64) < 14_000 || got.json["binding"].(map[string]any)["door"] == nil {
			t.Errorf("at the door: %s", got.body)
		}
		got.says(t, "story", "passed by a flush", "enters by its own browser")
		w.operator().post("/api/v1/admin/rooms/rm1/eject", `{"ticket":2}`).want(t, 200, "")
		got = viewer.get(visitorsPath + "ref=" + refs[1])
		if got.json["state"] != "reset" || got.json["binding"] != nil || got.json["session"] != nil {
			t.Errorf("ejected: %s", got.body)
		}
		got.says(t, "story", "ejected while at the door; its holder goes on with ticket 4")
		viewer.get(visitorsPath+"ticket=4").want(t, 200, "").says(t, "story", "given at the back to the holder of ticket 2")
		list[2].post("/api/v1/leave", `{"roomId":"rm1"}`).want(t, 200, "")
		if got = viewer.get(visitorsPath + "ticket=3"); got.json["state"] != "left" {
			t.Errorf("gone: %s", got.body)
		}
		got.says(t, "story", "given back by its holder while waiting")

		for query, want := range map[string]struct {
			status int
			code   string
		}{
			"": {400, "invalid_lookup"}, "ticket=1&ref=" + refs[0]: {400, "invalid_lookup"}, "handle=1&ticket=1": {400, "invalid_lookup"},
			"ticket=0": {400, "invalid_ticket"}, "ticket=x": {400, "invalid_ticket"}, "ticket=4294967296": {400, "invalid_ticket"}, "ticket=": {400, "invalid_ticket"},
			"handle=-1": {400, "invalid_handle"}, "ref=": {400, "invalid_ref"}, "ref=%20": {400, "invalid_ref"}, "ticket=1&ticket=2": {400, "duplicate_parameter"},
			"ticket=99": {404, "visitor_not_found"}, "handle=1": {404, "visitor_not_found"}, "ref=nonsense": {404, "visitor_not_found"},
			"ref=0000-0000": {404, "visitor_not_found"}, "ref=" + strings.Repeat("A", 900): {404, "visitor_not_found"}, "ref=%ff%fe": {404, "visitor_not_found"},
		} {
			viewer.get(visitorsPath+query).want(t, want.status, want.code)
		}
		viewer.get("/api/v1/admin/rooms/nowhere/visitors?ticket=1").want(t, 404, "room_not_found")
		viewer.get("/api/v1/admin/rooms/No/visitors?ticket=1").want(t, 400, "invalid_room_id")
		viewer.post(visitorsPath+"ticket=1", "{}").want(t, 405, "method_not_allowed")
		w.monitor().get(visitorsPath+"ticket=1").want(t, 403, "insufficient_role")
		w.browser(addrOf(9)).get(visitorsPath+"ticket=1").want(t, 401, "unauthorized")

		// The code of another room's place names nobody here.
		w.room("rm2", 60, `,"state":"paused"`)
		other := w.browser(addrOf(0)).join("rm2").json["ref"].(string)
		if got := viewer.send("GET", visitorsPath+"ref="+other, ""); got.status != 404 && got.json["ref"] == other {
			t.Errorf("another room's code names %s", got.body)
		}
	})
}

// Proves: visitors
func TestHelpDeskFollowsAPreQueueEntry(t *testing.T) {
	onEachStore(t, func(w *world) {
		opens := time.Now().Add(w.pause(10*time.Second, 2*time.Second))
		w.room("rm1", 60, `,"opensAt":`+itoa(int(opens.UnixMilli())))
		early, other := w.browser(addrOf(0)), w.browser(addrOf(1))
		ref := early.join("rm1").json["ref"].(string)
		other.join("rm1")
		op := w.operator()
		got := op.get(visitorsPath+"ref="+ref).want(t, 200, "")
		if got.json["state"] != "enqueued" || got.num(t, "handle") != 1 || got.json["ticket"] != nil || got.json["position"] != nil || got.num(t, "opensAt") == 0 {
			t.Errorf("before the draw: %s", got.body)
		}
		got.says(t, "story", "entered the pre-queue as number 1")
		for deadline := opens.Add(20 * time.Second); ; {
			if got = op.get(visitorsPath + "handle=1"); got.json["ticket"] != nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("never drawn: %s", got.body)
			}
			<-time.After(100 * time.Millisecond)
		}
		if got.num(t, "handle") != 1 || got.json["ref"] == ref {
			t.Errorf("after the draw: %s", got.body)
		}
		got.says(t, "story", "entered the pre-queue as number 1", "drawn from the pre-queue, place ", "of 2 (handle 1, ")
		byTicket := op.get(visitorsPath+"ticket="+itoa(got.num(t, "ticket"))).want(t, 200, "")
		if byTicket.json["ref"] != got.json["ref"] {
			t.Errorf("by its ticket: %s", byTicket.body)
		}
		byTicket.says(t, "story", "(handle 1, ")
	})
}

// endless is a room in which every ticket and handle waits.
type endless struct{ projection.View }

func (v endless) Summary(ctx context.Context) (room.Summary, projection.Position, error) {
	sum, pos, err := v.View.Summary(ctx)
	sum.LastTicket, sum.LastHandle = room.MaxTicket, room.Handle(room.MaxTicket)
	return sum, pos, err
}

func (v endless) Ticket(ctx context.Context, n room.Ticket) (room.Summary, room.Place, error) {
	sum, _, err := v.Summary(ctx)
	return sum, room.Place{Status: room.Waiting, Ticket: n, Generation: sum.Generation, Ahead: int(n) - 1}, err
}

func (v endless) Handle(ctx context.Context, q room.Handle) (room.Summary, room.Place, error) {
	sum, _, err := v.Summary(ctx)
	return sum, room.Place{Status: room.Enqueued, Handle: q, Generation: sum.Generation}, err
}

type endlessEngine struct{ Engine }

func (e endlessEngine) View(ctx context.Context, id string) (projection.View, error) {
	v, err := e.Engine.View(ctx, id)
	return endless{v}, err
}

// While SECRET_PREVIOUS is in use a code may name a place by either secret. Who of them is calling is for the help desk to find out.
//
// Proves: visitors
func TestAmbiguousCodeIsNotGuessed(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, `,"state":"paused"`)
		before, err := token.New("the secret before", "", token.Options{})
		if err != nil {
			t.Fatal(err)
		}
		keys, err := token.New("the secret of the tests", "the secret before", token.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w.server.o.Keys = keys
		w.server.o.Engine = endlessEngine{w.server.o.Engine}
		ambiguous := 0
		for n := uint32(1); n < 2000 && ambiguous < 3; n++ {
			// The old page shows n's code by the old secret. It may happen to name another place by the new one.
			v := token.Visitor{Room: "rm1", Generation: 1, Ticket: n}
			ref := before.ShortCode(v)
			got := w.operator().get(visitorsPath+"ref="+ref).want(t, 200, "")
			list, _ := got.json["candidates"].([]any)
			if len(list) == 0 {
				if got.num(t, "ticket") != int(n) || got.json["ref"] != keys.ShortCode(v) {
					t.Fatalf("%s, of ticket %d, names %s", ref, n, got.body)
				}
				continue
			}
			ambiguous++
			mine := 0
			for _, c := range list {
				if c.(map[string]any)["ticket"] == float64(n) {
					mine++
				}
			}
			if len(list) != 2 || mine != 1 || got.json["ambiguous"] != true || got.json["ticket"] != nil || got.json["story"] != nil {
				t.Errorf("an ambiguous code names %s", got.body)
			}
		}
		if ambiguous == 0 {
			t.Error("no code was ambiguous")
		}
	})
}

func TestAStoryIsCutShort(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, `,"state":"paused"`)
		w.crowd("rm1", 3)
		path := visitorsPath + "ticket=2"
		w.operator().get(path).want(t, 200, "").says(t, "story", "joined the line, 1 ahead")
		w.server.telling <- struct{}{} // another story is being told, and goes on
		for _, path := range []string{path, "/api/v1/admin/rooms/rm1/journal?words=1"} {
			began := time.Now()
			got := w.operator().get(path).want(t, 200, "")
			if strings.Contains(got.body, `"text"`) || time.Since(began) != storyTime {
				t.Errorf("after %s: %s", time.Since(began), got.body)
			}
		}
		<-w.server.telling
		w.server.storyTime = -1
		got := w.operator().get(path).want(t, 200, "")
		if got.json["truncated"] != true || len(got.texts("story")) != 0 || got.json["state"] != "waiting" || got.num(t, "position") != 2 {
			t.Errorf("with no time for a story: %s", got.body)
		}
	})
}

// scrambled is a journal of which nothing but the first event can be read.
type scrambled struct{ Engine }

func (s scrambled) Read(ctx context.Context, id string, after int64, fn func(*journal.Record) error) error {
	return s.Engine.Read(ctx, id, after, func(r *journal.Record) error {
		if r.Seq > 1 {
			r.Kind = "nonsense"
		}
		return fn(r)
	})
}

func TestAStoryOfADamagedJournal(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, `,"state":"paused"`)
		w.crowd("rm1", 120)
		w.server.o.Engine = scrambled{w.server.o.Engine}
		got := w.operator().get(visitorsPath+"ticket=110").want(t, 200, "")
		if got.json["truncated"] != true || len(got.texts("story")) != 0 || got.json["state"] != "waiting" {
			t.Errorf("with a damaged journal: %s", got.body)
		}
	})
}

func TestJournalInWords(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 60, `,"state":"paused"`)
		w.crowd("rm1", 3)
		op := w.operator()
		op.post("/api/v1/admin/rooms/rm1/flush", `{"count":2}`).want(t, 200, "")
		path := "/api/v1/admin/rooms/rm1/journal?"
		plain, words := op.get(path).want(t, 200, ""), op.get(path+"words=1").want(t, 200, "")
		if strings.Contains(plain.body, `"text":"`) || op.get(path+"words=0").body != plain.body {
			t.Errorf("without words: %s", plain.body)
		}
		if got := words.texts("events"); len(got) != 5 || strings.Contains("\n"+strings.Join(got, "\n")+"\n", "\n\n") {
			t.Errorf("told %q", got)
		}
		words.says(t, "events", "generation 1 created, paused, at 60 a minute", "ticket 3 joins, 2 ahead of it", "tickets 1 to 2 pass by a flush")
		// A page from the middle says the same: what came before is known.
		if got := op.get(path + "words=1&after=3&limit=1").texts("events"); len(got) != 1 || got[0] != "ticket 3 joins, 2 ahead of it" {
			t.Errorf("the fourth event: %q", got)
		}
		if got := op.get(path + "words=1&kind=pass").texts("events"); len(got) != 1 || !strings.Contains(got[0], "by a flush") {
			t.Errorf("the pass: %q", got)
		}
		if got := op.get(path + "words=1&ticket=2").texts("events"); len(got) != 2 || got[0] != "joined the line, 1 ahead" || !strings.Contains(got[1], "passed by a flush") {
			t.Errorf("the story of ticket 2: %q", got)
		}
		// Running out of time harms neither the answer nor the next story.
		w.server.storyTime = -1
		if got := op.get(visitorsPath+"ticket=2").want(t, 200, ""); got.json["truncated"] != true || got.json["state"] != "passed" {
			t.Errorf("with no time: %s", got.body)
		}
		w.server.storyTime = storyTime
		op.get(visitorsPath+"ticket=2").want(t, 200, "").says(t, "story", "joined the line, 1 ahead", "passed by a flush")
		op.get(path+"words=yes").want(t, 400, "invalid_parameter")
		op.get(path+"words=1&words=0").want(t, 400, "duplicate_parameter")
	})
}
