//go:build !race

package browser

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
)

// motion is what the system says about motion: "no-preference", or "reduce", as tests begin.
func (p *tab) motion(value string) {
	p.t.Helper()
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-reduced-motion", Value: value}}})
}

// What works breathes; for someone who asked for less motion nothing on the page moves, not even while text streams.
func TestReducedMotion(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, "rules: [ { reply: [ { text: \"one two three four five\", chunk: 4, every: 20s } ] } ]\n", "")
	w.start()
	agent := w.agent("worker")
	p := w.visit("/")
	w.say(agent, "go")
	w.state(agent, "thinking")
	const moving = "document.getAnimations().filter(a => a.playState === 'running').length"
	for _, path := range []string{"/", "/agents/0"} {
		p.motion("no-preference")
		p.goTo(path)
		p.wait("document.querySelector('main .sign.work')", "the agent is at work")
		if path == "/" {
			p.wait(moving+" > 0", "its sign breathes")
		}
		p.motion("reduce")
		p.wait(moving+" === 0", "nothing moves")
		if took := eval[string](p, "getComputedStyle(document.querySelector('main')).scrollBehavior"); took != "auto" {
			t.Errorf("%s scrolls %s", path, took)
		}
	}
}
