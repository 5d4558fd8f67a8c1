//go:build !race

package browser

import "github.com/chromedp/cdproto/emulation"

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

// forced checks that a view can be used where the system chooses the colours, on light and on dark ground.
func (p *tab) forced(v view) {
	p.t.Helper()
	if v.name == "history" {
		p.press("Escape")
		eval[bool](p, "(document.querySelector('main .record input:not(:disabled)')?.click(), true)")
	}
	// The outline of what has the focus would stand for a border that is missing.
	eval[bool](p, "(document.activeElement?.blur(), true)")
	for _, scheme := range []string{"light", "dark"} {
		call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "forced-colors", Value: "active"}, {Name: "prefers-color-scheme", Value: scheme},
			{Name: "prefers-reduced-motion", Value: "reduce"}}})
		p.drawn()
		p.looks(v.name + ", forced colours, " + scheme)
		p.visible(v.name + ", forced colours, " + scheme)
		if v.name == "home" { // what is above the views, once
			p.press("Control+k")
			p.find("dialog", "Find or do")
			p.visible("the palette, " + scheme)
			p.press("Escape")
		}
	}
}

// visible checks that nothing that is shown is hidden by colours that are forced.
func (p *tab) visible(what string) {
	p.t.Helper()
	for _, problem := range eval[[]string](p, forcedScript) {
		p.t.Errorf("%s: %s", what, problem)
	}
}
