package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"qm/internal/testenv"
	"qm/journal"
	"qm/journal/postgres"
	"qm/projection/valkey"
	"qm/replay"
)

// fill appends recorded journals to a database, as their owners did.
func fill(t *testing.T, j *postgres.Journal, names ...string) {
	t.Helper()
	for _, name := range names {
		var batch []journal.Record
		err := replay.Lines(strings.NewReader(read(t, name+".ndjson")))(func(r *journal.Record) error {
			c := *r
			c.Body = bytes.Clone(r.Body)
			batch = append(batch, c)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		lease, err := j.Acquire(t.Context(), batch[0].Stream, "owner", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Append(t.Context(), lease.Epoch, batch); err != nil {
			t.Fatal(err)
		}
		if err := j.Release(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDatabase: every verb over a real database and a real Valkey.
func TestDatabase(t *testing.T) {
	pg, vk := testenv.Postgres(t), testenv.OwnValkey(t)
	ctx := t.Context()
	j, err := postgres.Open(ctx, pg.DSN, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	env := map[string]string{"DATABASE_URL": pg.DSN, "VALKEY_URL": vk.URL}
	expect := func(code int, want string, args ...string) outcome {
		t.Helper()
		got := call(t, env, "", args...)
		if got.code != code || !strings.Contains(got.out, want) {
			t.Errorf("%v: exit code %d, want %d with %q\n%s%s", args, got.code, code, want, got.out, got.stderr)
		}
		return got
	}
	// A file that names no such room says nothing of how the projection stands.
	empty := filepath.Join(t.TempDir(), "empty.ndjson")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(unable, "", "diff", empty)
	expect(unable, "", "diff", "--room", "nowhere", path("small.ndjson"))

	expect(holds, "", "verify") // no room yet
	fill(t, j, "doors", "drop", "eject-purge", "generations", "ghosts", "held-caps", "small")
	expect(holds, "ghosts: ", "verify")
	expect(holds, "small: 14 records", "verify", "--room", "small", "--head", head(t, "small.ndjson", -1))
	expect(unable, "", "verify", "--room", "absent")
	expect(holds, "passed by the clock, with a slot", "show", "--room", "small", "--ticket", "1")
	expect(holds, "the draw holds", "draw")
	if got := expect(holds, "", "export", "--room", "ghosts"); got.out != read(t, "ghosts.ndjson") {
		t.Error("the export is not what was recorded, byte for byte")
	}
	all := expect(holds, "", "export").out
	if got := call(t, env, all, "verify", "-"); got.code != holds {
		t.Errorf("the export of all rooms does not verify: %s%s", got.out, got.stderr)
	}

	expect(reported, "drop seq 54 P1 projection_missing", "diff")
	expect(holds, "ghosts: rebuilt as of seq 28 with 12 tickets", "rebuild")
	expect(holds, "held-caps: 9 tickets and 0 handles compared", "diff")
	if got := call(t, env, all, "diff", "-"); got.code != holds {
		t.Errorf("diff with a file: %s%s", got.out, got.stderr)
	}

	// A projection of something else.
	store, err := valkey.Open(ctx, vk.URL, valkey.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	other, err := replay.Fold(replay.Lines(strings.NewReader(read(t, "small.ndjson"))), "production/small", 8)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Reset(ctx, "production/small", 1, 14, other.State); err != nil {
		t.Fatal(err)
	}
	expect(reported, "small seq 14 P1 projection_room: summary.LastTicket is 7 in the projection, 8 in the journal", "diff", "--room", "small")
	expect(holds, "", "rebuild", "--room", "small", "--json")
	expect(holds, "small: 8 tickets", "diff", "--room", "small")

	// A history that says something else is named, and written anew.
	expect(holds, "small: 1 rows of history compared: equal", "diff", "--room", "small")
	tamper(t, pg, "update series set joined = joined + 1 where stream = 'production/small' and span = 60")
	expect(reported, "small seq 14 P1 history_row: the hour of ", "diff", "--room", "small")
	tamper(t, pg, "delete from series where stream = 'production/small'")
	expect(reported, "is not stored", "diff", "--room", "small")
	expect(holds, "and 1 rows of history", "rebuild", "--room", "small")
	expect(holds, "", "diff", "--room", "small")

	vk.FlushAll()
	expect(reported, `"code":"projection_missing"`, "diff", "--json", "--room", "ghosts")

	// A damaged row is named by room and seq; the other rooms are looked at all the same.
	tamper(t, pg, "update journal set body = '{\"n\":1,\"to\":99}' where stream = 'production/eject-purge' and kind = 'eject' and seq = 16")
	expect(reported, "eject-purge seq 16 I1 hash", "verify")
	expect(holds, "", "verify", "--room", "drop")
	got := expect(reported, "eject-purge seq 16 I1 hash", "rebuild")
	if !strings.Contains(got.out, "small: rebuilt") || strings.Contains(got.out, "eject-purge: rebuilt") {
		t.Errorf("rebuild around the damage:\n%s", got.out)
	}
	expect(reported, "eject-purge seq 16 I1 hash", "diff")
	expect(reported, "eject-purge seq 16 I1 hash", "show", "--room", "eject-purge")

	// A cut tail shows against the head that the storage has.
	tamper(t, pg, "delete from journal where stream = 'production/small' and seq > 12")
	expect(reported, "small seq 12 I1 head: the storage says that the stream stands at seq 14", "verify", "--room", "small")
	tamper(t, pg, "delete from journal where stream = 'production/doors'")
	expect(reported, "doors seq 41 I1 head", "verify", "--room", "doors")

	// What cannot be reached.
	expect(unable, "", "verify", "--room", "no-such-room")
	env["DATABASE_URL"] = "postgres://127.0.0.1:1/none"
	expect(unable, "", "verify")
	env["DATABASE_URL"], env["VALKEY_URL"] = pg.DSN, "redis://127.0.0.1:1"
	expect(unable, "", "diff", "--room", "ghosts")
}

// tamper changes the journal behind its back.
func tamper(t *testing.T, pg *testenv.PG, sql string) {
	t.Helper()
	conn := pg.Conn(t)
	for _, s := range []string{"alter table journal disable trigger all", sql, "alter table journal enable trigger all"} {
		tag, err := conn.Exec(context.Background(), s)
		if err != nil {
			t.Fatal(err)
		}
		if s == sql && tag.RowsAffected() == 0 {
			t.Fatalf("%s: no row", sql)
		}
	}
}
