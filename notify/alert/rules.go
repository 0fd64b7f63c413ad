// Package alert watches what an operator has to know at once, and tells it: each alert fires once, and says when it is over (issue 4, Alerts).
//
// A pure judge ([Judge]) decides by what was read; the organisation's stream remembers what has fired, so that neither a restart nor a second
// process fires it again; messages leave by a webhook and by mail, at least once each, with an id by which a second one can be told.
package alert

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"qm/notify"
)

// The rules by their ids.
const (
	Surge       = "surge"
	NotMoving   = "line_not_moving"
	ETA         = "eta"
	BackendDown = "backend_down"
	Lag         = "projection_lag"
	Refusals    = "refusals"
	Damaged     = "room_damaged"
	Certificate = "certificate"
	Key         = "key_expiry"
)

// Rule is a rule of the judge: how long a fault has to last before it fires, and how long it has to be gone before it is over.
type Rule struct {
	notify.AlertRule
	For, Clear time.Duration
}

// Defaults are the rules with the limits that hold where ALERT_LIMITS says nothing else.
func Defaults() []Rule {
	rule := func(id, title string, limit int64, unit string, after, clear time.Duration) Rule {
		return Rule{notify.AlertRule{ID: id, Title: title, Limit: limit, Unit: unit}, after, clear}
	}
	return []Rule{
		rule(Surge, "Surge", 3_000, "per minute", 10*time.Second, 2*time.Minute),
		rule(NotMoving, "Line not moving", 300, "seconds", 0, 10*time.Second), // For is the limit itself
		rule(ETA, "Long wait", 3_600, "seconds", time.Minute, 2*time.Minute),
		rule(BackendDown, "Store down", 0, "", 10*time.Second, 30*time.Second),
		rule(Lag, "Projection behind", 10_000, "events", 30*time.Second, 30*time.Second),
		rule(Refusals, "Many refusals", 600, "per minute", 30*time.Second, 2*time.Minute),
		rule(Damaged, "Damaged journal", 0, "", 0, 10*time.Second),
		rule(Certificate, "Certificate about to expire", 14, "days", 0, 0),
		rule(Key, "Share link about to expire", 3, "days", 0, 0),
	}
}

// Rules are the defaults with the limits of ALERT_LIMITS: "eta=1800,surge=10000", each a whole number of 1 and up in the rule's unit.
func Rules(limits string) ([]Rule, error) {
	rules := Defaults()
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(limits, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		id, text, _ := strings.Cut(pair, "=")
		i := slices.IndexFunc(rules, func(r Rule) bool { return r.ID == strings.TrimSpace(id) && r.Unit != "" })
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		switch {
		case i < 0:
			return nil, fmt.Errorf("%q is no rule that has a limit", id)
		case err != nil || n < 1 || n > 1_000_000_000:
			return nil, fmt.Errorf("the limit of %s is not a whole number within 1 and 1000000000", rules[i].ID)
		case seen[rules[i].ID]:
			return nil, fmt.Errorf("%s is given twice", rules[i].ID)
		}
		seen[rules[i].ID], rules[i].Limit = true, n
	}
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.ID == NotMoving })
	rules[i].For = time.Duration(rules[i].Limit) * time.Second
	return rules, nil
}

// What the value of backend_down is made of.
const (
	journalDown    = 1
	projectionDown = 2
)

// Sentence says what is wrong and what to do. room is the room's name, or "" to use the subject.
func Sentence(rule, subject, room string, value, limit int64) string {
	if room == "" {
		room = subject
	}
	switch rule {
	case Surge:
		return fmt.Sprintf("%s visitors joined %s within a minute (limit %s): check that its rate suits the shop, and that nobody joins by machine.", number(value), room, number(limit))
	case NotMoving:
		return fmt.Sprintf("Nobody was let in to %s for %s though %s wait: check that the room is not paused, its rate above 0, and slots are free.", room, span(limit), number(value))
	case ETA:
		return fmt.Sprintf("Who joins %s now waits %s (limit %s): raise its rate if the shop can take more, or tell those who wait.", room, span(value), span(limit))
	case BackendDown:
		what := map[int64]string{journalDown: "Postgres", projectionDown: "Valkey"}[value]
		if what == "" {
			what = "Postgres and Valkey"
		}
		return fmt.Sprintf("Server %s cannot reach %s: visitors keep their places, and nobody gets a new one until it is back. Check that it runs, has space on its disk, and can be reached.", subject, what)
	case Lag:
		return fmt.Sprintf("What other servers see of %s is %s events behind (limit %s): check Valkey's memory and the network to it.", room, number(value), number(limit))
	case Refusals:
		return fmt.Sprintf("Server %s refused %s requests within a minute (limit %s): see which codes in /metrics (qm_http_refusals_total), and whether a limit is too low or somebody joins by machine.", subject, number(value), number(limit))
	case Damaged:
		return fmt.Sprintf("The journal of %s does not verify, and the room is shut: run qm-replay verify --room %s, and restore the database or delete the room.", room, subject)
	case Certificate:
		where := "the target of " + room
		if subject == publicSubject {
			where = "PUBLIC_URL"
		}
		if value < 0 {
			return fmt.Sprintf("The TLS certificate of %s has expired: renew it, browsers refuse it already.", where)
		}
		return fmt.Sprintf("The TLS certificate of %s expires within %s: renew it.", where, days(value+1))
	case Key:
		return fmt.Sprintf("Share link %s expires within %s: make a new one for those who still need it.", subject, days(value+1))
	}
	return fmt.Sprintf("%s of %s: %s (limit %s).", rule, subject, number(value), number(limit))
}

func days(n int64) string {
	if n == 1 {
		return "a day"
	}
	return number(n) + " days"
}

// number groups digits by thousands.
func number(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// span is a length of time in words.
func span(sec int64) string {
	switch {
	case sec%3600 == 0 && sec >= 7200:
		return number(sec/3600) + " hours"
	case sec >= 120:
		return number(sec/60) + " minutes"
	}
	return number(sec) + " seconds"
}
