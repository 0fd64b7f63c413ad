package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"qm/httpapi"
	"qm/internal/testenv"
)

// secrets are an environment in which each secret has a word of its own.
var secrets = []string{
	"SECRET=w1-hush-and-longer", "SECRET_PREVIOUS=w2-hush-and-longer", "ADMIN_KEY=w3-hush-and-longer", "PUBLIC_API_KEY=w4-hush",
	"STORE=valkey", "SIDESTORE=pg", "DATABASE_URL=host=db password=w5-hush", "DATABASE_MIGRATE_URL=postgres://owner:w6-hush@db/qm",
	"VALKEY_URL=redis://:w7-hush@valkey:6379", "EMAIL_NOTIFY=1", "SMTP_URL=smtp://user:w8-hush@mail:25", "MAIL_FROM=queue@example.com",
	"ALERT_WEBHOOK_URL=https://hooks.example/w9-hush", "ALERT_MAIL_TO=w10-hush@example.com", "PUBLIC_URL=https://queue.example.com", "TRUSTED_PROXIES=10.0.0.0/8 2001:db8::1",
	"QM_ENV=production", "PORT=9090",
}

func TestVariablesHideSecrets(t *testing.T) {
	c, err := LoadConfig(secrets)
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]httpapi.Variable{}
	for _, v := range c.Variables() {
		list[v.Name] = v
	}
	if len(list) != len(names()) {
		t.Errorf("%d variables are shown of %d", len(list), len(names()))
	}
	for name, v := range list {
		// A variable that is new has to be hidden, or to be one that this test knows to be harmless.
		harmless := strings.HasSuffix(name, "_SEC") || strings.HasSuffix(name, "_PER_MIN") || strings.HasPrefix(name, "SSE_") || strings.HasPrefix(name, "QM_") ||
			strings.Contains("HOST PORT STORE SIDESTORE TOKEN_SIGN_V2 ROOM_COOKIE_CAP TRUSTED_PROXIES DATACENTRE_NETWORKS_FILE PUBLIC_URL EMAIL_NOTIFY MAIL_FROM ALERT_LIMITS AUDIT_DETAILS_DAYS", name)
		if v.Hidden == harmless {
			t.Errorf("%s is hidden: %v", name, v.Hidden)
		}
	}
	if all := fmt.Sprint(c.Variables(), c.Warnings()); strings.Contains(all, "hush") {
		t.Errorf("a secret is shown in %s", all)
	}
	for name, want := range map[string]httpapi.Variable{
		"PORT": {Value: "9090"}, "STORE": {Value: "valkey"}, "TOKEN_MAX_AGE_SEC": {Value: "86400", Default: true},
		"TRUSTED_PROXIES": {Value: "10.0.0.0/8,2001:db8::1/128"}, "EMAIL_NOTIFY": {Value: "1"}, "QM_DEMO": {Value: "0", Default: true},
		"HOST": {Default: true}, "ADMIN_KEY": {Value: "set", Hidden: true}, "DATABASE_URL": {Value: "set", Hidden: true}, "ALERT_WEBHOOK_URL": {Value: "set", Hidden: true},
	} {
		want.Name = name
		if list[name] != want {
			t.Errorf("%s is shown as %+v, not %+v", name, list[name], want)
		}
	}
	c, err = LoadConfig(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range c.Variables() {
		if !v.Default || v.Name == "HOST" && v.Value != "127.0.0.1" || v.Hidden && v.Value != "" && v.Name != "ADMIN_KEY" {
			t.Errorf("with no environment %+v", v)
		}
	}
}

func TestWarningsSayWhatToDo(t *testing.T) {
	sound := append(append([]string{}, good...), "ADMIN_KEY=a key of some length",
		"DATABASE_MIGRATE_URL=postgres://owner@db/qm", "PUBLIC_URL=https://queue.example.com", "TRUSTED_PROXIES=10.0.0.0/8")
	with := func(more ...string) []string { return append(append([]string{}, sound...), more...) }
	for _, test := range []struct {
		name string
		vars []string
		want string // a part of the only warning; "" for none
	}{
		{"a sound server", sound, ""},
		{"not said to be for production", with("QM_ENV=development"), "QM_ENV is development"},
		{"a short admin key", with("ADMIN_KEY=short"), "ADMIN_KEY is shorter"},
		{"a short secret", with("SECRET=short"), "SECRET is shorter"},
		{"a rotation that has not ended", with("SECRET_PREVIOUS=the one before"), "SECRET_PREVIOUS is set"},
		{"one role for all", with("DATABASE_MIGRATE_URL="), "DATABASE_MIGRATE_URL is not set"},
		{"no lock-out", with("ADMIN_AUTH_FAIL_PER_MIN=0"), "ADMIN_AUTH_FAIL_PER_MIN is 0"},
		{"no address", with("PUBLIC_URL="), "PUBLIC_URL is not set"},
		{"no TLS", with("PUBLIC_URL=http://queue.example.com"), "PUBLIC_URL is not https"},
		{"an unknown proxy", with("TRUSTED_PROXIES="), "TRUSTED_PROXIES is not set"},
		{"too many proxies", with("TRUSTED_PROXIES=10.0.0.0/8,::/0"), "TRUSTED_PROXIES names all addresses"},
		{"private addresses", with("QM_ALLOW_PRIVATE_OUTBOUND=1"), "QM_ALLOW_PRIVATE_OUTBOUND=1"},
		{"a demo", with("QM_DEMO=1"), "QM_DEMO=1"},
		{"mail that is not sent", with("SMTP_URL=smtp://mail:25"), "SMTP_URL is set"},
		{"a volatile store", []string{"ADMIN_KEY=a key of some length", "SECRET=a secret of some length"}, "STORE=memory: every restart"},
	} {
		t.Run(test.name, func(t *testing.T) {
			merged := map[string]string{} // the last one counts
			for _, pair := range test.vars {
				name, value, _ := strings.Cut(pair, "=")
				merged[name] = value
			}
			var vars []string
			for name, value := range merged {
				vars = append(vars, name+"="+value)
			}
			c, err := LoadConfig(vars)
			if err != nil {
				t.Fatal(err)
			}
			got := c.Warnings()
			if test.want == "" {
				if len(got) > 0 {
					t.Errorf("warns of %q", got)
				}
				return
			}
			if len(got) != 1 || !strings.Contains(got[0], test.want) {
				t.Fatalf("warns of %q, not of %q alone", got, test.want)
			}
			advice := got[0][strings.Index(got[0], ". ")+1:]
			if !strings.Contains(advice, "et ") && !strings.Contains(advice, "Name ") {
				t.Errorf("%q does not say what to do", got[0])
			}
		})
	}
	c, err := LoadConfig(nil)
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(c.Warnings(), "\n"); !strings.Contains(all, "ADMIN_KEY is the default") || !strings.Contains(all, "SECRET is not set") {
		t.Errorf("with no environment: %s", all)
	}
}

// health is GET /api/admin/health, with its text.
func (p *process) health(key string) (text string, body struct {
	Warnings []string
	Config   struct{ Variables []map[string]any }
}) {
	p.t.Helper()
	text = p.read("/api/v1/admin/health", key)
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		p.t.Fatal(err)
	}
	return text, body
}

func (p *process) read(path, key string) string {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), "GET", p.url+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		p.t.Fatalf("%s answers %d %s: %v", path, answer.StatusCode, text, err)
	}
	return string(text)
}

// What a running server says of itself: its configuration without its secrets, and metrics that Prometheus's own linter has nothing
// to say of.
//
// Proves: health, prometheus
func TestServerTellsOfItself(t *testing.T) {
	t.Parallel()
	promtool := testenv.Promtool(t)
	for _, pair := range []string{"memory", "valkey+pg"} {
		t.Run(pair, func(t *testing.T) {
			var s stores
			if pair != "memory" {
				s, _ = durableStores(t)
			}
			hidden := map[string]string{
				"ADMIN_KEY": "w1-hush-and-longer", "PUBLIC_API_KEY": "w2-hush", "SECRET": "w3-hush-and-longer", "SECRET_PREVIOUS": "w4-hush-and-longer",
				"SMTP_URL": "smtp://user:w5-hush@mail.example:25", "ALERT_WEBHOOK_URL": "https://hooks.example/w6-hush",
				"EMAIL_NOTIFY": "1", "MAIL_FROM": "queue@example.com", "PUBLIC_URL": "https://queue.example.com", // which has metrics of its own
			}
			p := startQM(t, s, hidden)
			admin := hidden["ADMIN_KEY"]
			text, health := p.health(admin)
			known := []string{"hush"}
			for _, value := range s.env() {
				if strings.Contains(value, "://") {
					known = append(known, value)
				}
			}
			for _, secret := range known {
				if strings.Contains(text, secret) {
					t.Errorf("%q is in %s", secret, text)
				}
			}
			shown := map[string]map[string]any{}
			for _, v := range health.Config.Variables {
				shown[v["name"].(string)] = v
			}
			if v := shown["SECRET"]; v["set"] != true || v["value"] != nil || v["default"] != false {
				t.Errorf("SECRET is shown as %v", v)
			}
			if v := shown["JOIN_LIMIT_PER_MIN"]; v["value"] != "0" || v["default"] != false {
				t.Errorf("JOIN_LIMIT_PER_MIN is shown as %v", v)
			}
			if all := strings.Join(health.Warnings, "\n"); !strings.Contains(all, "SECRET_PREVIOUS is set") {
				t.Errorf("warns of %s", all)
			}

			// A room with some traffic, so that each metric has a value.
			r, err := http.NewRequestWithContext(t.Context(), "POST", p.url+"/api/v1/admin/rooms", strings.NewReader(`{"id":"rm1","targetUrl":"https://shop.example/","ratePerMinute":6000}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+admin)
			made, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			made.Body.Close()
			for i := range 5 {
				if a, err := newVisitor(i).join(p, "rm1"); err != nil || a.status != 200 {
					t.Fatalf("join: %v %v", a, err)
				}
			}
			metrics := p.read("/metrics", admin)
			eventually(t, "tickets pass", func() bool {
				metrics = p.read("/metrics", admin)
				return strings.Contains(metrics, `qm_passes_total{by="clock"}`)
			})
			for _, family := range []string{"qm_http_requests_total", "qm_append_seconds_bucket", "qm_mail_registrations", "go_goroutines"} {
				if !strings.Contains(metrics, "\n"+family) {
					t.Errorf("%s is not among the metrics", family)
				}
			}
			check := exec.Command(promtool, "check", "metrics")
			check.Stdin = strings.NewReader(metrics)
			if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("promtool: %v\n%s", err, out)
			}

			// A shared link sees neither the environment nor what is wrong with it.
			link := p.link(admin)
			if text, health := p.health(link); len(health.Config.Variables) > 0 || strings.Contains(text, "SECRET") || strings.Contains(text, "TRUSTED_PROXIES\"") {
				t.Errorf("a shared link shows %s", text)
			}
		})
	}
}

// link is the token of a new shared link.
func (p *process) link(key string) string {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), "POST", p.url+"/api/v1/admin/monitor-token", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	var body struct{ Token string }
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil || body.Token == "" {
		p.t.Fatalf("no link: %d %v", answer.StatusCode, err)
	}
	return body.Token
}
