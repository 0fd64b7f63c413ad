package room

import (
	"encoding/hex"
	"fmt"
)

// Digest is 32 bytes of a hash, a secret or a seed; its JSON form is lower-case hex ("" when all zero).
type Digest [32]byte

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) {
	if d == (Digest{}) {
		return []byte{}, nil
	}
	return hex.AppendEncode(nil, d[:]), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Digest) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*d = Digest{}
		return nil
	}
	if hex.DecodedLen(len(b)) != len(d) {
		return fmt.Errorf("room: a digest has %d hex digits, not %d", 2*len(d), len(b))
	}
	_, err := hex.Decode(d[:], b)
	return err
}

// String is the lower-case hex form.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }
