package web

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// words are the sentences of one locale, by key. A locale is one file in
// locales/, named by its language tag; adding one there is all it takes.
//
// A sentence about a number has a form for each plural category that the
// language has (CLDR; "ahead.one", "ahead.few"), the bare key being "other",
// and may have one for a number of its own ("ahead.0").
type words map[string]string

// What the waiting page's module has no use for: whole groups, and sentences.
var (
	serverGroups = []string{"demo.", "draw.", "missing.", "nojs", "language", "letter.", "mailme", "withdraw", "nolink."}
	serverOnly   = []string{"fair", "fair.proof", "leave", "leave.ask", "leave.no", "leave.yes", "notify", "progress", "ref"}
)

// Say returns the sentence of a key with its {names} filled in; args are
// name, value, name, value.
func (w words) Say(key string, args ...string) string {
	if len(args) == 0 {
		return w[key]
	}
	for i := 0; i+1 < len(args); i += 2 {
		args[i] = "{" + args[i] + "}"
	}
	return strings.NewReplacer(args...).Replace(w[key])
}

// count says a number of things.
func (w words) count(key string, n int64) string {
	for _, form := range []string{strconv.FormatInt(n, 10), w.plural(n)} {
		if form = key + "." + form; w[form] != "" {
			return w.Say(form, "n", w.number(n))
		}
	}
	return w.Say(key, "n", w.number(n))
}

// The CLDR plural categories by the names that Intl.PluralRules gives them.
var categories = map[plural.Form]string{
	plural.Zero: "zero", plural.One: "one", plural.Two: "two", plural.Few: "few", plural.Many: "many", plural.Other: "other",
}

// plural names the category of a whole number.
func (w words) plural(n int64) string {
	return categories[plural.Cardinal.MatchPlural(w.tag(), int(n%10_000_000), 0, 0, 0, 0)]
}

// number writes 128402 as this language groups it, in the digits that clocks
// and reference codes are in.
func (w words) number(n int64) string {
	return message.NewPrinter(language.Make(w["lang"] + "-u-nu-latn")).Sprint(n)
}

func (w words) tag() language.Tag { return language.Make(w["lang"]) }

// eta says a wait no tighter than an estimate deserves. nil is a wait that
// nobody knows. It says the same as eta in waiting-words.js.
func (w words) eta(sec *int64, paused bool) string {
	if sec == nil {
		if paused {
			return w["eta.paused"]
		}
		return w["eta.unknown"]
	}
	n := func(v float64) string { return w.number(int64(v)) }
	switch min := float64(*sec) / 60; {
	case min < 1:
		return w["eta.now"]
	case min < 1.5:
		return w["eta.minute"]
	case min < 9.5:
		return w.count("eta.min", int64(math.Round(min)))
	case min < 17.5:
		return w.count("eta.min", int64(math.Round(min/5)*5))
	case min < 50:
		a := max(5, math.Floor(min*0.85/5)*5)
		b := max(a+5, math.Ceil(min*1.15/5)*5)
		return w.Say("eta.range", "a", n(a), "b", n(b))
	case min < 70:
		return w["eta.hour"]
	case min < 120:
		return w["eta.hourplus"]
	case min < 1440:
		return w.count("eta.hours", int64(min/60))
	}
	return w["eta.day"]
}

// page returns the sentences that the module on the page needs.
func (w words) page() words {
	out := make(words, len(w))
	for key, sentence := range w {
		inGroup := func(group string) bool { return strings.HasPrefix(key, group) }
		if !slices.Contains(serverOnly, key) && !slices.ContainsFunc(serverGroups, inGroup) {
			out[key] = sentence
		}
	}
	return out
}
