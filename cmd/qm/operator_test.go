package main

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// An operator's key and console session outlive the process, an owner stops it in order over HTTP, and qm-replay verifies and tells who did what.
//
// Proves: operators, shutdown
func TestOperatorsOutliveTheProcessThatAnOwnerStops(t *testing.T) {
	t.Parallel()
	s, _ := durableStores(t)
	p := startQM(t, s, nil)
	key, _ := p.admin(t, "POST", "operators", `{"name":"Ada","role":"owner"}`, 200).body["key"].(string)
	do := func(method, path, body string, edit func(*http.Request)) *http.Response {
		t.Helper()
		req, err := http.NewRequest(method, p.url+"/api/v1/admin/"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-QM-CSRF", "1")
		edit(req)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
	in := do("POST", "session", `{"key":"`+key+`"}`, func(*http.Request) {})
	if in.StatusCode != 200 || len(in.Cookies()) != 1 {
		t.Fatalf("signing in: %d", in.StatusCode)
	}
	cookie := in.Cookies()[0]
	signedIn := func(r *http.Request) { r.AddCookie(&http.Cookie{Name: cookie.Name, Value: cookie.Value}) }
	if stop := do("POST", "shutdown", ``, signedIn); stop.StatusCode != 200 {
		t.Fatalf("shutdown: %d", stop.StatusCode)
	}
	<-p.exited
	if p.err != nil {
		t.Fatalf("it did not stop in order: %v", p.err)
	}

	p = startQM(t, s, nil)
	eventually(t, "the session from before is known", func() bool { return do("GET", "session", "", signedIn).StatusCode == 200 })
	if r := do("GET", "operators", "", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+key) }); r.StatusCode != 200 {
		t.Errorf("the key from before: %d", r.StatusCode)
	}
	p.stop()

	for verb, want := range map[string]string{"verify": "$org: 3 records up to seq 3", "show": "a process was told to stop (by op_"} {
		cmd := exec.Command(binary(t, "qm-replay"), verb, "--room", "$org")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "DATABASE_URL=" + s.postgres}
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("qm-replay %s: %v\n%s", verb, err, out.String())
		}
	}
}
