package score

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const (
	chrome = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36"
	phone  = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1"
	fox    = "Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0"
)

// headers makes a header of names and values.
func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// reader is somebody with a browser, on the page.
func reader(agent string, more ...string) Signals {
	h := headers(append([]string{"User-Agent", agent, "Accept-Language", "th", "Sec-Fetch-Mode", "cors"}, more...)...)
	return Signals{Header: h, Secure: true, Page: true, Since: time.Second}
}

func TestJudge(t *testing.T) {
	with := func(s Signals, change func(*Signals)) Signals { change(&s); return s }
	for name, c := range map[string]struct {
		s    Signals
		want []string
	}{
		"chrome":                   {reader(chrome, "Sec-Ch-Ua", `"Chromium";v="142"`, "Sec-Ch-Ua-Platform", `"Windows"`, "Sec-Ch-Ua-Mobile", "?0"), nil},
		"phone":                    {reader(phone), nil},
		"fox":                      {reader(fox), nil},
		"an old browser over http": {Signals{Header: headers("User-Agent", "Mozilla/5.0 (compatible)", "Accept-Language", "de"), Page: true, Since: time.Second}, nil},
		"chrome without scripts":   {with(reader(chrome), func(s *Signals) { s.Plain = true }), []string{"no_script"}},
		"an integrator's own page": {with(reader(fox), func(s *Signals) { s.Page = false }), []string{"no_page"}},
		"curl":                     {Signals{Header: headers("User-Agent", "curl/8.5.0")}, []string{"tool_agent", "no_language", "no_page"}},
		"nothing at all":           {Signals{}, []string{"no_agent", "no_language", "no_page"}},
		"curl in a coat":           {Signals{Header: headers("User-Agent", chrome), Secure: true}, []string{"no_language", "no_fetch_metadata", "no_page"}},
		"the same over http":       {Signals{Header: headers("User-Agent", chrome)}, []string{"no_language", "no_page"}},
		"hints of another system":  {reader(chrome, "Sec-Ch-Ua", `"Chromium";v="142"`, "Sec-Ch-Ua-Platform", `"Linux"`), []string{"hints_disagree"}},
		"hints of a phone":         {reader(chrome, "Sec-Ch-Ua-Mobile", "?1"), []string{"hints_disagree"}},
		"firefox with hints":       {reader(fox, "Sec-Ch-Ua", `"Chromium";v="142"`), []string{"hints_disagree"}},
		"driven":                   {with(reader(chrome), func(s *Signals) { s.Marks = []string{"webdriver", "headless", "webdriver"} }), []string{"webdriver", "headless"}},
		"marks that are none":      {with(reader(chrome), func(s *Signals) { s.Marks = []string{"tool_agent", "", "x"} }), nil},
		"sooner than light":        {with(reader(chrome), func(s *Signals) { s.Since = time.Millisecond }), []string{"too_fast"}},
		"a farm": {with(reader(chrome), func(s *Signals) { s.Hasty, s.Crowded, s.DataCentre, s.Replayed = true, true, true, true }),
			[]string{"hasty", "crowded", "datacentre", "token_replayed"}},
	} {
		v := Judge(c.s)
		var got []string
		sum := 0
		for _, r := range v.Reasons {
			got, sum = append(got, r.ID), sum+r.Points
		}
		if !slices.Equal(got, c.want) || int(v.Score) != min(sum, Max) {
			t.Errorf("%s: %d for %v, want %v", name, v.Score, got, c.want)
		}
	}
}

// Whatever the signals, the score is on the scale and the same each time, and one signal more never lowers it.
func TestJudgeIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := http.Header{}
		for _, name := range []string{"User-Agent", "Accept-Language", "Sec-Fetch-Mode", "Sec-Ch-Ua", "Sec-Ch-Ua-Platform", "Sec-Ch-Ua-Mobile"} {
			if rapid.Bool().Draw(t, name) {
				h.Set(name, rapid.SampledFrom([]string{chrome, phone, fox, "curl/8", `"Windows"`, `"Linux"`, "?1", "\xff", ""}).Draw(t, "value"))
			}
		}
		s := Signals{Header: h, Secure: rapid.Bool().Draw(t, "secure"), Page: rapid.Bool().Draw(t, "page"), Since: time.Second}
		v := Judge(s)
		if again := Judge(s); v.Score != again.Score || v.Score > Max {
			t.Fatalf("%d, then %d", v.Score, again.Score)
		}
		worse := s
		switch rapid.IntRange(0, 5).Draw(t, "one more") {
		case 0:
			worse.Hasty = true
		case 1:
			worse.Crowded = true
		case 2:
			worse.DataCentre = true
		case 3:
			worse.Replayed = true
		case 4:
			worse.Marks = []string{rapid.SampledFrom(Marks).Draw(t, "mark")}
		case 5:
			worse.Page = false
		}
		if w := Judge(worse); w.Score < v.Score {
			t.Fatalf("%+v is %d, and with one thing more against it %d", s, v.Score, w.Score)
		}
	})
}

func TestReasonsAreNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Reasons {
		if seen[r.ID] || r.Points < 1 || r.Points > Max || r.Sentence == "" {
			t.Errorf("%+v", r)
		}
		seen[r.ID] = true
	}
	for _, m := range Marks {
		if !seen[m] {
			t.Errorf("%s has no points", m)
		}
	}
}
