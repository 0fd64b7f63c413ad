package valkey

import (
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"time"

	client "github.com/valkey-io/valkey-go"

	"qm/engine/room"
	"qm/projection"
)

// Presence is a bitmap per page of 4,096 tickets and window, in keys of its own that no rewrite touches:
//
//	qm:{<stream>}:seen:<generation>:<window>         set of the pages that have a mark
//	qm:{<stream>}:seen:<generation>:<window>:<page>  bitmap
//
// All of them expire.

var (
	//go:embed scripts/mark.lua
	markLua string
	//go:embed scripts/seen.lua
	seenLua string

	markScript = client.NewLuaScript(markLua)
	seenScript = client.NewLuaScriptReadOnly(seenLua)
)

var _ projection.Presence = (*Store)(nil)

func (s *Store) windowKey(stream string, gen uint32, window int64) string {
	return s.base(stream) + "seen:" + strconv.FormatUint(uint64(gen), 10) + ":" + itoa(window)
}

// maxWindows is how many windows one script reads.
const maxWindows = 64

// MarkSeen implements [projection.Presence].
func (s *Store) MarkSeen(ctx context.Context, stream string, gen uint32, window int64, tickets []room.Ticket) error {
	if len(tickets) == 0 {
		return nil
	}
	pages := make(map[int]*projection.SeenPage)
	for _, n := range tickets {
		page := pages[int(n/pageSize)]
		if page == nil {
			page = new(projection.SeenPage)
			pages[int(n/pageSize)] = page
		}
		page[n%pageSize/64] |= 1 << (n % 64)
	}
	args := []string{itoa(int64(projection.PresenceKept / time.Second))}
	for number, page := range pages {
		bitmap, _ := lineBytes(page[:])
		args = append(args, strconv.Itoa(number), client.BinaryString(bitmap))
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	err := markScript.Exec(ctx, s.client, []string{s.windowKey(stream, gen, window)}, args).Error()
	if err != nil && !client.IsValkeyNil(err) {
		return fmt.Errorf("mark who was seen in %s: %w", stream, err)
	}
	return nil
}

// SeenSince implements [projection.Presence]. More than 64 windows take several round trips.
func (s *Store) SeenSince(ctx context.Context, stream string, gen uint32, first, last int64) (map[int]*projection.SeenPage, error) {
	seen := make(map[int]*projection.SeenPage)
	var keys []string
	for window := first; window <= last; window++ {
		keys = append(keys, s.windowKey(stream, gen, window))
	}
	for some := range slices.Chunk(keys, maxWindows) {
		if err := s.seen(ctx, some, seen); err != nil {
			return nil, fmt.Errorf("read who was seen in %s: %w", stream, err)
		}
	}
	return seen, nil
}

func (s *Store) seen(ctx context.Context, keys []string, seen map[int]*projection.SeenPage) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	answer, err := seenScript.Exec(ctx, s.client, keys, nil).AsStrSlice()
	if err != nil {
		return err
	}
	for i := 0; i+1 < len(answer); i += 2 {
		number, err := strconv.Atoi(answer[i])
		if err != nil || len(answer[i+1]) != room.LinePageWords*8 {
			return errDamaged
		}
		page := seen[number]
		if page == nil {
			page = new(projection.SeenPage)
			seen[number] = page
		}
		for w := range page {
			page[w] |= bits.Reverse64(binary.BigEndian.Uint64([]byte(answer[i+1][8*w:])))
		}
	}
	return nil
}
