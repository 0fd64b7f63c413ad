package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// surge is visitors who come to a running server: each joins once and polls until it passes or the time is over.
type surge struct {
	base      string // the server's address, without a slash at the end
	room      string
	rate      int           // visitors a second
	visitors  int           // in all
	poll      time.Duration // between two polls of one visitor
	forwarded bool          // each visitor says X-Forwarded-For with an address of its own

	client *http.Client

	mu       sync.Mutex
	joins    spread
	polls    spread
	refusals map[string]int // by what was asked and how it was refused
	outcome  surgeOutcome
}

// surgeOutcome is what became of the visitors.
type surgeOutcome struct {
	Came      int `json:"came"`
	Joined    int `json:"joined"`
	Passed    int `json:"passed"`
	Gone      int `json:"gone"`      // whose place ended while they waited
	Backwards int `json:"backwards"` // polls that showed a place further back than the poll before
}

func runSurge(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s := &surge{refusals: make(map[string]int)}
	flags := flag.NewFlagSet("qm-load surge", flag.ContinueOnError)
	flags.StringVar(&s.base, "url", "http://127.0.0.1:8080", "where the server is")
	flags.StringVar(&s.room, "room", "demo", "which room they join")
	flags.IntVar(&s.rate, "rate", 100, "visitors a second, 1 to 100,000")
	flags.IntVar(&s.visitors, "visitors", 1000, "visitors in all, 1 to 1,000,000")
	flags.DurationVar(&s.poll, "poll", 3*time.Second, "time between two polls of a visitor, 100 ms or more")
	limit := flags.Duration("for", 2*time.Minute, "how long the whole surge may take, 24 h at most")
	connections := flags.Int("connections", 1000, "connections at once, at most")
	flags.BoolVar(&s.forwarded, "forwarded", false, "give every visitor an X-Forwarded-For address of its own (the server must trust this machine: TRUSTED_PROXIES)")
	asJSON := flags.Bool("json", false, "print one JSON object")
	if err := parse(flags, args, stderr); err != nil {
		return err
	}
	u, err := url.Parse(s.base)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("--url must look like http://127.0.0.1:8080")
	case s.rate < 1 || s.rate > 100_000, s.visitors < 1 || s.visitors > 1_000_000, *connections < 1:
		return errors.New("--rate, --visitors or --connections is out of range")
	case s.poll < 100*time.Millisecond, *limit <= 0 || *limit > 24*time.Hour:
		return errors.New("--poll or --for is out of range")
	}
	s.base = strings.TrimSuffix(s.base, "/")
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxConnsPerHost, transport.MaxIdleConnsPerHost, transport.MaxIdleConns = *connections, *connections, *connections
	s.client = &http.Client{Transport: transport, Timeout: 30 * time.Second}
	defer transport.CloseIdleConnections()

	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	began := time.Now()
	s.run(ctx)
	return s.report(stdout, time.Since(began), *asJSON)
}

// run lets the visitors come at an even pace and waits until all have gone.
func (s *surge) run(ctx context.Context) {
	var here sync.WaitGroup
	defer here.Wait()
	began := time.Now()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for came := 0; came < s.visitors; {
		due := min(int(time.Since(began).Seconds()*float64(s.rate))+1, s.visitors)
		for ; came < due; came++ {
			here.Go(func() { s.visit(ctx, uint64(came)+1) })
		}
		s.mu.Lock()
		s.outcome.Came = came
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// answer is what the surge reads of an answer of join or status.
type answer struct {
	Position *int64 `json:"position"`
	Passed   bool   `json:"passed"`
	Expired  bool   `json:"expired"`
	Error    string `json:"error"`
	Code     string `json:"code"`
}

// visit is one visitor's way.
func (s *surge) visit(ctx context.Context, visitor uint64) {
	var cookies []*http.Cookie
	ask := func(what, method, path string, body io.Reader, times *spread) (answer, bool) {
		r, err := http.NewRequestWithContext(ctx, method, s.base+path, body)
		if err != nil {
			s.refused(what, "no request")
			return answer{}, false
		}
		if body != nil {
			r.Header.Set("Content-Type", "application/json")
		}
		r.Header.Set("User-Agent", "qm-load")
		if s.forwarded {
			r.Header.Set("X-Forwarded-For", addressOf(visitor).String())
		}
		for _, c := range cookies {
			r.AddCookie(c)
		}
		start := time.Now()
		res, err := s.client.Do(r)
		if err != nil {
			if ctx.Err() == nil {
				s.refused(what, "no answer")
			}
			return answer{}, false
		}
		defer res.Body.Close()
		var a answer
		err = json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&a)
		if ctx.Err() != nil {
			return a, false
		}
		s.mu.Lock()
		times.add(time.Since(start))
		s.mu.Unlock()
		cookies = append(cookies, res.Cookies()...)
		switch {
		case res.StatusCode != http.StatusOK:
			s.refused(what, strings.TrimSpace(fmt.Sprintf("%d %s", res.StatusCode, a.Code)))
			return a, false
		case err != nil:
			s.refused(what, "not JSON")
			return a, false
		}
		return a, true
	}

	body, _ := json.Marshal(map[string]string{"roomId": s.room})
	a, ok := ask("join", http.MethodPost, "/api/v1/join", strings.NewReader(string(body)), &s.joins)
	if !ok {
		return
	}
	s.count(func(o *surgeOutcome) { o.Joined++ })
	at := a.Position
	// Visitors who came together do not poll together.
	next := time.NewTimer(s.poll/2 + s.poll*time.Duration(visitor*7919%1000)/1000)
	defer next.Stop()
	for !a.Passed && !a.Expired {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
			next.Reset(s.poll)
		}
		if a, ok = ask("status", http.MethodGet, "/api/v1/status?roomId="+url.QueryEscape(s.room), nil, &s.polls); !ok {
			a = answer{} // and tries again
			continue
		}
		if at != nil && a.Position != nil && *a.Position > *at {
			s.count(func(o *surgeOutcome) { o.Backwards++ })
		}
		at = a.Position
		if len(cookies) > 8 { // the last of each name counts
			cookies = slices.Clip(cookies[len(cookies)-4:])
		}
	}
	s.count(func(o *surgeOutcome) {
		if a.Passed {
			o.Passed++
		} else {
			o.Gone++
		}
	})
}

func (s *surge) count(change func(*surgeOutcome)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.outcome)
}

func (s *surge) refused(what, how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals[what+": "+how]++
}

func (s *surge) report(w io.Writer, took time.Duration, asJSON bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(map[string]any{
			"seconds": took.Seconds(), "visitors": s.outcome, "refusals": s.refusals, "join": s.joins.quantiles(), "status": s.polls.quantiles(),
		})
	}
	o := s.outcome
	fmt.Fprintf(w, "%d came in %s: %d joined, %d passed, %d lost their place, %d places moved backwards\n", o.Came, took.Round(10*time.Millisecond),
		o.Joined, o.Passed, o.Gone, o.Backwards)
	for _, line := range []struct {
		name  string
		times *spread
	}{{"join", &s.joins}, {"status", &s.polls}} {
		q := line.times.quantiles()
		fmt.Fprintf(w, "%-6s %8d answers, milliseconds: median %.2f, 95 %% %.2f, 99 %% %.2f, longest %.2f\n", line.name, q.Answers, q.Median, q.P95, q.P99, q.Longest)
	}
	kinds := make([]string, 0, len(s.refusals))
	for k := range s.refusals {
		kinds = append(kinds, k)
	}
	slices.Sort(kinds)
	for _, k := range kinds {
		fmt.Fprintf(w, "refused %7d  %s\n", s.refusals[k], k)
	}
	return nil
}
