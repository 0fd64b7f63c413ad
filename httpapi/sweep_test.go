package httpapi

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// What holds of every route that a visitor, an edge or a connector can meet, by walking the list of routes itself: a route that is added
// is swept without a line here.

// address is one path of one route.
type address struct {
	route *route
	path  string
	twin  string // the unversioned twin; "" for none
}

// swept are the addresses of all routes but the operators'.
func (w *world) swept() (list []address) {
	for _, r := range w.server.routes() {
		if r.admin || r.role != 0 || r.write != 0 {
			continue
		}
		for _, path := range r.paths {
			path = strings.ReplaceAll(path, "{id}", "rm1")
			if rest, ok := strings.CutPrefix(path, "api:"); ok {
				list = append(list, address{r, "/api/v1/" + rest, "/api/" + rest})
				continue
			}
			list = append(list, address{r, path, ""})
		}
	}
	return list
}

// streams reports a route whose answer to whoever has a place does not end.
func (a address) streams() bool { return a.route.name == "events" }

func (a address) methods() (list []string) {
	if a.route.get != nil {
		list = append(list, "GET")
	}
	if a.route.post != nil {
		list = append(list, "POST")
	}
	if a.route.delete != nil {
		list = append(list, "DELETE")
	}
	return list
}

// bare sends a request with a query and headers that are taken as they stand, however broken, and hands back what came.
func (w *world) bare(method, path, query, body string, header http.Header) *httptest.ResponseRecorder {
	var in io.Reader = http.NoBody
	if body != "" {
		in = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, path, in)
	r.URL.RawQuery = query
	r.RemoteAddr = "192.0.2.1:4711" // a trusted proxy
	r.Header = header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	if r.Header.Get("X-Forwarded-For") == "" {
		r.Header.Set("X-Forwarded-For", "198.51.100.1")
	}
	rec := httptest.NewRecorder()
	w.server.ServeHTTP(rec, r)
	return rec
}

// members are those of a JSON object; nil when it is none.
func members(body string) map[string]any {
	var o map[string]any
	if json.Unmarshal([]byte(body), &o) != nil {
		return nil
	}
	return o
}

// files are the routes whose answers are files, the same for everybody, and how those may be kept (contract.md 12).
var files = map[string]string{
	"assets": "public, max-age=31536000, immutable", "snippet": "public, max-age=300", "connectors.artifact": "no-cache", "connectors.vectors": "no-cache", "openapi": "no-cache",
}

// apart are routes that are not part of the contract: what operators use, and the page behind the demo room.
var apart = map[string]bool{"console": true, "docs": true, "progress": true, "metrics": true, "demo": true}

// sound checks what holds of every answer.
func sound(t *testing.T, what string, a address, rec *httptest.ResponseRecorder) {
	t.Helper()
	h := rec.Header()
	got := answer{status: rec.Code, header: h, body: rec.Body.String()}
	cached := files[a.route.name]
	if cached == "" || rec.Code != http.StatusOK && rec.Code != http.StatusNotModified {
		cached = "no-store"
	}
	if cc := h.Get("Cache-Control"); !strings.HasPrefix(cc, cached) {
		t.Errorf("%s answers %d with Cache-Control %q", what, rec.Code, cc)
	}
	if h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%s answers without nosniff", what)
	}
	if rec.Code >= 300 && rec.Code < 400 && rec.Code != 302 && rec.Code != 303 && rec.Code != 304 && rec.Code != 307 {
		t.Errorf("%s redirects by %d", what, rec.Code)
	}
	if rec.Code == http.StatusInternalServerError {
		t.Errorf("%s answers 500: %s", what, got.body)
	}
	method, _, _ := strings.Cut(what, " ")
	if c := theContract(t); !apart[a.route.name] {
		c.answered(t, what, method, a.path, rec)
	}
	if rec.Code < 400 {
		return
	}
	if (rec.Code == 429 || rec.Code == 503) && h.Get("Retry-After") == "" {
		t.Errorf("%s answers %d without Retry-After", what, rec.Code)
	}
	if strings.HasPrefix(h.Get("Content-Type"), "text/html") && a.route.page || got.body == "" {
		return
	}
	got.json = members(got.body)
	code, _ := got.json["code"].(string)
	verdict, known := Codes[code]
	if text, _ := got.json["error"].(string); !known || text == "" || verdict.Status != rec.Code {
		t.Errorf("%s answers %d %s", what, rec.Code, got.body)
	}
}

// Proves: versioning
func TestEveryTwinAnswersTheSame(t *testing.T) {
	inMemory(t, Options{Demo: true}, func(w *world) {
		w.room("rm1", 60, `,"state":"paused","urlPatterns":["/sale*"]`)
		bad := http.Header{"Cookie": {"qm_rm1=a.b"}, "Origin": {"https://evil.example"}, "Accept-Language": {"th"}}
		twins, asked := 0, 0
		for _, a := range w.swept() {
			if a.twin == "" {
				continue
			}
			twins++
			b := w.browser(addrOf(twins))
			b.join("rm1")
			own := http.Header{"Cookie": {"qm_rm1=" + b.jar["qm_rm1"] + "; qms_rm1=" + b.jar["qms_rm1"]}, "Origin": {"https://shop.example"}}
			for _, method := range append(a.methods(), "HEAD", "OPTIONS", "PUT", "PATCH", "TRACE") {
				for _, query := range []string{"", "roomId=rm1", "roomId=rm1&url=https://shop.example/sale", "roomId=RM1", "roomId=nowhere", "roomId=rm1&token=x", "roomId=rm1&roomId=rm2", "%zz&=&"} {
					for _, body := range []string{"", `{"roomId":"rm1"}`, `{"roomId":"nowhere"}`, `{"roomId":1`} {
						for _, header := range []http.Header{own, bad} {
							if a.streams() && method == "GET" && header["Cookie"][0] == own["Cookie"][0] && !strings.Contains(query, "RM1") {
								continue // a stream; network_test.go reads those
							}
							if body != "" && method != "POST" {
								continue
							}
							if method == "POST" && header["Cookie"][0] == bad["Cookie"][0] && a.route.name == "join" {
								continue // two newcomers are two visitors
							}
							asked++
							header = header.Clone()
							header.Set("X-Forwarded-For", addrOf(asked)) // so that no limit is met by the one and not by the other
							if method == "POST" {
								w.bare(method, a.path, query, body, header) // what can be done once is done now: leaving the line, say
							}
							one, two := w.bare(method, a.path, query, body, header), w.bare(method, a.twin, query, body, header)
							what := method + " " + a.path + "?" + query + " " + body
							sound(t, what, a, one)
							if one.Code != two.Code || one.Body.String() != two.Body.String() || !maps.EqualFunc(one.Header(), two.Header(), slices.Equal) {
								t.Errorf("%s answers %d %v %q, its twin %d %v %q", what, one.Code, one.Header(), one.Body, two.Code, two.Header(), two.Body)
							}
						}
					}
				}
			}
		}
		if twins < 10 {
			t.Errorf("only %d routes have a twin", twins)
		}
	})
}

// Proves: verbs
func TestEveryRouteRefusesOtherVerbs(t *testing.T) {
	inMemory(t, Options{Demo: true}, func(w *world) {
		w.room("rm1", 60, `,"state":"paused"`)
		for _, a := range w.swept() {
			allowed := append(a.methods(), "OPTIONS")
			if a.route.get != nil {
				allowed = append(allowed, "HEAD")
			}
			for _, path := range []string{a.path, a.twin} {
				if path == "" {
					continue
				}
				for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "PROPFIND", "get", "QUERY"} {
					if slices.Contains(allowed, method) {
						continue
					}
					rec := w.bare(method, path, "roomId=rm1", "", nil)
					what := method + " " + path
					sound(t, what, a, rec)
					given := strings.Split(rec.Header().Get("Allow"), ", ")
					slices.Sort(given)
					want := slices.Sorted(slices.Values(allowed))
					if rec.Code != 405 || !slices.Equal(given, want) {
						t.Errorf("%s answers %d, Allow %q, not %q", what, rec.Code, given, want)
					}
					if rec.Body.Len() > 0 && members(rec.Body.String())["code"] != "method_not_allowed" || rec.Body.Len() == 0 && method != "HEAD" {
						t.Errorf("%s answers %s", what, rec.Body)
					}
				}
			}
		}
	})
}

// TestPreflightDecidesAsTheRealMethod: it never advertises an origin that the answer itself would refuse, nor a credential that it would
// not take (seed 004, Versioning policy).
//
// Proves: preflight
func TestPreflightDecidesAsTheRealMethod(t *testing.T) {
	inMemory(t, Options{Demo: true}, func(w *world) {
		w.room("rm1", 60, `,"returnOrigins":["https://back.example"],"tagOrigins":["https://tag.example"]`)
		w.room("rm2", 60, `,"returnOrigins":["https://back.example"]`)
		decided := map[string]int{}
		for _, a := range w.swept() {
			for _, origin := range []string{"https://shop.example", "https://tag.example", "https://back.example", "https://evil.example", "http://shop.example", "https://shop.example.evil.example", "null", "", "x"} {
				for _, query := range []string{"roomId=rm1", "roomId=rm2", "roomId=nowhere", "roomId=RM1", "", "roomId=rm1&roomId=rm2", "roomId=%72m1", "roomId=rm1&token=x", "roomId=rm1&ip=192.0.2.9"} {
					for _, method := range a.methods() {
						body := ""
						if method == "POST" {
							body = `{"roomId":"rm1","token":12}` // refused, and by CORS decided all the same
						}
						header := http.Header{}
						if origin != "" {
							header.Set("Origin", origin)
						}
						real := w.bare(method, a.path, query, body, header)
						header.Set("Access-Control-Request-Method", method)
						header.Set("Access-Control-Request-Headers", "authorization,x-qm-session")
						pre := w.bare("OPTIONS", a.path, query, "", header)
						what := method + " " + a.path + "?" + query + " from " + origin
						sound(t, what, a, real)
						for _, name := range []string{"Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Vary"} {
							if said, does := pre.Header().Get(name), real.Header().Get(name); said != does {
								t.Errorf("%s: the preflight says %s %q, the answer %q", what, name, said, does)
							}
						}
						allowed := real.Header().Get("Access-Control-Allow-Origin")
						decided[allowed]++
						if allowed == "*" && real.Header().Get("Access-Control-Allow-Credentials") != "" {
							t.Errorf("%s: everybody, with credentials", what)
						}
						if allowed != "" && allowed != "*" && allowed != origin {
							t.Errorf("%s allows %q", what, allowed)
						}
						if allowed != "" && allowed != "*" && real.Header().Get("Vary") != "Origin" {
							t.Errorf("%s depends on the origin and does not say so", what)
						}
						if strings.Contains(strings.ToLower(pre.Header().Get("Access-Control-Allow-Headers")), "authorization") {
							t.Errorf("%s: a page may send a key", what)
						}
						if pre.Code != 204 || pre.Body.Len() > 0 || pre.Header()["Set-Cookie"] != nil {
							t.Errorf("%s: the preflight answers %d %v", what, pre.Code, pre.Header())
						}
						for _, never := range []string{"https://evil.example", "http://shop.example", "null", "x"} {
							if allowed == never {
								t.Errorf("%s is allowed", what)
							}
						}
					}
				}
			}
		}
		if decided["*"] == 0 || decided[""] == 0 || decided["https://shop.example"] == 0 || decided["https://tag.example"] == 0 || decided["https://back.example"] == 0 {
			t.Errorf("decisions: %v", decided)
		}
	})
}

// TestHEADIsGETWithoutABody: the same status and headers, no body, no cookie, and nothing taken, refreshed or spent (contract.md 2).
func TestHEADIsGETWithoutABody(t *testing.T) {
	inMemory(t, Options{Demo: true}, func(w *world) {
		w.room("rm1", 60, `,"state":"paused","urlPatterns":["/sale*"]`)
		b := w.browser("198.51.100.1")
		b.join("rm1")
		own := http.Header{"Cookie": {"qm_rm1=" + b.jar["qm_rm1"] + "; qms_rm1=" + b.jar["qms_rm1"]}}
		seq := w.stats("rm1").num(t, "seq")
		for _, a := range w.swept() {
			if a.route.get == nil {
				continue
			}
			for _, header := range []http.Header{nil, own, {"Cookie": {"qm_rm1=a.b; qms_rm1=x"}}} {
				for _, query := range []string{"", "roomId=rm1", "roomId=nowhere", "roomId=RM1", "roomId=rm1&token=" + b.jar["qm_rm1"], "roomId=rm1&url=https://shop.example/about", "roomId=rm1&ip=192.0.2.9", "lang=de"} {
					what := a.path + "?" + query
					head := w.bare("HEAD", a.path, query, "", header)
					sound(t, "HEAD "+what, a, head)
					if head.Body.Len() > 0 || head.Header()["Set-Cookie"] != nil {
						t.Errorf("HEAD %s answers %q %q", what, head.Body, head.Header()["Set-Cookie"])
					}
					if now := w.stats("rm1").num(t, "seq"); now != seq {
						t.Fatalf("HEAD %s makes event %d", what, now)
					}
					if a.streams() && (header != nil && header["Cookie"][0] == own["Cookie"][0] || strings.Contains(query, "token=")) {
						continue // GET is a stream
					}
					if a.path == "/w/rm1" && (header == nil || header["Cookie"][0] != own["Cookie"][0]) {
						continue // GET takes a place
					}
					get := w.bare("GET", a.path, query, "", header)
					gh, hh := get.Header().Clone(), head.Header().Clone()
					gh.Del("Set-Cookie")
					if get.Code != head.Code || !maps.EqualFunc(gh, hh, slices.Equal) {
						t.Errorf("%s: GET answers %d %v, HEAD %d %v", what, get.Code, gh, head.Code, hh)
					}
				}
			}
		}
	})
}

// hostileValues are what no parameter should be.
func hostileValues() []string {
	return []string{
		"", "%00", "%0d%0aSet-Cookie:%20a=b", "%", "%zz", "%e0%a4", "%ff%fe", "%F0%9F%98%80", "..%2f..%2fetc%2fpasswd", "%22%3E%3Cscript%3Ealert(1)%3C/script%3E",
		strings.Repeat("A", 8<<10), strings.Repeat("%00", 2<<10), strings.Repeat("%2e%2e/", 1<<10), "https://" + strings.Repeat("a.", 4<<10), "https://%5B::1", "-1", "1e999", "null", "undefined", "true", "{}", "[]", "'%20OR%201=1--",
		"javascript:alert(1)", "//evil.example/", "%2F%5Cevil.example",
	}
}

// hostileNames are parameters that some route reads.
var hostileNames = []string{"roomId", "token", "url", "origin", "connector", "version", "ip", "agent", "code", "sess", "key", "lang", "targeting", "qm_return", "qm_code", "opensAt", "ticket", "email", "%00", "%zz", ""}

func TestHostileQueriesMakeNoFaults(t *testing.T) {
	inMemory(t, Options{Demo: true, PublicURL: "https://queue.shop.example"}, func(w *world) {
		w.room("rm1", 60, `,"state":"paused","urlPatterns":["/sale*"]`)
		before := w.waiting("rm1")
		var queries []string
		for _, name := range hostileNames {
			for _, value := range hostileValues() {
				queries = append(queries, name+"="+value, "roomId=rm1&"+name+"="+value)
			}
			queries = append(queries, "roomId=rm1&"+name+"=a&"+name+"=b", "roomId=rm1&"+name+"=a&"+name+"=a", name, "roomId=rm1&"+name)
		}
		queries = append(queries, "&&&", "=", "?", "#", "roomId=rm1;token=x", "roomId=rm1&"+strings.Repeat("a=1&", 2000), strings.Repeat("roomId=rm1&", 500))
		for _, a := range w.swept() {
			for i, query := range queries {
				for _, method := range append(a.methods(), "OPTIONS") {
					if method != "OPTIONS" && a.path == "/w/rm1" && i%40 != 0 {
						continue // each takes a place, and the pages have a sweep of their own
					}
					header := http.Header{"X-Forwarded-For": {addrOf(i)}, "Origin": {"https://shop.example"}}
					what := method + " " + a.path + "?" + clip(query)
					rec := w.bare(method, a.path, query, "", header)
					sound(t, what, a, rec)
					if a.path != "/w/rm1" && rec.Header()["Set-Cookie"] != nil && !strings.Contains(query, "lang=") {
						t.Errorf("%s sets %q", what, rec.Header()["Set-Cookie"])
					}
					for name, values := range rec.Header() {
						for _, v := range values {
							if strings.ContainsAny(v, "\r\n\x00") || len(v) > 4<<10 {
								t.Errorf("%s: header %s is %q", what, name, clip(v))
							}
						}
					}
					if body := rec.Body.String(); strings.HasPrefix(rec.Header().Get("Content-Type"), "application/json") && body != "" && members(body) == nil {
						t.Errorf("%s answers broken JSON %q", what, clip(body))
					}
				}
			}
		}
		if now := w.waiting("rm1"); now > before+len(queries)/40+1 {
			t.Errorf("%d took a place", now-before)
		}
	})
}

// TestEveryRouteTakesDamagedTokensForNone: case 13, wherever a token, a key or a code can be shown.
func TestEveryRouteTakesDamagedTokensForNone(t *testing.T) {
	inMemory(t, Options{Demo: true}, func(w *world) {
		w.room("rm1", 60, `,"state":"paused","queueMaxPerIp":null`)
		b := w.browser("198.51.100.1")
		b.join("rm1")
		good := b.jar["qm_rm1"]
		for i, bad := range damaged(good) {
			query := strings.NewReplacer("%", "%25", " ", "%20", "&", "%26").Replace(bad)
			body, err := jsonString(bad)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range w.swept() {
				for _, method := range a.methods() {
					for where, send := range map[string]func(q *string, h http.Header) string{
						"token=": func(q *string, _ http.Header) string { *q += "&token=" + query; return `{"roomId":"rm1"}` },
						"sess=":  func(q *string, _ http.Header) string { *q += "&sess=" + query; return `{"roomId":"rm1"}` },
						"code=": func(q *string, _ http.Header) string {
							*q += "&code=" + query + "&qm_code=" + query
							return `{"roomId":"rm1"}`
						},
						"header": func(_ *string, h http.Header) string { h.Set("X-QM-Session", bad); return `{"roomId":"rm1"}` },
						"cookie": func(_ *string, h http.Header) string {
							h.Set("Cookie", "qm_rm1="+bad+"; qms_rm1="+bad)
							return `{"roomId":"rm1"}`
						},
						"door":     func(_ *string, h http.Header) string { h.Set("Cookie", "qm_dk_rm1="+bad); return `{"roomId":"rm1"}` },
						"body":     func(*string, http.Header) string { return `{"roomId":"rm1","token":` + body + `}` },
						"unquoted": func(*string, http.Header) string { return `{"roomId":"rm1","token":` + "[" + body + "]" + `}` },
					} {
						q, h := "roomId=rm1", http.Header{"X-Forwarded-For": {addrOf(i)}}
						text := send(&q, h)
						if method != "POST" {
							text = ""
						}
						rec := w.bare(method, a.path, q, text, h)
						what := method + " " + a.path + " with " + where + " " + clip(bad)
						sound(t, what, a, rec)
						said := members(rec.Body.String())
						if said["passed"] == true || said["sess"] != nil || said["left"] == true || said["action"] == "pass" {
							t.Errorf("%s answers %s", what, rec.Body)
						}
						if a.route.name != "join" && said["position"] != nil {
							t.Errorf("%s has a place: %s", what, rec.Body)
						}
						if a.route.name != "join" && !a.route.page && rec.Header()["Set-Cookie"] != nil && !expires(rec) {
							t.Errorf("%s sets %q", what, rec.Header()["Set-Cookie"])
						}
					}
				}
			}
		}
		if got := b.status("rm1"); got.num(t, "position") != 1 {
			t.Errorf("the place in line is now %s", got.body)
		}
	})
}

// expires reports that an answer only takes cookies away.
func expires(rec *httptest.ResponseRecorder) bool {
	for _, c := range rec.Result().Cookies() {
		if c.MaxAge >= 0 {
			return false
		}
	}
	return true
}

// TestAVouchedCheckCountsForItsAddress: not for the edge that asks for all of them (seed 004, Edge check).
//
// Proves: vouch
func TestAVouchedCheckCountsForItsAddress(t *testing.T) {
	inMemory(t, Options{CheckLimitPerMin: 2}, func(w *world) {
		w.room("rm1", 60, "")
		edge := w.browser("198.51.100.1").withKey(testPublicKey)
		for i := range 20 {
			edge.get("/api/v1/check?roomId=rm1&ip="+addrOf(i)+"&agent=x").want(t, 200, "")
		}
		// An IPv4-mapped address is its IPv4 address, and an IPv6 /64 is one client (contract.md 3).
		edge.get("/api/v1/check?roomId=rm1&ip=::ffff:"+addrOf(0)).want(t, 200, "")
		edge.get("/api/v1/check?roomId=rm1&ip="+addrOf(0)).want(t, 429, "rate_limited")
		edge.get("/api/v1/check?roomId=rm1&ip=2001:db8:1:2::1").want(t, 200, "")
		edge.get("/api/v1/check?roomId=rm1&ip=2001:db8:1:2:3::1").want(t, 200, "")
		edge.get("/api/v1/check?roomId=rm1&ip=2001:db8:1:2:4::1").want(t, 429, "rate_limited")
		edge.get("/api/v1/check?roomId=rm1&ip=2001:db8:1:3::1").want(t, 200, "")
		// agent= alone vouches for no address: it counts for the caller.
		edge.get("/api/v1/check?roomId=rm1&agent=x").want(t, 200, "")
		edge.get("/api/v1/check?roomId=rm1").want(t, 200, "")
		edge.get("/api/v1/check?roomId=rm1").want(t, 429, "rate_limited")

		owner := w.operator()
		owner.get("/api/v1/check?roomId=rm1&ip="+addrOf(30)).want(t, 200, "")
		stranger := w.browser("198.51.100.3")
		for _, query := range []string{"ip=192.0.2.9", "agent=x", "ip=", "ip=192.0.2.9&agent=x"} {
			stranger.get("/api/v1/check?roomId=rm1&"+query).want(t, 401, "unauthorized")
			stranger.get("/api/v1/check?roomId=rm1&"+query+"&key="+testPublicKey).want(t, 401, "credential_in_query")
		}
		// Both a wrong key and none of the Bearer kind are no credential, whatever the address says.
		stranger.headers["Authorization"] = "Basic " + testPublicKey
		stranger.get("/api/v1/check?roomId=rm1&ip=192.0.2.9").want(t, 401, "unauthorized")
		stranger.withKey("wrong").get("/api/v1/check?roomId=rm1&ip=192.0.2.9&key="+testPublicKey).want(t, 401, "unauthorized")
	})
}
