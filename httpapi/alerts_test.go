package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"qm/access/org"
	"qm/notify/alert"
)

// watched is a world whose alerts go to a webhook that answers with a status.
func (w *world) watched(url string) *alert.Service {
	w.Helper()
	s, err := alert.New(alert.Options{Rooms: w.engine, Book: w.book, Rules: alert.Defaults(), Process: "test:1", WebhookURL: url, AllowPrivate: true})
	if err != nil {
		w.Fatal(err)
	}
	w.server.o.Alerts = s
	return s
}

// fire has an alert fire, as the clock does.
func (w *world) fire(id, rule, room string) {
	w.Helper()
	err := w.book.Change(context.Background(), org.By{Actor: org.Clock}, func(*org.State) (org.Body, error) {
		return &org.AlertFired{ID: id, Rule: rule, Subject: room, Room: room, Value: 1200, Limit: 300, Since: time.Now().UnixMilli()}, nil
	})
	if err != nil {
		w.Fatal(err)
	}
}

// Proves: alerts
func TestAlertsAreShown(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.watched("")
		w.room("rm1", 60, "")
		a := w.operator().get("/api/v1/admin/alerts").want(t, 200, "")
		if a.json["enabled"] != false || a.json["webhook"] != nil || a.json["mail"] != false || len(a.json["rules"].([]any)) != len(alert.Defaults()) ||
			len(a.json["active"].([]any)) != 0 || len(a.json["history"].([]any)) != 0 || len(a.json["silences"].([]any)) != 0 {
			t.Errorf("at first %s", a.body)
		}
		w.fire("al_1", "line_not_moving", "rm1")
		const sentence = "Nobody was let in to Room for 5 minutes though 1,200 wait: check that the room is not paused, its rate above 0, and slots are free."
		active := w.operator().get("/api/v1/admin/alerts").json["active"].([]any)
		if len(active) != 1 {
			t.Fatalf("active: %v", active)
		}
		one := active[0].(map[string]any)
		if one["id"] != "al_1" || one["rule"] != "line_not_moving" || one["roomId"] != "rm1" || one["sentence"] != sentence || one["silencedUntil"] != nil {
			t.Errorf("active: %v", one)
		}
		ofRoom := func() []any { return w.stats("rm1").json["alerts"].([]any) }
		if list := ofRoom(); len(list) != 1 || list[0].(map[string]any)["sentence"] != sentence || list[0].(map[string]any)["rule"] != "line_not_moving" {
			t.Errorf("the room says %v", list)
		}
		// The same in the listing, through a share link too.
		rooms := w.monitor().get("/api/v1/admin/rooms").want(t, 200, "").json["rooms"].([]any)
		if list := rooms[0].(map[string]any)["alerts"].([]any); len(list) != 1 {
			t.Errorf("the listing says %v", list)
		}
		silence := w.operator().post("/api/v1/admin/alerts/silence", `{"rule":"line_not_moving","roomId":"rm1","forSec":3600,"reason":"we know"}`).want(t, 200, "")
		list := w.monitor().get("/api/v1/admin/alerts").want(t, 200, "")
		one = list.json["active"].([]any)[0].(map[string]any)
		kept := list.json["silences"].([]any)[0].(map[string]any)
		if one["silencedUntil"] != silence.json["until"] || kept["id"] != silence.json["id"] || kept["reason"] != "we know" || kept["byName"] != "admin key" {
			t.Errorf("silenced: %s", list.body)
		}
		if ofRoom()[0].(map[string]any)["silencedUntil"] != silence.json["until"] {
			t.Errorf("the room does not say that it is silenced: %v", ofRoom())
		}
		audit := w.operator().get("/api/v1/admin/audit?kind=silence").want(t, 200, "")
		if entries := audit.json["entries"].([]any); len(entries) != 1 || entries[0].(map[string]any)["reason"] != "we know" {
			t.Errorf("audit: %s", audit.body)
		}
		id := silence.json["id"].(string)
		w.operator().do("DELETE", "/api/v1/admin/alerts/silence?id="+id, "").want(t, 200, "")
		w.operator().do("DELETE", "/api/v1/admin/alerts/silence?id="+id, "").want(t, 404, "silence_not_found")
		err := w.book.Change(context.Background(), org.By{Actor: org.Clock}, func(*org.State) (org.Body, error) { return &org.AlertEnded{ID: "al_1"}, nil })
		if err != nil {
			t.Fatal(err)
		}
		list = w.operator().get("/api/v1/admin/alerts").want(t, 200, "")
		past := list.json["history"].([]any)
		if len(list.json["active"].([]any)) != 0 || len(past) != 1 || past[0].(map[string]any)["endedAt"] == nil || len(ofRoom()) != 0 {
			t.Errorf("over: %s", list.body)
		}
	})
}

func TestSilencesAreRefused(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.watched("")
		w.room("rm1", 60, "")
		for _, c := range []struct {
			body   string
			status int
			code   string
		}{
			{`{}`, 400, "invalid_rule"}, {`{"rule":5,"forSec":60}`, 400, "invalid_rule"}, {`{"rule":"speed","forSec":60}`, 400, "invalid_rule"},
			{`{"rule":"eta"}`, 400, "invalid_for_sec"}, {`{"rule":"eta","forSec":59}`, 400, "invalid_for_sec"}, {`{"rule":"eta","forSec":2592001}`, 400, "invalid_for_sec"},
			{`{"rule":"eta","forSec":"60"}`, 400, "invalid_for_sec"}, {`{"rule":"eta","forSec":60,"until":1}`, 400, "conflicting_field"},
			{`{"rule":"eta","until":1}`, 400, "invalid_until"}, {`{"rule":"eta","until":"soon"}`, 400, "invalid_until"}, {`{"rule":"eta","until":99999999999999}`, 400, "invalid_until"},
			{`{"rule":"eta","forSec":60,"roomId":"x"}`, 400, "invalid_room_id"}, {`{"rule":"eta","forSec":60,"roomId":7}`, 400, "invalid_room_id"},
			{`{"rule":"eta","forSec":60,"roomId":"none"}`, 404, "room_not_found"}, {`{"rule":"eta","forSec":60,"reason":7}`, 400, "invalid_reason"},
			{`{"rule":"eta","forSec":60,"room":"rm1"}`, 400, "unknown_field"}, {`[]`, 400, "invalid_json"},
		} {
			if a := w.operator().post("/api/v1/admin/alerts/silence", c.body); a.status != c.status || a.json["code"] != c.code {
				t.Errorf("%s is answered %d %s", c.body, a.status, a.body)
			}
		}
		w.operator().do("DELETE", "/api/v1/admin/alerts/silence", "").want(t, 400, "invalid_parameter")
		w.operator().do("DELETE", "/api/v1/admin/alerts/silence?id=si_none", "").want(t, 404, "silence_not_found")
		if a := w.operator().get("/api/v1/admin/alerts"); len(a.json["silences"].([]any)) != 0 {
			t.Errorf("a refused silence is kept: %s", a.body)
		}
		until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		w.operator().post("/api/v1/admin/alerts/silence", `{"rule":"eta","until":"`+until+`"}`).want(t, 200, "")
	})
}

// Proves: alerts
func TestTestPages(t *testing.T) {
	w := newWorld(t, inProcess(t), Options{})
	w.watched("")
	w.operator().post("/api/v1/admin/alerts", "").want(t, 400, "alerts_disabled")
	status := http.StatusNoContent
	var bodies []string
	hook := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(b))
		rw.Header().Set("Location", "/elsewhere")
		rw.WriteHeader(status)
	}))
	defer hook.Close()
	w.watched(hook.URL + "/secret-path")
	a := w.operator().post("/api/v1/admin/alerts", "").want(t, 200, "")
	if a.json["webhook"] != "127.0.0.1" || a.json["mailed"] != false || len(bodies) != 1 {
		t.Errorf("%s after %q", a.body, bodies)
	}
	for _, status = range []int{302, 400, 500} {
		w.operator().send("POST", "/api/v1/admin/alerts", "").want(t, 502, "webhook_failed")
	}
	if list := w.operator().get("/api/v1/admin/alerts"); list.json["enabled"] != true || list.json["webhook"] != "127.0.0.1" {
		t.Errorf("%s", list.body)
	}
	w.operator().post("/api/v1/admin/alerts", `{"now":true}`).want(t, 400, "unknown_field")
	hook.Close()
	w.operator().send("POST", "/api/v1/admin/alerts", "").want(t, 502, "webhook_failed")
}

// A console that follows by delta frames hears of an alert that comes, and of its end.
func TestAlertsTravelInDeltas(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.watched("")
		w.room("rm1", 60, `,"state":"paused"`)
		w.room("rm2", 60, `,"state":"paused"`)
		var known board
		frame := func() []string {
			list, err := w.server.allStats(context.Background(), 0)
			if err != nil {
				t.Fatal(err)
			}
			o, err := parseObject(known.append(nil, list, 0))
			if err != nil {
				t.Fatal(err)
			}
			rooms, _ := o.find("rooms")
			var ids []string
			for _, id := range []string{"rm1", "rm2"} {
				if slices.Contains(splitIDs(rooms), id) {
					ids = append(ids, id)
				}
			}
			return ids
		}
		frame()
		frame()
		if ids := frame(); len(ids) != 0 {
			t.Fatalf("nothing changed, and the frame has %v", ids)
		}
		w.fire("al_1", "eta", "rm2")
		if ids := frame(); !slices.Equal(ids, []string{"rm2"}) {
			t.Errorf("an alert of rm2 changes %v", ids)
		}
		if err := w.book.Change(context.Background(), org.By{Actor: org.Clock}, func(*org.State) (org.Body, error) { return &org.AlertEnded{ID: "al_1"}, nil }); err != nil {
			t.Fatal(err)
		}
		if ids := frame(); !slices.Equal(ids, []string{"rm2"}) {
			t.Errorf("its end changes %v", ids)
		}
	})
}

// splitIDs are the ids of a list of rooms.
func splitIDs(rooms []byte) (ids []string) {
	var list []struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(rooms, &list) != nil {
		return nil
	}
	for _, r := range list {
		ids = append(ids, r.ID)
	}
	return ids
}
