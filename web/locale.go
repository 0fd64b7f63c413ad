package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"golang.org/x/text/language"
)

// LocaleCookie keeps the language that a visitor chose on the page: its value
// is what [MatchLocale] returned for ?lang=. It names no visitor, and is no
// room's: their cookies begin with "qm_".
const LocaleCookie = "qmlang"

// The locales by tag ("de", "zh-Hans"), their tags in the order of the switch,
// and what finds the nearest. English is first: it stands in for what is not there.
var (
	locales    = loadLocales()
	localeTags = orderLocales()
	matcher    = newMatcher()
)

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

func orderLocales() []string {
	var tags []string
	for tag := range locales {
		if tag != "en" {
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags)
	return append([]string{"en"}, tags...)
}

func newMatcher() language.Matcher {
	var tags []language.Tag
	for _, tag := range localeTags {
		tags = append(tags, language.MustParse(tag))
	}
	return language.NewMatcher(tags)
}

// nearest returns the locale that serves these wishes best; ok is false when
// none of them is near any.
func nearest(wishes ...language.Tag) (tag string, ok bool) {
	_, i, confidence := matcher.Match(wishes...)
	return localeTags[i], confidence > language.No
}

// maxAccept bounds what is read of an Accept-Language header, in bytes.
const maxAccept = 300

// MatchLocale returns the locale of a page ("de", "zh-Hans"), always one that
// has sentences: what ?lang= asks for, or else what the visitor chose before
// (the value of [LocaleCookie]), or else the best for Accept-Language, or else
// English. None of the three needs to be well formed.
func MatchLocale(acceptLanguage, query, remembered string) string {
	for _, choice := range []string{query, remembered} {
		if len(choice) > 35 { // no language tag is longer (RFC 5646, 4.4.1)
			continue
		}
		if _, ok := locales[choice]; ok {
			return choice
		}
		if tag, err := language.Parse(choice); err == nil {
			if l, ok := nearest(tag); ok {
				return l
			}
		}
	}
	if len(acceptLanguage) > maxAccept {
		acceptLanguage = acceptLanguage[:strings.LastIndexByte(acceptLanguage[:maxAccept], ',')+1]
		acceptLanguage = strings.TrimRight(acceptLanguage, ", ")
	}
	l, _ := nearest(wishes(acceptLanguage)...)
	return l
}

// wishes reads an Accept-Language header, the dearest first. What it cannot
// read it leaves out, not the whole header with it.
func wishes(acceptLanguage string) []language.Tag {
	type wish struct {
		tag language.Tag
		q   float32
	}
	var all []wish
	for part := range strings.SplitSeq(acceptLanguage, ",") {
		if tags, q, err := language.ParseAcceptLanguage(part); err == nil && len(tags) == 1 {
			all = append(all, wish{tags[0], q[0]})
		}
	}
	slices.SortStableFunc(all, func(a, b wish) int { return cmp.Compare(b.q, a.q) })
	out := make([]language.Tag, len(all))
	for i, w := range all {
		out[i] = w.tag
	}
	return out
}

// wordsOf returns the sentences of a locale such as "en" or "en-GB". One that
// is not there answers in English: a page never stays without words.
func wordsOf(locale string) words {
	return locales[MatchLocale("", locale, "")]
}

// languageLink is one entry of the switch: a language by its own name.
type languageLink struct {
	Tag, Name, URL string
	Current        bool
}

// languageLinks lead to this page in each language. They are links, so that
// they work without script; where the visitor wants to return to must not get
// lost on the way.
func (w words) languageLinks(returnURL string) []languageLink {
	keep := ""
	if returnURL != "" {
		keep = "&qm_return=" + url.QueryEscape(returnURL)
	}
	links := make([]languageLink, 0, len(localeTags))
	for _, tag := range localeTags {
		links = append(links, languageLink{
			Tag: tag, Name: locales[tag]["language.name"], URL: "?lang=" + tag + keep, Current: tag == w["lang"],
		})
	}
	return links
}
