package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"qm/internal/testenv"
)

// hook is a webhook that refuses the first message that it is sent.
type hook struct {
	*httptest.Server
	mu       sync.Mutex
	refused  bool
	messages []map[string]any
	signed   int
}

func newHook(t *testing.T) *hook {
	h := new(hook)
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if !h.refused {
			h.refused = true
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		body, _ := io.ReadAll(r.Body)
		var m map[string]any
		if json.Unmarshal(body, &m) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		h.messages = append(h.messages, m)
		if regexp.MustCompile(`^t=\d{13},v1=[0-9a-f]{64}$`).MatchString(r.Header.Get("QM-Signature")) {
			h.signed++
		}
	}))
	t.Cleanup(h.Close)
	return h
}

// told are the messages of one rule, as "state id".
func (h *hook) told(rule string) (list []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.messages {
		if m["rule"] == rule {
			list = append(list, m["state"].(string)+" "+m["id"].(string))
		}
	}
	return list
}

// A line that stands still is told to the webhook, which refuses at first, and by mail; once, though two processes serve the room and both are
// killed; and when the line moves on, that is told once too.
//
// Proves: alerts, webhook
func TestAnAlertIsToldOnce(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"memory", "valkey+pg"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s stores
			durable := name != "memory"
			if durable {
				s, _ = durableStores(t)
			}
			box, h := testenv.SMTP(t), newHook(t)
			env := map[string]string{
				"ALERT_WEBHOOK_URL": h.URL + "/a-secret-path", "QM_ALLOW_PRIVATE_OUTBOUND": "1", "ALERT_MAIL_TO": "ops@shop.example", "SMTP_URL": box.URL,
				"MAIL_FROM": "queue@shop.example", "ALERT_LIMITS": "line_not_moving=2",
			}
			p := startQM(t, s, env)
			others := []*process{p}
			if durable {
				others = append(others, startQM(t, s, env))
			}
			p.createRoom(t, `"id":"sale","ratePerMinute":60,"state":"paused"`)
			mustJoinRoom(t, p, newVisitor(1), "sale")
			eventually(t, "the webhook is told", func() bool { return len(h.told("line_not_moving")) == 1 })
			m := box.Next()
			if m.To != "ops@shop.example" || m.Subject() != "Alert: Line not moving (sale)" || !strings.Contains(m.Text, "Nobody was let in to Test for 2 seconds though 1 wait: check that") {
				t.Errorf("%q to %s: %s", m.Subject(), m.To, m.Text)
			}
			list := p.admin(t, "GET", "alerts", "", http.StatusOK).body
			if active := list["active"].([]any); len(active) != 1 || list["enabled"] != true || list["webhook"] != "127.0.0.1" || list["mail"] != true {
				t.Errorf("%v", list)
			}
			if _, metrics := text(t, "GET", p.url+"/metrics"); !strings.Contains(metrics, `qm_alerts_active{rule="line_not_moving"} 1`) {
				t.Error("the alert is not counted")
			}
			if durable {
				for _, one := range others {
					one.kill()
				}
				p = startQM(t, s, env)
			}
			p.alertStands(t)
			p.admin(t, "POST", "rooms/sale/purge", `{}`, http.StatusOK)
			eventually(t, "the webhook is told that it is over", func() bool { return len(h.told("line_not_moving")) >= 2 })
			all := h.told("line_not_moving")
			id := strings.TrimPrefix(all[0], "fired ")
			if !slices.Equal(all, []string{"fired " + id, "resolved " + id}) {
				t.Errorf("told %v", all)
			}
			if over := box.Next(); over.Subject() != "Over: Line not moving (sale)" {
				t.Errorf("mailed %q", over.Subject())
			}
			if box.Waiting() != 0 {
				t.Errorf("%d mails too many", box.Waiting())
			}
			list = p.admin(t, "GET", "alerts", "", http.StatusOK).body
			if past := list["history"].([]any); len(list["active"].([]any)) != 0 || len(past) != 1 || past[0].(map[string]any)["id"] != id {
				t.Errorf("afterwards %v", list)
			}
			test := p.admin(t, "POST", "alerts", "", http.StatusOK).body
			if test["mailed"] != true || len(h.told("test")) != 1 || box.Next().Subject() != "Test: Test page" {
				t.Errorf("the test page: %v", test)
			}
			if durable {
				if h.mu.Lock(); h.signed != len(h.messages) {
					t.Errorf("%d of %d messages are signed", h.signed, len(h.messages))
				}
				h.mu.Unlock()
				proved(t, s)
			}
			if strings.Contains(p.output.String(), "a-secret-path") {
				t.Error("the webhook's address is in the log")
			}
		})
	}
}

// alertStands waits until the process that serves the room says that its alert stands.
func (p *process) alertStands(t *testing.T) {
	t.Helper()
	eventually(t, "the room's alert is known", func() bool {
		a := p.admin(t, "GET", "alerts", "", http.StatusOK).body
		rooms := p.admin(t, "GET", "health", "", http.StatusOK).body["rooms"].([]any)
		owned := len(rooms) == 1 && rooms[0].(map[string]any)["owned"] == true
		return owned && len(a["active"].([]any)) == 1 && len(a["history"].([]any)) == 0
	})
}

func TestAlertVariables(t *testing.T) {
	for vars, want := range map[string]string{
		"ALERT_MAIL_TO=ops":                       "ALERT_MAIL_TO: is no list of e-mail addresses",
		"ALERT_MAIL_TO=ops@shop.example":          "SMTP_URL: is needed by ALERT_MAIL_TO",
		"ALERT_LIMITS=speed=5":                    "ALERT_LIMITS: \"speed\" is no rule that has a limit",
		"ALERT_LIMITS=eta=0":                      "ALERT_LIMITS: the limit of eta is not a whole number",
		"ALERT_WEBHOOK_URL=http://hook.example/x": "ALERT_WEBHOOK_URL: has to begin with https://",
	} {
		if _, err := LoadConfig([]string{vars}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", vars, err)
		}
	}
	if _, err := LoadConfig([]string{"ALERT_MAIL_TO=" + strings.Repeat("ops@a.example, ", 3) + "b@b.example", "SMTP_URL=smtp://mail:25", "MAIL_FROM=q@b.example", "ALERT_LIMITS=eta=1800,surge=10"}); err != nil {
		t.Error(err)
	}
	var long []string
	for _, c := range "abcdefghijk" {
		long = append(long, string(c)+"@a.example")
	}
	if _, err := LoadConfig([]string{"ALERT_MAIL_TO=" + strings.Join(long, ","), "SMTP_URL=smtp://mail:25", "MAIL_FROM=q@b.example"}); err == nil {
		t.Error("eleven addresses are taken")
	}
}
