package terminal

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/message"
)

func resize(width, height int) tea.Msg { return tea.WindowSizeMsg{Width: width, Height: height} }

// midway is a daemon whose agent 0/ is in the middle of much.
func midway() (*daemon, string) {
	d := newDaemon()
	id := d.add("0/", ownName, func(a *event.Agent) { a.State, a.Cost = event.Thinking, 0.0841 })
	for i, name := range []string{"CodeSearch", "CodeReview", "docs"} {
		d.add([]string{"0/0", "0/1", "0/2"}[i], name, func(a *event.Agent) {
			a.Type, a.ParentAgentID = "subagent", id
			if i < 2 {
				a.State, a.Detail = event.UsingTool, []string{"grep func.*Login", "read auth/session.go"}[i]
			}
		})
	}
	d.record(id, "start", map[string]any{"session": "s"})
	d.record(id, "turn_begin", map[string]any{"turn": "t1", "attempt": 1})
	d.record(id, "user_message", map[string]any{"item": "i0", "text": "Why does login fail after the update?"})
	d.record(id, "assistant_message", map[string]any{"turn": "t1", "text": "I will look at the tests first.",
		"thinking": []map[string]string{{"text": "The update touched sessions.\nSo look at the tests."}}, "finish": "tool_use",
		"toolCalls": []map[string]any{
			{"id": "c1", "name": "read", "arguments": map[string]string{"path": "auth/login_test.go"}},
			{"id": "c2", "name": "exec", "arguments": map[string]string{"command": "go test ./auth/"}},
			{"id": "c3", "name": "edit", "arguments": map[string]string{"path": "auth/login.go", "old": "a", "new": "b"}}}})
	d.record(id, "tool_result", map[string]any{"toolCallId": "c1", "name": "read", "status": "ok",
		"output": map[string]string{"text": "1 package auth"}, "ms": 3})
	d.record(id, "tool_result", map[string]any{"toolCallId": "c2", "name": "exec", "status": "error", "ms": 2300,
		"output": map[string]string{"text": "--- FAIL: TestLogin (0.01s)\n    login_test.go:12: session is nil"}})
	d.record(id, "tool_result", map[string]any{"toolCallId": "c3", "name": "edit", "status": "ok", "ms": 4, "output": map[string]any{
		"text": "changed line 7", "blocks": []map[string]string{{"type": "diff",
			"text": "@@ -7 +7 @@\n-\tif s == nil {\n+\tif s == nil || s.Expired() {\n"}}}})
	return d, id
}

func TestConversation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0, id := midway()
		drive(t, d0, 100, 40, func(d *driver) {
			d.press("enter") // Home begins with the first agent
			d0.emit(event.ToolStarted, id, "t1",
				event.Tool{Call: "c4", Name: "exec", Arguments: []byte(`{"command":"go test -race ./..."}`)})
			d0.emit(event.ToolProgress, id, "t1", event.Progress{Call: "c4", Text: "ok   auth    0.4s\nok   session 0.2s\n"})
			d.wait(3 * time.Second)
			d0.emit(event.ToolFinished, id, "t1", event.Tool{Call: "c4", Name: "exec", Status: "ok", Output: "ok", MS: 3100})
			d0.say(id, "t1", 0, "The session was checked for **nil** only:\n\n```go\nif s == nil || s.Exp")
			d.wait(time.Second)
			d.write("also look at logout")
			d.press("enter")
			d.write("then write")
			d.golden("conversation")
			d.press("ctrl+c", "shift+up", "shift+up", "enter")
			d.shows("▸", "new: b")
			d.send(resize(80, 24))
			d.golden("conversation-80x24")
		})
	})
}

// A sub-agent is one line; it opens to its steps, and from there to all it said.
func TestSubAgent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0, id := midway()
		child := address.ChildID(id, "c7")
		drive(t, d0, 100, 36, func(d *driver) {
			d.press("enter")
			d0.mu.Lock()
			d0.agents = append(d0.agents,
				event.Agent{ID: child, Handle: "0/3", Name: "Planner", Type: "subagent", ParentAgentID: id, State: event.Thinking})
			d0.mu.Unlock()
			d0.record(child, "user_message", map[string]any{"item": "i", "text": "plan the change", "origin": id})
			d0.emit(event.AgentCreated, child, "", nil)
			tell := func(e event.SubAgent, kind event.Type) {
				e.Name, e.Call, e.Agent = "Planner", "c7", child
				d0.emit(kind, id, "t1", e)
			}
			d0.emit(event.ToolStarted, id, "t1", event.Tool{Call: "c7", Name: "Planner", Arguments: []byte(`{"task":"plan the change"}`)})
			tell(event.SubAgent{Input: []byte(`{"task":"plan the change"}`)}, event.SubAgentStart)
			for i, path := range []string{"auth/login.go", "auth/session.go", "auth/logout.go"} {
				call := string(rune('x' + i))
				tell(event.SubAgent{Event: &event.Event{Type: event.ToolStarted,
					Body: event.Tool{Call: call, Name: "read", Arguments: []byte(`{"path":"` + path + `"}`)}}}, event.SubAgentProgress)
				if i < 2 {
					tell(event.SubAgent{Event: &event.Event{Type: event.ToolFinished,
						Body: event.Tool{Call: call, Name: "read", Status: "ok"}}}, event.SubAgentProgress)
				}
			}
			d.wait(2 * time.Second)
			d.shows("🧭 0/3 Planner plan the change", "running · 1s · 3 calls", "└ ● read auth/logout.go")
			d.press("shift+up", "enter")
			d.golden("sub-agent")
			tell(event.SubAgent{Result: []byte(`{"success":true,"toolCallCount":3,"usage":{"input":4000,"output":200},"cost":0.01}`)},
				event.SubAgentEnd)
			d0.change(child, func(a *event.Agent) { a.State = event.Idle })
			d0.emit(event.ToolFinished, id, "t1", event.Tool{Call: "c7", Name: "Planner", Status: "ok", Output: "1. do it", MS: 2100})
			d.wait(time.Second)
			d.shows("done · 2.1s · 3 calls · 4.2k tokens · $0.0100")
			d.press("ctrl+down")
			d.shows("to 0/3 Planner", "✉ from 0/ main", "plan the change")
		})
	})
}

func TestRetryAndDiscard(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0, id := midway()
		drive(t, d0, 100, 30, func(d *driver) {
			d.press("enter")
			d0.say(id, "t1", 0, "half an answ")
			d.wait(100 * time.Millisecond)
			d.shows("half an answ")
			d0.emit(event.Retry, id, "t1", event.Attempt{N: 2, Of: 8, InMS: 4000, Reason: "429 too many requests", Discard: true})
			d.wait(100 * time.Millisecond)
			d.hides("half an answ")
			d.shows("↻ retry 2/8 in 4s: 429 too many requests")
			d.wait(2 * time.Second)
			d.shows("retry 2/8 in 2s")
			d0.say(id, "t1", 0, "a whole one")
			d.wait(100 * time.Millisecond)
			d.shows("a whole one")
			d.hides("retry 2/8")
		})
	})
}

// Text that was missed comes from the draft, and at the end from the record.
func TestHole(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0, id := midway()
		drive(t, d0, 100, 30, func(d *driver) {
			d.press("enter")
			d0.mu.Lock()
			d0.drafts[id] = event.Draft{Turn: "t1", Text: "one two three "}
			d0.mu.Unlock()
			d0.say(id, "t1", 14, "four")
			d.wait(300 * time.Millisecond)
			d.shows("one two three")
			d0.end(id, "t1", "one two three four five")
			d.wait(time.Second)
			d.shows("one two three four five")
			if n := strings.Count(d.frame(), "one two"); n != 1 {
				t.Errorf("the answer stands %d times on the screen:\n%s", n, d.frame())
			}
		})
	})
}

// Each agent keeps its own draft and its place; what arrives elsewhere is marked.
func TestSwitching(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0 := newDaemon()
		a := d0.add("0/", ownName, nil)
		b := d0.add("1/", "second", nil)
		d0.add("2/", "third", nil)
		drive(t, d0, 100, 24, func(d *driver) {
			d.press("enter")
			d.write("for the first")
			d.press("ctrl+right")
			d.shows("to 1/ second")
			d.hides("for the first")
			d.write("for the second")
			d.press("ctrl+right", "ctrl+right") // wraps around
			d.shows("to 0/ main", "for the first")
			d0.say(b, "t1", 0, "unseen")
			d0.end(b, "t1", "news from the second")
			d.wait(time.Second)
			d.shows("✉1/ second", "✉ 1")
			d.press("ctrl+right")
			d.shows("for the second", "news from the second")
			d.hides("✉")
			d.press("ctrl+left")
			d.shows("to 0/ main", "for the first")
			_ = a
		})
	})
}

func TestQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0, _ := midway()
		drive(t, d0, 100, 30, func(d *driver) {
			d.press("enter")
			d.write("steer")
			d.press("enter")
			d.shows("⧗ 1 waiting (read at its next step)", "steer")
			d.write("later")
			d.press("tab")
			d.shows("⧗ 2 waiting (read when it is done)")
			if n := len(d0.got); n != 2 || d0.got[0].Queue != "" || d0.got[1].Queue != message.Followup {
				t.Errorf("Enter is to be taken in the agent's own way, Tab to wait behind the turn: %+v", d0.got)
			}
			d.press("ctrl+q")
			d.golden("queue")
			d.press("esc", "alt+up")
			d.shows("› later", "⧗ 1 waiting")
			d.press("ctrl+c", "alt+up")
			d.shows("› steer")
			d.hides("waiting (")
			d.press("ctrl+c")
			d.write("at the end")
			d.press("tab", "ctrl+q", "f", "d")
			if got := d0.calls(); len(got) < 2 || got[len(got)-2] != "front item3" || got[len(got)-1] != "drop item3" {
				t.Errorf("asked of the daemon: %q", got)
			}
			d.hides("Queued for", "waiting (")
		})
	})
}

// What Enter does while an agent works is what its queue says, and the screen says it.
func TestOwnQueue(t *testing.T) {
	for _, c := range []struct{ queue, help, waits string }{
		{"steer", "Enter: it reads this at its next step · Tab: when it is done", "(read at its next step)"},
		{"followup", "Enter: it reads this when it is done · Alt+Enter", "(read when it is done)"},
		{"collect", "Enter: when it is done, with all that waits · Tab: in a separate turn", "(read together when done)"},
		{"interrupt", "Enter: it stops and reads this · Tab: when it is done", "(it stops and reads this)"},
	} {
		bubble(t, func(t *testing.T) {
			d0, id := midway()
			d0.change(id, func(a *event.Agent) { a.Queue = c.queue })
			drive(t, d0, 120, 30, func(d *driver) {
				d.press("enter")
				d.write("more")
				d.shows(c.help)
				d.press("enter")
				d.shows("⧗ 1 waiting " + c.waits)
			})
		})
	}
}

func TestEscapeAndInterrupt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0, id := midway()
		drive(t, d0, 100, 30, func(d *driver) {
			d.press("enter", "esc")
			if got := d0.calls(); len(got) != 1 || got[0] != "stop "+id {
				t.Errorf("Esc asked for %q", got)
			}
			d0.emit(event.ToolStarted, id, "t1", event.Tool{Call: "c9", Name: "exec", Arguments: []byte(`{"command":"make"}`)})
			d.wait(200 * time.Millisecond)
			d.press("esc")
			d.shows("Esc again stops exec")
			if got := d0.calls(); len(got) != 1 {
				t.Errorf("one Esc stopped a running tool: %q", got)
			}
			d.press("esc")
			if got := d0.calls(); len(got) != 2 {
				t.Errorf("two Esc did not stop a running tool: %q", got)
			}
			d.write("something")
			d.press("ctrl+c")
			d.hides("something")
			d.press("ctrl+c")
			d.shows("press Ctrl+C again to leave")
		})
	})
}

// The daemon goes and comes back; nothing that was typed or said is lost.
func TestReconnect(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0, id := midway()
		drive(t, d0, 100, 30, func(d *driver) {
			d.press("enter")
			d.write("draft")
			d0.stop()
			d.wait(time.Second)
			d.shows("disconnected", "daycare does not answer", "draft", "I will look at the tests first.")
			d.press("enter")
			d.shows("not sent: daycare is not running", "› draft")
			// What is read by itself fails in silence: the line says how things stand.
			d.press("ctrl+g")
			d.wait(20 * time.Second)
			d.shows("daycare does not answer")
			d.press("enter")
			d0.end(id, "t1", "said meanwhile")
			d0.start()
			d.wait(5 * time.Second)
			d.hides("disconnected")
			d.shows("said meanwhile", "› draft")
		})
	})
}

// Who leaves and comes back finds drafts, the place and what was typed.
func TestResume(t *testing.T) {
	hints := t.TempDir()
	bubble(t, func(t *testing.T) {
		d0 := newDaemon()
		d0.add("0/", ownName, nil)
		d0.add("1/", "second", nil)
		drives(t, d0, hints, 100, 24, func(d *driver) {
			d.press("enter")
			d.write("sent before")
			d.press("enter")
			d.write("half a thought")
			d.press("ctrl+right")
			d.write("another half")
		})
		drives(t, d0, hints, 100, 24, func(d *driver) {
			d.shows("to 1/ second", "› another half")
			d.press("ctrl+left")
			d.shows("to 0/ main", "› half a thought")
			d.press("ctrl+c", "up")
			d.shows("› sent before")
		})
	})
}

func TestCommands(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0, _ := midway()
		drive(t, d0, 100, 30, func(d *driver) {
			d.press("enter")
			d.write("/s")
			d.golden("completion")
			d.press("down", "enter") // /send
			d.write("0/1")
			d.write(" keep going")
			d.press("enter")
			if n := len(d0.got); n != 1 || d0.got[0].Text != "keep going" || d0.got[0].Agent != "agent0x1zzzzzzzzzzzzzzzzzz" {
				t.Errorf("/send delivered %+v", d0.got)
			}
			d.write("/nonsense")
			d.press("enter")
			d.shows("there is no /nonsense", "› /nonsense")
			d.press("ctrl+c")
			d.write("/spawn write the release notes for version 2")
			d.press("enter")
			d.shows("to 4/ write the release notes")
			d.write("/kill 0/0")
			d.press("enter")
			d.shows("End 0/0 CodeSearch?")
			d.press("y")
			if got := d0.calls(); got[len(got)-1] != "kill agent0x0zzzzzzzzzzzzzzzzzz" {
				t.Errorf("asked of the daemon: %q", got)
			}
		})
	})
}

// What there is to choose from is offered where a command is given no name.
func TestChoosers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0, id := midway()
		d0.record(id, "turn_end", map[string]any{"turn": "t1", "reason": "done"})
		d0.record(id, "mark", map[string]any{"name": "before-logout"})
		d0.record(id, "turn_begin", map[string]any{"turn": "t2", "attempt": 1})
		d0.record(id, "user_message", map[string]any{"item": "i1", "text": "And look at logout, too."})
		d0.end(id, "t2", "Logout is right.")
		drive(t, d0, 100, 30, func(d *driver) {
			d.press("enter")
			d.write("/model")
			d.press("enter")
			d.golden("model")
			d.write("qwen")
			d.hides("opus")
			d.press("enter")
			if got := d0.calls(); len(got) != 1 || got[0] != "switch "+id+" local" {
				t.Errorf("asked of the daemon: %q", got)
			}
			d.shows("from the next turn on it uses local")

			d.write("/skills")
			d.press("enter")
			d.golden("skills")
			d.write("plan")
			d.shows("At most 12 rounds.", "/home/ada/project/.daycare/subagents/Planner.md")
			d.press("enter")
			d.shows("› Ask Planner:")
			d.press("ctrl+c")

			d.write("/rewind")
			d.press("enter")
			d.golden("rewind")
			d.press("enter")
			d.shows("› And look at logout, too.")
			d.press("ctrl+c")
			d.write("/rewind")
			d.press("enter", "down", "down", "enter")
			var to []string
			for _, m := range d0.got {
				to = append(to, string(m.Kind)+" "+m.Text)
			}
			if diff := cmp.Diff([]string{"rewind 9", "rewind 1"}, to); diff != "" {
				t.Errorf("(-want +got):\n%s\nof %s", diff, d0.history[id])
			}

			d0.mu.Lock()
			d0.rewound = []event.Rewound{{Path: "auth/login.go", Standing: "ready"}, {Path: "auth/new.go", Standing: "since"}}
			d0.mu.Unlock()
			d.press("ctrl+c")
			d.write("/rewind before-logout")
			d.press("enter")
			d.shows("Its tools wrote 2 files since", "auth/new.go: someone else changed it since: it stays")
			d.press("down")
			d.golden("rewind-files")
			d.press("enter")
			d0.mu.Lock()
			d0.inbox[id] = nil // it is carried out
			d0.mu.Unlock()
			d.wait(time.Second)
			d.shows("1 file taken back, auth/new.go left: it changed since")
			if got := d0.calls(); got[len(got)-1] != "take back "+id+" [] false" {
				t.Errorf("asked of the daemon: %q", got)
			}
		})
	})
}

// The wheel scrolls, older pages come when the top is reached, a click opens a card.
func TestMouse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0 := newDaemon()
		id := d0.add("0/", ownName, nil)
		for i := range 200 {
			d0.record(id, "user_message", map[string]any{"item": fmt.Sprint("i", i), "text": fmt.Sprint("message number ", i)})
		}
		drive(t, d0, 80, 24, func(d *driver) {
			d.shows("message number 199")
			d.hides("message number 180")
			for range 15 {
				d.send(tea.MouseWheelMsg{Button: tea.MouseWheelUp})
			}
			d.shows("↓ more below")
			d.hides("message number 199")
			for range 120 {
				d.send(tea.MouseWheelMsg{Button: tea.MouseWheelUp})
				d.wait(20 * time.Millisecond)
			}
			d.press("ctrl+home")
			d.press("ctrl+home")
			d.shows("message number 0\n")
			d.press("esc")
			d.shows("message number 199")
		})
		d0, _ = midway()
		drive(t, d0, 100, 40, func(d *driver) {
			d.press("enter")
			row := strings.Count(strings.Split(d.frame(), "read auth/login_test.go")[0], "\n")
			d.send(tea.MouseClickMsg{X: 5, Y: row, Button: tea.MouseLeft})
			d.shows("1 package auth")
		})
	})
}

// The model that an agent has from now on is shown at once: after /model, and when someone
// changed the settings or the agent's file.
func TestTheNewModelIsShownAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0 := newDaemon()
		id := d0.add("0/", ownName, nil)
		drive(t, d0, 100, 24, func(d *driver) {
			d.press("enter")
			d.shows("0/ main · sonnet")
			d.write("/model opus")
			d.press("enter")
			d.wait(6 * time.Second)
			d.shows("0/ main · opus")
			d0.change(id, func(a *event.Agent) { a.Model = "qwen3" })
			d0.emit(event.ConfigReloaded, "", "", event.File{File: "settings.yaml"})
			d.wait(time.Second)
			d.shows("0/ main · qwen3")
			d0.change(id, func(a *event.Agent) { a.Model = "haiku" })
			d0.emit(event.FileEdited, id, "", event.File{File: "state.json", Text: "provider changed; takes effect with the next turn"})
			d.wait(time.Second)
			d.shows("0/ main · haiku")
		})
	})
}

// Another name is shown at once, also where it is written to the agent.
func TestRename(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0 := newDaemon()
		d0.add("0/", ownName, nil)
		drive(t, d0, 100, 24, func(d *driver) {
			d.press("enter")
			d.write("/rename")
			d.press("enter")
			d.shows("like this: /rename release notes")
			d.write("/rename night watch")
			d.press("enter")
			d.wait(time.Second)
			d.shows("0/ is night watch now")
			d.shows("to 0/ night watch")
		})
	})
}
