package room

// Ticket is a place in line, 1 and up within one generation of a room. Order in line is ticket order; nothing else
// orders a line (domain.md, "Words" and rule 1). 0 is a bypass pass: somebody let through while the room was in
// bypass, who never had a place.
type Ticket uint32

// Handle is an entry in the pre-queue, 1 and up, before the draw turns it into a Ticket. It is not a position
// (domain.md, "Words").
type Handle uint32

// Holder is the digest of who owns a place: of the ownership session (seed 004) or of the verified visitor id
// (seed 000). A room holds at most one place per holder (domain.md rule 9). The digest uses a key per room and
// generation, so its bytes are evenly spread (domain.md rule 4).
type Holder [16]byte

// Identity is the keyed digest of where a visitor came from, an IPv4 address or an IPv6 /64. Caps and the draw's
// rounds use it (domain.md, "Words"). 0 means that none was recorded.
type Identity uint64
