package httpapi

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
)

// codeAt is what an authenticator shows at a time.
func codeAt(t *testing.T, uri string, at time.Time) string {
	t.Helper()
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "otpauth" || u.Host != "totp" {
		t.Fatalf("%q: %v", uri, err)
	}
	code, err := totp.GenerateCode(u.Query().Get("secret"), at)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// wrongCode is none that is good near a time.
func wrongCode(t *testing.T, uri string, at time.Time) string {
	t.Helper()
	for _, code := range []string{"000000", "111111", "222222", "333333"} {
		good := false
		for d := -2; d <= 2; d++ {
			good = good || codeAt(t, uri, at.Add(time.Duration(d)*30*time.Second)) == code
		}
		if !good {
			return code
		}
	}
	t.Fatal("every code is good")
	return ""
}

// Proves: factor
func TestSecondFactor(t *testing.T) {
	onEachStore(t, func(w *world) {
		operator, id := w.hire("operator")
		before := w.console(operator.key(), "")
		path := "/api/v1/admin/otp"
		w.operator().post(path, ``).want(t, 409, "otp_not_available")
		w.operator().do("DELETE", path, "").want(t, 409, "otp_not_available")
		operator.do("DELETE", path, "").want(t, 409, "otp_not_on")
		operator.post(path, `{"otp":"123456"}`).want(t, 409, "otp_not_on")
		operator.post(path, `{"otp":123456}`).want(t, 400, "invalid_otp_field")
		operator.post(path, `{"code":"123456"}`).want(t, 400, "unknown_field")

		a := operator.post(path, ``).want(t, 200, "")
		uri, _ := a.json["uri"].(string)
		if secret := a.json["secret"].(string); !strings.Contains(uri, "secret="+secret) || !strings.HasPrefix(uri, "otpauth://totp/Queue%20Manager:Ada%20of%20operator?") {
			t.Errorf("enrolment answers %s", a.body)
		}
		// Until its first code has come, nothing is asked for.
		operator.get("/api/admin/rooms").want(t, 200, "")
		operator.post(path, `{"otp":"`+wrongCode(t, uri, time.Now())+`"}`).want(t, 401, "invalid_otp")
		session := w.console(operator.key(), "")
		// One started anew takes the place of the first.
		first := uri
		uri = session.post(path, ``).want(t, 200, "").json["uri"].(string)
		if codeAt(t, first, time.Now()) != codeAt(t, uri, time.Now()) {
			session.post(path, `{"otp":"`+codeAt(t, first, time.Now())+`"}`).want(t, 401, "invalid_otp")
		}
		enrolled := codeAt(t, uri, time.Now())
		session.post(path, `{"otp":"`+enrolled+`"}`).want(t, 200, "")

		// From now on the key alone is not enough, wherever it comes, and the sessions from before have ended, but for the one that confirmed.
		operator.get("/api/admin/rooms").want(t, 401, "otp_required")
		session.get("/api/admin/rooms").want(t, 200, "")
		before.get("/api/admin/rooms").want(t, 401, "unauthorized")
		session.post(path, ``).want(t, 409, "otp_already_on")
		fresh := w.browser("198.51.100.60")
		fresh.headers["X-QM-CSRF"] = "1"
		signIn := func(code string) answer {
			t.Helper()
			return fresh.post("/api/admin/session", `{"key":"`+operator.key()+`","otp":"`+code+`"}`)
		}
		fresh.post("/api/admin/session", `{"key":"`+operator.key()+`"}`).want(t, 401, "otp_required")
		fresh.post("/api/admin/session", `{"key":"`+operator.key()+`","otp":7}`).want(t, 400, "invalid_otp_field")
		signIn(wrongCode(t, uri, time.Now())).want(t, 401, "invalid_otp")
		signIn(enrolled).want(t, 401, "invalid_otp") // it was used to enrol
		// The code of the next step is good within the skew, and once.
		next := codeAt(t, uri, time.Now().Add(30*time.Second))
		signIn(next).want(t, 200, "")
		fresh.get("/api/admin/rooms").want(t, 200, "")
		signIn(next).want(t, 401, "invalid_otp")
		if list := w.operator().get("/api/admin/operators"); !strings.Contains(list.body, `"otp":true`) {
			t.Errorf("operators: %s", list.body)
		}

		// Recovery: an owner takes it away; somebody who is no owner cannot.
		reset := "/api/admin/operators/" + id + "/otp"
		fresh.do("DELETE", reset, "").want(t, 403, "insufficient_role")
		w.operator().do("DELETE", "/api/admin/operators/nobody/otp", "").want(t, 404, "operator_not_found")
		w.operator().do("DELETE", reset, "").want(t, 200, "")
		w.operator().do("DELETE", reset, "").want(t, 409, "otp_not_on")
		operator.get("/api/admin/rooms").want(t, 200, "")
		// Its secret is gone.
		for _, name := range w.secrets(id) {
			t.Errorf("the vault still holds %s", name)
		}
	})
}

// secrets are the vault entries that the stream names for an operator and that still are there.
func (w *world) secrets(id string) (names []string) {
	w.Helper()
	if _, err := w.book.FactorSecret(w.Context(), id, w.keys.KeyID(), false); err == nil {
		names = append(names, "in force")
	}
	if _, err := w.book.FactorSecret(w.Context(), id, w.keys.KeyID(), true); err == nil {
		names = append(names, "waiting")
	}
	return names
}

// Whoever has the key cannot guess the code by coming from many addresses.
func TestCodesCannotBeGuessed(t *testing.T) {
	inMemory(t, Options{}, func(w *world) {
		operator, _ := w.hire("viewer")
		uri := operator.post("/api/admin/otp", ``).want(t, 200, "").json["uri"].(string)
		operator.post("/api/admin/otp", `{"otp":"`+codeAt(t, uri, time.Now())+`"}`).want(t, 200, "")
		time.Sleep(time.Minute)
		guess := func(i int, code string) answer {
			t.Helper()
			b := w.browser(addrOf(i))
			b.headers["X-QM-CSRF"] = "1"
			return b.post("/api/admin/session", `{"key":"`+operator.key()+`","otp":"`+code+`"}`)
		}
		wrong := wrongCode(t, uri, time.Now())
		for i := range 10 {
			guess(i, wrong).want(t, 401, "invalid_otp")
		}
		guess(11, codeAt(t, uri, time.Now())).want(t, 429, "too_many_auth_failures")
		time.Sleep(time.Minute)
		guess(12, codeAt(t, uri, time.Now())).want(t, 200, "")
	})
}
