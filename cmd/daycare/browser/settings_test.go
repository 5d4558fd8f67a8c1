//go:build !race

package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A setting that is changed in the form is changed in the text, and nothing else is; what is
// wrong cannot be published, and sections that need a restart say so.
func TestSettings(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, talkScript, "agents:\n  queue: steer   # how it reads\n")
	w.start()
	p := w.visit("/settings")
	p.wait("document.getElementById('set-agents-queue')?.value === 'steer'", "the form has the value of the text")
	p.sees("restart")
	p.change("set-agents-queue", "collect")
	p.change("set-agents-maxSpawned", "7")
	p.wait("document.querySelector('main .edit textarea').value.includes('maxSpawned: 7')", "the text has the change")
	p.looks("settings, changed")
	eval[bool](p, `(window.publish = document.querySelector("main [data-key=publish]"), true)`)
	p.change("set-agents-maxSpawned", "8")
	p.change("set-agents-maxSpawned", "7")
	p.wait("!document.querySelector('main [data-key=publish]').disabled", "the text can be published")
	if !eval[bool](p, "window.publish.isConnected") {
		t.Error("the button is made anew while the text changes: a click on it is lost")
	}
	p.click("button", "Publish…")
	p.told("settings.yaml is published")
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

// Lists are edited as lists: values on lines, entries with fields, and the text around them stays.
func TestSettingsLists(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, talkScript, "connectors:\n  - id: hall   # the hall\n    type: webhook\n    allow:\n      - \"12\"  # Ann\n"+
		"      - bob\n    options: { secretEnv: HALL }\n")
	w.start()
	p := w.visit("/settings")
	p.wait("document.getElementById('set-connectors-0-allow')?.value === '12\\nbob'", "the list has its values")
	p.change("set-connectors-0-allow", "12\n77\ncarl")
	p.change("set-connectors-0-queue", "collect")
	p.change("set-permissions-defaults-hosts", "example.org")
	eval[bool](p, "(document.querySelectorAll('main details').forEach(d => { d.open = true; }), true)")
	p.click("button", "Add to models")
	p.wait("document.getElementById('set-models-0-id')", "a new entry has fields")
	p.change("set-models-0-id", "scripted")
	p.looks("settings, lists")
	const want = "connectors:\n  - id: hall # the hall\n    type: webhook\n    allow:\n      - \"12\"  # Ann\n" +
		"      - \"77\"\n      - carl\n    options: { secretEnv: HALL }\n    queue: collect\n" +
		"permissions:\n  defaults:\n    hosts: [example.org]\nmodels:\n  - id: scripted\n"
	text := eval[string](p, "document.querySelector('main .edit textarea').value")
	if _, lists, _ := strings.Cut(strings.Replace(text, "id: hall   #", "id: hall #", 1), "script.yaml } }\n"); lists != want {
		t.Errorf("the text is\n%s\nwant\n%s", lists, want)
	}

	p.click("button", "Remove connectors hall")
	p.wait("document.querySelector('main .edit textarea').value.includes('connectors: []')", "the entry is gone")
	p.wait("!document.querySelector('main [data-key=publish]').disabled", "the text can be published")
	p.click("button", "Publish…")
	p.told("settings.yaml is published")
	w.until("the settings are in use", func() bool {
		var active struct {
			Permissions struct{ Defaults struct{ Hosts []string } }
			Models      []struct{ ID string }
		}
		w.api("GET", "/v1/config", nil, &active)
		return slices.Equal(active.Permissions.Defaults.Hosts, []string{"example.org"}) && len(active.Models) == 1
	})
}

// change sets a field of the form, as a user does who leaves it then.
func (p *tab) change(id, value string) {
	p.t.Helper()
	eval[bool](p, fmt.Sprintf(`(() => {
		const field = document.getElementById(%s);
		field.value = %s;
		field.dispatchEvent(new Event("change", { bubbles: true }));
		return true;
	})()`, quote(id), quote(value)))
}
