//go:build !race

package browser

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
)

// forcedScript lists what cannot be told apart where the system chooses the colours: buttons without a border, signs in the
// colour of what is behind them, and what is chosen or current looking like all others.
const forcedScript = `(() => {
	const wrong = [], seen = e => e.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true });
	const name = e => e.tagName.toLowerCase() + " " + (e.getAttribute("aria-label") || e.textContent).trim().slice(0, 40);
	const lines = s => ["outline", "borderTop"].some(l => s[l + "Style"] !== "none" && parseFloat(s[l + "Width"]) > 0);
	if (!matchMedia("(forced-colors: active)").matches) wrong.push("the colours are not forced");
	for (const e of document.querySelectorAll(".btn, .seg > [aria-pressed=true], .seg > [aria-current], nav a[aria-current], " +
		".request[aria-current], .record.picked, [role=option][aria-selected=true], input:not([type=checkbox]):not([role]), select"))
		if (seen(e) && !lines(getComputedStyle(e))) wrong.push(name(e) + " has no border and no outline");
	for (const e of document.querySelectorAll("svg.sign, svg.icon"))
		if (seen(e) && getComputedStyle(e).color === getComputedStyle(document.documentElement).backgroundColor)
			wrong.push(name(e.parentElement) + " has a sign that cannot be seen");
	return wrong;
})()`

// Every view can be used where the system chooses the colours, on light and on dark ground.
func TestForcedColours(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, demoScript, demoSettings)
	w.furnish()
	w.start()
	w.live()
	p := w.visit()
	for _, scheme := range []string{"light", "dark"} {
		call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "forced-colors", Value: "active"}, {Name: "prefers-color-scheme", Value: scheme},
			{Name: "prefers-reduced-motion", Value: "reduce"}}})
		for _, v := range views {
			p.goTo(v.path)
			p.settled()
			p.press(v.keys...)
			if v.name == "history" {
				p.press("Escape")
				eval[bool](p, "(document.querySelector('main .record input:not(:disabled)')?.click(), true)")
			}
			p.settled()
			p.looks(v.name + ", forced colours, " + scheme)
			for _, problem := range eval[[]string](p, forcedScript) {
				t.Errorf("%s, %s: %s", v.name, scheme, problem)
			}
		}
		p.press("Control+k")
		p.find("dialog", "Find or do")
		for _, problem := range eval[[]string](p, forcedScript) {
			t.Errorf("the palette, %s: %s", scheme, problem)
		}
		p.press("Escape")
	}
}
