package engine

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"net/netip"
	"sync"

	"qm/engine/room"
)

// keys make the digests of one generation of a room: of holders from ownership sessions, of identities from networks. The key
// is random, kept in the vault and independent of SECRET, so that a rotation loses no place and erasing it makes the journal's
// digests meaningless (domain.md rule 4).
type keys struct {
	generation uint32
	macs       sync.Pool // of *digester
}

// digester is a keyed hash with memory of its own, so that a digest allocates nothing.
type digester struct {
	mac  hash.Hash
	text [128]byte
	sum  [sha256.Size]byte
}

func newKeys(generation uint32, key []byte) *keys {
	k := &keys{generation: generation}
	k.macs.New = func() any { return &digester{mac: hmac.New(sha256.New, key)} }
	return k
}

// holder is the digest of who owns a place.
func (k *keys) holder(session string) (h room.Holder) {
	d := k.macs.Get().(*digester)
	defer k.macs.Put(d)
	d.digest(append(append(d.text[:0], "holder\x00"...), session...))
	copy(h[:], d.sum[:])
	return h
}

// identity is the digest of where a visitor comes from; 0 for the zero network.
func (k *keys) identity(network netip.Prefix) room.Identity {
	if !network.IsValid() {
		return 0
	}
	d := k.macs.Get().(*digester)
	defer k.macs.Put(d)
	text, _ := network.AppendBinary(append(d.text[:0], "identity\x00"...))
	d.digest(text)
	return room.Identity(max(binary.BigEndian.Uint64(d.sum[:]), 1))
}

// digest leaves the keyed hash of text in d.sum.
func (d *digester) digest(text []byte) {
	d.mac.Reset()
	d.mac.Write(text)
	d.mac.Sum(d.sum[:0])
}

// The names of what a room keeps in the vault. None is the beginning of another, because the vault erases by beginnings.
func keyName(generation uint32) string { return fmt.Sprintf("key/%d/", generation) }
func dropName(generation uint32, draws int) string {
	return fmt.Sprintf("drop/%d/%d", generation, draws)
}

// keep returns 32 random bytes that are the same for everybody who asks for the name.
func (r *runner) keep(ctx context.Context, name string) (secret [32]byte, err error) {
	_, _ = rand.Read(secret[:])
	stored, err := r.e.o.Vault.Keep(ctx, r.stream, name, secret[:])
	if err != nil {
		r.log.Warn("the vault is out of reach", "error", err)
		return secret, ErrStorage
	}
	if len(stored) != len(secret) {
		return secret, ErrDamaged
	}
	return [32]byte(stored), nil
}

// keysOf gives the keys of a generation.
func (r *runner) keysOf(ctx context.Context, generation uint32) (*keys, error) {
	if k := r.keys.Load(); k != nil && k.generation == generation {
		return k, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callerWait)
	defer cancel()
	select { // a surge at a room's first moment is not to ask the vault a thousand times
	case r.keeping <- struct{}{}:
		defer func() { <-r.keeping }()
	case <-ctx.Done():
		return nil, ErrStorage
	}
	if k := r.keys.Load(); k != nil && k.generation == generation {
		return k, nil
	}
	secret, err := r.keep(ctx, keyName(generation))
	if err != nil {
		return nil, err
	}
	k := newKeys(generation, secret[:])
	r.keys.Store(k)
	return k, nil
}

// standing tells how far the room has come: its generation, the draws that it has had, and whether it exists.
func (r *runner) standing(ctx context.Context) (generation uint32, draws int, exists bool, err error) {
	if err := r.settled(ctx).refusal(); err != nil {
		return 0, 0, false, err
	}
	if err := r.e.live.With(r.stream, func(_, _ int64, s *room.State) error {
		generation, draws, exists = s.Generation(), s.Draws(), s.Exists()
		return nil
	}); err != nil {
		return 0, 0, false, ErrStorage
	}
	return generation, draws, exists, nil
}

// forget erases the digest key of a generation that has ended: its digests mean nothing any more.
func (r *runner) forget(ctx context.Context, ans Answer) {
	for _, e := range ans.Events {
		var ended uint32
		switch b := e.Body.(type) {
		case *room.Close:
			ended = b.Generation - 1
		case *room.Delete:
			ended = ans.Summary.Generation
		default:
			continue
		}
		if err := r.e.o.Vault.Erase(ctx, r.stream, keyName(ended)); err != nil {
			r.log.Warn("the digest key of an ended generation was not erased", "generation", ended, "error", err)
		}
	}
}

// command runs a visitor's command with digests of the room's present generation; one that changes meanwhile is asked again.
// A command that speaks of an ended generation of its own accord is refused for good: its ticket has not passed.
func (e *Engine) command(ctx context.Context, roomID string, make func(*keys) room.Command) (Answer, error) {
	r, err := e.found(ctx, roomID)
	if err != nil {
		return Answer{}, err
	}
	for range 3 {
		generation, _, exists, err := r.standing(ctx)
		if err != nil {
			return Answer{}, err
		}
		if !exists {
			return Answer{}, room.ErrRoomNotFound
		}
		k, err := r.keysOf(ctx, generation)
		if err != nil {
			return Answer{}, err
		}
		cmd := make(k)
		if c, ok := cmd.(room.EnterDoor); ok && c.Generation != generation {
			return Answer{}, room.ErrNotPassed
		}
		ans, err := r.do(ctx, request{cmd: cmd, actor: "visitor"}, false)
		if !errors.Is(err, room.ErrGeneration) {
			return ans, err
		}
	}
	return Answer{}, ErrBusy
}

// Join takes a place, or returns the one that the session holds. network is where the visitor comes from (an IPv4
// address or an IPv6 /64; the zero Prefix when unknown), score 0 to 100. Before the doors open the place is a handle. In bypass there is no place:
// Answer.Place is zero and Summary.Mode is Bypass. room.ErrRoomNotFound when there is no such room.
func (e *Engine) Join(ctx context.Context, roomID, session string, network netip.Prefix, score uint8) (Answer, error) {
	return e.command(ctx, roomID, func(k *keys) room.Command {
		return room.TakePlace{Generation: k.generation, Holder: k.holder(session), Identity: k.identity(network), Score: score}
	})
}

// Enter opens (or reclaims) the door session of a ticket of a generation for whoever proves that the pass is theirs: session is the ownership
// session of their browser ("" if not shown), codeAt the issue time of a verified hand-over code (0 if none). door is the
// digest of the fresh door-session key. room.ErrNotPassed when the generation has ended.
func (e *Engine) Enter(ctx context.Context, roomID string, generation uint32, n room.Ticket, session string, codeAt room.Instant, door room.Holder) (Answer, error) {
	return e.command(ctx, roomID, func(k *keys) room.Command {
		c := room.EnterDoor{Generation: generation, Ticket: n, CodeAt: codeAt, Door: door}
		if session != "" && k.generation == generation {
			c.Holder = k.holder(session)
		}
		return c
	})
}

// Leave gives back whatever place the session holds; Events is empty when there was none.
func (e *Engine) Leave(ctx context.Context, roomID, session string) (Answer, error) {
	return e.command(ctx, roomID, func(k *keys) room.Command {
		return room.GiveBack{Generation: k.generation, Holder: k.holder(session)}
	})
}

// Owns tells whether session is the ownership session that holds the place, in constant time.
func (e *Engine) Owns(ctx context.Context, roomID, session string, p room.Place) (bool, error) {
	if session == "" || !p.Live() {
		return false, nil
	}
	r, err := e.runner(ctx, roomID)
	if err != nil {
		return false, err
	}
	k, err := r.keysOf(ctx, p.Generation)
	if err != nil {
		return false, err
	}
	h := k.holder(session)
	return subtle.ConstantTimeCompare(h[:], p.Holder[:]) == 1, nil
}
