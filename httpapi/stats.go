package httpapi

import (
	"context"
	"slices"
	"strconv"

	"qm/engine"
	"qm/engine/room"
)

// appendStats appends what an operator sees of a room: the live figures of seed 004's listing, and its settings by the names of the
// writable set.
func appendStats(b []byte, id string, sum *room.Summary, record engine.ETARecord, seq int64, alarms []byte, at room.Instant) []byte {
	set := sum.Settings
	b = append(b, `{"id":"`...)
	b = append(b, id...)
	b = append(b, '"')
	b = appendText(b, "name", nameOf(set, id))
	b = appendText(b, "state", string(sum.Mode))
	b = appendText(b, "effectiveState", stateOf(sum))
	b = appendInt(b, "generation", int64(sum.Generation))
	b = appendInt(b, "seq", seq)
	b = appendInt(b, "waiting", int64(sum.Waiting))
	b = appendInt(b, "held", int64(sum.Held))
	b = appendInt(b, "preQueue", int64(sum.PreQueue))
	b = appendInt(b, "passes", int64(sum.Passes))
	b = appendInt(b, "doors", int64(sum.Doors))
	b = appendInt(b, "slots", int64(sum.Slots))
	b = appendInt(b, "live", int64(sum.Passes+sum.Doors))
	b = appendInt(b, "lastTicket", int64(sum.LastTicket))
	b = appendInt(b, "joinedLastMin", int64(sum.Flow.JoinedLastMin(at)))
	b = appendInt(b, "passedLastMin", int64(sum.Flow.PassedLastMin(at)))
	oldest := int64(0)
	if sum.FrontSince != 0 {
		oldest = int64(max(at-sum.FrontSince, 0)) / 1000
	}
	b = appendInt(b, "oldestWaitSec", oldest)
	wait, floor, ok := sum.Wait(at)
	b = appendIntOr(b, "estWaitSec", wait, ok)
	if floor {
		b = appendBool(b, "estWaitFloor", true)
	}
	// How right the waits that were told turned out: contract.md 10.
	b = append(appendMember(b, "etaRecord"), `{"judged":`...)
	b = strconv.AppendInt(b, record.Judged, 10)
	b = appendInt(b, "withinQuarter", record.Within)
	b = append(b, '}')
	b = appendInt(b, "rate", set.RatePerMinute)
	b = appendInt(b, "ratePerMinute", set.RatePerMinute)
	b = appendInstant(b, "opensAt", sum.OpensAt)
	if sum.Commitment != (room.Digest{}) {
		b = appendHex(b, "commitment", sum.Commitment)
	}
	b = appendInstant(b, "createdAt", sum.CreatedAt)
	b = appendText(b, "targetUrl", set.TargetURL)
	b = appendIntPtr(b, "maxConcurrent", set.MaxConcurrent)
	b = appendInt(b, "passedTtlSec", set.PassedTTLSec)
	b = appendInt(b, "sessionTtlSec", set.SessionTTLSec)
	b = appendInt(b, "sessionMaxSec", set.SessionMaxSec)
	b = appendInt(b, "holdScore", set.HoldScore)
	b = appendIntPtr(b, "preQueueMaxPerIp", set.PreQueueMaxPerIP)
	b = appendIntPtr(b, "queueMaxPerIp", set.QueueMaxPerIP)
	b = appendIntPtr(b, "presenceSec", set.PresenceSec)
	b = appendText(b, "onBackendDown", set.OnBackendDown)
	b = appendBranding(b, &set.Branding)
	b = appendStrings(b, "returnOrigins", set.ReturnOrigins)
	if set.TagOrigins == nil {
		b = append(appendMember(b, "tagOrigins"), "null"...)
	} else {
		b = appendStrings(b, "tagOrigins", set.TagOrigins)
	}
	b = appendStrings(b, "urlPatterns", set.URLPatterns)
	b = appendProtection(b, set)
	b = appendText(b, "proxyOrigin", set.ProxyOrigin)
	b = appendOwnRules(b, set)
	b = append(append(appendMember(b, "alerts"), '['), alarms...)
	b = append(b, ']')
	b = appendSparkline(b, sum, at)
	return append(b, '}')
}

func appendBranding(b []byte, brand *room.Branding) []byte {
	b = append(appendMember(b, "branding"), '{')
	b = appendString(append(b, `"name":`...), brand.Name)
	b = appendText(b, "logoUrl", brand.LogoURL)
	b = appendText(b, "color", brand.Color)
	b = appendText(b, "background", brand.Background)
	b = appendText(b, "message", brand.Message)
	b = appendInstant(b, "messageAt", brand.MessageAt)
	return append(b, '}')
}

// sparkStep is how far apart the points of a sparkline are, in milliseconds.
const sparkStep room.Instant = 10_000

// appendSparkline appends the depth of the line over the last minutes as [epoch ms, waiting] pairs, reckoned back from the present
// depth by what joined and passed since. Those who left another way are not in it.
func appendSparkline(b []byte, sum *room.Summary, at room.Instant) []byte {
	b = append(appendMember(b, "sparkline"), '[')
	newest := sum.Flow.Newest
	points := int64(len(sum.Flow.Joined))
	var depth [len(room.Flow{}.Joined)]int64
	level := int64(sum.Waiting + sum.Held)
	for i := range points {
		bucket := newest - i
		if bucket < 0 {
			depth[i] = 0
			continue
		}
		depth[i] = max(level, 0)
		level += int64(sum.Flow.Passed[bucket%points]) - int64(sum.Flow.Joined[bucket%points])
	}
	first := true
	for i := points - 1; i >= 0; i-- {
		end := room.Instant(newest-i+1) * sparkStep
		if newest-i < 0 || end < max(at-room.FlowWindow, sum.CreatedAt) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(b, '[')
		b = strconv.AppendInt(b, int64(min(end, at)), 10)
		b = append(b, ',')
		b = strconv.AppendInt(b, depth[i], 10)
		b = append(b, ']')
	}
	return append(b, ']')
}

// roomStats is one room of a listing.
type roomStats struct {
	id   string
	sum  room.Summary
	json []byte
}

// allStats reads every room, in order of creation. A room that is out of reach is listed with what went wrong, so that one damaged
// room does not hide the others.
func (s *Server) allStats(ctx context.Context, at room.Instant) ([]roomStats, error) {
	ids, err := s.o.Engine.Rooms(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]roomStats, 0, len(ids))
	alarms := s.alarms(at)
	for _, id := range ids {
		sum, pos, err := s.summary(ctx, id)
		if isNoRoom(err) {
			continue
		}
		if err != nil {
			p, ok := problemOf(err)
			if !ok {
				return nil, err
			}
			list = append(list, roomStats{id: id, json: appendShut(nil, id, p.Code, Codes[p.Code].Title)})
			continue
		}
		list = append(list, roomStats{id, sum, appendStats(nil, id, &sum, s.o.Engine.ETARecord(id), pos.Seq, s.alarmsOf(alarms[id], nameOf(sum.Settings, id)), at)})
	}
	for _, r := range s.o.Engine.Health().Rooms {
		if r.Damaged != "" && !slices.ContainsFunc(list, func(l roomStats) bool { return l.id == r.Room }) {
			list = append(list, roomStats{id: r.Room, json: appendShut(nil, r.Room, "room_damaged", r.Damaged)})
		}
	}
	return list, nil
}

// appendShut appends a room that cannot be read, with the reason.
func appendShut(b []byte, id, code, why string) []byte {
	b = appendString(append(b, `{"id":`...), id)
	b = append(b, `,"state":null`...)
	b = appendText(b, "code", code)
	return append(appendText(b, "error", why), '}')
}

// appendTotals appends the sums over all rooms.
func appendTotals(b []byte, list []roomStats, at room.Instant) []byte {
	var waiting, held, preQueue, live, joined, passed int64
	for i := range list {
		sum := &list[i].sum
		if !sum.Exists {
			continue
		}
		waiting += int64(sum.Waiting)
		held += int64(sum.Held)
		preQueue += int64(sum.PreQueue)
		live += int64(sum.Passes + sum.Doors)
		joined += int64(sum.Flow.JoinedLastMin(at))
		passed += int64(sum.Flow.PassedLastMin(at))
	}
	b = append(appendMember(b, "totals"), '{')
	b = strconv.AppendInt(append(b, `"rooms":`...), int64(len(list)), 10)
	b = appendInt(b, "waiting", waiting)
	b = appendInt(b, "held", held)
	b = appendInt(b, "preQueue", preQueue)
	b = appendInt(b, "live", live)
	b = appendInt(b, "joinedLastMin", joined)
	b = appendInt(b, "passedLastMin", passed)
	return append(b, '}')
}
