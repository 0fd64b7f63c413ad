package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"qm/engine/room"
	"qm/journal"
	"qm/projection"
)

// The digest key of a generation goes with it (domain.md rule 4), and no other goes along.
//
// Proves: digests
func TestTheKeyOfAnEndedGenerationIsErased(t *testing.T) {
	inHouse(t, func(s *room.Settings) { s.RatePerMinute = 0 }, func(h *house, p *process) {
		r := p.known("shop")
		for _, g := range []uint32{10, 19, 100} { // of generations to come
			if _, err := r.keep(h.ctx, keyName(g)); err != nil {
				t.Fatal(err)
			}
		}
		kept := func(g uint32) bool {
			t.Helper()
			_, ok, err := h.memory.Recall(h.ctx, stream, keyName(g))
			if err != nil {
				t.Fatal(err)
			}
			return ok
		}
		h.joins(p, 1, 1, 1)
		if !kept(1) {
			t.Fatal("the key is not kept")
		}
		if _, err := p.Do(h.ctx, "shop", "admin", room.CloseRoom{}); err != nil {
			t.Fatal(err)
		}
		if kept(1) || !kept(10) || !kept(19) || !kept(100) {
			t.Fatalf("kept: 1 %v, 10 %v, 19 %v, 100 %v", kept(1), kept(10), kept(19), kept(100))
		}
		_, err := h.join(p, 1)
		h.expect("a join to a closed room", err, room.ErrRoomIdle)
		h.set(p, room.Active)
		h.joins(p, 1, 2, 1) // the same visitors, other digests, tickets from 1
		if !kept(2) {
			t.Fatal("the new key is not kept")
		}
		if _, err := p.Do(h.ctx, "shop", "admin", room.DeleteRoom{}); err != nil {
			t.Fatal(err)
		}
		if kept(2) {
			t.Fatal("the key of a deleted room is kept")
		}
		h.verify()
	})
}

// A place is proved by its session alone, and a place that is over is nobody's.
//
// Proves: owner.cookie
func TestOwns(t *testing.T) {
	inHouse(t, func(s *room.Settings) { s.RatePerMinute = 0 }, func(h *house, p *process) {
		h.joins(p, 1, 2, 1)
		_, place := h.ticket(p, 1)
		owns := func(session string) bool {
			t.Helper()
			ok, err := p.Owns(h.ctx, "shop", session, place)
			if err != nil {
				t.Fatal(err)
			}
			return ok
		}
		if !owns("session-1") || owns("session-2") || owns("") {
			t.Fatal("the place is not its holder's alone")
		}
		if _, err := p.Leave(h.ctx, "shop", "session-1"); err != nil {
			t.Fatal(err)
		}
		if _, place = h.ticket(p, 1); owns("session-1") {
			t.Fatal("a place that was given back is somebody's")
		}
	})
}

// downVault is a vault that can be out of reach.
type downVault struct {
	journal.Vault
	down atomic.Bool
}

func (v *downVault) Keep(ctx context.Context, stream, name string, value []byte) ([]byte, error) {
	if v.down.Load() {
		return nil, errors.New("the vault is out of reach")
	}
	return v.Vault.Keep(ctx, stream, name, value)
}

// A process that reads another's room has its digest key before anybody asks: it can tell who owns a place while storage is away.
func TestAReaderTellsOwnersWithTheVaultAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := onMemory()
		o.Shared = projection.NewMemory()
		owner := start(t, o)
		ctx := t.Context()
		if _, err := owner.Create(ctx, "shop", "admin", testSettings(0), room.Active, time.Time{}); err != nil {
			t.Fatal(err)
		}
		ans, err := owner.Join(ctx, "shop", "session", network(1), 0)
		if err != nil {
			t.Fatal(err)
		}
		vault := &downVault{Vault: o.Vault}
		o.Vault = vault
		reader := start(t, o)
		time.Sleep(3 * time.Second)
		vault.down.Store(true)
		view, err := reader.View(ctx, "shop")
		if err != nil {
			t.Fatal(err)
		}
		_, place, err := view.Ticket(ctx, ans.Place.Ticket)
		if err != nil {
			t.Fatal(err)
		}
		if owns, err := reader.Owns(ctx, "shop", "session", place); !owns || err != nil {
			t.Errorf("the holder owns the place: %v, %v", owns, err)
		}
		if owns, err := reader.Owns(ctx, "shop", "another", place); owns || err != nil {
			t.Errorf("a stranger owns the place: %v, %v", owns, err)
		}
	})
}
