package web

import (
	"encoding/json"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
)

// words are the sentences of one locale, by key. A locale is one file in
// locales/; adding one there is all it takes.
type words map[string]string

// The keys that the waiting page's module has no use for.
var serverOnly = []string{"demo.", "missing.", "nojs"}

var locales = loadLocales()

func loadLocales() map[string]words {
	out := map[string]words{}
	entries, err := files.ReadDir("locales")
	if err != nil {
		panic(fmt.Sprintf("web: read locales: %v", err))
	}
	for _, e := range entries {
		raw, err := files.ReadFile(path.Join("locales", e.Name()))
		if err != nil {
			panic(fmt.Sprintf("web: read locale %s: %v", e.Name(), err))
		}
		w := words{}
		if err := json.Unmarshal(raw, &w); err != nil {
			panic(fmt.Sprintf("web: locale %s: %v", e.Name(), err))
		}
		w["lang"] = strings.TrimSuffix(e.Name(), ".json")
		if w["dir"] == "" {
			w["dir"] = "ltr"
		}
		out[w["lang"]] = w
	}
	return out
}

// wordsOf returns the sentences of a locale such as "en" or "en-GB". One that
// is not there answers in English: a page never stays without words.
func wordsOf(locale string) words {
	locale = strings.ToLower(locale)
	if w, ok := locales[locale]; ok {
		return w
	}
	language, _, _ := strings.Cut(locale, "-")
	if w, ok := locales[language]; ok {
		return w
	}
	return locales["en"]
}

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

// count says a number of things: key.1 where the locale has it, else key.
func (w words) count(key string, n int64) string {
	if one := key + "." + strconv.FormatInt(n, 10); w[one] != "" {
		return w[one]
	}
	return w.Say(key, "n", grouped(n))
}

// eta says a wait no tighter than an estimate deserves. nil is a wait that
// nobody knows. It says the same as eta in waiting.js.
func (w words) eta(sec *int64, paused bool) string {
	if sec == nil {
		if paused {
			return w["eta.paused"]
		}
		return w["eta.unknown"]
	}
	n := func(v float64) string { return strconv.Itoa(int(v)) }
	switch min := float64(*sec) / 60; {
	case min < 1:
		return w["eta.now"]
	case min < 1.5:
		return w["eta.one"]
	case min < 9.5:
		return w.Say("eta.min", "n", n(math.Round(min)))
	case min < 17.5:
		return w.Say("eta.min", "n", n(math.Round(min/5)*5))
	case min < 50:
		a := max(5, math.Floor(min*0.85/5)*5)
		b := max(a+5, math.Ceil(min*1.15/5)*5)
		return w.Say("eta.range", "a", n(a), "b", n(b))
	case min < 70:
		return w["eta.hour"]
	case min < 120:
		return w["eta.hourplus"]
	case min < 1440:
		return w.Say("eta.hours", "n", n(math.Floor(min/60)))
	}
	return w["eta.day"]
}

// page returns the sentences that the module on the page needs.
func (w words) page() words {
	out := make(words, len(w))
	for key, sentence := range w {
		keep := true
		for _, prefix := range serverOnly {
			keep = keep && !strings.HasPrefix(key, prefix)
		}
		if keep {
			out[key] = sentence
		}
	}
	return out
}

// grouped writes 128402 as 128,402.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
