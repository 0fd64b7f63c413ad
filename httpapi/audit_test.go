package httpapi

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"qm/access/org"
	"qm/journal"
)

type act struct {
	At, Actor, Name, Room, Kind, Cause, From, Reason string
	Seq                                              int
	Before, After                                    map[string]any
	Erased                                           bool
}

func (w *world) trail(b *browser, query string) (list []act, next string) {
	w.Helper()
	a := b.get("/api/v1/admin/audit"+query).want(w.T, 200, "")
	var page struct {
		Entries []act
		Next    string
	}
	if err := json.Unmarshal([]byte(a.body), &page); err != nil {
		w.Fatalf("%s: %v", a.body, err)
	}
	return page.Entries, page.Next
}

// Proves: audit
func TestAudit(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 60, "")
		w.room("rm2", 60, "")
		operator, id := w.hire("operator")
		viewer, _ := w.hire("viewer")
		crowd := w.crowd("rm1", 4)
		path := "/api/v1/admin/rooms/rm1"
		for _, c := range []struct{ path, body string }{
			{"/rate", `{"rate":30}`}, {"/state", `{"state":"paused"}`}, {"/flush", `{"count":1,"reason":"VIP, \"as agreed\"\nby phone"}`},
			{"/eject", fmt.Sprintf(`{"ticket":%d,"reason":"=cmd|' /C calc'!A0"}`, crowd[3].ticket("rm1"))}, {"/purge", `{"reason":"the event is over"}`},
		} {
			operator.post(path+c.path, c.body).want(t, 200, "")
		}
		operator.post(path+"/state", `{"state":"paused"}`) // nothing happens, and nothing is noted
		time.Sleep(w.pause(time.Second, 5*time.Millisecond))
		operator.post("/api/admin/rooms", `{"id":"rm1","maxConcurrent":5,"branding":{"name":"Shop"}}`).want(t, 200, "")
		operator.post(path+"/schedule", fmt.Sprintf(`{"opensAt":%d}`, time.Now().Add(time.Hour).UnixMilli())).want(t, 200, "")
		operator.post(path+"/schedule", `{"opensAt":null}`).want(t, 200, "")

		list, _ := w.trail(viewer, "?room=rm1&operator="+id)
		var told []string
		for _, a := range list {
			if a.Erased || a.Actor != id || a.Name != "Ada of operator" || a.From != "198.51.100.249" || a.Room != "rm1" || a.Cause == "" {
				t.Errorf("an act without its actor or origin: %+v", a)
			}
			before, _ := json.Marshal(a.Before)
			after, _ := json.Marshal(a.After)
			told = append(told, fmt.Sprintf("%s %s -> %s %q", a.Kind, before, after, a.Reason))
		}
		for _, want := range []string{
			`configure {"ratePerMinute":60} -> {"ratePerMinute":30} ""`, `state {"state":"active"} -> {"state":"paused"} ""`,
			`pass null -> {"passed":1} "VIP, \"as agreed\"\nby phone"`, `eject {"ticket":4} -> {"ticket":5} "=cmd|' /C calc'!A0"`,
			`purge {"preQueue":0,"waiting":3} -> null "the event is over"`,
		} {
			found := false
			for _, is := range told {
				found = found || is == want
			}
			if !found {
				t.Errorf("no %s in\n%s", want, strings.Join(told, "\n"))
			}
		}
		settings, _ := w.trail(viewer, "?room=rm1&kind=configure&limit=1")
		if a := settings[0]; a.After["maxConcurrent"] != 5.0 || a.Before["maxConcurrent"] != nil || a.After["ratePerMinute"] != nil || a.After["branding"] == nil {
			t.Errorf("the settings changed from %v to %v", a.Before, a.After)
		}
		if drops, _ := w.trail(viewer, "?room=rm1&kind=schedule"); len(drops) != 2 || drops[0].After["opensAt"] != nil || drops[0].Before["opensAt"] == nil || drops[1].Before["opensAt"] != nil {
			t.Errorf("drops: %+v", drops)
		}
		// The organisation's own acts; the admin key is somebody too. No key is shown.
		own, _ := w.trail(viewer, "?room=$org&kind=operator")
		if len(own) != 2 || own[0].Actor != "admin" || own[0].Name != "admin key" || own[1].After["name"] != "Ada of operator" || own[1].After["role"] != "operator" || own[0].Room != "" {
			t.Errorf("operators added: %+v", own)
		}
		whole := viewer.get("/api/admin/audit?limit=1000").want(t, 200, "")
		if strings.Contains(whole.body, "verifier") || strings.Contains(whole.body, "qmo_") {
			t.Errorf("the trail gives away %s", whole.body)
		}

		// Newest first, in pages of any size, and the same as a whole.
		all, next := w.trail(viewer, "?limit=1000")
		if next != "" {
			t.Errorf("there is more after all: %q", next)
		}
		var paged []act
		for cursor := ""; ; {
			page, next := w.trail(viewer, "?limit=3&cursor="+cursor)
			paged = append(paged, page...)
			if cursor = next; cursor == "" {
				break
			}
		}
		if fmt.Sprint(paged) != fmt.Sprint(all) || len(all) < 12 {
			t.Errorf("in pages it is\n%v\nnot\n%v", paged, all)
		}
		for i := 1; i < len(all); i++ {
			if all[i].At > all[i-1].At {
				t.Errorf("%s comes after %s", all[i].At, all[i-1].At)
			}
		}
		if since, _ := w.trail(viewer, "?since="+all[0].At); len(since) == 0 || len(since) >= len(all) {
			t.Errorf("%d of %d since the last", len(since), len(all))
		}
		if none, _ := w.trail(viewer, "?until=1000"); len(none) != 0 {
			t.Errorf("%d acts in 1970", len(none))
		}

		// Exports hold the same. What somebody typed is no formula.
		lines := strings.Split(strings.TrimSpace(viewer.get("/api/admin/audit?format=ndjson").want(t, 200, "").body), "\n")
		var first act
		if err := json.Unmarshal([]byte(lines[0]), &first); err != nil || len(lines) != len(all) || fmt.Sprint(first) != fmt.Sprint(all[0]) {
			t.Errorf("%d lines, the first %+v, %v", len(lines), first, err)
		}
		table := viewer.get("/api/admin/audit?format=csv").want(t, 200, "")
		rows, err := csv.NewReader(strings.NewReader(table.body)).ReadAll()
		if err != nil || len(rows) != len(all)+1 || !strings.HasPrefix(table.header.Get("Content-Type"), "text/csv") {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		safe := false
		for _, row := range rows[1:] {
			for _, cell := range row {
				if cell != "" && strings.ContainsRune("=+-@", rune(cell[0])) {
					t.Errorf("a formula: %q", cell)
				}
				safe = safe || cell == `'=cmd|' /C calc'!A0`
			}
		}
		if !safe {
			t.Error("the reason is not in the table")
		}

		for query, code := range map[string]string{
			"?room=x": "invalid_room_id", "?kind=dance": "invalid_kind", "?since=yesterday": "invalid_since", "?until=x": "invalid_until", "?cursor=zzz": "invalid_cursor",
			"?limit=0": "invalid_limit", "?format=xml": "invalid_audit_format", "?room=rm1&room=rm2": "duplicate_parameter", "?operator=%00": "invalid_parameter",
		} {
			viewer.get("/api/admin/audit"+query).want(t, 400, code)
		}
		long := strings.Repeat("r", 501)
		for _, bad := range []string{`"` + long + `"`, `7`, `"a\u0000b"`} {
			operator.post(path+"/flush", `{"count":1,"reason":`+bad+`}`).want(t, 400, "invalid_reason")
			operator.post(path+"/eject", `{"ticket":1,"reason":`+bad+`}`).want(t, 400, "invalid_reason")
			operator.post(path+"/purge", `{"reason":`+bad+`}`).want(t, 400, "invalid_reason")
		}

		// What is personal can be erased; what was done stays.
		for _, bad := range []string{"", "?before=x", fmt.Sprintf("?before=%d", time.Now().Add(time.Hour).UnixMilli())} {
			w.operator().do("DELETE", "/api/admin/audit"+bad, "").want(t, 400, "invalid_before")
		}
		operator.do("DELETE", "/api/admin/audit?before=1", "").want(t, 403, "insufficient_role")
		time.Sleep(w.pause(time.Second, 5*time.Millisecond))
		w.operator().do("DELETE", fmt.Sprintf("/api/admin/audit?before=%d", time.Now().UnixMilli()), "").want(t, 200, "")
		after, _ := w.trail(viewer, "?room=rm1&operator="+id)
		if len(after) != len(list) {
			t.Errorf("%d acts of %d are left", len(after), len(list))
		}
		for _, a := range after {
			if a.From != "" || a.Reason != "" || a.Actor != id || !a.Erased {
				t.Errorf("not forgotten: %+v", a)
			}
		}
	})
}

// What is too old is erased by itself: once, whichever of the processes comes first and however often they begin anew. The acts stay, and are told
// to be erased; what is young enough is untouched.
func TestAuditDetailsAreErasedWithTime(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 60, "")
		operator, id := w.hire("operator")
		w.crowd("rm1", 4)
		operator.post("/api/v1/admin/rooms/rm1/purge", `{"reason":"the event is over"}`).want(w.T, 200, "")
		kept := w.server.o.Acts.(interface {
			journal.Notes
			journal.Vault
		})
		process := func(now time.Time) *org.Book {
			b := org.NewBook(org.Options{Journal: w.journal, Notes: kept, Vault: kept, KeepNotes: 30 * 24 * time.Hour, Now: func() time.Time { return now }})
			if err := b.Refresh(w.Context()); err != nil {
				w.Fatal(err)
			}
			return b
		}
		if n, err := process(time.Now().Add(29 * 24 * time.Hour)).EraseOld(w.Context()); n != 0 || err != nil {
			w.Errorf("within 30 days: %d, %v", n, err)
		}
		if list, _ := w.trail(w.operator(), "?operator="+id); len(list) != 1 || list[0].Erased || list[0].From == "" || list[0].Reason == "" {
			w.Errorf("before: %+v", list)
		}
		var erased atomic.Int64
		var processes sync.WaitGroup
		for range 4 {
			b := process(time.Now().Add(31 * 24 * time.Hour))
			processes.Go(func() {
				n, err := b.EraseOld(w.Context())
				if erased.Add(int64(n)); err != nil {
					w.Error(err)
				}
			})
		}
		processes.Wait()
		if n, err := process(time.Now().Add(32 * 24 * time.Hour)).EraseOld(w.Context()); n != 0 || err != nil {
			w.Errorf("begun anew: %d, %v", n, err)
		}
		all, _ := w.trail(w.operator(), "")
		if erased.Load() != int64(len(all)) || len(all) < 3 {
			w.Errorf("%d notes of %d acts were erased", erased.Load(), len(all))
		}
		for _, a := range all {
			if !a.Erased || a.From != "" || a.Reason != "" || a.Actor == "" {
				w.Errorf("after: %+v", a)
			}
		}
		records := 0
		if err := w.journal.Read(w.Context(), org.Stream, 0, func(r *journal.Record) error {
			if r.Kind == "forget" {
				if records++; r.Actor != org.Clock {
					w.Errorf("it is told of %q", r.Actor)
				}
			}
			return nil
		}); err != nil || records == 0 || records > 4 {
			w.Errorf("%d records, %v", records, err)
		}
	})
}
