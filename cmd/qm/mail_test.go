package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"qm/internal/testenv"
)

// mailing starts qm with EMAIL_NOTIFY, at an address that the links in its mails have.
func mailing(t *testing.T, s stores, box *testenv.Mailbox, port string) *process {
	t.Helper()
	return startQM(t, s, map[string]string{
		"PORT": port, "PUBLIC_URL": "http://127.0.0.1:" + port, "EMAIL_NOTIFY": "1", "SMTP_URL": box.URL, "MAIL_FROM": "queue@shop.example",
	})
}

func (v *visitor) mailTo(t *testing.T, p *process, room, address string) {
	t.Helper()
	a, err := v.send("POST", p.url+"/api/v1/notify", fmt.Sprintf(`{"roomId":%q,"email":%q}`, room, address))
	if err != nil || a.status != http.StatusOK {
		t.Fatalf("notify: %v, %d %v", err, a.status, a.body)
	}
}

// text reads a page.
func text(t *testing.T, method, url string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+adminKey)
	a, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(body)
}

var link = regexp.MustCompile(`http://127\.0\.0\.1:\d+/\S+`)

// A visitor asks, the turn comes, and a mail arrives in their language with links that work. The address is nowhere but where it can be
// erased, and then it is erased.
//
// Proves: notify
func TestTheTurnIsMailed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"memory", "valkey+pg"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s stores
			if name != "memory" {
				s, _ = durableStores(t)
			}
			box := testenv.SMTP(t)
			p := mailing(t, s, box, freePort(t))
			p.createRoom(t, `"id":"sale","ratePerMinute":1,"state":"paused","branding":{"name":"Frühling & Söhne"}`)
			const address, discarded = "anna.surname@example.com", "purged.surname@example.com"
			anna := newVisitor(1)
			anna.cookies["qmlang"] = "th"
			mustJoinRoom(t, p, anna, "sale")
			anna.mailTo(t, p, "sale", address)
			p.admin(t, "POST", "rooms/sale/flush", `{"count":1}`, http.StatusOK)
			m := box.Next()
			if m.To != address || m.Subject() != "ถึงคิวของคุณแล้ว: Test" {
				t.Errorf("%q to %s", m.Subject(), m.To)
			}
			if from, err := m.Header.AddressList("From"); err != nil || from[0].Name != "Frühling & Söhne" || from[0].Address != "queue@shop.example" {
				t.Errorf("From: %v %v", m.Header["From"], err)
			}
			links := link.FindAllString(m.Text, -1)
			if len(links) != 2 || !strings.Contains(m.HTML, links[0]) || !strings.Contains(m.HTML, strings.ReplaceAll(links[1], "&", "&amp;")) || !strings.Contains(m.HTML, `lang="th"`) {
				t.Fatalf("links %q in %s\n%s", links, m.Text, m.HTML)
			}
			if a, err := anna.send("GET", links[0], ""); err != nil || a.status != http.StatusFound || !strings.HasPrefix(a.header.Get("Location"), "https://shop.example/") {
				t.Errorf("the way back answers %d %v, %v", a.status, a.header, err)
			}
			if status, page := text(t, "GET", links[1]); status != http.StatusOK || !strings.Contains(page, "<form") {
				t.Errorf("the withdrawal answers %d %s", status, page)
			}

			// What an operator discards is not mailed.
			gone := newVisitor(2)
			mustJoinRoom(t, p, gone, "sale")
			gone.mailTo(t, p, "sale", discarded)
			p.admin(t, "POST", "rooms/sale/purge", `{}`, http.StatusOK)
			p.admin(t, "POST", "rooms/sale/flush", `{"count":10}`, http.StatusOK)
			eventually(t, "nobody waits for a mail", func() bool {
				_, metrics := text(t, "GET", p.url+"/metrics")
				return strings.Contains(metrics, "\nqm_mail_registrations 0\n") && strings.Contains(metrics, "\nqm_mails_waiting 0\n")
			})
			if box.Waiting() != 0 {
				t.Errorf("%d mails too many", box.Waiting())
			}
			if _, metrics := text(t, "GET", p.url+"/metrics"); !strings.Contains(metrics, `qm_mails_total{mail="turn",outcome="sent"} 1`) {
				t.Error("the mail is not counted")
			}

			_, journal := text(t, "GET", p.url+"/api/v1/admin/rooms/sale/journal?format=ndjson")
			if !strings.Contains(journal, `"pass"`) {
				t.Fatalf("no journal: %s", journal)
			}
			for what, said := range map[string]string{"the journal": journal, "the log": p.output.String(), "the tables": everything(t, s)} {
				if strings.Contains(said, "surname") {
					t.Errorf("%s names an address", what)
				}
			}
		})
	}
}

func mustJoinRoom(t *testing.T, p *process, v *visitor, room string) {
	t.Helper()
	if a, err := v.join(p, room); err != nil || a.status != http.StatusOK {
		t.Fatalf("join: %v, %d %v", err, a.status, a.body)
	}
}

// everything is all rows of all tables in the database's schema, as text; "" without a database.
func everything(t *testing.T, s stores) string {
	t.Helper()
	if s.postgres == "" {
		return ""
	}
	conn, err := pgx.Connect(t.Context(), s.postgres)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	rows, err := conn.Query(t.Context(), "select tablename from pg_tables where schemaname = current_schema()")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) < 8 {
		t.Fatalf("tables %v, %v", tables, err)
	}
	var all strings.Builder
	for _, table := range tables {
		rows, err := conn.Query(t.Context(), "select t::text from "+pgx.Identifier{table}.Sanitize()+" t")
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(strings.Join(lines, "\n"))
	}
	return all.String()
}

// A mail that could not be sent outlives the process, and two processes send it once between them.
//
// Proves: notify
func TestAPendingMailSurvivesAKill(t *testing.T) {
	t.Parallel()
	s, _ := durableStores(t)
	box := testenv.SMTP(t)
	port := freePort(t)
	p := mailing(t, s, box, port)
	p.createRoom(t, `"id":"sale","ratePerMinute":0,"passedTtlSec":86400`)
	for i := range 10 {
		v := newVisitor(i)
		mustJoinRoom(t, p, v, "sale")
		v.mailTo(t, p, "sale", fmt.Sprintf("v%d@example.com", i))
	}
	box.Refuse("rcpt", 451, "v0@example.com is busy")
	p.admin(t, "POST", "rooms/sale/flush", `{"count":10}`, http.StatusOK)
	// Killed while none is being sent: those would be taken for lost only after a while.
	conn, err := pgx.Connect(t.Context(), s.postgres)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	eventually(t, "all mails are put off for some seconds", func() bool {
		var n int
		err := conn.QueryRow(t.Context(), "select count(*) from river_job where attempt >= 3 and state in ('retryable', 'available', 'scheduled')").Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n == 10
	})
	p.kill()
	if strings.Contains(p.output.String(), "@example.com") {
		t.Error("the log names an address")
	}
	box.Refuse("rcpt", 0, "")
	a := mailing(t, s, box, port)
	b := mailing(t, s, box, freePort(t))
	mailed := map[string]bool{}
	for range 10 {
		m := box.Next()
		if mailed[m.To] {
			t.Errorf("%s was mailed twice", m.To)
		}
		mailed[m.To] = true
	}
	eventually(t, "nothing is left to send", func() bool {
		for _, p := range []*process{a, b} {
			if _, metrics := text(t, "GET", p.url+"/metrics"); !strings.Contains(metrics, "\nqm_mail_registrations 0\n") || !strings.Contains(metrics, "\nqm_mails_waiting 0\n") {
				return false
			}
		}
		return true
	})
	if n := box.Waiting(); n != 0 {
		t.Errorf("%d mails too many", n)
	}
}
