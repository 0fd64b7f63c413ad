package httpapi

import (
	"testing"
	"time"

	"qm/access"
	"qm/engine"
	"qm/internal/testenv"
	"qm/journal/postgres"
	"qm/projection/valkey"
	"qm/replay"
)

// twoProcesses are two servers on one pair of stores.
func twoProcesses(t *testing.T) (here, there *world, j *postgres.Journal) {
	t.Helper()
	pg, vk := testenv.Postgres(t), testenv.Valkey(t)
	open := func() engine.Options {
		var err error
		if j, err = postgres.Open(t.Context(), pg.DSN, postgres.Options{MaxConns: 4}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(j.Close)
		shared, err := valkey.Open(t.Context(), vk.URL, valkey.Options{Prefix: vk.Prefix})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(shared.Close)
		return engine.Options{Journal: j, Vault: j, Shared: shared}
	}
	return newWorld(t, open(), Options{}), newWorld(t, open(), Options{}), j
}

// until asks again until the answer has the status; the process follows the other's acts once a second.
func (b *browser) until(path string, status int) answer {
	b.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		a := b.get(path)
		if a.status == status {
			return a
		}
		select {
		case <-tick.C:
		case <-b.Context().Done():
			b.Fatalf("%s still answers %d %s", path, a.status, a.body)
		}
	}
}

// What one process gives or takes holds in the other, without a restart: keys, sessions, links. (TestFollowing of package org shows that a
// look a second is what it takes.)
func TestTwoProcessesShareTheOrganisation(t *testing.T) {
	t.Parallel()
	here, there, j := twoProcesses(t)
	operator, id := here.hire("operator")
	there.browserLike(operator).until("/api/admin/rooms", 200)
	console := here.console(operator.key(), "")
	elsewhere := there.browserLike(console)
	elsewhere.until("/api/admin/rooms", 200)
	if who := elsewhere.get("/api/admin/session").want(t, 200, ""); who.json["id"] != id || who.json["name"] != "Ada of operator" {
		t.Errorf("the other process takes it for %s", who.body)
	}
	monitor := here.monitor()
	there.browserLike(monitor).until("/api/admin/rooms", 200)

	// Signed out there, the copy of the cookie ends here.
	second := here.console(operator.key(), "")
	copied := there.browserLike(second)
	copied.until("/api/admin/rooms", 200)
	copied.do("DELETE", "/api/admin/session", "").want(t, 200, "")
	second.until("/api/admin/rooms", 401)

	// Revoked there: the key, its session and its stream ticket end here.
	ticket := console.post("/api/admin/sse-ticket", "").want(t, 200, "").json["ticket"].(string)
	there.operator().do("DELETE", "/api/admin/operators/"+id, "").want(t, 200, "")
	operator.until("/api/admin/rooms", 401)
	console.get("/api/admin/rooms").want(t, 401, "unauthorized")
	here.browser("198.51.100.4").get("/api/admin/events?ticket="+ticket).want(t, 401, "invalid_sse_ticket")
	there.operator().do("DELETE", "/api/admin/monitor-token?all=1", "").want(t, 200, "")
	monitor.until("/api/admin/rooms", 401)

	// Both wrote one chain that verifies.
	report, findings, err := replay.Verify(replay.Stream(t.Context(), j, "$org"), replay.Options{})
	if err != nil || len(findings) > 0 || report.Records < 6 {
		t.Errorf("%d records, %v, %v", report.Records, findings, err)
	}
}

// browserLike is a client of this process with what another process's client has.
func (w *world) browserLike(b *browser) *browser {
	like := w.browser(b.addr)
	for name, value := range b.headers {
		like.headers[name] = value
	}
	if c := b.jar[access.ConsoleCookie]; c != "" {
		like.jar[access.ConsoleCookie] = c
	}
	return like
}
