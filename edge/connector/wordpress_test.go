package connector_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"qm/edge/connector"
	"qm/internal/testenv"
)

// startWordPress runs a WordPress site with the plugin until the test ends. Its settings are in the file options.
func startWordPress(t *testing.T) (address, options string, said *output) {
	t.Helper()
	folder := install(t, "wordpress")
	options = filepath.Join(t.TempDir(), "options.json")
	if err := os.WriteFile(options, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	address, said = start(t, map[string]string{
		"QM_PLUGIN": folder, "QM_SITE_OPTIONS": options, "QM_SITE_HOME": "https://shop.example", "PHP_CLI_SERVER_WORKERS": "6",
	}, testenv.PHP(t), "-d", "display_errors=stderr", "-d", "error_reporting=-1", "-S", "127.0.0.1:0", program(t, "wordpress/site.php"))
	return address, options, said
}

// TestWordPress puts a WordPress site behind the plugin.
//
// Proves: connectors
func TestWordPress(t *testing.T) {
	address, _, _ := startWordPress(t)
	s := site{
		address: address,
		dress: func(h http.Header, r vectorRequest, options map[string]any) {
			seconds := "30"
			if ms := fmt.Sprint(options["timeoutMs"]); ms != "30000" {
				seconds = "1" // the least that WordPress knows
			}
			h.Set("X-Forwarded-For", "198.51.100.66, "+r.Remote)
			h.Set("X-Test-Options", jsonText(t, map[string]any{
				"room": options["roomId"], "base": options["server"], "key": options["publicKey"], "fail": options["fail"],
				"timeout": seconds, "proxies": orElse(options["proxies"], "127.0.0.1"), "editors": true,
			}))
		},
	}
	t.Run("vectors", s.conform)
	t.Run("walk", s.walk)
	t.Run("whom it believes", func(t *testing.T) {
		s.believes(t, func(proxies ...string) map[string]any { return map[string]any{"proxies": strings.Join(proxies, " ")} })
	})
}

// screen is an administrator's or another's view of the site's dashboard.
func screen(t *testing.T, address, role, path string, form url.Values) (int, string) {
	t.Helper()
	method, body := http.MethodGet, ""
	if form != nil {
		method, body = http.MethodPost, form.Encode()
	}
	r, err := http.NewRequestWithContext(t.Context(), method, address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Test-Kind", "admin")
	r.Header.Set("X-Test-Role", role)
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	said, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(said), "PHP Warning") || got.StatusCode >= 500 {
		t.Errorf("%s: %d %s", path, got.StatusCode, said)
	}
	return got.StatusCode, string(said)
}

// nonce finds the nonce in a form of the settings screen: the settings' own is the first, the install check's the second.
func nonce(t *testing.T, page string, n int) string {
	t.Helper()
	found := regexp.MustCompile(`name="_wpnonce" value="([0-9a-f]+)"`).FindAllStringSubmatch(page, -1)
	if len(found) != 2 {
		t.Fatalf("the screen has %d nonces:\n%s", len(found), page)
	}
	return found[n][1]
}

func TestWordPressSettings(t *testing.T) {
	queue := startQueue(t)
	address, options, _ := startWordPress(t)
	const settings, save = "/wp-admin/options-general.php?page=queue-manager", "/wp-admin/options.php"

	for _, role := range []string{"", "subscriber", "editor"} {
		if status, _ := screen(t, address, role, settings, nil); status != http.StatusForbidden {
			t.Errorf("%q sees the settings: %d", role, status)
		}
	}
	_, page := screen(t, address, "administrator", settings, nil)
	form := url.Values{"option_page": {"queue-manager"}, "_wpnonce": {nonce(t, page, 0)}}
	set := func(name, value string) { form.Set("queue_manager["+name+"]", value) }
	set("base", queue+"/")
	set("room", "rm1")
	set("key", publicKey)
	set("fail", "closed")
	set("timeout", "3")
	set("proxies", "127.0.0.1, 10.0.0.0/8 2001:db8::/32")
	if status, said := screen(t, address, "administrator", save, url.Values{"option_page": {"queue-manager"}, "_wpnonce": {"0"}}); status != http.StatusForbidden {
		t.Errorf("saved without a nonce: %d %s", status, said)
	}
	if _, said := screen(t, address, "administrator", save, form); said != `{"errors":[]}` {
		t.Fatalf("saving says %s", said)
	}
	stored := func() string {
		t.Helper()
		b, err := os.ReadFile(options)
		if err != nil {
			t.Fatal(err)
		}
		var all map[string]map[string]any
		if err := json.Unmarshal(b, &all); err != nil {
			t.Fatal(err)
		}
		return jsonText(t, all["queue_manager"])
	}
	want := jsonText(t, map[string]any{
		"base": queue, "room": "rm1", "key": publicKey, "fail": "closed", "timeout": "3",
		"proxies": "127.0.0.1 10.0.0.0/8 2001:db8::/32", "editors": false,
	})
	if got := stored(); got != want {
		t.Errorf("stored is %s", got)
	}

	// Each wrong value is refused by name and leaves the former one; an empty key leaves the key.
	for name, values := range map[string][]string{
		"base":    {"queue.example", "javascript:alert(1)", "https://user@queue.example", "https://queue.example/?a", "https://queue.example/\"><x>"},
		"room":    {"RM1", "-rm1", "rm1\n", "a"},
		"key":     {"a b", "ä"},
		"fail":    {"", "maybe"},
		"timeout": {"0", "31", "x", ""},
		"proxies": {"localhost", "10.0.0.0/33", "10.0.0.1/", "::1/129"},
	} {
		for _, value := range values {
			set("key", "")
			before := form.Get("queue_manager[" + name + "]")
			set(name, value)
			_, said := screen(t, address, "administrator", save, form)
			set(name, before)
			if trimmed := strings.TrimSpace(value); name == "room" && trimmed == "rm1" {
				continue // white space around a value is no part of it
			}
			if !strings.Contains(said, name) || stored() != want {
				t.Errorf("%s %q: %s; stored is %s", name, value, said, stored())
			}
		}
	}

	// The screen shows what is stored, but for the key, and nothing on it can become markup.
	_, page = screen(t, address, "administrator", settings, nil)
	if strings.Contains(page, publicKey) || !strings.Contains(page, `value="`+queue+`"`) {
		t.Errorf("the screen is %s", page)
	}
	check := url.Values{"queue_manager_check": {"1"}, "_wpnonce": {nonce(t, page, 1)}}
	if _, said := screen(t, address, "administrator", settings, check); !strings.Contains(said, "The connector is set up.") ||
		!strings.Contains(said, "The key is the Public API key of this server.") {
		t.Errorf("the install check says %s", said)
	}
	if status, _ := screen(t, address, "administrator", settings, url.Values{"queue_manager_check": {"1"}}); status != http.StatusForbidden {
		t.Errorf("the install check runs without a nonce: %d", status)
	}
	set("key", "wrong<b>")
	set("room", "rm2")
	screen(t, address, "administrator", save, form)
	if _, said := screen(t, address, "administrator", settings, check); !strings.Contains(said, "There is no such room.") || !strings.Contains(said, "Not ready yet") {
		t.Errorf("the install check says %s", said)
	}
}

// TestWordPressHoldsUpTheFrontEndAlone: with a server that does not answer, what is no page for visitors still works.
func TestWordPressHoldsUpTheFrontEndAlone(t *testing.T) {
	address, options, said := startWordPress(t)
	write := func(room string) {
		t.Helper()
		text := jsonText(t, map[string]any{"queue_manager": map[string]any{"base": deaf(t), "room": room, "editors": true}})
		if err := os.WriteFile(options, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("rm1")
	ask := func(kind, role, path string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Test-Kind", kind)
		r.Header.Set("X-Test-Role", role)
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		if _, err := io.Copy(io.Discard, got.Body); err != nil {
			t.Fatal(err)
		}
		return got.StatusCode, got.Header.Get("X-QM-Decision")
	}
	for _, c := range []struct {
		kind, role, path string
		status           int
		decision         string
	}{
		{"", "", "/sale", 503, "closed; reason=unreachable"},
		{"", "subscriber", "/sale", 503, "closed; reason=unreachable"},
		{"", "", "/feed/", 503, "closed; reason=unreachable"},
		{"", "editor", "/sale", 200, ""},
		{"", "", "/robots.txt", 200, ""},
		{"", "", "/wp-json/wp/v2/posts", 200, ""},
		{"login", "", "/wp-login.php", 200, ""},
		{"cron", "", "/wp-cron.php", 200, ""},
		{"ajax", "", "/wp-admin/admin-ajax.php", 200, ""},
	} {
		if status, decision := ask(c.kind, c.role, c.path); status != c.status || decision != c.decision {
			t.Errorf("%s %s %s: %d %q", c.kind, c.role, c.path, status, decision)
		}
	}
	if !strings.Contains(said.String(), "Queue Manager: room rm1: closed: unreachable") {
		t.Error("no line in the log says that a visitor was refused")
	}
	write("")
	if status, decision := ask("", "", "/sale"); status != 200 || decision != "" {
		t.Errorf("a plugin without a room: %d %q", status, decision)
	}
}

// TestWordPressUpdates: the plugin finds its updates at the server, and unpacks no package but the one that was announced.
func TestWordPressUpdates(t *testing.T) {
	queue := startQueue(t)
	address, options, _ := startWordPress(t)
	forged := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/connectors/wordpress/update" {
			_, _ = io.WriteString(w, `{"slug":"queue-manager","version":"9.0.0","sha256":"`+strings.Repeat("0", 64)+`","sections":{"description":"<script>x</script>ok"}}`)
			return
		}
		_, _ = io.WriteString(w, "PK")
	}))
	t.Cleanup(forged.Close)
	type seen struct {
		Installed     string
		Update        any
		Details       any
		Other         any
		Error, SHA256 string
	}
	look := func(base, query string) (s seen) {
		t.Helper()
		if err := os.WriteFile(options, []byte(jsonText(t, map[string]any{"queue_manager": map[string]any{"base": base}})), 0o644); err != nil {
			t.Fatal(err)
		}
		_, said := screen(t, address, "administrator", "/wp-admin/update-core.php"+query, nil)
		if err := json.Unmarshal([]byte(said), &s); err != nil {
			t.Fatalf("%s: %v", said, err)
		}
		return s
	}
	m, _ := connector.Named("wordpress")
	got := look(queue, "")
	update, _ := got.Update.(map[string]any)
	details, _ := got.Details.(map[string]any)
	if update["version"] != m.Version || update["slug"] != "queue-manager" || update["package"] != queue+m.Path() || got.Installed != m.Version {
		t.Errorf("the update is %v over %s", got.Update, got.Installed)
	}
	if details["name"] != "Queue Manager" || details["download_link"] != queue+m.Path() || got.Other != false {
		t.Errorf("the details are %v; of another plugin %v", got.Details, got.Other)
	}
	if got.Error != "" || got.SHA256 != m.SHA256() {
		t.Errorf("the package is %q, %s", got.SHA256, got.Error)
	}
	got = look(forged.URL, "")
	details, _ = got.Details.(map[string]any)
	if got.SHA256 != "" || !strings.Contains(got.Error, "thrown away") || jsonText(t, details["sections"]) != `{"description":"xok"}` {
		t.Errorf("a forged package: %+v", got)
	}
	if got := look(queue, "?package=https://downloads.example/akismet.zip"); got.Error != "" || got.SHA256 != "" {
		t.Errorf("another plugin's package: %+v", got)
	}
	for _, base := range []string{"", deaf(t)} {
		if got := look(base, ""); got.Update != false || got.Details != false {
			t.Errorf("without a server: %+v", got)
		}
	}
}
