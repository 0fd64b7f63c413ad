package web_test

import (
	"testing"

	"qm/web"
)

// painted is the colours and the form in which an element is seen.
const painted = `((e) => { const s = getComputedStyle(e); return [s.backgroundColor, s.backgroundImage, s.clipPath, s.borderTopStyle, s.borderTopStyle === "none" ? "" : s.borderTopColor, s.borderTopLeftRadius].join("|"); })`

// Where the device chooses the colours (forced colours), nothing is told by a colour of ours: the bar, the state's shape, the button and the
// focus are drawn in the device's, and each kind of state keeps a form of its own.
func TestForcedColours(t *testing.T) {
	t.Parallel()
	l := newLine(t, nil)
	blank := web.WaitingPage{RoomID: "demo", RoomName: "Spring drop", PollSeconds: 5, Branding: web.Branding{Name: "North & Sons", Accent: "#aa1144"}}
	b := newTab(t)
	b.hurry()
	b.media(feature("forced-colors", "active"), feature("prefers-color-scheme", "dark"))
	all := scenes(l.URL)
	forms := map[string]string{}
	for _, name := range []string{"waiting", "paused", "turn", "scheduled", "backend", "gone"} {
		s := all[name]
		l.with(func(l *line) {
			clear(l.refuse)
			l.now, l.page = at(24, 300), blank
			if s.set != nil {
				s.set(l)
			}
		})
		b.open(l.URL + "/w/demo")
		if s.after != nil {
			s.after(t, b, l)
		}
		b.awaitState(name)
		b.await(`matchMedia("(forced-colors: active)").matches`)
		// What the device's colours are.
		b.text(`(window.system = (name) => { const e = document.createElement("i"); e.style.cssText = "forced-color-adjust: none; color: " + name; document.body.append(e); const c = getComputedStyle(e).color; e.remove(); return c; },
			window.ours = (e) => (` + painted + `(e).match(/rgba?\([^)]*\)/g) ?? []).filter((c) => !/^rgba\(.*, 0\)$/.test(c) && !["Canvas", "CanvasText", "Highlight", "ButtonText", "ButtonFace", "ButtonBorder", "LinkText"].map(system).includes(c)).join(" "), 1)`)
		shape := `document.querySelector(".shape")`
		if other := b.text(`ours(` + shape + `)`); other != "" {
			t.Errorf("%s: the shape is drawn in %s", name, other)
		}
		form := b.text(painted + `(` + shape + `)`)
		if b.text(`["Highlight", "CanvasText"].some((c) => `+painted+`(`+shape+`).includes(system(c)))`) != "true" {
			t.Errorf("%s: the shape cannot be seen: %s", name, form)
		}
		if of, taken := forms[form]; taken {
			t.Errorf("%s looks like %s: %s", name, of, form)
		}
		forms[form] = name
		b.text("localStorage.clear(), sessionStorage.clear()")
		switch name {
		case "waiting":
			if got := b.text(`getComputedStyle(fill).backgroundColor === system("Highlight") && getComputedStyle(bar).borderTopColor === system("CanvasText") && getComputedStyle(bar).borderTopStyle === "solid"`); got != "true" {
				t.Error("the bar cannot be seen")
			}
			if got := b.text(`(document.querySelector(".fair summary").focus({focusVisible: true}), ((s) => s.outlineStyle === "solid" && parseFloat(s.outlineWidth) >= 2 && s.outlineColor !== system("Canvas"))(getComputedStyle(document.activeElement)))`); got != "true" {
				t.Error("the focus cannot be seen")
			}
		case "turn":
			if got := b.text(`((s) => s.borderTopStyle === "solid" && s.borderTopColor !== s.backgroundColor && s.color !== s.backgroundColor)(getComputedStyle(go))`); got != "true" {
				t.Error("the button cannot be seen")
			}
		}
	}
}
