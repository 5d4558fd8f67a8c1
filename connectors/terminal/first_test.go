package terminal

import (
	"testing"
	"time"

	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/engine/permission"
)

// A new user, who has read nothing: what the screen tells at each step.
func TestFirstSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0 := newDaemon()
		drive(t, d0, 80, 24, func(d *driver) {
			d.golden("first-1-welcome")
			d.write("hello, who are you?")
			d.golden("first-2-typed")
			d.press("enter")
			id := d0.agents[0].ID
			d0.take(id, "t1")
			d.wait(200 * time.Millisecond)
			d0.say(id, "t1", 0, "I am your **agent")
			d.wait(200 * time.Millisecond)
			d.golden("first-3-answer-begins")
			d0.end(id, "t1", "I am your **agent**. Ask me for something.")
			d.wait(time.Second)
			d.golden("first-4-answered")
			d.write("Run the tests, please.")
			d.press("enter")
			asksToRun(d0, id)
			d.wait(time.Second)
			d.golden("first-5-asks")
			d.press("ctrl+y")
			d.golden("first-6-question")
			d.press("o")
			runs(d0, id)
			d.wait(time.Second)
			d.golden("first-7-allowed")
			d.write("/spawn keep an eye on the logs")
			d.press("enter")
			second := d0.agents[1].ID
			_, _ = d0.Deliver(t.Context(), message.Incoming{Agent: second, Text: "keep an eye on the logs"})
			d0.take(second, "t1")
			d0.say(second, "t1", 0, "I look at the logs")
			d.wait(time.Second)
			d.golden("first-8-second")
			d.press("ctrl+g")
			d.golden("first-9-all")
			d.press("?")
			d.golden("help")
			d.send(resize(200, 50))
			d.shows("Ctrl+Z", "/quit", "@FILE")
			d.hides("more lines")
			d.press("esc", "ctrl+c")
			d.shows("press Ctrl+C again to leave; the agents continue")
			if got, want := d.m.world.farewell(),
				"1 agent at work. Come back with: daycare   stop everything with: daycare stop\n"; got != want {
				t.Errorf("the shell shows %q, want %q", got, want)
			}
		})
	})
}

// asksToRun is a turn that ends because a user has to allow a command.
func asksToRun(d *daemon, id string) {
	d.take(id, "t2")
	call := map[string]any{"id": "c1", "name": "exec", "arguments": map[string]string{"command": "go test ./..."}}
	d.record(id, "assistant_message", map[string]any{"turn": "t2", "text": "I run them.", "finish": "tool_use", "toolCalls": []any{call}})
	d.record(id, "permission", map[string]any{"event": "asked", "token": "tok1", "tag": "@exec:go test", "request": "go test ./..."})
	d.record(id, "tool_result", map[string]any{"toolCallId": "c1", "name": "exec", "status": "denied",
		"output": map[string]string{"text": "needs approval tok1: a person has been asked to allow it."}})
	d.record(id, "turn_end", map[string]any{"turn": "t2", "reason": "waiting"})
	d.mu.Lock()
	d.pending = []event.Ask{permission.Pending{Token: "tok1", Agent: id, AskedAt: time.Now(), ExpiresAt: time.Now().Add(24 * time.Hour),
		Request: permission.Request{Tag: "@exec:go test", Reason: "run a command", Detail: permission.Detail{Command: "go test ./..."},
			Workdir: "/home/ada/shop", Sandbox: "bwrap", Programs: []string{"go: /usr/bin/go"}, Prefix: "@exec:go test"}}.Ask()}
	d.mu.Unlock()
	d.emit(event.PermissionRequested, id, "t2", event.Asked{Token: "tok1", Tag: "@exec:go test"})
	d.emit(event.TurnFinished, id, "t2", event.Finished{Reason: "waiting"})
	d.change(id, func(a *event.Agent) { a.State = event.WaitingPermission })
}

// runs is the turn after the answer.
func runs(d *daemon, id string) {
	d.record(id, "permission", map[string]any{"event": "once", "token": "tok1", "by": "ada", "tag": "@exec:go test",
		"request": "go test ./..."})
	d.record(id, "turn_begin", map[string]any{"turn": "t3", "attempt": 1})
	d.emit(event.TurnStarted, id, "t3", event.Started{Attempt: 1})
	call := map[string]any{"id": "c2", "name": "exec", "arguments": map[string]string{"command": "go test ./..."}}
	d.record(id, "assistant_message", map[string]any{"turn": "t3", "finish": "tool_use", "toolCalls": []any{call}})
	d.record(id, "tool_result", map[string]any{"toolCallId": "c2", "name": "exec", "status": "ok", "ms": 3100,
		"output": map[string]string{"text": "ok"}})
	d.end(id, "t3", "All tests pass.")
}
