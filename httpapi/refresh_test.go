package httpapi

import (
	"testing"
	"time"
)

// A wait may outlast the token and the cookies (seed 004, QM-391, QM-469).
//
// Proves: token.refresh
func TestAnOldTokenIsSignedAnewForItsOwner(t *testing.T) {
	const hour = time.Hour
	inMemory(t, Options{CookieMaxAgeSec: 7200}, func(w *world) {
		w.room("rm1", 60, `,"state":"paused"`)
		w.room("rm2", 60, `,"opensAt":`+ms(time.Now().Add(100*hour)))
		a := w.browser("198.51.100.1")
		for _, id := range []string{"rm1", "rm2"} {
			a.join(id)
			old := a.jar["qm_"+id]
			stop := w.keepPolling(id, []*browser{a})
			time.Sleep(hour - time.Minute)
			if got := a.status(id); got.json["token"] != nil || got.header["Set-Cookie"] != nil {
				t.Errorf("before it is due: %s", got.body)
			}
			time.Sleep(2 * time.Minute)
			session := a.jar["qms_"+id]
			thief := w.browser("198.51.100.2")
			if got := thief.get("/api/v1/status?token="+old).want(t, 200, ""); got.json["token"] != nil || got.header["Set-Cookie"] != nil {
				t.Errorf("who does not own the place is given %s", got.body)
			}
			if got := a.do("HEAD", "/api/v1/status?roomId="+id, ""); got.header["Set-Cookie"] != nil {
				t.Error("HEAD refreshes")
			}
			got := a.status(id).want(t, 200, "")
			is, err := w.keys.VerifyVisitor(a.jar["qm_"+id], id, time.Now())
			if err != nil || got.json["token"] != a.jar["qm_"+id] || len(got.header["Set-Cookie"]) != 2 || a.jar["qms_"+id] != session {
				t.Fatalf("when it is due: %s %q %v", got.body, got.header["Set-Cookie"], err)
			}
			was, _ := w.keys.VerifyVisitor(old, id, time.Now())
			if is.Ticket != was.Ticket || is.Handle != was.Handle || is.Generation != was.Generation || is.IssuedAt <= was.IssuedAt {
				t.Errorf("%+v was signed anew as %+v", was, is)
			}
			if got := a.status(id); got.json["token"] != nil {
				t.Errorf("signed anew at once: %s", got.body)
			}
			stop()
		}
	})
}

// Proves: token.refresh
func TestAStreamWhoseTokenFallsDueEnds(t *testing.T) {
	onNetwork(t, Options{CookieMaxAgeSec: 120}, func(t *testing.T, s *site) {
		s.room("rm1", 60, `,"state":"paused"`)
		a := s.browser("198.51.100.1")
		a.join("rm1")
		opened := time.Now()
		st := s.stream("/events?roomId=rm1", a)
		for {
			event, frame, ok := st.next()
			if !ok {
				t.Fatal("the stream has ended without a word")
			}
			if event == "refresh" {
				if after := time.Since(opened); after < time.Minute || after > 66*time.Second || len(frame) != 0 {
					t.Errorf("refresh %v after %v", frame, after)
				}
				break
			}
			if frame["token"] != nil {
				t.Errorf("a stream cannot set cookies, yet: %v", frame)
			}
		}
		if _, _, ok := st.next(); ok {
			t.Error("the stream goes on")
		}
		// Opened anew, it signs the place anew, sets the cookies, and has the token in every frame.
		st = s.stream("/events?roomId=rm1", a)
		if n := len(st.resp.Header["Set-Cookie"]); n != 2 {
			t.Errorf("%d cookies", n)
		}
		var token any
		for range 3 {
			_, frame, _ := st.next()
			if frame["token"] == nil || token != nil && frame["token"] != token {
				t.Errorf("frame %v", frame)
			}
			token = frame["token"]
		}
		// Who would be refused the refresh keeps the stream.
		thief := s.browser("198.51.100.2")
		thief.jar["qm_rm1"] = a.jar["qm_rm1"]
		st = s.stream("/events?roomId=rm1", thief)
		for range 10 {
			if event, frame, ok := st.next(); !ok || event != "status" || frame["token"] != nil {
				t.Errorf("%s %v", event, frame)
			}
		}
	})
}
