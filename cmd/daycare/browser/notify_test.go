//go:build !race

package browser

import (
	"strings"
	"testing"
)

// A browser that may notify says who asks, not what, while nobody looks; a click leads to the request.
func TestNotifications(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, askScript, "")
	w.start()
	agent := w.agent("worker")
	p := w.visit("/approvals", `
		window.shown = [];
		window.Notification = class {
			static permission = "default";
			static async requestPermission() { return Notification.permission = "granted"; }
			constructor(title, options) { this.title = title; this.options = options; shown.push(this); }
			close() { this.closed = true; }
		};
		document.hasFocus = () => false;`)
	p.click("button", "Notify me")
	p.wait("Notification.permission === 'granted'", "the browser was asked for leave")
	token := w.asks(agent)
	p.wait("shown.length === 1", "a notification is shown")
	said := eval[string](p, "shown[0].title + ' ' + JSON.stringify(shown[0].options)")
	if !strings.HasPrefix(said, "0/ worker asks for your approval") || strings.Contains(said, "write") || strings.Contains(said, "etc") {
		t.Errorf("the notification says %s", said)
	}
	eval[bool](p, "(shown[0].onclick(), true)")
	p.wait("location.pathname === '/approvals/"+token+"' && shown[0].closed", "a click leads to the request")
	w.api("POST", "/v1/permissions/"+token, map[string]string{"decision": "deny"}, nil)
	w.state(agent, "idle")

	eval[bool](p, "(document.hasFocus = () => true, true)") // who looks is not notified
	w.asks(agent)
	p.wait("document.title.startsWith('(1)')", "the request is counted")
	if n := eval[int](p, "shown.length"); n != 1 {
		t.Errorf("%d notifications, want none of what is looked at", n-1)
	}
}
