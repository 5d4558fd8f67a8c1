package terminal

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"daycare/engine/event"
)

// beside140 is a daemon with agents in every state, whose agent 1/ has much to tell.
func beside140() (*daemon, string) {
	d := twelve()
	id := "agent1xzzzzzzzzzzzzzzzzzz"
	d.change(id, func(a *event.Agent) { at := time.Now().Add(-time.Minute); a.Budget, a.Queued, a.OldestAt = 2, 2, &at })
	d.record(id, "user_message", map[string]any{"item": "i0", "text": "Fix the login bug, please."})
	d.record(id, "assistant_message", map[string]any{"turn": "t0", "finish": "end_turn", "text": "The check was too short:\n\n```go\n" +
		"// live reports whether a session may be used.\nfunc live(s *Session) bool {\n\treturn s != nil && !s.Expired(30)\n}\n```\n"})
	return d, id
}

// From 140 columns on a conversation has the agent and all agents beside it; below, it is as it was.
func TestAWideConversationHasTheAgentsBesideIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0, id := beside140()
		drive(t, d0, 140, 30, func(d *driver) {
			d.wait(time.Second)
			d.run(d.m.show(id))
			d.wait(time.Second)
			d.golden("side")
			d.shows("model    sonnet", "22% of $2.00", "2 waiting, the oldest 1m", "asks     @write:/etc/hosts",
				"Ctrl+Y answers", "11 agents")
			d.send(resize(139, 30))
			d.hides("11 agents", "│ model")
			d.send(resize(200, 50))
			d.shows("11 agents", "model    sonnet")
			d.press("ctrl+g")
			d.hides("Ctrl+G all")
		})
	})
}

// A click on an agent in the pane opens it; one beside it does nothing.
func TestAClickInThePaneOpensTheAgent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0, id := beside140()
		drive(t, d0, 140, 45, func(d *driver) {
			d.wait(time.Second)
			d.run(d.m.show(id))
			d.wait(time.Second)
			for y, l := range strings.Split(d.frame(), "\n") {
				if y > 0 && strings.Contains(l, "5/ Queue watch") {
					d.send(tea.MouseClickMsg{X: 110, Y: y, Button: tea.MouseLeft})
				}
			}
			d.shows("to 5/ Queue watch")
			d.send(tea.MouseClickMsg{X: 110, Y: 2, Button: tea.MouseLeft})
			d.shows("to 5/ Queue watch")
		})
	})
}

// Many agents leave the one that is shown in the pane, and say how many are not.
func TestThePaneOfManyAgentsHasTheOneThatIsShown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0 := newDaemon()
		for i := range 100 {
			d0.add(fmt.Sprintf("%d/", i), fmt.Sprintf("agent %d", i), func(a *event.Agent) {
				if i < 50 {
					a.State, a.Detail = event.UsingTool, "exec make"
				}
			})
		}
		drive(t, d0, 140, 24, func(d *driver) {
			d.wait(time.Second)
			d.run(d.m.show(d0.agents[99].ID))
			d.wait(time.Second)
			d.shows("100 agents", "│ · 99/ agent 99", "│ ● 0/ agent 0", "… and 92 more")
			d.send(resize(140, 10))
			d.shows("to 99/ agent 99")
		})
	})
}

// Any size at any moment gives a frame of that size, whatever is open and in progress.
func TestAnySizeAtAnyMoment(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0, id := midway()
		drive(t, d0, 140, 40, func(d *driver) {
			d.press("enter")
			d.send(tea.PasteMsg{Content: strings.Repeat("line\n", 20)})
			sizes := 0
			for i, open := range []string{"", "ctrl+p", "f1", "ctrl+q", "ctrl+g"} {
				if open != "" {
					d.press("esc", open)
				}
				for w := 1; w < 260; w += 3 {
					for _, h := range []int{1, 9, 10, 11, 24, 70} {
						d.handle(resize(w+i%3, h))
						if w < minWidth || h < minHeight {
							_ = d.m.View()
							continue
						}
						checkFits(t, d.m)
						sizes++
					}
					d0.say(id, "t1", 1000+w, "more words ")
					d.settle()
				}
			}
			t.Logf("%d frames", sizes)
		})
	})
}

func checkFits(t *testing.T, m *Model) {
	t.Helper()
	lines := strings.Split(ansi.Strip(m.View().Content), "\n")
	if len(lines) != m.screen.height {
		t.Fatalf("%d lines on a screen of %d×%d", len(lines), m.screen.width, m.screen.height)
	}
	for i, l := range lines {
		if w := ansi.StringWidth(l); w > m.screen.width {
			t.Fatalf("line %d has %d columns on a screen of %d×%d: %q", i+1, w, m.screen.width, m.screen.height, l)
		}
	}
}

// The pane asks the daemon for nothing: a conversation makes as many requests with it as
// without it, and none while nothing happens.
func TestThePaneAsksForNothing(t *testing.T) {
	asked := map[int]int{}
	for _, width := range []int{100, 200} {
		bubble(t, func(t *testing.T) {
			d0, id := midway()
			drive(t, d0, width, 30, func(d *driver) {
				d.press("enter")
				d.wait(time.Second)
				before := d0.requests()
				d.wait(10 * time.Minute)
				if n := d0.requests() - before; n != 0 {
					t.Errorf("%d columns: %d requests in ten minutes in which nothing happened", width, n)
				}
				d0.end(id, "t1", "Done.")
				d.wait(time.Second)
				asked[width] = d0.requests()
			})
		})
	}
	if asked[100] != asked[200] {
		t.Errorf("requests at 100 columns: %d, with a pane at 200: %d", asked[100], asked[200])
	}
}
