package connector

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Version is the Go connector's own.
const Version = "1.0.0"

// Closed is the page that a connector shows while the queue does not answer. It speaks every language of the waiting page and looks
// again by itself.
//
//go:embed closed.html
var Closed []byte

// The site's cookies of a room (seed 004, Queue cookie scope).
const (
	keyCookie   = "qm_dk_" // the door-session key
	tokenCookie = "qm_"    // the visitor token
)

// cookieAge is how long a browser keeps them, in seconds: as long as a door session may last. The server judges how long it does last.
const cookieAge = 604_800

// maxAnswer is how much of the queue's answer is read, in bytes.
const maxAnswer = 256 << 10

// Config is what a connector is given. README.md says what each setting means.
type Config struct {
	Room      string        // the room's id
	Server    string        // the queue's address: "https://queue.example.com"
	PublicKey string        // PUBLIC_API_KEY of the server; "": all visitors count as one client there
	FailOpen  bool          // serve everybody, not nobody, while the queue does not answer
	Timeout   time.Duration // how long a request may wait for the queue in all; 0: 2 s; at most 30 s

	// Visitor says at which origin ("https://shop.example") the visitor's browser is, and its address. The default takes both from the
	// connection. Behind a proxy of your own, read what that proxy says, and only that.
	Visitor func(*http.Request) (origin, address string)
	// Decided is told of every decision; nil: nobody is. It may run many times at once.
	Decided func(*http.Request, Decision)
	// Log hears when the queue stops answering and when it answers again; nil: slog.Default.
	Log *slog.Logger
	// Transport carries the questions; nil: an own one, whose connections are kept.
	Transport http.RoundTripper
}

// Outcome is what becomes of a request.
type Outcome string

// The outcomes.
const (
	Pass  Outcome = "pass"
	Queue Outcome = "queue"
	Open  Outcome = "open"   // served, although the queue did not decide it
	Shut  Outcome = "closed" // not served, because the queue did not answer
)

// Decision is an outcome and why: the queue's own reason, or what failed.
type Decision struct {
	Outcome Outcome
	Reason  string // a-z 0-9 _
}

// String is the X-QM-Decision header.
func (d Decision) String() string { return string(d.Outcome) + "; reason=" + d.Reason }

// connector is a Config at work.
type connector struct {
	Config
	client *http.Client
	failed atomic.Int64 // requests in a row that the queue gave no answer to
}

var roomShape = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{1,62}[a-z0-9]$`)

// New makes the middleware of a configuration: the handler that it is given serves whom the queue lets through. An error names every
// setting that is wrong.
func New(c Config) (func(http.Handler) http.Handler, error) {
	var wrong []error
	if !roomShape.MatchString(c.Room) {
		wrong = append(wrong, fmt.Errorf("the room %q is not 3 to 64 of a-z 0-9 -", c.Room))
	}
	u, err := url.Parse(c.Server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil || strings.HasSuffix(c.Server, "/") {
		wrong = append(wrong, fmt.Errorf("the server %q is not an address such as https://queue.example.com", c.Server))
	}
	if strings.ContainsFunc(c.PublicKey, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		wrong = append(wrong, errors.New("the public key has characters that no header may hold"))
	}
	if c.Timeout < 0 || c.Timeout > 30*time.Second {
		wrong = append(wrong, fmt.Errorf("the time-out %v is not between 0 and 30 s", c.Timeout))
	}
	if wrong != nil {
		return nil, fmt.Errorf("connector: %w", errors.Join(wrong...))
	}
	if c.Timeout == 0 {
		c.Timeout = 2 * time.Second
	}
	if c.Visitor == nil {
		c.Visitor = fromConnection
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost = 64
		c.Transport = t
	}
	k := &connector{Config: c, client: &http.Client{
		Transport:     c.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	return k.wrap, nil
}

// fromConnection is Config.Visitor where no proxy stands in front.
func fromConnection(r *http.Request) (origin, address string) {
	if r.TLS != nil {
		return "https://" + r.Host, r.RemoteAddr
	}
	return "http://" + r.Host, r.RemoteAddr
}

func (k *connector) wrap(site http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodOptions {
			k.say(w, r, Decision{Pass, "method"})
			site.ServeHTTP(w, r)
			return
		}
		origin, remote := k.Visitor(r)
		q := ask(&visit{r.Method, origin + target(r), remote, r.Header}, k.Room, k.PublicKey)
		a, d := k.decide(r.Context(), q)
		k.say(w, r, d)
		k.keep(w, q, &a)
		served := d.Outcome == Pass || d.Outcome == Open
		switch {
		case served && !q.had:
			site.ServeHTTP(w, r)
			return
		case q.had && d.Outcome != Queue:
			k.own(w)
			w.Header().Set("Location", q.clean)
			w.WriteHeader(keeping(r.Method))
		case d.Outcome == Queue:
			k.send(w, q, &a)
		default:
			k.shut(w, q)
		}
	})
}

// target is the path and query of a request, byte for byte.
func target(r *http.Request) string {
	raw := r.RequestURI
	if raw == "" {
		raw = r.URL.RequestURI()
	}
	if strings.HasPrefix(raw, "/") {
		return raw
	}
	// The absolute form, as a proxy is asked (RFC 9112, 3.2.2).
	if _, rest, ok := strings.Cut(raw, "://"); ok {
		if i := strings.IndexAny(rest, "/?"); i >= 0 {
			if rest[i] == '?' {
				return "/" + rest[i:]
			}
			return rest[i:]
		}
	}
	return "/"
}

// keeping is the redirect that keeps the method.
func keeping(method string) int {
	if method == http.MethodGet || method == http.MethodHead {
		return http.StatusFound
	}
	return http.StatusTemporaryRedirect
}

// decide asks the queue. It takes no longer than the time-out.
func (k *connector) decide(ctx context.Context, q *question) (answer, Decision) {
	ctx, cancel := context.WithTimeout(ctx, k.Timeout)
	defer cancel()
	a, failure := k.fetch(ctx, q, "/api/v1/check")
	if failure == "status_404" {
		a, failure = k.fetch(ctx, q, "/api/check")
	}
	if failure != "" {
		if k.failed.Add(1) == 1 {
			k.Log.Warn("the queue does not answer", "room", k.Room, "reason", failure, "serve", k.FailOpen)
		}
		if k.FailOpen {
			return a, Decision{Open, failure}
		}
		return a, Decision{Shut, failure}
	}
	if n := k.failed.Swap(0); n > 0 {
		k.Log.Warn("the queue answers again", "room", k.Room, "unanswered", n, "served", k.FailOpen)
	}
	switch {
	case !a.pass:
		return a, Decision{Queue, a.reason}
	case a.reason == "no_room":
		return a, Decision{Open, a.reason}
	}
	return a, Decision{Pass, a.reason}
}

// fetch asks at one path. failure says what went wrong, "" when nothing did.
func (k *connector) fetch(ctx context.Context, q *question, path string) (a answer, failure string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, k.Server+path+"?"+q.query, nil)
	if err != nil {
		return a, "unreachable"
	}
	r.Header = q.asking.Clone()
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "qm-connector-go/"+Version)
	res, err := k.client.Do(r)
	if err != nil {
		return a, broken(ctx)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return a, "status_" + strconv.Itoa(res.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return a, broken(ctx)
	}
	a, ok := understand(body)
	if !ok {
		return a, "bad_answer"
	}
	return a, ""
}

func broken(ctx context.Context) string {
	if ctx.Err() != nil {
		return "timeout"
	}
	return "unreachable"
}

func (k *connector) say(w http.ResponseWriter, r *http.Request, d Decision) {
	w.Header().Set("X-QM-Decision", d.String())
	if k.Decided != nil {
		k.Decided(r, d)
	}
}

// keep does what the answer says of cookies (6).
func (k *connector) keep(w http.ResponseWriter, q *question, a *answer) {
	if q.method == http.MethodHead {
		return
	}
	for _, c := range []struct{ name, had, fresh string }{
		{keyCookie + q.room, q.key, a.key}, {tokenCookie + q.room, q.token, a.newToken},
	} {
		cookie := http.Cookie{Name: c.name, Path: "/", MaxAge: -1, HttpOnly: true, Secure: q.secure(), SameSite: http.SameSiteLaxMode}
		switch {
		case c.fresh != "" && (c.fresh != c.had || a.clear):
			cookie.Value, cookie.MaxAge = c.fresh, cookieAge
		case c.fresh != "" || !a.clear:
			continue
		}
		http.SetCookie(w, &cookie)
	}
}

// own marks an answer as the connector's own: nobody may store it, and no address may leak from it.
func (k *connector) own(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Cookie")
	h.Set("Referrer-Policy", "no-referrer")
}

// send leads a visitor to the waiting room.
func (k *connector) send(w http.ResponseWriter, q *question, a *answer) {
	k.own(w)
	waiting := a.waiting
	if waiting == "" {
		waiting = k.Server + "/w/" + k.Room
	}
	if !q.page() {
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusTooManyRequests, `{"error":"It is not this visitor's turn yet.","code":"queued","waitingRoomUrl":`+quote(waiting)+`}`)
		return
	}
	w.Header().Set("Location", withReturn(waiting, q.clean))
	status := http.StatusFound
	if q.method == http.MethodPost {
		status = http.StatusSeeOther
	}
	w.WriteHeader(status)
}

// shut serves nobody while the queue does not answer.
func (k *connector) shut(w http.ResponseWriter, q *question) {
	k.own(w)
	w.Header().Set("Retry-After", "5")
	if !q.page() {
		refuse(w, http.StatusServiceUnavailable, `{"error":"The queue does not answer at the moment. Please try again.","code":"queue_unavailable"}`)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write(Closed)
}

// quote writes a JSON string.
func quote(s string) string {
	b, _ := json.Marshal(s) // a string always can be
	return string(b)
}

func refuse(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}
