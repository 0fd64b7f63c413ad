package room

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestStoredFormOfAPlace(t *testing.T) {
	for _, c := range []struct {
		body Body
		want string
	}{
		{&Join{Ticket: 1}, `{"n":1,"h":"AAAAAAAAAAAAAAAAAAAAAA"}`},
		{&Join{Ticket: MaxTicket, Holder: Holder{15: 1}, Identity: 1, Score: 100}, `{"n":2147483647,"h":"AAAAAAAAAAAAAAAAAAAAAQ","i":"AAAAAAAAAAE","s":100}`},
		{&Enqueue{Handle: 12, Holder: Holder{255, 255}, Score: 1}, `{"q":12,"h":"__8AAAAAAAAAAAAAAAAAAA","s":1}`},
		{&Enqueue{Handle: 12, Identity: 1 << 63}, `{"q":12,"h":"AAAAAAAAAAAAAAAAAAAAAA","i":"gAAAAAAAAAA"}`},
	} {
		got, version := EncodeBody([]byte("prefix"), c.body)
		if string(got) != "prefix"+c.want || version != 1 {
			t.Errorf("%#v is stored as %s, version %d", c.body, got, version)
		}
		back, err := DecodeBody(c.body.Kind(), 1, 7, []byte(c.want))
		if err != nil || back.At != 7 {
			t.Errorf("%s: %v", c.want, err)
		} else if diff := cmp.Diff(c.body, back.Body); diff != "" {
			t.Errorf("%s:\n%s", c.want, diff)
		}
	}
}

// Whatever is not what EncodeBody writes is refused: a damaged row is never taken for another.
func TestDamagedBodies(t *testing.T) {
	const h = `"h":"AAAAAAAAAAAAAAAAAAAAAA"`
	for _, c := range []struct{ kind, body string }{
		{"join", ``}, {"join", `{}`}, {"join", `null`}, {"join", `[1]`}, {"join", `{"n":`},
		{"join", `{"q":1,` + h + `}`}, {"enqueue", `{"n":1,` + h + `}`},
		{"join", `{"n":0,` + h + `}`}, {"join", `{"n":01,` + h + `}`}, {"join", `{"n":-1,` + h + `}`}, {"join", `{"n":2147483648,` + h + `}`},
		{"join", `{"n":18446744073709551617,` + h + `}`}, {"join", `{"n": 1,` + h + `}`}, {"join", `{"n":1.5,` + h + `}`},
		{"join", `{"n":1,"h":"AAAAAAAAAAAAAAAAAAAAA"}`}, {"join", `{"n":1,"h":"AAAAAAAAAAAAAAAAAAAAAAA"}`}, {"join", `{"n":1,"h":"AAAAAAAAAAAAAAAAAAAAAB"}`},
		{"join", `{"n":1,"h":"AAAAAAAAAAA+AAAAAAAAAA"}`}, {"join", `{"n":1,` + h}, {"join", `{"n":1,` + h + `}}`}, {"join", `{"n":1,` + h + `} `},
		{"join", `{"n":1,` + h + `,"i":"AAAAAAAAAAA"}`}, {"join", `{"n":1,` + h + `,"i":"AAAAAAAAAA"}`}, {"join", `{"n":1,` + h + `,"i":"AAAAAAAAAAF"}`},
		{"join", `{"n":1,` + h + `,"i":""}`}, {"join", `{"n":1,` + h + `,"i":"AAAAAAAAAAE"`},
		{"join", `{"n":1,` + h + `,"s":0}`}, {"join", `{"n":1,` + h + `,"s":101}`}, {"join", `{"n":1,` + h + `,"s":07}`}, {"join", `{"n":1,` + h + `,"s":}`},
		{"join", `{"n":1,` + h + `,"s":5,"i":"AAAAAAAAAAE"}`}, {"join", `{"n":1,` + h + `,"x":1}`},
		{"pass", `{"by":"clock","p":[[1,2]],"credit":0,"extra":1}`}, {"pass", `{"by":"clock","p":[[2,1]],"credit":0}`},
		{"pass", `{"by":"clock","p":[[0,1]],"credit":0}`}, {"pass", `{"by":"clock","p":[[1,2],[2,3]],"credit":0}`},
		{"pass", `{"by":"clock","p":[[1,4294967295]],"credit":0}`}, {"pass", `{"by":"clock","p":[[1,2,3]],"credit":0.5}`}, {"pass", `{"by":"clock"`},
		{"leave", `{"ns":[-1]}`}, {"leave", `{"ns":[4294967296]}`}, {"eject", `{"n":"1","to":2}`}, {"delete", `{} {}`}, {"delete", `{"x":0}`}, {"close", `{"g":-1}`},
		{"enter", `{"n":1,"d":"AAAA"}`}, {"schedule", `{"opensAt":1,"commitment":"00"}`}, {"schedule", `{"opensAt":1,"commitment":"` + strings.Repeat("zz", 32) + `"}`},
		{"draw", `{"v":1,"first":1,"count":2,"order":"AAAAAgAB","digest":""} x`}, {"draw", `{"v":1,"first":1,"count":3,"order":"AAAAAgAB"}`},
		{"draw", `{"v":1,"first":0,"count":2,"order":"AAAAAgAB"}`}, {"draw", `{"v":1,"first":1,"count":2,"order":"AAAAAgAA"}`},
		{"draw", `{"v":1,"first":1,"count":2,"order":"AAAAAgAC"}`}, {"draw", `{"v":1,"first":1,"count":0,"order":""}`},
	} {
		if e, err := DecodeBody(c.kind, 1, 1, []byte(c.body)); err == nil {
			t.Errorf("%s %s was taken for %+v", c.kind, c.body, e.Body)
		}
	}
}

// Version 1 knew fewer fields. It reads as what it meant; what it could not say is damage.
func TestOlderVersions(t *testing.T) {
	const settings = `{"name":"","targetUrl":"","ratePerMinute":1,"maxConcurrent":null,"passedTtlSec":1,"sessionTtlSec":1,"sessionMaxSec":1,"holdScore":1,` +
		`"preQueueMaxPerIp":null,"queueMaxPerIp":null,"presenceSec":null,"onBackendDown":"","branding":{}`
	for kind, body := range map[string]string{
		"create": `{"g":1,"state":"active","settings":` + settings + `%s}}`, "configure": `{"settings":` + settings + `%s},"credit":7}`, "state": `{"state":"paused","credit":7%s}`,
	} {
		old := strings.Replace(body, "%s", "", 1)
		was, err := DecodeBody(kind, 1, 1, []byte(old))
		if err != nil {
			t.Fatalf("%s version 1: %v", kind, err)
		}
		if is, err := DecodeBody(kind, 2, 1, []byte(old)); err != nil || !cmp.Equal(was, is) {
			t.Errorf("%s reads as %+v in version 1, as %+v in version 2, %v", kind, was.Body, is.Body, err)
		}
		for _, more := range []string{`,"autotune":{"floor":1}`, `,"autoActivate":{}`, `,"openings":[]`, `,"protection":{"mode":"off"}`, `,"reason":{"rule":"autotune"}`} {
			if e, err := DecodeBody(kind, 1, 1, []byte(strings.Replace(body, "%s", more, 1))); err == nil {
				t.Errorf("%s version 1 with %s was taken for %+v", kind, more, e.Body)
			}
		}
	}
	if e, err := DecodeBody("configure", 1, 1, []byte(`{"settings":`+settings+`},"credit":7,"reason":{"rule":"autotune"}}`)); err == nil {
		t.Errorf("a reason in version 1 was taken for %+v", e.Body)
	}
}

// An unknown kind or version is a hard error that names it.
func TestUnknownEvents(t *testing.T) {
	for _, c := range []struct {
		kind    string
		version int
	}{{"joyn", 1}, {"", 1}, {"join", 0}, {"join", 2}, {"enqueue", 2}, {"pass", 2}, {"pass", -1}, {"Join", 1}} {
		_, err := DecodeBody(c.kind, c.version, 1, []byte(`{"n":1,"h":"AAAAAAAAAAAAAAAAAAAAAA"}`))
		var unknown *UnknownEventError
		if !errors.As(err, &unknown) || unknown.Kind != c.kind || unknown.Version != c.version {
			t.Errorf("%q version %d: %v", c.kind, c.version, err)
		}
	}
}

// An empty tagOrigins is a policy (nobody but the target); none is another (as returnOrigins). Both survive the journal.
func TestAnEmptyTagPolicyIsNotNone(t *testing.T) {
	for _, origins := range [][]string{nil, {}, {"https://a.example"}} {
		d := newRoom(t, func(s *Settings) { s.TagOrigins = origins })
		for name, s := range map[string]*State{"decided": d.s, "replayed": d.replay} {
			if got := s.settings.TagOrigins; (got == nil) != (origins == nil) || len(got) != len(origins) {
				t.Errorf("%s: %#v became %#v", name, origins, got)
			}
		}
		d.compare()
		restored, err := Restore(d.s.AppendBinary(nil))
		if err != nil {
			t.Fatal(err)
		}
		if got := restored.settings.TagOrigins; (got == nil) != (origins == nil) {
			t.Errorf("restored: %#v became %#v", origins, got)
		}
	}
}

func drawText(t *rapid.T, name string) string {
	return rapid.StringMatching(`[a-zA-Z0-9 <>&"'\\/é\x{2028}]{0,12}`).Draw(t, name)
}

func drawHolder(t *rapid.T) (h Holder) {
	copy(h[:], rapid.SliceOfN(rapid.Byte(), len(h), len(h)).Draw(t, "holder"))
	return h
}

func drawDigest(t *rapid.T) (d Digest) {
	if rapid.Bool().Draw(t, "zero") {
		return d
	}
	copy(d[:], rapid.SliceOfN(rapid.Byte(), len(d), len(d)).Draw(t, "digest"))
	return d
}

func drawTickets(t *rapid.T) []Ticket {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Ticket { return Ticket(rapid.Uint32Range(1, uint32(MaxTicket)).Draw(t, "n")) }), 1, 5).Draw(t, "tickets")
}

func drawLimit(t *rapid.T, name string) *int64 {
	if rapid.Bool().Draw(t, name+" off") {
		return nil
	}
	return num(rapid.Int64Range(0, 100_000).Draw(t, name))
}

func drawTexts(t *rapid.T, name string) []string {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string { return drawText(t, name) }), 1, 3).Draw(t, name)
}

func drawSettings(t *rapid.T) Settings {
	s := Settings{
		Name: drawText(t, "name"), TargetURL: drawText(t, "target"), ProxyOrigin: drawText(t, "proxy"),
		RatePerMinute: rapid.Int64Range(0, 100_000).Draw(t, "rate"), MaxConcurrent: drawLimit(t, "slots"),
		PassedTTLSec: rapid.Int64Range(1, 1e6).Draw(t, "passedTtl"), SessionTTLSec: rapid.Int64Range(1, 1e6).Draw(t, "ttl"),
		SessionMaxSec: rapid.Int64Range(1, 1e6).Draw(t, "max"), HoldScore: rapid.Int64Range(1, 100).Draw(t, "hold"),
		PreQueueMaxPerIP: drawLimit(t, "preQueue"), QueueMaxPerIP: drawLimit(t, "queue"), PresenceSec: drawLimit(t, "presence"),
		OnBackendDown: drawText(t, "down"), Branding: Branding{Name: drawText(t, "brand"), Message: drawText(t, "message"), MessageAt: Instant(rapid.Int64().Draw(t, "at"))},
	}
	if rapid.Bool().Draw(t, "lists") {
		s.ReturnOrigins, s.TagOrigins, s.URLPatterns = drawTexts(t, "return"), drawTexts(t, "tag"), drawTexts(t, "url")
		s.URLPatternsAt = Instant(rapid.Int64().Draw(t, "url rules at"))
	}
	if rapid.Bool().Draw(t, "by itself") {
		n := rapid.Int64Range(1, 1e6)
		s.Protection = Protection{Mode: drawText(t, "protection"), Threshold: n.Draw(t, "threshold"), Work: true}
		s.Autotune = &Autotune{Floor: n.Draw(t, "floor"), Ceiling: n.Draw(t, "ceiling"), Step: 1, LatencyMs: 2, ErrorPct: 3}
		s.AutoActivate = &AutoActivate{ArrivalsPerMinute: n.Draw(t, "arrivals"), CalmMinutes: 1}
		s.Openings = []Opening{{OpensAt: Instant(n.Draw(t, "opens")), ClosesAt: 1}, {OpensAt: 2}}
	}
	return s
}

func drawSpans(t *rapid.T, least int) (spans []Span) {
	last := uint32(0)
	for range rapid.IntRange(least, 4).Draw(t, "spans") {
		from := last + rapid.Uint32Range(1, 1000).Draw(t, "from")
		last = from + rapid.Uint32Range(0, 1000).Draw(t, "more")
		spans = append(spans, Span{Ticket(from), Ticket(last)})
	}
	return spans
}

// bodyOf draws a body of each kind; the map is complete (see the property).
var bodyOf = map[string]func(t *rapid.T) Body{
	"create": func(t *rapid.T) Body {
		return &Create{Generation: rapid.Uint32().Draw(t, "g"), Mode: Mode(drawText(t, "mode")), Settings: drawSettings(t)}
	},
	"configure": func(t *rapid.T) Body {
		return &Configure{Settings: drawSettings(t), Credit: rapid.Int64().Draw(t, "credit")}
	},
	"state": func(t *rapid.T) Body {
		return &StateChange{Mode: Mode(drawText(t, "mode")), Credit: rapid.Int64().Draw(t, "credit")}
	},
	"schedule": func(t *rapid.T) Body {
		return &Schedule{OpensAt: Instant(rapid.Int64().Draw(t, "opensAt")), Commitment: drawDigest(t)}
	},
	"enqueue": func(t *rapid.T) Body {
		return &Enqueue{Handle: Handle(rapid.Uint32Range(1, uint32(MaxTicket)).Draw(t, "q")), Holder: drawHolder(t), Identity: Identity(rapid.Uint64().Draw(t, "i")), Score: rapid.Uint8Range(0, 100).Draw(t, "s")}
	},
	"join": func(t *rapid.T) Body {
		return &Join{Ticket: Ticket(rapid.Uint32Range(1, uint32(MaxTicket)).Draw(t, "n")), Holder: drawHolder(t), Identity: Identity(rapid.Uint64().Draw(t, "i")), Score: rapid.Uint8Range(0, 100).Draw(t, "s")}
	},
	"draw": func(t *rapid.T) Body {
		order := DrawOrder(drawDigest(t), make([]Identity, rapid.IntRange(0, 300).Draw(t, "entries")))
		return &Draw{Version: DrawVersion, Secret: drawDigest(t), Head: drawDigest(t), Seed: drawDigest(t), First: 1 + Ticket(rapid.Uint16().Draw(t, "first")), Count: len(order), Order: PackOrder(order), Digest: OrderDigest(order)}
	},
	"pass": func(t *rapid.T) Body {
		return &Pass{By: drawText(t, "by"), Spans: drawSpans(t, 1), Ghosts: drawSpans(t, 0), Credit: rapid.Int64().Draw(t, "credit")}
	},
	"unslot": func(t *rapid.T) Body { return &Unslot{Tickets: drawTickets(t)} },
	"enter": func(t *rapid.T) Body {
		return &Enter{Ticket: Ticket(rapid.Uint32().Draw(t, "n")), Door: drawHolder(t), CodeAt: Instant(rapid.Int64().Draw(t, "c"))}
	},
	"renew": func(t *rapid.T) Body { return &Renew{Tickets: drawTickets(t)} },
	"leave": func(t *rapid.T) Body {
		if rapid.Bool().Draw(t, "handle") {
			return &Leave{Handles: []Handle{Handle(rapid.Uint32Range(1, 1e6).Draw(t, "q"))}}
		}
		return &Leave{Tickets: drawTickets(t)}
	},
	"lapse": func(t *rapid.T) Body { return &Lapse{Why: drawText(t, "why"), Tickets: drawTickets(t)} },
	"eject": func(t *rapid.T) Body {
		return &Eject{Ticket: Ticket(rapid.Uint32().Draw(t, "n")), To: Ticket(rapid.Uint32().Draw(t, "to"))}
	},
	"purge": func(t *rapid.T) Body {
		return &Purge{Waiting: rapid.Int().Draw(t, "waiting"), PreQueue: rapid.Int().Draw(t, "preQueue")}
	},
	"close":  func(t *rapid.T) Body { return &Close{Generation: rapid.Uint32().Draw(t, "g")} },
	"delete": func(*rapid.T) Body { return &Delete{} },
}

func TestDecodeUndoesEncode(t *testing.T) {
	for name, version := range Kinds() {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			draw := bodyOf[name]
			if draw == nil {
				t.Fatalf("no bodies are drawn of kind %s", name)
			}
			body := draw(t)
			at := Instant(rapid.Int64().Draw(t, "at"))
			text, v := EncodeBody(nil, body)
			back, err := DecodeBody(body.Kind(), v, at, text)
			if err != nil || v != version || body.Kind() != name {
				t.Fatalf("%s version %d: %v\n%s", body.Kind(), v, err, text)
			}
			if diff := cmp.Diff(Event{at, body}, back); diff != "" {
				t.Fatalf("%s\n%s", text, diff)
			}
			if again, _ := EncodeBody(nil, back.Body); !bytes.Equal(text, again) {
				t.Fatalf("%s\n%s", text, again)
			}
		}))
	}
}

func FuzzDecodeBody(f *testing.F) {
	for _, k := range kinds {
		text, _ := EncodeBody(nil, k.empty())
		f.Add(k.name, text)
	}
	f.Add("join", []byte(`{"n":1,"h":"AAAAAAAAAAAAAAAAAAAAAA","i":"AAAAAAAAAAE","s":100}`))
	f.Add("draw", []byte(`{"v":1,"secret":"","head":"","seed":"","first":1,"count":2,"order":"AAAAAgAB","digest":""}`))
	f.Fuzz(func(t *testing.T, kind string, text []byte) {
		e, err := DecodeBody(kind, 1, 1, text)
		if err != nil {
			return
		}
		stored, version := EncodeBody(nil, e.Body)
		again, err := DecodeBody(kind, version, 1, stored)
		if err != nil {
			t.Fatalf("%s was read, but stored as %s it is not: %v", text, stored, err)
		}
		if twice, _ := EncodeBody(nil, again.Body); !bytes.Equal(stored, twice) {
			t.Fatalf("%s became %s", stored, twice)
		}
		if (kind == "join" || kind == "enqueue") && !bytes.Equal(text, stored) {
			t.Fatalf("%s was taken for %s", text, stored)
		}
	})
}
