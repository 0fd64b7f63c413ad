package replay

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"qm/engine/room"
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
	At         time.Time `json:"at"`
	Entries    int       `json:"entries"`
	Identities int       `json:"identities"` // entries without one count as one each
	First      uint32    `json:"first"`      // the first drawn ticket
	Version    int       `json:"version"`
	Commitment string    `json:"commitment"` // as published when the drop was scheduled
	Secret     string    `json:"secret"`
	Head       string    `json:"head"`
	Seed       string    `json:"seed"`
	Digest     string    `json:"digest"`
	Holds      bool      `json:"holds"`
	Findings   []Code    `json:"findings,omitempty"`
}

// String tells the proof step by step, so that a reader can do each again.
func (p DrawProof) String() string {
	verdict := func(codes ...Code) string {
		for _, c := range codes {
			if slices.Contains(p.Findings, c) {
				return "NO"
			}
		}
		return "yes"
	}
	outcome := "the draw holds"
	if !p.Holds {
		outcome = "the draw does NOT hold"
	}
	return fmt.Sprintf(`%s: draw of %s, seq %d, generation %d, version %d: %s of %s from ticket %d on
  commitment  %s
  secret      %s  its SHA-256 is the commitment: %s
  head        %s  the hash of the record before: %s
  seed        %s  HMAC-SHA256(secret, head): %s
  order       %s  recomputed from the seed, and the one recorded: %s
  made at the doors-open instant, before anything later: %s
  %s
`, p.Room, p.At.Format("2006-01-02 15:04:05.000"), p.Seq, p.Generation, p.Version, count(p.Entries, "entry", "entries"),
		count(p.Identities, "identity", "identities"), p.First,
		p.Commitment, p.Secret, verdict(DrawCommitment), p.Head, verdict(DrawHead), p.Seed, verdict(DrawSeed),
		p.Digest, verdict(DrawOrder, DrawEntries, DrawVersion), verdict(DrawEarly, DrawUnscheduled), outcome)
}

// ProveDraws checks every draw of source's rooms. The findings are those that bear on draws: of the chain, of unreadable records, of
// I14 and I15; [Verify] has them all.
func ProveDraws(source Source, progress func(records int64)) (proofs []DrawProof, findings []Finding, report Report, err error) {
	o := Options{Progress: progress, Every: 1 << 40}
	o.onDraw = func(v *verifier, b *room.Draw, ids []room.Identity) {
		distinct := map[room.Identity]bool{}
		alone := 0
		for _, id := range ids {
			if id == 0 {
				alone++
			} else {
				distinct[id] = true
			}
		}
		proofs = append(proofs, DrawProof{
			Stream: v.stream, Room: RoomID(v.stream), Seq: v.seq, Generation: v.sum.Generation, At: time.UnixMilli(int64(v.at)).UTC(),
			Entries: len(ids), Identities: len(distinct) + alone, First: uint32(b.First), Version: b.Version,
			Commitment: v.sum.Commitment.String(), Secret: b.Secret.String(), Head: b.Head.String(), Seed: b.Seed.String(), Digest: b.Digest.String(),
		})
	}
	report, all, err := Verify(source, o)
	for _, f := range all {
		if !slices.Contains([]string{"I1", "I3", "I14", "I15"}, f.Invariant) {
			continue
		}
		findings = append(findings, f)
		for i := range proofs {
			if p := &proofs[i]; p.Stream == f.Stream && p.Seq == f.Seq {
				p.Findings = append(p.Findings, f.Code)
			}
		}
	}
	for i := range proofs {
		proofs[i].Holds = len(proofs[i].Findings) == 0
	}
	return proofs, findings, report, err
}
