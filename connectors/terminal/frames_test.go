package terminal

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/permission"
)

// bubble runs a test in virtual time, which advances only while it waits.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// twelve is a daemon with agents in every state there is.
func twelve() *daemon {
	d := newDaemon()
	ago := func(dur time.Duration) *time.Time { at := time.Now().Add(-dur); return &at }
	state := func(s event.State, detail string, last time.Duration, cost float64) func(*event.Agent) {
		return func(a *event.Agent) { a.State, a.Detail, a.LastAt, a.Cost = s, detail, ago(last), cost }
	}
	own := d.add("0/", ownName, state(event.Thinking, "", 2*time.Second, 1.2031))
	for i, c := range []struct {
		name   string
		state  event.State
		detail string
	}{{"log-reader", event.UsingTool, "grep panic logs/*.jsonl"}, {"reviewer", event.WaitingPermission, ""}, {"planner", event.Idle, ""}} {
		d.add(fmt.Sprintf("0/%d", i), c.name, func(a *event.Agent) {
			a.Type, a.ParentAgentID, a.State, a.Detail, a.LastAt = "subagent", own, c.state, c.detail,
				ago(time.Duration(i+1)*20*time.Second)
		})
	}
	d.add("1/", "fix the login bug", state(event.UsingTool, "exec go test ./...", 8*time.Second, 0.4410))
	d.add("2/", "telegram:5550001", state(event.Queued, "", 40*time.Second, 0.0120))
	d.change("agent2xzzzzzzzzzzzzzzzzzz", func(a *event.Agent) { a.Queued, a.OldestAt = 3, ago(4*time.Minute) })
	d.add("3/", "Ops", state(event.Retrying, "retry 2/8 in 4s: 429", 9*time.Second, 0))
	d.add("4/", "slack:general", state(event.Failing, "history.jsonl:12: not JSON", 3*time.Hour, 2.5))
	d.add("5/", "Queue watch", state(event.Idle, "", 7*time.Minute, 0.0300))
	d.add("6/", "release notes", state(event.Paused, "its budget of $11.00 is used up", 26*time.Hour, 11.21))
	d.add("7/", "heartbeat", state(event.WaitingAgent, "", time.Minute, 0.002))
	d.add("8/", "old one", state(event.Ended, "killed", 50*time.Hour, 0.1))
	for i := range d.agents {
		d.agents[i].Context, d.agents[i].Window = int64(i*i)*1300, 200_000
	}
	for _, a := range d.agents {
		if a.State == event.Idle {
			d.record(a.ID, "assistant_message",
				map[string]any{"turn": "t0", "text": "The " + a.Name + " is **done**: nothing is left to do."})
		}
	}
	d.pending = []event.Ask{
		permission.Pending{Token: "tok1", Agent: "agent0x1zzzzzzzzzzzzzzzzzz",
			AskedAt: time.Now().Add(-90 * time.Second), ExpiresAt: time.Now().Add(22 * time.Hour),
			Request: permission.Request{Tag: "@exec:git push", Reason: "publish the branch that was reviewed",
				Detail:  permission.Detail{Command: "git push origin fix-login"},
				Workdir: "/home/ada/shop", Sandbox: "bwrap", Programs: []string{"git: /usr/bin/git"}, Prefix: "@exec:git push"}}.Ask(),
		permission.Pending{Token: "tok2", Agent: "agent1xzzzzzzzzzzzzzzzzzz",
			AskedAt: time.Now().Add(-10 * time.Second), ExpiresAt: time.Now().Add(24 * time.Hour),
			Request: permission.Request{Tag: "@write:/etc/hosts", Reason: "the test of the login needs a name that leads to this machine " +
				"while it runs, and takes the line away again when it ends",
				Detail: permission.Detail{Diff: "--- /etc/hosts\n+++ /etc/hosts\n@@ -1,2 +1,3 @@\n 127.0.0.1 " +
					"localhost\n-::1 localhost\n+::1 localhost ip6-localhost\n+127.0.0.1 login.test\n"}}}.Ask(),
	}
	return d
}

func TestHome(t *testing.T) {
	bubble(t, func(t *testing.T) {
		drive(t, twelve(), 110, 30, func(d *driver) {
			d.wait(time.Second)
			d.golden("home")
			d.press("/")
			d.write("log")
			d.golden("home-filter")
			d.press("esc", "down", "down")
			d.send(resize(80, 24))
			d.wait(time.Second)
			d.golden("home-80x24")
		})
	})
}

// Who types a command on the page of all agents, where a slash begins a filter, has it
// run, unless there are agents who are called that.
func TestCommandsOfHome(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0 := twelve()
		drive(t, d0, 100, 30, func(d *driver) {
			d.wait(time.Second)
			d.press("/")
			d.write("send 5/ look again")
			d.shows("Enter runs /send.")
			d.press("enter")
			if n := len(d0.got); n != 1 || d0.got[0].Text != "look again" {
				t.Fatalf("sent: %+v", d0.got)
			}
			d.shows("sent to 5/ Queue watch", "0/ main")
			for _, text := range []string{"reset", "stop"} {
				d.press("/")
				d.write(text)
				d.press("enter")
				d.shows("which agent? open it first")
			}
			d.press("/")
			d.write("queue")
			d.shows("5/ Queue watch")
			d.press("enter", "enter")
			d.shows("to 2/ telegram")
			d.press("ctrl+g")
			d.shows("5/ Queue watch", "8/ old one")
			if calls := d0.calls(); len(calls) > 0 {
				t.Errorf("asked of the daemon: %q", calls)
			}
			d.press("/")
			d.write("skills")
			d.press("enter", "enter")
			d.shows("› Use the skill release:", "to 2/ telegram")
		})
	})
}

// On a wide screen the table has the type of each agent, and a column each for what it does
// and what it said last.
func TestAWideScreenShowsTheTypesOfAgents(t *testing.T) {
	bubble(t, func(t *testing.T) {
		drive(t, twelve(), 150, 30, func(d *driver) {
			d.wait(time.Second)
			d.shows("TYPE", "heartbeat", "subagent")
			d.golden("home-wide")
		})
	})
}

// A typed command runs although agents mention its word: only an agent of that name
// is what a filter looks for.
func TestTypedCommandIsNotAFilter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0 := twelve()
		d0.record("agent5xzzzzzzzzzzzzzzzzzz", "assistant_message", map[string]any{"turn": "t0", "text": "I can send or spawn."})
		drive(t, d0, 100, 30, func(d *driver) {
			d.wait(time.Second)
			d.press("/")
			d.write("send")
			d.shows("5/ Queue watch", "Enter runs /send")
			d.write(" 3/ look")
			d.press("enter")
			if len(d0.got) != 1 || d0.got[0].Text != "look" {
				t.Fatalf("sent: %+v", d0.got)
			}
		})
	})
}

// An agent that is paused at a budget is shown so, and its question says what each answer
// does.
func TestAPausedAgentAsksOnTheScreen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0, id := midway()
		request := permission.Budget{Scope: permission.BudgetPerDay, Day: "2026-11-22", Unit: permission.USD, Limit: 5,
			More: 5}.Request("the budget budget.perDay is used up: $4.9 of $5")
		ask := permission.Pending{Token: "tok1", Agent: id, Request: request, AskedAt: time.Now()}.Ask()
		drive(t, d0, 110, 30, func(d *driver) {
			d0.pending = []event.Ask{ask}
			d0.change(id, func(a *event.Agent) { a.State, a.Detail = event.Paused, request.Reason })
			d0.emit(event.PermissionRequested, id, "t1", event.Asked{Token: "tok1", Tag: request.Tag, Reason: request.Reason})
			d.wait(time.Second)
			d.shows("paused: the budget budget.perDay is used up")
			d.press("enter", "ctrl+y")
			d.shows("is paused and asks to", "continue beyond the budget of $5.00 for all agents on 2026-11-22",
				"[o] Raise once: $5.00 more on 2026-11-22",
				"[a] Raise limit to $10.00: budget.perDay.usd in settings.yaml", "[d] Stop")
			d.press("a")
			if got := d0.calls(); len(got) != 1 || got[0] != "decide tok1 always" {
				t.Errorf("asked of the daemon: %q", got)
			}
		})
	})
}

// Esc right after the last question was answered was meant for its dialog, which has
// closed by itself: it must not stop the agent below.
func TestEscAfterTheLastAnswerStopsNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0, id := midway()
		d0.pending = []event.Ask{{Token: "tok1", AgentID: id, Tag: "@exec:git push", Request: "git push", AskedAt: time.Now()}}
		drive(t, d0, 100, 30, func(d *driver) {
			d.press("enter", "ctrl+y")
			d.shows("[o] Once")
			d.press("o", "esc")
			d.hides("[o] Once")
			if got := d0.calls(); len(got) != 1 || got[0] != "decide tok1 once" {
				t.Fatalf("asked of the daemon: %q", got)
			}
			d.wait(2 * time.Second)
			d.press("esc")
			if got := d0.calls(); len(got) != 2 || got[1] != "stop "+id {
				t.Errorf("a later Esc asked of the daemon: %q", got)
			}
		})
	})
}

// /receive says so when nothing came in its time, and goes where something did.
func TestReceiveEndsWithAWord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0, id := midway()
		drive(t, d0, 100, 30, func(d *driver) {
			d.press("enter")
			d.write("/receive 60")
			d.press("enter")
			d.shows("waiting 1m00s for the next answer or question")
			d.wait(58 * time.Second)
			d.hides("/receive waited")
			d.wait(5 * time.Second)
			d.shows("no agent answered or asked while /receive waited")
			d.wait(time.Minute)
			d.hides("/receive waited")

			d.write("/receive 60")
			d.press("enter")
			d.wait(30 * time.Second)
			d0.end(address.ChildID(id, "none"), "t9", "not an agent that is shown")
			d0.end("agent0x1zzzzzzzzzzzzzzzzzz", "t2", "It is reviewed.")
			d.wait(2 * time.Second)
			d.shows("to 0/1 CodeReview")
		})
	})
}

// A sentence that is typed on the page of all agents finds agents by name or answers
// nothing: no letter of it starts an agent, decides a question or ends a turn.
func TestASentenceOnThePageOfAllAgentsDoesNothing(t *testing.T) {
	for _, sentence := range []string{"can you run the nightly tests now", "also run all of it", "add a proxy", "hello new agent",
		"do it once", "push and deploy", "approve nothing"} {
		bubble(t, func(t *testing.T) {
			d0 := twelve()
			drive(t, d0, 100, 30, func(d *driver) {
				d.wait(time.Second)
				for _, r := range sentence {
					d.press(string(r))
					d.wait(200 * time.Millisecond)
				}
				d.wait(2 * time.Second)
				if got := d0.calls(); len(got) != 0 {
					t.Errorf("%q asked of the daemon: %q", sentence, got)
				}
				if n := len(d0.got); n != 0 {
					t.Errorf("%q sent %d messages", sentence, n)
				}
			})
		})
	}
}

func TestApprovals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		drive(t, twelve(), 100, 30, func(d *driver) {
			d.wait(time.Second)
			d.press("a")
			d.shows("git push origin fix-login", "question 1 of 2", "publish the branch")
			d.press("tab")
			d.golden("approval-diff")
			// A third question does not take the place of the one that is read.
			d.daemon.mu.Lock()
			d.daemon.pending = append([]event.Ask{permission.Pending{Token: "tok0", Agent: "agent3xzzzzzzzzzzzzzzzzzz",
				Request: permission.Request{Tag: "@web", Detail: permission.Detail{Host: "example.org"}}}.Ask()}, d.daemon.pending...)
			d.daemon.mu.Unlock()
			d.daemon.emit(event.PermissionRequested, "agent3xzzzzzzzzzzzzzzzzzz", "", event.Asked{Token: "tok0"})
			d.wait(time.Second)
			d.shows("login.test", "of 3")
			d.press("a")
			if got := d.daemon.calls(); len(got) != 1 || got[0] != "decide tok2 always" {
				t.Errorf("asked of the daemon: %q", got)
			}
			// The next question took its place; a key that was pressed twice is no answer
			// to it.
			d.shows("example.org")
			d.press("a")
			if got := d.daemon.calls(); len(got) != 1 {
				t.Errorf("a question that nobody can have read was answered: %q", got)
			}
			// Who types on right after Esc answers nothing either: both come as one key.
			d.wait(2 * time.Second)
			d.press("alt+/", "o")
			if got := d.daemon.calls(); len(got) != 1 {
				t.Errorf("Esc and a word answered a question: %q", got)
			}
			d.press("esc")
			d.hides("[o] Once")
			d.shows("? 2 to answer")
		})
	})
}

func TestPicker(t *testing.T) {
	bubble(t, func(t *testing.T) {
		drive(t, twelve(), 100, 30, func(d *driver) {
			d.wait(time.Second)
			d.press("ctrl+p")
			d.write("og")
			d.golden("picker")
			d.press("enter")
			d.shows("to 0/0 log-reader")
		})
	})
}

// A question that someone else answers is gone from the screen at once: from the dialog,
// from the list and from what waits.
func TestQuestionAnsweredElsewhereLeavesTheScreen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		drive(t, twelve(), 100, 30, func(d *driver) {
			d.wait(time.Second)
			d.press("a")
			d.shows("git push origin fix-login", "question 1 of 2")
			// The daemon's list is not asked: the event alone says it.
			d.daemon.emit(event.PermissionDecided, "agent0x1zzzzzzzzzzzzzzzzzz", "",
				event.Asked{Token: "tok1", Decision: "once", By: "telegram:1"})
			d.daemon.mu.Lock()
			d.daemon.pending = d.daemon.pending[1:]
			d.daemon.mu.Unlock()
			d.wait(time.Second)
			d.hides("git push origin fix-login")
			d.shows("login.test")
		})
	})
}

// What has not been on the screen to its end cannot be allowed: keys and buttons of
// allowing come when it has.
func TestNothingIsAllowedThatWasNotShownWhole(t *testing.T) {
	bubble(t, func(t *testing.T) {
		daemon := twelve()
		daemon.pending = []event.Ask{permission.Pending{Token: "tok9", Agent: "agent0x1zzzzzzzzzzzzzzzzzz",
			Request: permission.Request{Tag: "@exec:sh",
				Detail: permission.Detail{Command: "echo a\u202e\n" + strings.Repeat("true\n", 60) + "rm -rf last"}}}.Ask()}
		drive(t, daemon, 100, 30, func(d *driver) {
			d.wait(time.Second)
			d.press("a")
			d.shows("echo a[U+202E]", "[d] Deny", "more lines")
			d.hides("rm -rf last", "[o] Once")
			d.press("o", "a", "p")
			if got := d.daemon.calls(); len(got) != 0 {
				t.Fatalf("allowed what was not read: %q", got)
			}
			d.press("pgdown", "pgdown", "pgdown", "pgdown", "pgdown")
			d.shows("rm -rf last", "[o] Once")
			d.wait(time.Second)
			d.press("o")
			if got := d.daemon.calls(); len(got) != 1 || got[0] != "decide tok9 once" {
				t.Fatalf("not allowed when it was read: %q", got)
			}
		})
	})
}
