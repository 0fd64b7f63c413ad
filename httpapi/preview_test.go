package httpapi

import (
	"strings"
	"testing"
)

// The preview is the waiting page in colours that nobody has saved, and leaves the room and its line as they were.
func TestPreview(t *testing.T) {
	onEachStore(t, func(w *world) {
		w.room("rm1", 60, `,"branding":{"name":"North & Sons","message":"Back at noon."}`)
		op := w.operator()
		before := op.get("/api/admin/rooms/rm1").want(w.T, 200, "").json
		got := op.get("/api/admin/rooms/rm1/preview?color=%23804000&name=South").want(w.T, 200, "")
		for _, has := range []string{"South", "Back at noon.", "1,524", "--accent:#804000"} {
			if !strings.Contains(got.body, has) {
				w.Errorf("the preview lacks %q", has)
			}
		}
		if strings.Contains(got.body, "<script") || strings.Contains(got.body, "http-equiv") {
			w.Error("it has a script, or looks again by itself")
		}
		policy := got.header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "sandbox") || strings.Contains(policy, "script-src") || !strings.Contains(policy, "frame-ancestors 'self'") {
			w.Errorf("its policy is %s", policy)
		}
		if len(got.header["Set-Cookie"]) > 0 {
			w.Errorf("it sets %v", got.header["Set-Cookie"])
		}
		if got := op.get("/api/admin/rooms/rm1/preview?message=%3Cimg+src%3Dx%3E").want(w.T, 200, ""); strings.Contains(got.body, "<img src=x>") {
			w.Error("markup goes through")
		}
		after := op.get("/api/admin/rooms/rm1").want(w.T, 200, "").json
		for _, name := range []string{"seq", "waiting", "lastTicket"} {
			if before[name] != after[name] {
				w.Errorf("%s was %v and is %v", name, before[name], after[name])
			}
		}
		op.get("/api/admin/rooms/rm1/preview?name="+strings.Repeat("x", 101)).want(w.T, 400, "invalid_branding")
		op.get("/api/admin/rooms/rm1/preview?color=%23fff&color=%23000").want(w.T, 400, "duplicate_parameter")
		op.get("/api/admin/rooms/nowhere/preview").want(w.T, 404, "room_not_found")
		op.get("/api/admin/rooms/RM1/preview").want(w.T, 400, "invalid_room_id")
		w.browser("198.51.100.1").get("/api/admin/rooms/rm1/preview").want(w.T, 401, "unauthorized")
	})
}
