package web_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"qm/web"
)

func render(t *testing.T, p web.WaitingPage) string {
	t.Helper()
	var b strings.Builder
	if err := web.Waiting(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Proves: waiting.assets
func TestAssetsAreNamedByTheirHash(t *testing.T) {
	for _, name := range []string{"waiting.css", "waiting.js", "waiting-words.js", "console/console.css", "console/app.js", "console/vendor/uPlot.js", "target.js", "mark.svg"} {
		path := web.AssetPath(name)
		body, contentType, ok := web.Asset(path)
		if !ok || contentType == "" {
			t.Fatalf("%s: nothing at %q", name, path)
		}
		sum := sha256.Sum256(body)
		stem, ext, _ := strings.Cut(name, ".")
		want := "/assets/" + strings.ReplaceAll(stem, "/", "-") + "-" + base64.RawURLEncoding.EncodeToString(sum[:])[:22] + "." + ext
		if path != want {
			t.Errorf("%s is at %s, want %s", name, path, want)
		}
	}
	for _, path := range []string{"", "/assets/", "/assets/waiting.css", "/assets/waiting-0000000000000000000000.css", "/assets/../web.go", "/assets/waiting.html"} {
		if _, _, ok := web.Asset(path); ok {
			t.Errorf("%q is an asset", path)
		}
	}
}

// All that a visitor loads, in a room with protection and with a proof of work, too, is less than 40 KB in every language: style and
// scripts packed, as every browser takes them, the page as it is.
func TestWaitingPageIsSmall(t *testing.T) {
	assets := 0
	for _, name := range []string{"waiting.css", "waiting.js", "waiting-words.js", "waiting-door.js", "waiting-work.js", "mark.svg"} {
		path := web.AssetPath(name)
		body, _, _ := web.Asset(path)
		packed := web.Packed(path)
		z, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if plain, err := io.ReadAll(z); err != nil || !bytes.Equal(plain, body) {
			t.Fatalf("%s is another file when it is unpacked: %v", name, err)
		}
		assets += len(packed)
	}
	for _, tag := range tags(t) {
		n := assets + len(render(t, web.WaitingPage{
			RoomID: "demo", RoomName: "Spring drop", Locale: tag, Mail: true, MailTo: "a•••@example.com", Stamp: strings.Repeat("s", 54), RefreshURL: "/w/demo?plain=1",
		}))
		if n >= 40<<10 {
			t.Errorf("the waiting page is %d bytes in %s", n, tag)
		}
		t.Logf("%s: %d bytes", tag, n)
	}
}

func TestNothingOnThePageIsInline(t *testing.T) {
	evil := `</script><script>alert(1)</script>" onload="x`
	pages := map[string]string{"waiting": render(t, web.WaitingPage{
		RoomID: "demo", RoomName: evil, Ref: evil, ReturnURL: evil,
		Branding: web.Branding{Name: evil, LogoURL: "javascript:alert(1)", Accent: "red;}</style>" + evil, Message: evil},
		First:    web.Frame{State: "active", Passed: true, RedirectURL: "javascript:alert(1)"},
	})}
	var b strings.Builder
	if err := web.RenderNotice(&b, web.NoticePage{Notice: web.NoticeBackend, RoomName: evil, Ref: evil, RetryAfterSec: 5}); err != nil {
		t.Fatal(err)
	}
	pages["notice"] = b.String()
	b.Reset()
	if err := web.Draw(&b, web.DrawPage{RoomID: "demo", RoomName: evil, Commitment: evil, Secret: evil, Place: 1, Count: 2}); err != nil {
		t.Fatal(err)
	}
	pages["draw"] = b.String()
	b.Reset()
	if err := web.DemoTarget(&b, web.DemoPage{RoomID: "demo", RoomName: evil}); err != nil {
		t.Fatal(err)
	}
	pages["target"] = b.String()
	b.Reset()
	if err := web.Console(&b); err != nil {
		t.Fatal(err)
	}
	pages["console"] = b.String()

	script := regexp.MustCompile(`(?i)<script(?:\s[^>]*)?>`)
	for name, html := range pages {
		for _, tag := range script.FindAllString(html, -1) {
			if !strings.Contains(tag, `src="/assets/`) && !strings.Contains(tag, `type="application/json"`) {
				t.Errorf("%s has %s", name, tag)
			}
		}
		for _, bad := range []string{` onload="x`, `href="javascript:`, `src="javascript:`, ` style="`, "ZgotmplZ}"} {
			if strings.Contains(html, bad) {
				t.Errorf("%s contains %s", name, bad)
			}
		}
	}
}

func TestPolicyAllowsTheColoursAndNothingElseInline(t *testing.T) {
	brand := web.Branding{Accent: "#f60"}
	html := render(t, web.WaitingPage{RoomID: "demo", Branding: brand})
	style := regexp.MustCompile(`(?s)<style>(.*?)</style>`).FindStringSubmatch(html)
	if style == nil || !strings.Contains(style[1], "--accent:#") {
		t.Fatalf("no colours in %v", style)
	}
	sum := sha256.Sum256([]byte(style[1]))
	policy := web.Policy(brand)
	if hash := base64.StdEncoding.EncodeToString(sum[:]); !strings.Contains(policy, "'sha256-"+hash+"'") {
		t.Errorf("%s does not carry the hash %s of %s", policy, hash, style[1])
	}
	if strings.Contains(policy, "unsafe") {
		t.Error(policy)
	}
}

func TestConfigIsWhatTheModuleReads(t *testing.T) {
	place := int64(7)
	opens := time.UnixMilli(1_800_000_000_000)
	html := render(t, web.WaitingPage{
		BasePath: "/__qm", RoomID: "demo", RoomName: "Spring & Sons", Lapsed: "reset", Retry: true, Drawn: true, ReturnURL: "https://shop.example/a?b",
		First: web.Frame{State: "active", Position: &place, OpensAt: opens, Now: opens.Add(-time.Minute)},
	})
	block := regexp.MustCompile(`(?s)id="qm-config">(.*?)</script>`).FindStringSubmatch(html)
	var got struct {
		BasePath, RoomID, RoomName, Lapsed, ReturnURL string
		PollSeconds                                   int
		Drawn, Retry                                  bool
		First                                         struct {
			Position, Ahead *int64
			OpensAt, Now    int64
		}
		Words map[string]string
	}
	if err := json.Unmarshal([]byte(block[1]), &got); err != nil {
		t.Fatal(err)
	}
	if got.BasePath != "/__qm" || got.RoomName != "Spring & Sons" || got.Lapsed != "reset" || got.PollSeconds != 5 || !got.Retry || !got.Drawn ||
		*got.First.Position != 7 || got.First.Ahead != nil || got.First.OpensAt != opens.UnixMilli() || got.First.Now != opens.UnixMilli()-60_000 ||
		got.ReturnURL != "https://shop.example/a?b" || got.Words["lang"] != "en" {
		t.Errorf("config: %+v", got)
	}
	if !strings.Contains(html, `src="/__qm/assets/waiting-`) {
		t.Error("assets are not under the base path")
	}
}

// Every sentence that the module asks for is there, and none is left unused.
func TestEverySentenceExists(t *testing.T) {
	raw, err := os.ReadFile("locales/en.json")
	if err != nil {
		t.Fatal(err)
	}
	var words map[string]string
	if err := json.Unmarshal(raw, &words); err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, name := range []string{"waiting.js", "waiting-words.js", "waiting-mail.js", "waiting.html", "mailbox.html", "letter.go", "letter.html", "withdraw.html", "draw.go", "draw.html", "waiting.go", "words.go", "locale.go", "languages.html", "notice.go", "notice.html", "target.html"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	for _, m := range regexp.MustCompile(`(?:say|count|Say|count)\(?\s?"([a-z][A-Za-z.]*)"`).FindAllSubmatch(all, -1) {
		if key := string(m[1]); words[key] == "" && key != "lang" && key != "dir" {
			t.Errorf("no sentence %s", key)
		}
	}
	for key := range words {
		stem, form, ok := cutForm(key)
		if !ok || form == "" {
			stem = key
		}
		state, isState := strings.CutSuffix(key, ".h")
		if !isState {
			state, isState = strings.CutSuffix(key, ".p")
		}
		if isState {
			stem = state
		}
		if stem != "demo" && !bytes.Contains(all, []byte(`"`+stem+`"`)) {
			t.Errorf("the sentence %s is used nowhere", key)
		}
	}
}

func TestNoticesCarryTheirStatus(t *testing.T) {
	for notice, want := range map[web.Notice]int{
		web.NoticeMissing: 404, web.NoticeGone: 410, web.NoticeRefused: 403, web.NoticeTooMany: 429, web.NoticeBusy: 429,
		web.NoticeFull: 503, web.NoticeBackend: 503, web.NoticeFault: 500, "nonsense": 500,
	} {
		if got := notice.Status(); got != want {
			t.Errorf("%s is %d, want %d", notice, got, want)
		}
		var b strings.Builder
		if err := web.RenderNotice(&b, web.NoticePage{Notice: notice, RetryAfterSec: 7}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), `http-equiv="refresh" content="7"`) || strings.Contains(b.String(), "<h1></h1>") {
			t.Errorf("%s: %s", notice, b.String())
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestAFailedWriterIsReported(t *testing.T) {
	if web.Waiting(full{}, web.WaitingPage{RoomID: "r"}) == nil || web.Console(full{}) == nil ||
		web.DemoTarget(full{}, web.DemoPage{RoomID: "r"}) == nil || web.RenderNotice(full{}, web.NotFoundPage("")) == nil ||
		web.Draw(full{}, web.DrawPage{RoomID: "r"}) == nil {
		t.Error("an error of the writer is lost")
	}
}
