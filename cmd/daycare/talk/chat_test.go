package talk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/cmd/daycare/commandtest"
	"daycare/cmd/daycare/daemon"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/workspace"
)

// answer streams the answer of a turn that has begun, and ends it.
func answer(h *commandtest.Server, turn string, text string) event.Outcome {
	half := len(text) / 2
	h.Emit(event.MessageDelta, turn, event.Delta{Text: text[:half]})
	h.Emit(event.MessageDelta, turn, event.Delta{Offset: half, Text: text[half:]})
	h.Record(&record.Assistant{Turn: turn, Text: text, Finish: record.FinishEndTurn})
	h.Record(&record.TurnEnd{Turn: turn, Items: []string{}, Reason: record.ReasonDone})
	h.Emit(event.TurnFinished, turn, event.Finished{Reason: record.ReasonDone, Text: text})
	return event.Outcome{Turn: turn, Reason: record.ReasonDone, Text: text}
}

func TestChatOneMessage(t *testing.T) {
	h := commandtest.NewHouse(t, func(h *commandtest.Server, in message.Incoming) event.Outcome {
		h.Begin("t1", in)
		h.Emit(event.MessageDelta, "t1", event.Delta{Text: "Let me look."})
		h.Emit(event.ToolStarted, "t1", event.Tool{Call: "c", Name: "read", Arguments: []byte(`{"path":"notes.txt"}`)})
		h.Emit(event.ToolFinished, "t1", event.Tool{Call: "c", Name: "read", Status: "ok"})
		return answer(h, "t1", "It says hello.\x1b[2J")
	})
	s := commandtest.NewShell(t, h, "", Chat)
	if code := s.Do("chat", "what", "is", "in", "notes.txt?"); code != fault.ExitOK {
		t.Fatalf("exit code %d, want 0; stderr: %s", code, s.Stderr.String())
	}
	if diff := cmp.Diff("Let me look.\nIt says hello.\x1b[2J\n", s.Stdout.String()); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("→ read notes.txt\n", s.Stderr.String()); diff != "" {
		t.Errorf("stderr (-want +got):\n%s", diff)
	}

	want := message.Address{Connector: "terminal", UserID: osUser(), ChannelID: "default"}
	if diff := cmp.Diff(want, h.Received()[0].From); diff != "" {
		t.Errorf("address of the terminal's own agent (-want +got):\n%s", diff)
	}
}

func TestChatLostDeltas(t *testing.T) {
	h := commandtest.NewHouse(t, func(h *commandtest.Server, in message.Incoming) event.Outcome {
		h.Begin("t1", in)
		h.Emit(event.MessageDelta, "t1", event.Delta{Text: "one "})
		h.Emit(event.MessageDelta, "t1", event.Delta{Offset: 8, Text: "three"}) // "two " is lost
		return event.Outcome{Turn: "t1", Reason: record.ReasonDone, Text: "one two three"}
	})
	s := commandtest.NewShell(t, h, "", Chat)
	s.Do("chat", "count")
	if diff := cmp.Diff("one two three\n", s.Stdout.String()); diff != "" {
		t.Errorf("the end of the turn must complete the answer (-want +got):\n%s", diff)
	}
}

func TestChatDiscard(t *testing.T) {
	h := commandtest.NewHouse(t, func(h *commandtest.Server, in message.Incoming) event.Outcome {
		h.Begin("t1", in)
		h.Emit(event.MessageDelta, "t1", event.Delta{Text: "The answ"})
		h.Emit(event.Retry, "t1", event.Attempt{N: 2, Of: 8, InMS: 4000, Status: 529, Reason: "overloaded", Discard: true})
		return answer(h, "t1", "The answer.")
	})
	s := commandtest.NewShell(t, h, "", Chat)
	s.Do("chat", "hello")
	if diff := cmp.Diff("The answ\nThe answer.\n", s.Stdout.String()); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}

	want := "retry 2/8 in 4 s: 529 overloaded; the answer above was cut off and starts again\n"
	if diff := cmp.Diff(want, s.Stderr.String()); diff != "" {
		t.Errorf("stderr (-want +got):\n%s", diff)
	}
}

// asking is a house whose first turn asks and whose second answers by the decision.
func asking(t *testing.T) *commandtest.Server {
	ask := permission.Pending{Token: "tok12345", Agent: commandtest.Agent0, Request: permission.Request{Tag: "@exec:git push",
		Detail: permission.Detail{Command: "git push origin main"}, Prefix: "@exec:git push"}}.Ask()
	return commandtest.NewHouse(t, func(h *commandtest.Server, in message.Incoming) event.Outcome {
		if in.Kind == message.Permission {
			h.State(event.Idle)
			time.Sleep(2 * lookEvery) // it looks idle for a while, and is not done
			h.Begin("t2", in)
			return answer(h, "t2", "Decided: "+in.Decision)
		}
		h.Begin("t1", in)
		h.Ask(ask)
		h.Emit(event.TurnFinished, "t1", event.Finished{Reason: record.ReasonWaiting, Text: "I need to push."})

		return event.Outcome{Turn: "t1", Reason: record.ReasonWaiting, Text: "I need to push."}
	})
}

func TestChatPermission(t *testing.T) {
	for _, test := range []struct {
		flag, out, decided string
		code               int
	}{
		{"allow", "I need to push.\nDecided: once\n", "tok12345 once", fault.ExitOK},
		{"deny", "I need to push.\nDecided: deny\n", "tok12345 deny", fault.ExitDenied},
		{"ask", "I need to push.\n", "", fault.ExitDenied}, // nobody can be asked
	} {
		t.Run(test.flag, func(t *testing.T) {
			h := asking(t)
			s := commandtest.NewShell(t, h, "", Chat)
			if code := s.Do("chat", "--permission", test.flag, "push"); code != test.code {
				t.Errorf("exit code %d, want %d; stderr: %s", code, test.code, s.Stderr.String())
			}
			if diff := cmp.Diff(test.out, s.Stdout.String()); diff != "" {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
			if got := h.Decided(); got != test.decided {
				t.Errorf("decided %q, want %q", got, test.decided)
			}
			if how := "daycare permissions allow tok12345 --once"; test.decided == "" && !strings.Contains(s.Stderr.String(), how) {
				t.Errorf("stderr must say how to answer (%s):\n%s", how, s.Stderr.String())
			}
		})
	}
}

// TestChatAsks holds a conversation in which the user is asked.
func TestChatAsks(t *testing.T) {
	h := asking(t)
	s := commandtest.NewShell(t, h, "maybe\no\n", Chat)
	talk := newTalk(s.App, h.Client(), chatOptions{}, s.TakeSignals(), true)
	talk.asks.policy = "ask"
	if err := talk.run(t.Context(), "push"); err != nil {
		t.Fatalf("talk: %v", err)
	}
	if diff := cmp.Diff("I need to push.\nDecided: once\n", s.Stdout.String()); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}

	for _, want := range []string{"git push origin main", "@exec:git push", "[o]nce / [a]lways / [d]eny"} {
		if !strings.Contains(s.Stderr.String(), want) {
			t.Errorf("the question must show %q:\n%s", want, s.Stderr.String())
		}
	}
}

// TestChatShowsWhatWaits: a talk begins with what the agent asked for before. A conversation
// puts the question; else the user reads how to answer, and nothing is answered for them.
func TestChatShowsWhatWaits(t *testing.T) {
	waiting := func(name string) *commandtest.Server {
		h := commandtest.NewHouse(t, func(h *commandtest.Server, in message.Incoming) event.Outcome {
			h.Begin("t1", in)
			return answer(h, "t1", "Done.")
		})
		h.Known[0].Name = name
		h.Open = []event.Ask{permission.Pending{Token: "tok12345", Agent: commandtest.Agent0,
			Request: permission.Request{Tag: "@exec:git push",
				Detail: permission.Detail{Command: "git push origin main"}, Workdir: "/home/ada/shop"}}.Ask()}

		return h
	}
	t.Run("conversation", func(t *testing.T) {
		h := waiting("main")
		s := commandtest.NewShell(t, h, "d\n/quit\n", Chat)
		talk := newTalk(s.App, h.Client(), chatOptions{}, s.TakeSignals(), false)
		talk.asks.policy = "ask"
		if err := talk.run(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		if got := h.Decided(); got != "tok12345 deny" {
			t.Errorf("decided %q", got)
		}

		for _, want := range []string{"    git push origin main\n", "folder      /home/ada/shop\n", "[o]nce / [a]lways / [d]eny"} {
			if !strings.Contains(s.Stderr.String(), want) {
				t.Errorf("the question must show %q:\n%s", want, s.Stderr.String())
			}
		}
	})

	for name, args := range map[string][]string{"a message": {"chat", "hello"}, "a flag": {"chat", "--permission", "allow", "hello"},
		"an agent by name": {"chat", "--agent", "0/", "hello"}} {
		t.Run(name, func(t *testing.T) {
			h := waiting(map[bool]string{true: "other", false: "main"}[name == "an agent by name"])
			s := commandtest.NewShell(t, h, "", Chat)
			if code := s.Do(args...); code != fault.ExitOK || s.Stdout.String() != "Done.\n" || h.Decided() != "" {
				t.Errorf("exit code %d, %q, decided %v", code, s.Stdout.String(), h.Decided())
			}

			for _, want := range []string{"1 earlier request waits", "    git push origin main\n", "folder      /home/ada/shop\n",
				"daycare permissions allow tok12345 --once", "daycare permissions deny tok12345"} {
				if !strings.Contains(s.Stderr.String(), want) {
					t.Errorf("stderr must show %q:\n%s", want, s.Stderr.String())
				}
			}
		})
	}

	t.Run("of another agent", func(t *testing.T) {
		h := waiting("other")
		s := commandtest.NewShell(t, h, "", Chat)
		if s.Do("chat", "hello"); strings.Contains(s.Stderr.String(), "tok12345") {
			t.Errorf("it is not what was asked by the agent that is spoken to:\n%s", s.Stderr.String())
		}
	})
}

func TestChatConversation(t *testing.T) {
	h := commandtest.NewHouse(t, func(h *commandtest.Server, in message.Incoming) event.Outcome {
		h.Begin("turn-"+in.Text, in)
		return answer(h, "turn-"+in.Text, "You said "+in.Text+".")
	})
	s := commandtest.NewShell(t, h, "", Chat)
	lines := make(chan string)
	talk := newTalk(s.App, h.Client(), chatOptions{}, s.TakeSignals(), false)
	done := make(chan error, 1)
	s.In = chanReader(lines)
	go func() { done <- talk.run(t.Context(), "") }()

	for _, line := range []string{"one", "/help", "/nonsense", "/etc/hosts", "two", "/quit"} {
		lines <- line + "\n"
		time.Sleep(50 * time.Millisecond) // as a user would; the answers come in between
	}
	if err := <-done; err != nil {
		t.Fatalf("talk: %v", err)
	}
	if diff := cmp.Diff("You said one.\nYou said /etc/hosts.\nYou said two.\n", s.Stdout.String()); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	if want := "unknown command /nonsense"; !strings.Contains(s.Stderr.String(), want) {
		t.Errorf("stderr must say %q:\n%s", want, s.Stderr.String())
	}
}

// What changes the conversation can be typed too, once there is one.
func TestChatCommands(t *testing.T) {
	root := t.TempDir()
	home := filepath.Join(root, workspace.Home)
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		filepath.Join(home, "settings.yaml"): "providers: [ { id: one, type: scripted, options: { script: one.yaml } } ]\n",
		filepath.Join(root, "one.yaml"):      `rules: [ { reply: [ { text: "heard {{.Text}}" } ] } ]`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	client, stop, err := daemon.Inside(t.Context(), workspace.At(root))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	s := commandtest.NewShell(t, commandtest.NewHouse(t, nil), "", Chat)
	talk := newTalk(s.App, client, chatOptions{}, s.TakeSignals(), false)
	lines, done := make(chan string), make(chan error, 1)
	s.In = chanReader(lines)
	go func() { done <- talk.run(t.Context(), "") }()
	history := func() string {
		paths, err := filepath.Glob(filepath.Join(home, "agents", "*", "history.jsonl"))
		if err != nil || len(paths) != 1 {
			return ""
		}
		data, err := os.ReadFile(paths[0])
		if err != nil {
			t.Error(err)
		}
		return string(data)
	}
	for _, step := range []struct{ line, done string }{
		{"/mark early", ""}, // there is nothing to mark
		{"/rename night watch", ""},
		{"hello", `"text":"heard hello"`},
		{"/mark before", `"type":"mark"`},
		{"more", `"text":"heard more"`},
		{"/rewind nowhere", ""},
		{"/rewind before", `"type":"rewind"`},
		{"/compact", "not compacted"},
		{"/model", ""},
		{"/model noone", ""},
		{"/rename", ""}, // to what
		{"/rename night watch", ""},
		{"/reset everything", ""}, // not what it says
	} {
		lines <- step.line + "\n"
		for end := time.Now().Add(time.Minute); !strings.Contains(history(), step.done); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s did not lead to %s within a minute", step.line, step.done)
			}
		}
	}
	lines <- "/quit\n"
	if err := <-done; err != nil {
		t.Fatalf("talk: %v", err)
	}
	for _, want := range []string{"no message has been sent yet", "checkpoint set; go back to it with: /rewind before",
		`no checkpoint "nowhere"`, "rewound", "will be compacted", "the agent uses scripted of one, as the settings say",
		`unknown model "noone"`, "0/ is night watch now", "unknown command /rename;",
		"unknown command /reset everything"} {
		if !strings.Contains(s.Stderr.String(), want) {
			t.Errorf("stderr must say %q:\n%s", want, s.Stderr.String())
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
	h := commandtest.NewHouse(t, func(h *commandtest.Server, in message.Incoming) event.Outcome {
		<-h.Stops
		return event.Outcome{Turn: "t1", Reason: record.ReasonCanceled}
	})
	s := commandtest.NewShell(t, h, "", Chat)
	go func() {
		for !s.TakesSignals() {
			time.Sleep(time.Millisecond)
		}
		for len(h.Received()) == 0 {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(20 * time.Millisecond) // until the agent is known
		s.Interrupts() <- os.Interrupt
	}()

	if code := s.Do("chat", "work"); code != fault.ExitInterrupted {
		t.Errorf("exit code %d, want 130; stderr: %s", code, s.Stderr.String())
	}
}

func TestChatErrors(t *testing.T) {
	h := commandtest.NewHouse(t, func(h *commandtest.Server, in message.Incoming) event.Outcome {
		return event.Outcome{Turn: "t1", Reason: record.ReasonError, Text: "The model does not answer."}
	})
	s := commandtest.NewShell(t, h, "  \n", Chat)
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"chat", "hi"}, fault.ExitFailure, "daycare: The model does not answer.\n"},
		{[]string{"chat"}, fault.ExitUsage, "the message is empty"},
		{[]string{"chat", "--agent", "nobody", "hi"}, fault.ExitNotFound, "daycare agents ls"},
		{[]string{"chat", "--permission", "perhaps", "hi"}, fault.ExitUsage, "allowed: ask, deny, allow"},
	} {
		if code := s.Do(test.args...); code != test.code || !strings.Contains(s.Stderr.String(), test.says) {
			t.Errorf("%v: exit code %d, want %d; stderr must have %q:\n%s", test.args, code, test.code, test.says, s.Stderr.String())
		}
		if s.Stdout.Len() > 0 {
			t.Errorf("%v: stdout must be empty, has %q", test.args, s.Stdout.String())
		}
	}
}

func TestChatJSON(t *testing.T) {
	h := commandtest.NewHouse(t, func(h *commandtest.Server, in message.Incoming) event.Outcome {
		h.Begin("t1", in)
		return answer(h, "t1", "Hello.")
	})
	s := commandtest.NewShell(t, h, "", Chat)
	if code := s.Do("chat", "--json", "hi"); code != fault.ExitOK {
		t.Fatalf("exit code %d; stderr: %s", code, s.Stderr.String())
	}

	lines := strings.Split(strings.TrimSpace(s.Stdout.String()), "\n")
	want := `{"type":"outcome","agent":"` + commandtest.Agent0 + `","item":"item1","turn":"t1","reason":"done","text":"Hello.","cost":0}`
	if got := lines[len(lines)-1]; got != want {
		t.Errorf("last line\n%s\nwant\n%s", got, want)
	}
	if !strings.HasPrefix(lines[0], `{"type":"item.queued"`) {
		t.Errorf("first line %s, want the receipt item.queued", lines[0])
	}
}
