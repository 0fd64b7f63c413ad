package alert

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"qm/notify"
)

var start = time.UnixMilli(1764525600000).UTC()

func TestJudge(t *testing.T) {
	rule := Rule{AlertRule: notify.AlertRule{ID: "eta"}, For: 10 * time.Second, Clear: 20 * time.Second}
	bad, good, between := Reading{Bad: true}, Reading{Good: true}, Reading{}
	type step struct {
		after  time.Duration // the step before
		seen   Reading
		active bool
		want   Verdict
	}
	for name, steps := range map[string][]step{
		"fires when the fault has lasted":     {{0, bad, false, Stay}, {9 * time.Second, bad, false, Stay}, {time.Second, bad, false, Fire}},
		"a break begins the time anew":        {{0, bad, false, Stay}, {9 * time.Second, between, false, Stay}, {time.Second, bad, false, Stay}, {9 * time.Second, bad, false, Stay}, {time.Second, bad, false, Fire}},
		"what has fired does not fire again":  {{0, bad, true, Stay}, {time.Hour, bad, true, Stay}},
		"ends when it has been well for long": {{0, good, true, Stay}, {19 * time.Second, good, true, Stay}, {time.Second, good, true, End}},
		"a relapse is no end":                 {{0, good, true, Stay}, {19 * time.Second, bad, true, Stay}, {time.Second, good, true, Stay}, {time.Second, good, true, Stay}},
		"between the limits nothing changes":  {{0, between, true, Stay}, {time.Hour, between, true, Stay}, {time.Hour, between, false, Stay}},
		"well and quiet stays quiet":          {{0, good, false, Stay}, {time.Hour, good, false, Stay}},
		"not carried out, it is tried again":  {{0, bad, false, Stay}, {time.Minute, bad, false, Fire}, {time.Second, bad, false, Fire}},
	} {
		now, m := start, Memory{}
		for i, s := range steps {
			var got Verdict
			now = now.Add(s.after)
			if m, got = Judge(rule, m, s.active, s.seen, now); got != s.want {
				t.Errorf("%s, step %d: %v, not %v", name, i, got, s.want)
			}
		}
	}
}

// Whatever is seen: what fires ends before it fires again, never sooner than the rule's times, and all ends once it is well.
func TestAlertsAlternate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := Rule{For: time.Duration(rapid.IntRange(0, 30).Draw(t, "for")) * time.Second, Clear: time.Duration(rapid.IntRange(0, 30).Draw(t, "clear")) * time.Second}
		limit := rapid.Int64Range(1, 100).Draw(t, "limit")
		now, m, active := start, Memory{}, false
		contrary := start // when the readings last were not contrary to what is known
		look := func(value int64) {
			seen := above("r", "s", "", value, limit)
			if seen.Bad && seen.Good {
				t.Fatalf("%d of %d is both", value, limit)
			}
			if active && !seen.Good || !active && !seen.Bad {
				contrary = now
			}
			var v Verdict
			m, v = Judge(rule, m, active, seen, now)
			switch {
			case v == Fire && (active || !seen.Bad || now.Sub(contrary) < rule.For), v == End && (!active || !seen.Good || now.Sub(contrary) < rule.Clear):
				t.Fatalf("verdict %v of %+v while active is %v", v, seen, active)
			case v != Stay:
				active, m, contrary = v == Fire, Memory{}, now
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.IntRange(1, 10).Draw(t, "pause")) * time.Second)
			look(rapid.Int64Range(0, 150).Draw(t, "value"))
		}
		for range 31 {
			now = now.Add(time.Second)
			look(0)
		}
		if active {
			t.Fatal("it never ends")
		}
	})
}

func TestLimits(t *testing.T) {
	rules, err := Rules(" eta=1800, line_not_moving=60 ")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Rule{}
	for _, r := range rules {
		got[r.ID] = r
	}
	if got[ETA].Limit != 1800 || got[NotMoving].For != time.Minute || got[Surge].Limit != 3_000 {
		t.Errorf("%+v", got)
	}
	for text, want := range map[string]string{
		"speed=1": "no rule", "backend_down=1": "no rule", "eta": "whole number", "eta=0": "whole number", "eta=-1": "whole number", "eta=1.5": "whole number",
		"eta=1,eta=2": "twice", "=1": "no rule", "eta=9999999999": "whole number",
	} {
		if _, err := Rules(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Each sentence says what is wrong, with its numbers, and what to do.
func TestSentences(t *testing.T) {
	for _, r := range Defaults() {
		for _, value := range []int64{0, 1, 7, 1_234_567} {
			s := Sentence(r.ID, "sale", "Summer sale", value, 3_600)
			if !strings.Contains(s, ": ") && !strings.Contains(s, "Check") || !strings.HasSuffix(s, ".") || strings.Contains(s, "%!") {
				t.Errorf("%s: %s", r.ID, s)
			}
		}
	}
	for want, got := range map[string]string{
		"Nobody was let in to Summer sale for 5 minutes though 1,200 wait: check that the room is not paused, its rate above 0, and slots are free.": Sentence(NotMoving, "sale", "Summer sale", 1200, 300),
		"Who joins sale now waits 2 hours (limit 60 minutes): raise its rate if the shop can take more, or tell those who wait.":                     Sentence(ETA, "sale", "", 7200, 3600),
		"The TLS certificate of PUBLIC_URL expires within a day: renew it.":                                                                          Sentence(Certificate, publicSubject, "", 0, 14),
		"The TLS certificate of the target of sale has expired: renew it, browsers refuse it already.":                                               Sentence(Certificate, "sale", "", -1, 14),
	} {
		if got != want {
			t.Errorf("%s", got)
		}
	}
}
