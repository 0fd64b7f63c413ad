package httpapi

import (
	"context"
	"encoding/csv"
	"net/http"
	"strconv"
	"time"
	_ "time/tzdata" // zones for reports, wherever the server runs

	"qm/engine/room"
	"qm/projection"
)

// The history of rooms as charts (metrics) and as tables (reports) read it: seed 004, GET /api/admin/metrics and /api/admin/reports.

// maxRange is how far back the history goes.
const maxRange = 730 * 24 * time.Hour

// steps are how far apart the points of a chart are, by the longest range that they are for: some thousand points at most.
var steps = []struct{ upTo, step time.Duration }{
	{24 * time.Hour, time.Minute}, {7 * 24 * time.Hour, 10 * time.Minute}, {60 * 24 * time.Hour, time.Hour}, {maxRange, 24 * time.Hour},
}

// roomMetrics is GET /api/admin/metrics?roomId=&range=: joins, passes and depth over time, of one room or of all together.
func (s *Server) roomMetrics(x *exchange) error {
	back, err := x.rangeOf("1h")
	if err != nil {
		return err
	}
	rooms, id, err := s.roomsAsked(x)
	if err != nil {
		return err
	}
	step := time.Duration(0)
	for i := 0; step == 0; i++ {
		if back <= steps[i].upTo {
			step = steps[i].step
		}
	}
	width := int64(step / time.Minute)
	to := (x.now.Unix()/60/width + 1) * width
	from := to - int64(back/step)*width
	sum := make([]point, (to-from)/width)
	for _, name := range rooms {
		line, err := s.points(x.r.Context(), name, from, to, width)
		if err != nil {
			return err
		}
		for i := range line {
			sum[i].add(line[i])
		}
	}
	b := append(x.buf[:0], '{')
	if id == "" {
		b = append(b, `"roomId":null`...)
	} else {
		b = appendString(append(b, `"roomId":`...), id)
	}
	b = appendInt(b, "stepSec", int64(step/time.Second))
	b = append(b, `,"points":[`...)
	for i, p := range sum {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `{"at":`...), (from+int64(i)*width)*60_000, 10)
		for _, f := range []struct {
			name  string
			value int64
		}{{"joins", p.Joins}, {"passes", p.Passes}, {"depth", p.Depth}, {"depthMax", p.DepthMax}} {
			b = appendIntOr(b, f.name, f.value, p.known)
		}
		b = append(b, '}')
	}
	b = append(b, ']')
	b = appendInt(b, "now", x.ms())
	x.buf = append(b, '}')
	x.json(http.StatusOK)
	return nil
}

// point is one of a chart. What is not known is told as null.
type point struct {
	known                          bool
	Joins, Passes, Depth, DepthMax int64
}

func (p *point) add(q point) {
	if q.known {
		*p = point{true, p.Joins + q.Joins, p.Passes + q.Passes, p.Depth + q.Depth, p.DepthMax + q.DepthMax}
	}
}

// points are a room's from minute from to minute to, each width minutes wide. Where nothing happened the depth is what it was before.
func (s *Server) points(ctx context.Context, id string, from, to, width int64) ([]point, error) {
	span := projection.PerMinute
	if width >= int64(projection.PerHour) {
		span = projection.PerHour
	}
	rows, err := s.o.Engine.History(ctx, id, span, from, to)
	if err != nil {
		return nil, err
	}
	before, known, err := s.o.Engine.HistoryBefore(ctx, id, from)
	if err != nil {
		return nil, err
	}
	depth := int64(before.Depth)
	rows = projection.Group(rows, func(m int64) int64 { return m - m%width })
	line := make([]point, (to-from)/width)
	for i := range line {
		at := from + int64(i)*width
		p := point{known: known, Depth: depth, DepthMax: depth}
		if len(rows) > 0 && rows[0].Minute == at {
			r := rows[0]
			rows, known, depth = rows[1:], true, int64(r.Depth)
			p = point{known: true, Joins: int64(r.Joined), Passes: int64(r.Passed), Depth: depth, DepthMax: max(int64(r.DepthMost), p.DepthMax)}
		}
		line[i] = p
	}
	return line, nil
}

// roomsAsked are the room that roomId names, or all rooms.
func (s *Server) roomsAsked(x *exchange) (rooms []string, id string, err error) {
	id, ok, err := x.query("roomId")
	if err != nil {
		return nil, "", err
	}
	if !ok || id == "" {
		rooms, err = s.o.Engine.Rooms(x.r.Context())
		return rooms, "", err
	}
	if !validRoomID(id) {
		return nil, "", refuseField("invalid_room_id", "roomId", "")
	}
	return []string{id}, id, nil
}

// rangeOf reads range: a number and m, h or d.
func (x *exchange) rangeOf(otherwise string) (time.Duration, error) {
	text, ok, err := x.query("range")
	if err != nil {
		return 0, err
	}
	if !ok {
		text = otherwise
	}
	unit := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}
	n := len(text) - 1
	if n < 1 || n > 6 || unit[text[n]] == 0 {
		return 0, refuseField("invalid_range", "range", "")
	}
	v, err := strconv.ParseUint(text[:n], 10, 32)
	d := time.Duration(v) * unit[text[n]]
	if err != nil || d < 5*time.Minute || d > maxRange {
		return 0, refuseField("invalid_range", "range", "")
	}
	return d, nil
}

// reportRow is what a room did in an hour or a day.
type reportRow struct {
	id    string
	start time.Time
	room.Minute
}

// reports is GET /api/admin/reports?roomId=&bucket=hour|day&from=&to=&tz=&format=json|csv: what happened, by hour or by day of a time zone
// (UTC unless tz names one). from and to are instants (epoch milliseconds or RFC 3339); without them it is the last day, or the last thirty.
func (s *Server) reports(x *exchange) error {
	bucket, ok, err := x.query("bucket")
	if err != nil {
		return err
	}
	if !ok {
		bucket = "hour"
	}
	back := 24 * time.Hour
	switch bucket {
	case "hour":
	case "day":
		back *= 30
	default:
		return refuseField("invalid_bucket", "bucket", "")
	}
	zone, err := x.zone()
	if err != nil {
		return err
	}
	to, err := x.instantOf("to", x.now)
	if err != nil {
		return err
	}
	from, err := x.instantOf("from", to.Add(-back))
	if err != nil {
		return err
	}
	if !from.Before(to) || to.Sub(from) > maxRange {
		return refuseField("invalid_range", "from", "")
	}
	format, _, err := x.query("format")
	if err != nil {
		return err
	}
	if format != "" && format != "json" && format != "csv" {
		return refuseField("invalid_format", "format", "format is json or csv.")
	}
	rooms, _, err := s.roomsAsked(x)
	if err != nil {
		return err
	}
	start := func(minute int64) int64 { return projection.Hour(minute) }
	if bucket == "day" {
		start = func(minute int64) int64 {
			y, m, d := time.Unix(minute*60, 0).In(zone).Date()
			return time.Date(y, m, d, 0, 0, 0, 0, zone).Unix() / 60
		}
	}
	// Whole buckets: the first is the one that from is in.
	first := projection.Hour(start(from.Unix() / 60))
	var rows []reportRow
	for _, id := range rooms {
		hours, err := s.o.Engine.History(x.r.Context(), id, projection.PerHour, first, to.Unix()/60+1)
		if err != nil {
			return err
		}
		for _, m := range projection.Group(hours, start) {
			rows = append(rows, reportRow{id, time.Unix(m.Minute*60, 0).In(zone), m})
		}
	}
	if format == "csv" {
		return x.reportCSV(rows, bucket)
	}
	b := appendString(append(x.buf[:0], `{"bucket":`...), bucket)
	b = appendText(b, "tz", zone.String())
	b = append(b, `,"rows":[`...)
	for i, r := range rows {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"roomId":`...), r.id)
		b = appendText(b, "start", r.start.Format(time.RFC3339))
		for j, v := range r.figures() {
			b = appendInt(b, reportColumns[j], v)
		}
		b = append(b, '}')
	}
	b = append(b, ']')
	b = appendInt(b, "now", x.ms())
	x.buf = append(b, '}')
	x.json(http.StatusOK)
	return nil
}

// reportColumns name a report's figures, in JSON and CSV alike.
var reportColumns = []string{"joins", "passes", "entered", "lapsed", "left", "removed", "depthMax", "depthEnd", "waitAvgSec", "waitMaxSec"}

func (r *reportRow) figures() []int64 {
	average := int64(0)
	if r.Passed > 0 {
		average = int64(r.WaitSum) / int64(r.Passed) / 1000
	}
	return []int64{
		int64(r.Joined), int64(r.Passed), int64(r.Entered), int64(r.Lapsed), int64(r.Left), int64(r.Removed),
		int64(r.DepthMost), int64(r.Depth), average, int64(r.WaitMost) / 1000,
	}
}

// reportCSV writes rows as RFC 4180 has it. No field can begin as a formula does: ids, times and numbers are all there is.
func (x *exchange) reportCSV(rows []reportRow, bucket string) error {
	h := x.w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="report-by-`+bucket+`.csv"`)
	x.status, x.wrote = http.StatusOK, true
	x.w.WriteHeader(http.StatusOK)
	if x.head {
		return nil
	}
	out := csv.NewWriter(x.w)
	out.UseCRLF = true
	_ = out.Write(append([]string{"roomId", "start"}, reportColumns...)) // the writer keeps its first error
	for _, r := range rows {
		record := []string{r.id, r.start.Format(time.RFC3339)}
		for _, v := range r.figures() {
			record = append(record, strconv.FormatInt(v, 10))
		}
		_ = out.Write(record)
	}
	out.Flush()
	return out.Error()
}

// zone reads tz.
func (x *exchange) zone() (*time.Location, error) {
	name, ok, err := x.query("tz")
	if err != nil {
		return nil, err
	}
	if !ok {
		return time.UTC, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, refuseField("invalid_time_zone", "tz", "")
	}
	return zone, nil
}

// instantOf reads an instant: epoch milliseconds or RFC 3339.
func (x *exchange) instantOf(name string, otherwise time.Time) (time.Time, error) {
	text, ok, err := x.query(name)
	if err != nil || !ok {
		return otherwise, err
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 && n < 1<<45 {
		return time.UnixMilli(n), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Unix() < 0 {
		return otherwise, refuseField("invalid_range", name, "")
	}
	return at, nil
}
