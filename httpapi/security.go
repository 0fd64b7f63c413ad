package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"qm/access/score"
	"qm/engine/room"
)

// securityView is the answer of GET /api/admin/security: what the doors of rooms with protection came to, and what was refused.
type securityView struct {
	Since    int64            `json:"since"` // epoch ms: figures are this process's since then
	Now      int64            `json:"now"`
	Rooms    []doorView       `json:"rooms"`
	Refusals map[string]int64 `json:"refusals"` // answers by stable code, whatever was asked for
}

type doorView struct {
	RoomID    string           `json:"roomId"`
	Mode      string           `json:"mode"`      // "off", "monitor" or "enforce"
	Threshold int64            `json:"threshold"` // refused from this score on
	HoldScore int64            `json:"holdScore"` // held from this one on
	Work      bool             `json:"work"`      // a proof of work opens the door
	Scored    int64            `json:"scored"`
	Verdicts  map[string]int64 `json:"verdicts"` // each of verdicts
	Scores    [10]int64        `json:"scores"`   // how many of 0 to 9, 10 to 19 and so on; the last has 100, too
	Reasons   []reasonView     `json:"reasons"`
	Flagged   flaggedView      `json:"flagged"`
	Recent    []judgedView     `json:"recent"` // the latest first, of those with a reason
}

type reasonView struct {
	ID       string `json:"id"`
	Points   int    `json:"points"`
	Sentence string `json:"sentence"`
	Count    int64  `json:"count"`
}

// flaggedView counts, of the latest that were held or that enforce would have refused, how many are kept, and how many of these have
// passed since: they waited as a visitor does, and are the nearest there is to a count of false alarms.
type flaggedView struct {
	Kept   int64 `json:"kept"`
	Passed int64 `json:"passed"`
}

type judgedView struct {
	At      int64    `json:"at"` // epoch ms
	Score   uint8    `json:"score"`
	Verdict string   `json:"verdict"`
	Reasons []string `json:"reasons"`
	Ticket  *int64   `json:"ticket"` // null: no place, or one of the pre-queue
	Passed  bool     `json:"passed"` // is through by now
}

// security is GET /api/admin/security, of one room or of all (seed 004).
func (s *Server) security(x *exchange) error {
	rooms, asked, err := s.roomsAsked(x)
	if err != nil {
		return err
	}
	view := securityView{Since: s.door.since.UnixMilli(), Now: x.ms(), Rooms: []doorView{}, Refusals: s.metrics.byCode()}
	for _, id := range rooms {
		sum, _, err := s.summary(x.r.Context(), id)
		switch {
		case err == nil:
			view.Rooms = append(view.Rooms, s.doorView(x.r.Context(), id, &sum))
		case !isNoRoom(err) || asked != "":
			return err
		} // a room that went while we looked is not there
	}
	if x.buf, err = json.Marshal(view); err != nil {
		return err
	}
	x.json(http.StatusOK)
	return nil
}

func (s *Server) doorView(ctx context.Context, id string, sum *room.Summary) doorView {
	p := sum.Settings.Protection
	of := s.door.of(id, sum.Generation)
	v := doorView{
		RoomID: id, Mode: modeOf(p), Threshold: p.RefusesFrom(), HoldScore: sum.Settings.HoldScore, Work: p.Work,
		Scored: of.scored, Verdicts: make(map[string]int64), Scores: of.scores, Recent: []judgedView{},
	}
	for _, verdict := range verdicts {
		v.Verdicts[verdict] = of.verdicts[verdict]
	}
	for _, r := range score.Reasons {
		v.Reasons = append(v.Reasons, reasonView{r.ID, r.Points, r.Sentence, of.reasons[r.ID]})
	}
	for _, j := range of.recent {
		one := judgedView{At: j.at.UnixMilli(), Score: j.score, Verdict: j.verdict, Reasons: []string{}, Passed: s.through(ctx, id, j)}
		for _, r := range j.reasons {
			one.Reasons = append(one.Reasons, r.ID)
		}
		if j.ticket != 0 {
			n := int64(j.ticket)
			one.Ticket = &n
		}
		if j.verdict == heldBack || j.verdict == wouldRefuse {
			v.Flagged.Kept++
			if one.Passed {
				v.Flagged.Passed++
			}
		}
		v.Recent = append(v.Recent, one)
	}
	return v
}

// through reports whether somebody who was judged has passed since.
func (s *Server) through(ctx context.Context, id string, j knocked) bool {
	view, err := s.o.Engine.View(ctx, id)
	if err != nil {
		return false
	}
	var p room.Place
	switch {
	case j.ticket != 0:
		_, p, err = view.Ticket(ctx, j.ticket)
	case j.handle != 0:
		_, p, err = view.Handle(ctx, j.handle)
	}
	return err == nil && (p.Status == room.Passed || p.Status == room.Inside)
}

// modeOf is protection's mode as the wire has it.
func modeOf(p room.Protection) string {
	if p.Mode == "" {
		return "off"
	}
	return p.Mode
}

// byCode counts the refusals since the start, by code.
func (m *metrics) byCode() map[string]int64 {
	found := make(chan prometheus.Metric)
	go func() {
		m.refusals.Collect(found)
		close(found)
	}()
	counts := make(map[string]int64)
	for c := range found {
		var d dto.Metric
		if c.Write(&d) == nil && len(d.Label) == 1 {
			counts[d.Label[0].GetValue()] = int64(d.Counter.GetValue())
		}
	}
	return counts
}
