package httpapi

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// list is a member that is a list of objects.
func (a answer) list(t *testing.T, name string) (rows []map[string]any) {
	t.Helper()
	all, ok := a.json[name].([]any)
	if !ok {
		t.Fatalf("%s is no list in %s", name, a.body)
	}
	for _, v := range all {
		rows = append(rows, v.(map[string]any))
	}
	return rows
}

// What happened shows in the chart and in the report at once, of the room and of all rooms.
//
// Proves: metrics.series, reports
func TestHistoryShowsWhatHappened(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 0, "")
		w.room("rm2", 0, "")
		op := w.operator()
		for i := range 5 {
			w.browser(fmt.Sprintf("198.51.100.%d", i+1)).join("rm1")
		}
		w.browser("198.51.100.9").join("rm2")
		if a := op.do("POST", "/api/v1/admin/rooms/rm1/flush", `{"count":2}`); a.status != 200 {
			t.Fatalf("flush: %s", a.body)
		}
		sum := func(path string) (joins, passes, depth float64) {
			a := op.do("GET", path, "")
			if a.status != 200 || a.json["stepSec"] != 60.0 {
				w.Fatalf("%s: %d %s", path, a.status, a.body)
			}
			points := a.list(w.T, "points")
			if len(points) != 60 {
				w.Fatalf("%d points in an hour of minutes", len(points))
			}
			unknown := 0
			for _, p := range points {
				if p["joins"] == nil {
					if p["passes"] != nil || p["depth"] != nil || p["depthMax"] != nil {
						w.Errorf("half of a point is known: %v", p)
					}
					unknown++
					continue
				}
				joins += p["joins"].(float64)
				passes += p["passes"].(float64)
				depth = p["depth"].(float64)
			}
			if unknown == 0 {
				w.Errorf("the time before the rooms existed is told as known")
			}
			return joins, passes, depth
		}
		if j, p, d := sum("/api/v1/admin/metrics?roomId=rm1&range=1h"); j != 5 || p != 2 || d != 3 {
			w.Errorf("rm1: %v joins, %v passes, depth %v", j, p, d)
		}
		if j, p, d := sum("/api/v1/admin/metrics"); j != 6 || p != 2 || d != 4 {
			w.Errorf("all rooms: %v joins, %v passes, depth %v", j, p, d)
		}
		a := op.do("GET", "/api/v1/admin/reports?roomId=rm1", "")
		joined := 0.0
		for _, r := range a.list(w.T, "rows") {
			joined += r["joins"].(float64)
			if r["roomId"] != "rm1" || r["depthMax"].(float64) > 5 {
				w.Errorf("row %v", r)
			}
		}
		if joined != 5 {
			w.Errorf("%v joined according to %s", joined, a.body)
		}
		text := op.do("GET", "/api/v1/admin/reports?bucket=day&tz=Asia/Bangkok&format=csv", "")
		records, err := csv.NewReader(strings.NewReader(text.body)).ReadAll()
		if err != nil || len(records) < 3 || text.header.Get("Content-Type") != "text/csv; charset=utf-8" {
			w.Fatalf("%v: %q", err, text.body)
		}
		for _, r := range records[1:] {
			if at, err := time.Parse(time.RFC3339, r[1]); err != nil || !strings.HasSuffix(r[1], "T00:00:00+07:00") || at.Unix()%60 != 0 {
				w.Errorf("the day of %v does not begin at midnight in Bangkok", r)
			}
		}
	})
}

// A long range has fewer points, and a quiet room keeps the depth that it had.
func TestHistoryOfAQuietRoom(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 0, "")
		w.browser("198.51.100.1").join("rm1")
		pass := 26 * time.Hour
		time.Sleep(pass)
		for _, c := range []struct {
			query        string
			step, points float64
		}{{"5m", 60, 5}, {"24h", 60, 1440}, {"7d", 600, 1008}, {"30d", 3600, 720}, {"730d", 86400, 730}} {
			a := w.operator().do("GET", "/api/v1/admin/metrics?roomId=rm1&range="+c.query, "")
			points := a.list(t, "points")
			if a.json["stepSec"] != c.step || float64(len(points)) != c.points {
				t.Errorf("%s: %v points, %v s apart", c.query, len(points), a.json["stepSec"])
			}
			if last := points[len(points)-1]; last["joins"] != 0.0 && c.step < 86400 || last["depth"] != nil && last["depth"].(float64) > 1 {
				t.Errorf("%s ends with %v", c.query, last)
			}
		}
		points := w.operator().do("GET", "/api/v1/admin/metrics?roomId=rm1&range=15m", "").list(t, "points")
		if points[0]["depth"] != 0.0 && points[0]["depth"] != 1.0 || points[0]["joins"] != 0.0 {
			t.Errorf("a day after the last event: %v", points[0])
		}
	})
}

// Proves: reports
func TestHistoryRefusals(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		w.room("rm1", 60, "")
		for _, c := range []struct {
			path, code string
			status     int
		}{
			{"metrics?range=1", "invalid_range", 400}, {"metrics?range=4m", "invalid_range", 400}, {"metrics?range=731d", "invalid_range", 400},
			{"metrics?range=-5h", "invalid_range", 400}, {"metrics?range=1y", "invalid_range", 400}, {"metrics?range=", "invalid_range", 400},
			{"metrics?range=99999999999d", "invalid_range", 400}, {"metrics?range=1h&range=2h", "duplicate_parameter", 400},
			{"metrics?roomId=x", "invalid_room_id", 400}, {"metrics?roomId=nowhere", "room_not_found", 404},
			{"reports?roomId=nowhere", "room_not_found", 404}, {"reports?bucket=week", "invalid_bucket", 400}, {"reports?tz=Mars/Base", "invalid_time_zone", 400},
			{"reports?tz=../../etc/passwd", "invalid_time_zone", 400}, {"reports?tz=Local", "invalid_time_zone", 400}, {"reports?format=xml", "invalid_format", 400},
			{"reports?from=yesterday", "invalid_range", 400}, {"reports?from=2000-01-01T00:00:00Z", "invalid_range", 400},
			{"reports?from=1764540000000&to=1764530000000", "invalid_range", 400}, {"reports?to=-1", "invalid_range", 400},
		} {
			a := w.operator().do("GET", "/api/v1/admin/"+c.path, "")
			if a.status != c.status || a.json["code"] != c.code {
				t.Errorf("%s: %d %s, not %d %s", c.path, a.status, a.body, c.status, c.code)
			}
			if a := w.browser("198.51.100.7").do("GET", "/api/v1/admin/"+c.path, ""); a.status != http.StatusUnauthorized {
				t.Errorf("%s without a credential: %d", c.path, a.status)
			}
		}
	})
}
