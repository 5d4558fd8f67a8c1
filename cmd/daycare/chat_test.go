package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// answer streams the answer of a turn that has begun, and ends it.
func answer(h *house, turn string, text string) event.Outcome {
	half := len(text) / 2
	h.emit(event.MessageDelta, turn, event.Delta{Text: text[:half]})
	h.emit(event.MessageDelta, turn, event.Delta{Offset: half, Text: text[half:]})
	h.record(&record.Assistant{Turn: turn, Text: text, Finish: record.FinishEndTurn})
	h.record(&record.TurnEnd{Turn: turn, Items: []string{}, Reason: record.ReasonDone})
	h.emit(event.TurnFinished, turn, event.Finished{Reason: record.ReasonDone, Text: text})
	return event.Outcome{Turn: turn, Reason: record.ReasonDone, Text: text}
}

func TestChatOneMessage(t *testing.T) {
	h := newHouse(t, func(h *house, in message.Incoming) event.Outcome {
		h.begin("t1", in)
		h.emit(event.MessageDelta, "t1", event.Delta{Text: "Let me look."})
		h.emit(event.ToolStarted, "t1", event.Tool{Call: "c", Name: "read", Arguments: []byte(`{"path":"notes.txt"}`)})
		h.emit(event.ToolFinished, "t1", event.Tool{Call: "c", Name: "read", Status: "ok"})
		return answer(h, "t1", "It says hello.\x1b[2J")
	})
	s := newShell(t, h, "")
	if code := s.do("chat", "what", "is", "in", "notes.txt?"); code != term.ExitOK {
		t.Fatalf("exit code %d, want 0; stderr: %s", code, s.err.String())
	}
	if diff := cmp.Diff("Let me look.\nIt says hello.\x1b[2J\n", s.out.String()); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("→ read notes.txt\n", s.err.String()); diff != "" {
		t.Errorf("stderr (-want +got):\n%s", diff)
	}
	want := message.Address{Connector: "terminal", UserID: osUser(), ChannelID: "default"}
	if diff := cmp.Diff(want, h.got[0].From); diff != "" {
		t.Errorf("address of the terminal's own agent (-want +got):\n%s", diff)
	}
}

func TestChatLostDeltas(t *testing.T) {
	h := newHouse(t, func(h *house, in message.Incoming) event.Outcome {
		h.begin("t1", in)
		h.emit(event.MessageDelta, "t1", event.Delta{Text: "one "})
		h.emit(event.MessageDelta, "t1", event.Delta{Offset: 8, Text: "three"}) // "two " is lost
		return event.Outcome{Turn: "t1", Reason: record.ReasonDone, Text: "one two three"}
	})
	s := newShell(t, h, "")
	s.do("chat", "count")
	if diff := cmp.Diff("one two three\n", s.out.String()); diff != "" {
		t.Errorf("the end of the turn must complete the answer (-want +got):\n%s", diff)
	}
}

func TestChatDiscard(t *testing.T) {
	h := newHouse(t, func(h *house, in message.Incoming) event.Outcome {
		h.begin("t1", in)
		h.emit(event.MessageDelta, "t1", event.Delta{Text: "The answ"})
		h.emit(event.Retry, "t1", event.Attempt{N: 2, Of: 8, InMS: 4000, Status: 529, Reason: "overloaded", Discard: true})
		return answer(h, "t1", "The answer.")
	})
	s := newShell(t, h, "")
	s.do("chat", "hello")
	if diff := cmp.Diff("The answ\nThe answer.\n", s.out.String()); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	want := "retry 2/8 in 4 s: 529 overloaded; the answer above broke off and begins again\n"
	if diff := cmp.Diff(want, s.err.String()); diff != "" {
		t.Errorf("stderr (-want +got):\n%s", diff)
	}
}

// asking is a house whose first turn asks and whose second answers by the decision.
func asking(t *testing.T) *house {
	ask := permission.Pending{Token: "tok12345", Agent: agent0, Request: permission.Request{Tag: "@exec:git push",
		Detail: permission.Detail{Command: "git push origin main"}, Prefix: "@exec:git push"}}.Ask()
	return newHouse(t, func(h *house, in message.Incoming) event.Outcome {
		if in.Kind == message.Permission {
			h.state(event.Idle)
			time.Sleep(2 * lookEvery) // it looks idle for a while, and is not done
			h.begin("t2", in)
			return answer(h, "t2", "Decided: "+in.Decision)
		}
		h.begin("t1", in)
		h.mu.Lock()
		h.asks = []event.Ask{ask}
		h.mu.Unlock()
		h.state(event.WaitingPermission)
		h.emit(event.TurnFinished, "t1", event.Finished{Reason: record.ReasonWaiting, Text: "I need to push."})
		return event.Outcome{Turn: "t1", Reason: record.ReasonWaiting, Text: "I need to push."}
	})
}

func TestChatPermission(t *testing.T) {
	for _, test := range []struct {
		flag, out, decided string
		code               int
	}{
		{"allow", "I need to push.\nDecided: once\n", "tok12345 once", term.ExitOK},
		{"deny", "I need to push.\nDecided: deny\n", "tok12345 deny", term.ExitDenied},
		{"ask", "I need to push.\n", "", term.ExitDenied}, // nobody can be asked
	} {
		t.Run(test.flag, func(t *testing.T) {
			h := asking(t)
			s := newShell(t, h, "")
			if code := s.do("chat", "--permission", test.flag, "push"); code != test.code {
				t.Errorf("exit code %d, want %d; stderr: %s", code, test.code, s.err.String())
			}
			if diff := cmp.Diff(test.out, s.out.String()); diff != "" {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
			if got := strings.Join(h.decided, ","); got != test.decided {
				t.Errorf("decided %q, want %q", got, test.decided)
			}
			if how := "daycare permissions allow tok12345 --once"; test.decided == "" && !strings.Contains(s.err.String(), how) {
				t.Errorf("stderr must say how to answer (%s):\n%s", how, s.err.String())
			}
		})
	}
}

// TestChatAsks holds a conversation in which the person is asked.
func TestChatAsks(t *testing.T) {
	h := asking(t)
	s := newShell(t, h, "maybe\no\n")
	talk := newTalk(s.App, h.client(), chatOptions{}, s.TakeSignals(), true)
	talk.asks.policy = "ask"
	if err := talk.run(t.Context(), "push"); err != nil {
		t.Fatalf("talk: %v", err)
	}
	if diff := cmp.Diff("I need to push.\nDecided: once\n", s.out.String()); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	for _, want := range []string{"git push origin main", "@exec:git push", "[o]nce / [a]lways / [d]eny"} {
		if !strings.Contains(s.err.String(), want) {
			t.Errorf("the question must show %q:\n%s", want, s.err.String())
		}
	}
}

// TestChatShowsWhatWaits: a talk begins with what the agent asked for before. A conversation
// puts the question; else the person reads how to answer, and nothing is answered for them.
func TestChatShowsWhatWaits(t *testing.T) {
	waiting := func(name string) *house {
		h := newHouse(t, func(h *house, in message.Incoming) event.Outcome {
			h.begin("t1", in)
			return answer(h, "t1", "Done.")
		})
		h.agents[0].Name = name
		h.asks = []event.Ask{permission.Pending{Token: "tok12345", Agent: agent0, Request: permission.Request{Tag: "@exec:git push",
			Detail: permission.Detail{Command: "git push origin main"}, Workdir: "/home/ada/shop"}}.Ask()}
		return h
	}
	t.Run("conversation", func(t *testing.T) {
		h := waiting("main")
		s := newShell(t, h, "d\n/quit\n")
		talk := newTalk(s.App, h.client(), chatOptions{}, s.TakeSignals(), false)
		talk.asks.policy = "ask"
		if err := talk.run(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(h.decided, ","); got != "tok12345 deny" {
			t.Errorf("decided %q", got)
		}
		for _, want := range []string{"    git push origin main\n", "folder      /home/ada/shop\n", "[o]nce / [a]lways / [d]eny"} {
			if !strings.Contains(s.err.String(), want) {
				t.Errorf("the question must show %q:\n%s", want, s.err.String())
			}
		}
	})
	for name, args := range map[string][]string{"a message": {"chat", "hello"}, "a flag": {"chat", "--permission", "allow", "hello"},
		"an agent by name": {"chat", "--agent", "0/", "hello"}} {
		t.Run(name, func(t *testing.T) {
			h := waiting(map[bool]string{true: "other", false: "main"}[name == "an agent by name"])
			s := newShell(t, h, "")
			if code := s.do(args...); code != term.ExitOK || s.out.String() != "Done.\n" || len(h.decided) > 0 {
				t.Errorf("exit code %d, %q, decided %v", code, s.out.String(), h.decided)
			}
			for _, want := range []string{"1 request waits", "    git push origin main\n", "folder      /home/ada/shop\n",
				"daycare permissions allow tok12345 --once", "daycare permissions deny tok12345"} {
				if !strings.Contains(s.err.String(), want) {
					t.Errorf("stderr must show %q:\n%s", want, s.err.String())
				}
			}
		})
	}
	t.Run("of another agent", func(t *testing.T) {
		h := waiting("other")
		s := newShell(t, h, "")
		if s.do("chat", "hello"); strings.Contains(s.err.String(), "tok12345") {
			t.Errorf("it is not what was asked by the agent that is spoken to:\n%s", s.err.String())
		}
	})
}

func TestChatConversation(t *testing.T) {
	h := newHouse(t, func(h *house, in message.Incoming) event.Outcome {
		h.begin("turn-"+in.Text, in)
		return answer(h, "turn-"+in.Text, "You said "+in.Text+".")
	})
	s := newShell(t, h, "")
	lines := make(chan string)
	talk := newTalk(s.App, h.client(), chatOptions{}, s.TakeSignals(), false)
	done := make(chan error, 1)
	s.In = chanReader(lines)
	go func() { done <- talk.run(t.Context(), "") }()
	for _, line := range []string{"one", "/help", "/nonsense", "/etc/hosts", "two", "/quit"} {
		lines <- line + "\n"
		time.Sleep(50 * time.Millisecond) // as a person would; the answers come in between
	}
	if err := <-done; err != nil {
		t.Fatalf("talk: %v", err)
	}
	if diff := cmp.Diff("You said one.\nYou said /etc/hosts.\nYou said two.\n", s.out.String()); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	if want := "there is no /nonsense"; !strings.Contains(s.err.String(), want) {
		t.Errorf("stderr must say %q:\n%s", want, s.err.String())
	}
}

// What changes the conversation can be typed too, once there is one.
func TestChatCommands(t *testing.T) {
	workspace := t.TempDir()
	write(t, filepath.Join(workspace, home, "settings.yaml"), "providers: [ { id: one, type: scripted, options: { script: one.yaml } } ]\n")
	write(t, filepath.Join(workspace, "one.yaml"), `rules: [ { reply: [ { text: "heard {{.Text}}" } ] } ]`)
	client, err := control.Dial(startRuntime(t, workspace))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s := newShell(t, newHouse(t, nil), "")
	talk := newTalk(s.App, client, chatOptions{}, s.TakeSignals(), false)
	lines, done := make(chan string), make(chan error, 1)
	s.In = chanReader(lines)
	go func() { done <- talk.run(t.Context(), "") }()
	history := func() string {
		paths, err := filepath.Glob(filepath.Join(workspace, home, "agents", "*", "history.jsonl"))
		if err != nil || len(paths) != 1 {
			return ""
		}
		return string(mustRead(t, paths[0]))
	}
	for _, step := range []struct{ line, done string }{
		{"/mark early", ""}, // there is nothing to mark
		{"hello", `"text":"heard hello"`},
		{"/mark before", `"type":"mark"`},
		{"more", `"text":"heard more"`},
		{"/rewind nowhere", ""},
		{"/rewind before", `"type":"rewind"`},
		{"/compact", "nothing was shortened"},
		{"/model", ""},
		{"/model noone", ""},
		{"/reset everything", ""}, // not what it says
	} {
		lines <- step.line + "\n"
		waitFor(t, step.line, func() bool { return strings.Contains(history(), step.done) })
	}
	lines <- "/quit\n"
	if err := <-done; err != nil {
		t.Fatalf("talk: %v", err)
	}
	for _, want := range []string{"no message was sent yet", "marked; back to it: /rewind before", `no mark "nowhere"`, "taken back",
		"shortened next", "the agent uses scripted of one, as the settings say", `unknown model "noone"`, "there is no /reset everything"} {
		if !strings.Contains(s.err.String(), want) {
			t.Errorf("stderr must say %q:\n%s", want, s.err.String())
		}
	}
	if strings.Contains(history(), `"type":"reset"`) {
		t.Error("the conversation was reset")
	}
}

// chanReader is a stdin that gives what is sent to it.
type chanReader chan string

func (r chanReader) Read(p []byte) (int, error) { return copy(p, <-r), nil }

func TestChatInterrupt(t *testing.T) {
	h := newHouse(t, func(h *house, in message.Incoming) event.Outcome {
		<-h.stops
		return event.Outcome{Turn: "t1", Reason: record.ReasonCanceled}
	})
	s := newShell(t, h, "")
	go func() {
		for !s.TakesSignals() {
			time.Sleep(time.Millisecond)
		}
		for len(h.received()) == 0 {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(20 * time.Millisecond) // until the agent is known
		s.Interrupts() <- os.Interrupt
	}()
	if code := s.do("chat", "work"); code != term.ExitInterrupted {
		t.Errorf("exit code %d, want 130; stderr: %s", code, s.err.String())
	}
}

func (h *house) received() []message.Incoming {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.got
}

func TestChatErrors(t *testing.T) {
	h := newHouse(t, func(h *house, in message.Incoming) event.Outcome {
		return event.Outcome{Turn: "t1", Reason: record.ReasonError, Text: "The model does not answer."}
	})
	s := newShell(t, h, "  \n")
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"chat", "hi"}, term.ExitFailure, "daycare: The model does not answer.\n"},
		{[]string{"chat"}, term.ExitUsage, "the message is empty"},
		{[]string{"chat", "--agent", "nobody", "hi"}, term.ExitNotFound, "daycare agents ls"},
		{[]string{"chat", "--permission", "perhaps", "hi"}, term.ExitUsage, "none of ask, deny, allow"},
	} {
		if code := s.do(test.args...); code != test.code || !strings.Contains(s.err.String(), test.says) {
			t.Errorf("%v: exit code %d, want %d; stderr must have %q:\n%s", test.args, code, test.code, test.says, s.err.String())
		}
		if s.out.Len() > 0 {
			t.Errorf("%v: stdout must be empty, has %q", test.args, s.out.String())
		}
	}
}

func TestChatJSON(t *testing.T) {
	h := newHouse(t, func(h *house, in message.Incoming) event.Outcome {
		h.begin("t1", in)
		return answer(h, "t1", "Hello.")
	})
	s := newShell(t, h, "")
	if code := s.do("chat", "--json", "hi"); code != term.ExitOK {
		t.Fatalf("exit code %d; stderr: %s", code, s.err.String())
	}
	lines := strings.Split(strings.TrimSpace(s.out.String()), "\n")
	want := `{"type":"outcome","agent":"` + agent0 + `","item":"item1","turn":"t1","reason":"done","text":"Hello.","cost":0}`
	if got := lines[len(lines)-1]; got != want {
		t.Errorf("last line\n%s\nwant\n%s", got, want)
	}
	if !strings.HasPrefix(lines[0], `{"type":"item.queued"`) {
		t.Errorf("first line %s, want the receipt item.queued", lines[0])
	}
}
