//go:build !race

package browser

import (
	"strings"
	"testing"
)

// A setting that is changed in the form is changed in the text, and nothing else is; what is
// wrong cannot be published, and sections that need a restart say so.
func TestSettings(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, talkScript, "agents:\n  queue: steer   # how it reads\n")
	w.start()
	p := w.visit()
	p.goTo("/settings")
	p.wait("document.getElementById('set-agents-queue')?.value === 'steer'", "the form has the value of the text")
	p.sees("restart")
	eval[bool](p, `(() => {
		const change = (id, value) => {
			const field = document.getElementById(id);
			field.value = value;
			field.dispatchEvent(new Event("change", { bubbles: true }));
		};
		change("set-agents-queue", "collect");
		change("set-agents-maxSpawned", "7");
		return true;
	})()`)
	p.wait("document.querySelector('main textarea').value.includes('maxSpawned: 7')", "the text has the change")
	p.looks("settings, changed")
	p.click("button", "Publish…")
	p.sees("settings.yaml is published")
	text := w.read(".daycare/settings.yaml")
	if !strings.Contains(text, "  queue: collect # how it reads\n  maxSpawned: 7\n") || !strings.Contains(text, "providers:") {
		t.Errorf("the settings on disk are\n%s", text)
	}
	var active struct {
		Agents struct {
			Queue      string
			MaxSpawned int
		}
	}
	w.until("the settings are in use", func() bool {
		w.api("GET", "/v1/config", nil, &active)
		return active.Agents.Queue == "collect" && active.Agents.MaxSpawned == 7
	})

	p.replaces("queue: collect", "queue: sometimes")
	p.wait("document.querySelector('main .problems:not([hidden]) li')", "the problem is listed")
	if !eval[bool](p, "document.querySelector('main [data-key=publish]').disabled") {
		t.Error("settings with an error can be published")
	}
}
