package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// good is an environment that a production server starts with.
var good = []string{
	"QM_ENV=production", "STORE=valkey", "SIDESTORE=pg", "DATABASE_URL=postgres://qm@db/qm", "VALKEY_URL=redis://valkey:6379",
	"SECRET=a secret of some length", "ADMIN_KEY=not the default",
}

func TestConfigDefaults(t *testing.T) {
	c, err := LoadConfig([]string{"PATH=/bin", "HOST=", "QM_TEST_ANYTHING=1"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Addr() != "127.0.0.1:8080" || c.Stores() != "memory+memory" || c.AdminKey != DefaultAdminKey || c.Durable() {
		t.Errorf("defaults are %+v", c)
	}
	for name, got := range map[string][2]int{
		"JOIN_LIMIT_PER_MIN": {c.JoinLimitPerMin, 60}, "CHECK_LIMIT_PER_MIN": {c.CheckLimitPerMin, 600},
		"STATUS_LIMIT_PER_MIN": {c.StatusLimitPerMin, 600}, "SSE_MAX_TOTAL": {c.SSEMaxTotal, 50_000}, "SSE_PER_IP": {c.SSEPerIP, 64},
		"ROOM_COOKIE_CAP": {c.RoomCookieCap, 8}, "TOKEN_MAX_AGE_SEC": {c.TokenMaxAgeSec, 86_400},
		"QUEUE_COOKIE_MAX_AGE_SEC": {c.QueueCookieMaxAgeSec, 86_400}, "ADMIN_AUTH_FAIL_PER_MIN": {c.AdminAuthFailPerMin, 10},
		"AUDIT_DETAILS_DAYS": {c.AuditDetailsDays, 365},
	} {
		if got[0] != got[1] {
			t.Errorf("%s is %d by default, not %d", name, got[0], got[1])
		}
	}
	if len(c.Warnings()) == 0 {
		t.Error("nothing is said about a volatile store and a default key")
	}
}

func TestConfigGood(t *testing.T) {
	c, err := LoadConfig(append([]string{
		"PUBLIC_URL=https://queue.example.com/", "TRUSTED_PROXIES=10.0.0.0/8, 2001:db8::1", "TOKEN_SIGN_V2=1", "QM_DEMO=on", "PORT=0",
		"EMAIL_NOTIFY=1", "SMTP_URL=smtp://mail:25", "MAIL_FROM=queue@example.com", "ALERT_WEBHOOK_URL=https://hooks.example/x",
		"DATABASE_MIGRATE_URL=postgres://owner@db/qm",
	}, good...))
	if err != nil {
		t.Fatal(err)
	}
	if c.Host != "" || c.Addr() != ":0" {
		t.Errorf("with an admin key of its own the server listens on %q, not on all addresses", c.Addr())
	}
	if c.PublicURL != "https://queue.example.com" || !bool(c.TokenSignV2) || !bool(c.Demo) || !bool(c.EmailNotify) || !c.Durable() {
		t.Errorf("read as %+v", c)
	}
}

// Proves: admin.key
func TestConfigProblems(t *testing.T) {
	for _, test := range []struct {
		name string
		vars []string
		want []string // a part of each problem
	}{
		{"mixed stores", []string{"STORE=valkey", "VALKEY_URL=redis://x"}, []string{"STORE: valkey does not go with SIDESTORE=memory"}},
		{"valkey without an address", []string{"STORE=valkey", "SIDESTORE=pg"}, []string{"VALKEY_URL: is needed", "DATABASE_URL: is needed", "SECRET: is needed"}},
		{"unknown stores", []string{"STORE=redis", "SIDESTORE=mysql"}, []string{`STORE: "redis" is none of memory, valkey`, `SIDESTORE: "mysql" is none of memory, pg`}},
		{"numbers", []string{"PORT=x", "JOIN_LIMIT_PER_MIN=-1", "TOKEN_MAX_AGE_SEC=59", "SSE_PER_IP=0", "SSE_MAX_TOTAL=99999999999999999999"},
			[]string{"PORT: is not a whole number", "JOIN_LIMIT_PER_MIN: -1", "TOKEN_MAX_AGE_SEC: 59", "SSE_PER_IP: 0", "SSE_MAX_TOTAL: is too large"}},
		{"typing errors", []string{"QM_DEMOO=1", "QM_PORT=80", "QM_NONSENSE_OF_SOME_KIND=1"},
			[]string{"QM_DEMOO: there is no such variable; did you mean QM_DEMO?", "did you mean PORT?", "QM_NONSENSE_OF_SOME_KIND: there is no such variable"}},
		{"default key on the network", []string{"HOST=0.0.0.0"}, []string{"ADMIN_KEY: is the default"}},
		{"production in memory", []string{"QM_ENV=production"}, []string{"production takes no stores but", "production takes no default ADMIN_KEY"}},
		{"rotation without a secret", []string{"SECRET_PREVIOUS=x"}, []string{"SECRET_PREVIOUS: needs SECRET"}},
		{"one key for two", []string{"ADMIN_KEY=x", "PUBLIC_API_KEY=x"}, []string{"PUBLIC_API_KEY: is the same"}},
		{"blank keys", []string{"ADMIN_KEY= ", "PUBLIC_API_KEY=x\n"}, []string{"ADMIN_KEY: begins or ends with a blank", "PUBLIC_API_KEY: begins"}},
		{"proxies", []string{"TRUSTED_PROXIES=10.0.0.0/8,nonsense,10.0.0.0/99"}, []string{`"nonsense"`}},
		{"switch", []string{"QM_DEMO=perhaps"}, []string{"QM_DEMO: is neither 1 nor 0"}},
		{"public address", []string{"PUBLIC_URL=https://x.example/path"}, []string{"PUBLIC_URL: has more"}},
		{"public address without a scheme", []string{"PUBLIC_URL=x.example"}, []string{"PUBLIC_URL: is not an address"}},
		{"mail", []string{"EMAIL_NOTIFY=1"}, []string{"SMTP_URL: is needed", "MAIL_FROM: is needed", "PUBLIC_URL: is needed by EMAIL_NOTIFY"}},
		{"mail to nowhere", []string{"SMTP_URL=smtp://mail:99999", "MAIL_FROM=queue@example.com"}, []string{"SMTP_URL: and MAIL_FROM do not serve"}},
		{"mail from nobody", []string{"SMTP_URL=smtp://mail", "MAIL_FROM=@"}, []string{"MAIL_FROM: is no e-mail address"}},
		{"alerts", []string{"ALERT_WEBHOOK_URL=http://127.0.0.1/x"}, []string{"has to begin with https://", "has to be a public address"}},
		{"migrations of nothing", []string{"DATABASE_MIGRATE_URL=postgres://x/y"}, []string{"DATABASE_MIGRATE_URL: needs SIDESTORE=pg"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := LoadConfig(test.vars)
			problems := new(ConfigError)
			if !errors.As(err, &problems) {
				t.Fatalf("the server would start, or not say why: %v", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not named in:\n%v", want, err)
				}
			}
			if got := len(problems.Problems); got != len(test.want) {
				t.Errorf("%d problems are named, not %d:\n%v", got, len(test.want), err)
			}
		})
	}
}

// The file of data centres' networks is read at start, and a line that is none is named.
func TestConfigDataCentres(t *testing.T) {
	file := filepath.Join(t.TempDir(), "networks")
	if err := os.WriteFile(file, []byte("192.0.2.0/24\n2001:db8::/32\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := LoadConfig([]string{"DATACENTRE_NETWORKS_FILE=" + file})
	if err != nil || c.DataCentres.Len() != 2 || fmt.Sprint(c.DataCentres) != "2 networks" {
		t.Errorf("%v %v", c, err)
	}
	if err := os.WriteFile(file, []byte("192.0.2.0/24\nthe cloud\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, file + ".none"} {
		if _, err := LoadConfig([]string{"DATACENTRE_NETWORKS_FILE=" + path}); err == nil || !strings.Contains(err.Error(), "DATACENTRE_NETWORKS_FILE") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestConfigPrivateAlerts(t *testing.T) {
	if _, err := LoadConfig([]string{"ALERT_WEBHOOK_URL=http://127.0.0.1/x", "QM_ALLOW_PRIVATE_OUTBOUND=1"}); err != nil {
		t.Error(err)
	}
}
