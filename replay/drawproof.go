package replay

import (
	"bytes"
	"context"
	"fmt"

	"qm/engine/room"
	"qm/journal"
)

// drawFault is something that is wrong with a draw.
type drawFault struct {
	code Code
	text string
}

// proveDraw checks a draw (I14): the revealed secret is the one that was committed to, the seed is made of it and of the hash of the
// record before, and the recorded order is the one that the seed gives for the entries. head is zero when it is not known. ids are
// the identities of the entries that were in the pre-queue, by handle.
func proveDraw(b *room.Draw, commitment, head room.Digest, ids []room.Identity) (faults []drawFault) {
	fault := func(c Code, format string, args ...any) {
		faults = append(faults, drawFault{c, fmt.Sprintf(format, args...)})
	}
	if b.Version != room.DrawVersion {
		fault(DrawVersion, "the draw is of version %d; %d is known", b.Version, room.DrawVersion)
		return faults
	}
	if got := room.Commitment(b.Secret); got != commitment {
		fault(DrawCommitment, "the hash of the revealed secret is %x; %s was committed to", got, commitment)
	}
	if head != (room.Digest{}) && b.Head != head {
		fault(DrawHead, "the draw was made on the head %s; the record before it has %s", b.Head, head)
	}
	if seed := room.DrawSeed(b.Secret, b.Head); seed != b.Seed {
		fault(DrawSeed, "secret and head give the seed %x; %s is recorded", seed, b.Seed)
	}
	if b.Count != len(ids) {
		fault(DrawEntries, "%d entries are drawn; there were %d in the pre-queue", b.Count, len(ids))
		return faults
	}
	order := room.DrawOrder(b.Seed, ids)
	switch recorded, err := room.UnpackOrder(b.Order); {
	case err != nil:
		fault(DrawOrder, "the recorded order cannot be read: %v", err)
	case !bytes.Equal(room.PackOrder(order), b.Order):
		for i := range order {
			if i >= len(recorded) || recorded[i] != order[i] {
				fault(DrawOrder, "the recorded order is not the one that the seed gives: it differs from place %d on", i+1)
				return faults
			}
		}
		fault(DrawOrder, "the recorded order has more places than there are entries")
	case room.OrderDigest(order) != b.Digest:
		fault(DrawOrder, "the digest of the order is %x; %s is recorded", room.OrderDigest(order), b.Digest)
	}
	return faults
}

// DrawProof is what a check of one draw came to.
type DrawProof struct {
	Stream     string    `json:"stream"`
	Room       string    `json:"room"`
	Seq        int64     `json:"seq"`
	Generation uint32    `json:"generation"`
	At         string    `json:"at"`
	Entries    int       `json:"entries"`
	Identities int       `json:"identities"`
	First      uint32    `json:"first"`
	Version    int       `json:"version"`
	Commitment string    `json:"commitment"`
	Secret     string    `json:"secret"`
	Head       string    `json:"head"`
	Seed       string    `json:"seed"`
	Digest     string    `json:"digest"`
	Holds      bool      `json:"holds"`
	Findings   []Finding `json:"findings,omitempty"`
}

// ProveDraws checks every draw of source's rooms. Only what bears on draws is looked at; [Verify] checks the rest.
func ProveDraws(ctx context.Context, source Source) (proofs []DrawProof, findings []Finding, err error) {
	var o Options
	o.onDraw = func(v *verifier, b *room.Draw, ids []room.Identity) {
		distinct := map[room.Identity]struct{}{}
		alone := 0
		for _, id := range ids {
			if id == 0 {
				alone++
			} else {
				distinct[id] = struct{}{}
			}
		}
		proofs = append(proofs, DrawProof{
			Stream: v.stream, Room: RoomID(v.stream), Seq: v.seq, Generation: v.sum.Generation, At: clock(v.at),
			Entries: len(ids), Identities: len(distinct) + alone, First: uint32(b.First), Version: b.Version,
			Commitment: v.sum.Commitment.String(), Secret: b.Secret.String(), Head: b.Head.String(), Seed: b.Seed.String(), Digest: b.Digest.String(),
		})
	}
	_, all, err := Verify(func(fn func(*journal.Record) error) error {
		return source(func(r *journal.Record) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return fn(r)
		})
	}, o)
	for _, f := range all {
		switch f.Invariant {
		case "I1", "I3", "I14", "I15":
		default:
			continue
		}
		findings = append(findings, f)
		for i := range proofs {
			if p := &proofs[i]; p.Stream == f.Stream && p.Seq == f.Seq {
				p.Findings = append(p.Findings, f)
			}
		}
	}
	for i := range proofs {
		proofs[i].Holds = len(proofs[i].Findings) == 0
	}
	return proofs, findings, err
}
