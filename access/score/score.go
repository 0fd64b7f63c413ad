// Package score judges who stands at a room's door: from what a request shows, and from what the page's script reports, to a number
// between 0 and 100, with the reasons (seed 004, protection; domain.md rule 10). It is pure: the same signals are the same verdict, and
// one signal more never lowers it.
package score

import (
	"net/http"
	"strings"
	"time"
)

// Max is the end of the scale.
const Max = 100

// Signals are what is known of somebody who asks for a place. The zero value of each says nothing against them.
type Signals struct {
	// Header is the request's. Go keeps no order of header lines, and a proxy or HTTP/2 would have lost it before: what is judged is
	// which of them a browser sends together.
	Header http.Header
	// Secure: the browser reached the server by https, where alone it sends its fetch metadata and client hints.
	Secure bool
	// Page: the request comes from a waiting page that this server made for this network; Since is how long ago.
	Page  bool
	Since time.Duration
	// Plain: the page was shown to a browser whose script did not run.
	Plain bool
	// Marks are the names of [Marks] that the page's script reports. Others are not looked at.
	Marks []string
	// Hasty: this address has asked for many places within a minute; Crowded: so has the network around it.
	Hasty, Crowded bool
	// DataCentre: the address is in a network that the operator has listed.
	DataCentre bool
	// Replayed: a token was shown whose place is another browser's.
	Replayed bool
}

// Reason is a signal that counted.
type Reason struct {
	ID       string // stable
	Points   int    // 1 to 100
	Sentence string // for the operator
}

// Reasons are all that can count, in the order in which they are told.
var Reasons = []Reason{
	{"no_agent", 40, "The request names no browser."},
	{"tool_agent", 60, "The request names a program that is no browser."},
	{"no_language", 15, "The request has no Accept-Language, which every browser sends."},
	{"no_fetch_metadata", 20, "The request claims a browser that sends Sec-Fetch headers, and has none."},
	{"hints_disagree", 30, "The client hints and the user agent name different browsers or systems."},
	{"no_page", 20, "The place was asked for without a waiting page of this server."},
	{"no_script", 20, "The page's script did not run."},
	{"too_fast", 15, "The place was asked for sooner than a browser can run the page's script."},
	{"webdriver", 50, "The browser says that a program drives it."},
	{"headless", 25, "The browser has no window, as only those have that nobody looks at."},
	{"missing_api", 20, "The browser lacks what every browser of its kind has."},
	{"hasty", 15, "The address asked for many places within a minute."},
	{"crowded", 10, "The network around the address asked for very many places within a minute."},
	{"datacentre", 30, "The address is in a network that is listed as a data centre's."},
	{"token_replayed", 30, "A token was shown whose place belongs to another browser."},
}

// Marks are the reasons that the page's script may report.
var Marks = []string{"webdriver", "headless", "missing_api"}

// Verdict is a score and what made it.
type Verdict struct {
	Score   uint8 // 0 to Max: the sum of the points, and no more than Max
	Reasons []Reason
}

// soonest is what a browser needs at least to read the page, fetch its script and run it.
const soonest = 20 * time.Millisecond

// Judge adds up what speaks against a visitor.
func Judge(s Signals) Verdict {
	agent := s.Header.Get("User-Agent")
	kind := kindOf(agent)
	holds := map[string]bool{
		"no_agent":          agent == "",
		"tool_agent":        kind == tool,
		"no_language":       s.Header.Get("Accept-Language") == "",
		"no_fetch_metadata": s.Secure && (kind == chromium || kind == firefox) && s.Header.Get("Sec-Fetch-Mode") == "",
		"hints_disagree":    disagree(s.Header, agent, kind),
		"no_page":           !s.Page && !s.Plain,
		"no_script":         s.Plain,
		"too_fast":          s.Page && !s.Plain && s.Since < soonest,
		"hasty":             s.Hasty,
		"crowded":           s.Crowded,
		"datacentre":        s.DataCentre,
		"token_replayed":    s.Replayed,
	}
	for _, reported := range s.Marks {
		for _, known := range Marks {
			if reported == known {
				holds[known] = true
			}
		}
	}
	var v Verdict
	sum := 0
	for _, r := range Reasons {
		if holds[r.ID] {
			sum += r.Points
			v.Reasons = append(v.Reasons, r)
		}
	}
	v.Score = uint8(min(sum, Max))
	return v
}

// kind is what a user agent says that it is.
type kind int

const (
	unknown kind = iota
	chromium
	firefox
	safari
	tool
)

// tools are what programs call themselves that ask for pages and show them to nobody, in small letters.
var tools = []string{
	"curl/", "wget/", "python", "aiohttp", "httpx", "go-http-client", "java/", "okhttp", "apache-httpclient", "node-fetch", "axios/", "undici",
	"libwww", "scrapy", "headlesschrome", "phantomjs", "puppeteer", "playwright", "selenium", "bot/", "bot;", "spider", "crawler",
}

func kindOf(agent string) kind {
	small := strings.ToLower(agent)
	for _, t := range tools {
		if strings.Contains(small, t) {
			return tool
		}
	}
	switch {
	case !strings.HasPrefix(small, "mozilla/5.0"):
		return unknown
	case strings.Contains(small, "firefox/"):
		return firefox
	case strings.Contains(small, "chrome/") || strings.Contains(small, "chromium/"):
		return chromium
	case strings.Contains(small, "safari/"):
		return safari
	}
	return unknown
}

// systems are the platforms of client hints, and what user agents of theirs have in them.
var systems = map[string][]string{
	`"windows"`: {"windows"}, `"macos"`: {"macintosh"}, `"android"`: {"android"}, `"linux"`: {"linux", "x11"}, `"chrome os"`: {"cros"}, `"chromium os"`: {"cros"},
}

// disagree compares the client hints, which only Chromium sends, with the user agent.
func disagree(h http.Header, agent string, k kind) bool {
	brands, system, phone := h.Get("Sec-Ch-Ua"), strings.ToLower(h.Get("Sec-Ch-Ua-Platform")), h.Get("Sec-Ch-Ua-Mobile")
	if brands == "" && system == "" && phone == "" {
		return false
	}
	small := strings.ToLower(agent)
	if k == firefox || k == safari || strings.Contains(strings.ToLower(brands), "headless") {
		return true
	}
	if names, known := systems[system]; known && !containsAny(small, names) {
		return true
	}
	return phone == "?1" && k == chromium && !containsAny(small, []string{"mobile", "android"})
}

func containsAny(s string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}
