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

// The colours of waiting.css that brands are mixed with.
var (
	lightGround, darkGround = rgb{0xf3, 0xf3, 0xef}, rgb{0x10, 0x12, 0x14}
	lightCard, darkCard     = rgb{255, 255, 255}, rgb{0x17, 0x1a, 0x1d}
	darkInk, lightInk       = rgb{0x1a, 0x1d, 0x20}, rgb{0xec, 0xee, 0xf0}
	ownAccent               = rgb{0x1f, 0x5f, 0x57}
	black, white            = rgb{}, rgb{255, 255, 255}
)

// legible is the contrast that text needs (WCAG 2.2, 1.4.3).
const legible = 4.5

// IllegibleError is a pair of colours of which one cannot be read on the other.
type IllegibleError struct {
	Field string  // which of the two to change: "color" or "background"
	Pair  string  // "color #ffcc00 on background #f3f3ef"
	Ratio float64 // the pair's contrast, 1 to 21; below 4.5
}

func (e *IllegibleError) Error() string {
	// Cut, not rounded: 4.49 is not 4.5.
	return fmt.Sprintf("%s has a contrast of %.2f to 1; it takes 4.5 to 1 to be read", e.Pair, math.Floor(e.Ratio*100)/100)
}

// Legible reports whether the page can be read in these colours as they are
// given. The error is an [*IllegibleError]. A colour that is none is not looked
// at. Pages never become illegible: what fails here is adjusted there, and no
// longer the brand's colour.
func (b Branding) Legible() error {
	ground, custom := parseColour(b.Background)
	if !custom {
		ground = lightGround
	}
	ink := inkOn(ground)
	if r := contrast(ink, ground); r < legible {
		return &IllegibleError{"background", fmt.Sprintf("the page's text %s on background %s", ink, ground), r}
	}
	if accent, ok := parseColour(b.Accent); ok {
		if r := min(contrast(accent, ground), contrast(accent, b.card(ground, lightCard))); r < legible {
			return &IllegibleError{"color", fmt.Sprintf("color %s on background %s", accent, ground), r}
		}
	}
	return nil
}

// colours is the style sheet that carries the brand; empty without one.
func (b Branding) colours() string {
	accent, accented := parseColour(b.Accent)
	ground, grounded := parseColour(b.Background)
	if !accented && !grounded {
		return ""
	}
	if !accented {
		accent = ownAccent
	}
	light, dark := lightGround, darkGround
	if grounded {
		// A page in the dark stays dark, in the brand's hue.
		light, dark = ground, ground.towards(darkGround, func(c rgb) bool { return contrast(lightInk, c) >= 11 })
	}
	return b.scheme(accent, light, lightCard) + "@media(prefers-color-scheme:dark){" + b.scheme(accent, dark, darkCard) + "}"
}

// scheme is one of the two rules: everything that stands on a ground follows it.
func (b Branding) scheme(accent, ground, ownCard rgb) string {
	card, ink := b.card(ground, ownCard), inkOn(ground)
	pole := black
	if ink == lightInk {
		pole = white
	}
	accent = accent.legibleOn(pole, ground, card)
	on := white
	if contrast(accent, black) > contrast(accent, white) {
		on = black
	}
	rule := fmt.Sprintf("--accent:%s;--on:%s", accent, on)
	if _, grounded := parseColour(b.Background); grounded {
		ink = ink.legibleOn(pole, ground)
		soft := ink.mix(ground, .35).legibleOn(ink, ground, card)
		rule += fmt.Sprintf(";--ground:%s;--card:%s;--ink:%s;--soft:%s;--edge:%s;--wash:%s",
			ground, card, ink, soft, ground.mix(ink, .16), card.mix(ground, .5))
	}
	return ":root{" + rule + "}"
}

// card is what the line stands on: as the page's own has it, or a step away
// from the text, on which everything is read at least as well as on the ground.
func (b Branding) card(ground, own rgb) rgb {
	if _, grounded := parseColour(b.Background); !grounded {
		return own
	}
	if inkOn(ground) == darkInk {
		return ground.mix(white, .6)
	}
	return ground.mix(black, .25)
}

// inkOn is the text of the end, black or white, at which a ground can be read
// at all: one of the two always can (4.58 at worst), though on a middling ground
// the page's own ink does not reach far enough and has to be strengthened. An ink
// that is legible as it is always lies at that end.
func inkOn(ground rgb) rgb {
	if contrast(black, ground) >= contrast(white, ground) {
		return darkInk
	}
	return lightInk
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

// mix is c with a part, 0 to 1, of another colour.
func (c rgb) mix(other rgb, part float64) rgb {
	for i := range c {
		c[i] = uint8(math.Round(float64(c[i])*(1-part) + float64(other[i])*part))
	}
	return c
}

// towards is c, mixed with as much of a colour as it takes.
func (c rgb) towards(pole rgb, enough func(rgb) bool) rgb {
	for part := 0.0; part < 1; part += 0.05 {
		if m := c.mix(pole, part); enough(m) {
			return m
		}
	}
	return pole
}

// legibleOn is c, mixed with as much of pole as it takes to be read on all of
// the grounds.
func (c rgb) legibleOn(pole rgb, grounds ...rgb) rgb {
	return c.towards(pole, func(m rgb) bool {
		for _, g := range grounds {
			if contrast(m, g) < legible {
				return false
			}
		}
		return true
	})
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
