package httpapi

import (
	"bytes"
	"net/http"

	"qm/web"
)

// preview is GET /api/admin/rooms/:id/preview?name=&logoUrl=&color=&background=&message=: the room's waiting page as somebody in the middle
// of the line would see it in that branding, for the console to show before it is saved. It takes no place and runs no script.
func (s *Server) preview(x *exchange) error {
	if err := s.named(x); err != nil {
		return err
	}
	sum, _, err := s.summary(x.r.Context(), x.id)
	if err != nil {
		return err
	}
	brand := brandingOf(sum.Settings)
	for _, m := range []struct {
		name string
		most int
		to   *string
	}{{"name", 100, &brand.Name}, {"logoUrl", 2048, &brand.LogoURL}, {"color", 7, &brand.Accent}, {"background", 7, &brand.Background}, {"message", 500, &brand.Message}} {
		text, ok, err := x.query(m.name)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if !readable(text, m.most, m.name == "message") {
			return refuseField("invalid_branding", "branding."+m.name, "")
		}
		*m.to = text
	}
	if brand.Message != "" && brand.MessageAt.IsZero() {
		brand.MessageAt = x.now
	}
	place, ahead, eta := int64(1524), int64(1523), int64(1500)
	page := web.WaitingPage{
		RoomID: x.id, RoomName: nameOf(sum.Settings, x.id), Branding: brand, Locale: "en", Still: true,
		First: web.Frame{State: "active", Position: &place, Ahead: &ahead, EtaSec: &eta, Now: x.now},
	}
	var out bytes.Buffer
	if err := web.Waiting(&out, page); err != nil {
		return err
	}
	x.html(http.StatusOK, web.PreviewPolicy(brand), out.Bytes())
	return nil
}
