package httpapi

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/http"
	"time"

	"qm/engine/room"
	"qm/web"
)

// drawPage is /w/:roomId/draw: what publicRoom publishes of a draw, in sentences, and which place it dealt to whoever asks. It takes no
// place and changes none.
func (s *Server) drawPage(x *exchange) error {
	if err := s.allow(x, s.statuses); err != nil {
		return err
	}
	if !validRoomID(x.id) {
		return refuse("room_not_found")
	}
	sum, _, err := s.summary(x.r.Context(), x.id)
	if err != nil {
		return err
	}
	page := web.DrawPage{RoomID: x.id, RoomName: nameOf(sum.Settings, x.id), Branding: brandingOf(sum.Settings), Locale: s.locale(x)}
	if sum.OpensAt != 0 {
		page.OpensAt = time.UnixMilli(int64(sum.OpensAt))
	}
	if sum.Commitment != (room.Digest{}) {
		page.Commitment = hex.EncodeToString(sum.Commitment[:])
	}
	if sum.Proof != nil {
		page.Secret = hex.EncodeToString(sum.Proof.Secret[:])
		if page.Place, page.Count, err = s.dealt(x); err != nil {
			return err
		}
	}
	var out bytes.Buffer
	if err := web.Draw(&out, page); err != nil {
		return err
	}
	x.html(http.StatusOK, web.Policy(page.Branding), out.Bytes())
	return nil
}

// dealt is the place that the room's last draw dealt to the browser that asks, and of how many: its place now, or the one that has
// passed since, as long as it is the browser's own. 0 when it holds none of that draw.
func (s *Server) dealt(x *exchange) (place, of int64, err error) {
	ctx := x.r.Context()
	for t := range cookiesOf(x.r.Header, placeCookie, x.id) {
		v, err := s.o.Keys.VerifyVisitor(t, x.id, x.now)
		if err != nil {
			continue
		}
		var f frame
		if err := s.glance(ctx, &f, v, x.now); err != nil {
			if errors.Is(err, errNoToken) {
				continue
			}
			return 0, 0, err
		}
		n, proof := f.ticket(), f.sum.Proof
		if proof == nil || n < proof.First || int64(n-proof.First) >= int64(proof.Count) {
			continue
		}
		owner, err := s.owned(ctx, &f, sessions(x.r.Header, x.id))
		if err != nil {
			return 0, 0, err
		}
		if owner != "" {
			return int64(n-proof.First) + 1, int64(proof.Count), nil
		}
	}
	return 0, 0, nil
}
