package access

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pquerna/otp/totp"

	"qm/access/org"
	"qm/access/token"
	"qm/journal"
)

// An operator's key and second factor live through a rotation of SECRET if they are used while SECRET_PREVIOUS is there.
func TestRotationOfTheSecret(t *testing.T) {
	m := journal.NewMemory()
	process := func(secret, previous string, v2 bool) *Gate {
		t.Helper()
		keys, err := token.New(secret, previous, token.Options{SignV2: v2})
		if err != nil {
			t.Fatal(err)
		}
		return gate(t, Credentials{AdminKey: adminKey, Tokens: keys, Book: org.NewBook(org.Options{Journal: m, Notes: m, Vault: m, Now: func() time.Time { return start }})})
	}
	old := process("one", "", false)
	_, used, err := old.AddOperator(t.Context(), org.By{Actor: org.Admin, Name: "used"}, Viewer)
	if err != nil {
		t.Fatal(err)
	}
	_, unused, err := old.AddOperator(t.Context(), org.By{Actor: org.Admin, Name: "unused"}, Viewer)
	if err != nil {
		t.Fatal(err)
	}
	id, factored, err := old.AddOperator(t.Context(), org.By{Actor: org.Admin, Name: "factored"}, Owner)
	if err != nil {
		t.Fatal(err)
	}
	factor, err := old.StartFactor(t.Context(), org.By{Actor: id}, "qm")
	if err != nil {
		t.Fatal(err)
	}
	codeOf := func(at time.Time) string {
		code, err := totp.GenerateCode(factor.Secret, at)
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	if err := old.ConfirmFactor(t.Context(), org.By{Actor: id}, Actor{ID: id, operator: id}, client(1), codeOf(start), start); err != nil {
		t.Fatal(err)
	}

	during := process("two", "one", true)
	if _, err := during.Authenticate(request("GET", auth("Bearer "+used)), client(1), start); err != nil {
		t.Errorf("during the rotation: %v", err)
	}
	later := start.Add(time.Minute)
	if _, _, err := during.SignIn(request("POST", csrf), factored, codeOf(later), client(1), "", false, later); err != nil {
		t.Errorf("signing in during the rotation: %v", err)
	}
	after := process("two", "", false) // and v2 is not signed any more: what is v2 stays so
	if _, err := after.Authenticate(request("GET", auth("Bearer "+used)), client(1), start); err != nil {
		t.Errorf("a key that was used, after the rotation: %v", err)
	}
	if _, err := after.Authenticate(request("GET", auth("Bearer "+unused)), client(1), start); code(err) != CodeUnauthorized {
		t.Errorf("a key that was not: %v", err)
	}
	again := later.Add(time.Minute)
	if _, _, err := after.SignIn(request("POST", csrf), factored, codeOf(again), client(1), "", false, again); err != nil {
		t.Errorf("signing in after the rotation: %v", err)
	}
	if _, _, err := after.SignIn(request("POST", csrf), factored, codeOf(later), client(1), "", false, later); code(err) != CodeInvalidOTP {
		t.Errorf("a code that another process took: %v", err)
	}
}

// away is a journal that cannot be read while it is told so.
type away struct {
	journal.Journal
	now bool // written between synctest.Wait and the next look
}

func (a *away) Read(ctx context.Context, stream string, after int64, fn func(*journal.Record) error) error {
	if a.now {
		return errors.New("away")
	}
	return a.Journal.Read(ctx, stream, after, fn)
}

// While it is unknown who was revoked elsewhere, operators may look and change nothing; ADMIN_KEY is no event and may.
func TestWhileTheOrganisationCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := journal.NewMemory()
		j := &away{Journal: m}
		g := gate(t, Credentials{AdminKey: adminKey, AuthFailPerMinute: 10, Book: org.NewBook(org.Options{Journal: j, Notes: m, Vault: m})})
		_, key, err := g.AddOperator(t.Context(), org.By{Actor: org.Admin}, Owner)
		if err != nil {
			t.Fatal(err)
		}
		_, cookie, err := g.SignIn(request("POST", csrf), key, "", client(1), "", false, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		_, unknown, err := usual(t).AddOperator(t.Context(), org.By{Actor: org.Admin}, Owner)
		if err != nil {
			t.Fatal(err)
		}
		j.now = true
		time.Sleep(org.StaleAfter + time.Second)
		now := time.Now()
		for name, c := range map[string]struct {
			way   func() (Actor, error)
			read  string
			write string
		}{
			"ADMIN_KEY":            {func() (Actor, error) { return g.Authenticate(request("GET", auth("Bearer "+adminKey)), client(1), now) }, "", ""},
			"an operator":          {func() (Actor, error) { return g.Authenticate(request("GET", auth("Bearer "+key)), client(1), now) }, "", CodeStorage},
			"a session":            {func() (Actor, error) { return g.Authenticate(request("GET", with(cookie)), client(1), now) }, "", CodeStorage},
			"a key made meanwhile": {func() (Actor, error) { return g.Authenticate(request("GET", auth("Bearer "+unknown)), client(1), now) }, CodeStorage, CodeStorage},
			"a guess":              {func() (Actor, error) { return g.Authenticate(request("GET", auth("Bearer guess")), client(1), now) }, CodeUnauthorized, CodeUnauthorized},
		} {
			actor, err := c.way()
			read, write := err, err
			if err == nil {
				read, write = actor.Require(Viewer), actor.Require(Operator)
			}
			if code(read) != c.read || code(write) != c.write {
				t.Errorf("%s: reading %v, writing %v", name, read, write)
			}
		}
		if _, _, err := g.SignIn(request("POST", csrf), key, "", client(1), "", false, now); code(err) != CodeStorage {
			t.Errorf("signing in: %v", err)
		}
	})
}
