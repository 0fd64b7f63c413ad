package web

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Branding is what a room's owner may set on the pages of its visitors.
// The zero value is the product's own look.
type Branding struct {
	// Name stands at the head of the page; empty: the room's name.
	Name string
	// LogoURL is an https or same-origin address; empty: the product's mark.
	LogoURL string
	// Accent is a colour as #rgb or #rrggbb. Anything else is ignored. It is
	// darkened or lightened as far as legible text needs (contrast 4.5 to 1).
	Accent string
	// Background is the colour behind everything, in the same form; what it
	// carries follows it (see palette). It is darkened in the dark scheme.
	Background string
	// Message is the operator's message to everyone in line, as plain text,
	// and MessageAt the instant at which the server saw it change
	// (seed 004, branding.message). Both are optional.
	Message   string
	MessageAt time.Time
}

// The cards that accents are seen on; see waiting.css.
var (
	lightCard = rgb{255, 255, 255}
	darkCard  = rgb{0x17, 0x1a, 0x1d}
	darkInk   = rgb{0x0c, 0x12, 0x11}
)

// colours is the style sheet that carries the accent; empty without one.
func (b Branding) colours() string {
	accent, ok := parseColour(b.Accent)
	if !ok {
		return ""
	}
	rule := func(card, towards rgb) string {
		a := accent.legibleOn(card, towards)
		on := lightCard
		if contrast(a, darkInk) > contrast(a, on) {
			on = darkInk
		}
		return fmt.Sprintf(":root{--accent:%s;--on:%s}", a, on)
	}
	return rule(lightCard, rgb{}) + "@media(prefers-color-scheme:dark){" + rule(darkCard, lightCard) + "}"
}

type rgb [3]uint8

func (c rgb) String() string { return fmt.Sprintf("#%02x%02x%02x", c[0], c[1], c[2]) }

func parseColour(s string) (rgb, bool) {
	s, ok := strings.CutPrefix(s, "#")
	if ok && len(s) == 3 {
		s = string([]byte{s[0], s[0], s[1], s[1], s[2], s[2]})
	}
	v, err := strconv.ParseUint(s, 16, 32)
	if !ok || len(s) != 6 || err != nil {
		return rgb{}, false
	}
	return rgb{uint8(v >> 16), uint8(v >> 8), uint8(v)}, true
}

// legibleOn mixes c with towards until text in it can be read on ground.
func (c rgb) legibleOn(ground, towards rgb) rgb {
	for part := 0.0; part < 1; part += 0.05 {
		var m rgb
		for i := range m {
			m[i] = uint8(math.Round(float64(c[i])*(1-part) + float64(towards[i])*part))
		}
		if contrast(m, ground) >= 4.5 {
			return m
		}
	}
	return towards
}

// contrast is the ratio that WCAG 2 defines, 1 to 21.
func contrast(a, b rgb) float64 {
	la, lb := a.luminance(), b.luminance()
	return (math.Max(la, lb) + 0.05) / (math.Min(la, lb) + 0.05)
}

func (c rgb) luminance() float64 {
	var l float64
	for i, weight := range [3]float64{0.2126, 0.7152, 0.0722} {
		v := float64(c[i]) / 255
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		l += weight * v
	}
	return l
}
