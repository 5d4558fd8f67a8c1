package acp

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"daycare/cmd/daycare/commandtest"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// unasked is what nobody asks for.
type unasked interface{ control.Grants }

// rights are those of the agent: a profile, which can be set.
type rights struct {
	unasked
	profile *permission.Profile
}

func (r rights) Grants(context.Context, string) (permission.Set, error) {
	return permission.Set{Profile: *r.profile}, nil
}

func (r rights) Grant(_ context.Context, _ string, g control.Granting, _ string) error {
	*r.profile = permission.Profile(g.Profile)
	return nil
}

// A guest is an editor whose daemon is a house of one agent.
type guest struct {
	t         *testing.T
	house     *commandtest.Server
	workspace string
	to        io.Writer
	answer    func(params json.RawMessage) any // to what the agent asks for

	mu      sync.Mutex
	n       int
	waiting map[string]chan response
	updates []string        // what the editor was sent: the kind, and its text
	taken   int             // requests of the agent that it took back
	offered []string        // names of commands
	choices control.Catalog // nil: no choices
	mood    mood
}

// visit opens a connection; turn is what the agent does with a message.
func visit(t *testing.T, turn func(h *commandtest.Server, in message.Incoming) event.Outcome) *guest {
	t.Helper()
	in, to := io.Pipe()
	from, out := io.Pipe()
	g := &guest{t: t, house: commandtest.NewHouse(t, turn), workspace: t.TempDir(), to: to, waiting: map[string]chan response{}}
	profile := rights{profile: new(permission.Profile)}
	client := func(context.Context) (*control.Client, error) {
		return g.house.ClientWith(func(b *control.Backend) {
			b.Grants, b.Catalog = profile, g.choices
			b.Agents, b.Permissions = moody{b.Agents, &g.mood}, grumpy{b.Permissions, &g.mood}
		}), nil
	}
	dial := func(ctx context.Context) (*control.Client, error) {
		if err := g.mood.err("dial"); err != nil {
			return nil, err
		}
		return client(ctx)
	}
	ended, read := make(chan error, 1), make(chan struct{})
	go func() {
		ended <- Run(context.Background(), Options{Workspace: g.workspace, Version: "1", Connect: client, Dial: dial,
			Log: slog.New(slog.DiscardHandler)}, in, out)
		out.Close()
	}()
	go func() {
		defer close(read)
		lines := bufio.NewScanner(from)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			g.hears(lines.Bytes())
		}
	}()
	t.Cleanup(func() {
		to.Close()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		<-read
	})

	return g
}

// hears takes one line of the agent.
func (g *guest) hears(line []byte) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
	}
	if err := json.Unmarshal(line, &m); err != nil {
		g.t.Errorf("%s: %v", line, err)
		return
	}
	switch m.Method {
	case "":
		var r response
		_ = json.Unmarshal(line, &r) // read above
		g.mu.Lock()
		defer g.mu.Unlock()
		if done := g.waiting[string(m.ID)]; done != nil {
			done <- r
		}
	case "session/update":
		var p struct {
			Update struct {
				SessionUpdate string
				Content       struct{ Text string }

				AvailableCommands []struct{ Name string }
			}
		}
		_ = json.Unmarshal(m.Params, &p)
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, c := range p.Update.AvailableCommands {
			g.offered = append(g.offered, c.Name)
		}
		g.updates = append(g.updates, strings.TrimSuffix(p.Update.SessionUpdate+" "+p.Update.Content.Text, " "))
	case "$/cancel_request":
		g.mu.Lock()
		defer g.mu.Unlock()
		g.taken++
	default:
		said := g.answer(m.Params)
		if said == nil {
			return // the user does not answer
		}
		answer, _ := json.Marshal(said) // of the test
		go fmt.Fprintf(g.to, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, answer)
	}
}

// begin sends a request, whose response comes later.
func (g *guest) begin(method, params string) <-chan response {
	g.mu.Lock()
	g.n++
	id, done := fmt.Sprint(g.n), make(chan response, 1)
	g.waiting[id] = done
	g.mu.Unlock()
	if _, err := fmt.Fprintf(g.to, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`+"\n", id, method, params); err != nil {
		g.t.Error(err)
	}
	return done
}

func (g *guest) ask(method, params string) response { return <-g.begin(method, params) }

// session opens a new one.
func (g *guest) session() string {
	g.t.Helper()
	r := g.ask("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, g.workspace))
	var s struct{ SessionID string }
	if err := json.Unmarshal(r.Result, &s); err != nil || s.SessionID == "" {
		g.t.Fatalf("%s %v: %v", r.Result, r.Error, err)
	}
	return s.SessionID
}

// prompt sends a message, and returns why its turn stopped, or the error.
func (g *guest) prompt(session, text string) string {
	return stopOf(g.ask("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, session, text)))
}

func stopOf(r response) string {
	var out struct{ StopReason string }
	if r.Error.Message != "" || json.Unmarshal(r.Result, &out) != nil {
		return r.Error.Message
	}
	return out.StopReason
}

func (g *guest) told(update string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Contains(g.updates, update)
}

// answers is a turn that says something and ends for a reason.
func answers(text, reason string) func(*commandtest.Server, message.Incoming) event.Outcome {
	return func(h *commandtest.Server, in message.Incoming) event.Outcome {
		turn := "turn-" + in.ID
		h.Record(&record.TurnBegin{Turn: turn})
		h.Record(&record.User{Item: in.ID, Text: in.Text})
		h.Begin(turn, in)
		h.Record(&record.Assistant{Turn: turn, Text: text, Finish: record.FinishEndTurn})
		h.Record(&record.TurnEnd{Turn: turn, Items: []string{in.ID}, Reason: reason})
		h.Emit(event.TurnFinished, turn, event.Finished{Reason: reason, Items: []string{in.ID}})
		return event.Outcome{Turn: turn, Reason: reason, Text: text}
	}
}

// A prompt is a message of the session's agent, and its answer is told before the prompt ends.
func TestAPromptIsAnswered(t *testing.T) {
	g := visit(t, answers("here it is", record.ReasonDone))
	s := g.session()
	if stop := g.prompt(s, "where?"); stop != "end_turn" || !g.told("agent_message_chunk here it is") {
		t.Errorf("it stopped with %q, told was %q", stop, g.updates)
	}
	for deadline := time.Now().Add(30 * time.Second); !g.told("available_commands_update"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the commands were not told: %q", g.updates)
		}
	}
	got := g.house.Received()
	if len(got) != 1 || got[0].Text != "where?" || got[0].From.Connector != "acp" || got[0].From.ChannelID != s ||
		!strings.HasPrefix(got[0].Dedupe, "api:acp:"+s+":") && !strings.HasPrefix(got[0].Dedupe, "acp:"+s+":") {
		t.Errorf("sent was %+v", got)
	}
	if stop := g.prompt("none", "x"); !strings.Contains(stop, `no session "none"`) {
		t.Errorf("in a session that there is not: %q", stop)
	}
}

// Why a turn ended is said in the words of the protocol.
func TestWhyAPromptStopped(t *testing.T) {
	for reason, want := range map[string]string{record.ReasonLimit: "max_turn_requests", record.ReasonLoop: "max_turn_requests",
		record.ReasonCanceled: "cancelled", record.ReasonBudget: "the budget is used up",
		record.ReasonError: "the turn ended with an error"} {
		t.Run(reason, func(t *testing.T) {
			g := visit(t, answers("", reason))
			if stop := g.prompt(g.session(), "x"); !strings.Contains(stop, want) {
				t.Errorf("%q, want %q", stop, want)
			}
		})
	}
}

// A cancel ends the prompt and stops the agent's turn.
func TestAPromptIsCanceled(t *testing.T) {
	begun, stopped := make(chan struct{}), make(chan struct{})
	g := visit(t, func(h *commandtest.Server, in message.Incoming) event.Outcome {
		h.Record(&record.TurnBegin{Turn: "t1"})
		h.Record(&record.User{Item: in.ID, Text: in.Text})
		h.Begin("t1", in)
		close(begun)
		<-stopped
		h.Record(&record.TurnEnd{Turn: "t1", Items: []string{in.ID}, Reason: record.ReasonCanceled})
		h.Emit(event.TurnFinished, "t1", event.Finished{Reason: record.ReasonCanceled, Items: []string{in.ID}})
		return event.Outcome{Turn: "t1", Reason: record.ReasonCanceled}
	})
	s := g.session()
	done := g.begin("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"x"}]}`, s))
	<-begun
	for range 3 { // each is refused, and leaves the first one alone
		if again := g.prompt(s, "y"); again == "end_turn" || again == "" || len(g.house.Stops) != 0 {
			t.Fatalf("a second prompt at once: %q; the agent was stopped %d times", again, len(g.house.Stops))
		}
	}
	fmt.Fprintf(g.to, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`+"\n", s)
	if stop := stopOf(<-done); stop != "cancelled" {
		t.Errorf("it stopped with %q", stop)
	}
	close(stopped)
	if n := len(g.house.Received()); n != 1 {
		t.Errorf("the agent got %d messages, want the one", n)
	}
}

// What the agent wants to be allowed is asked in the editor, and its answer counts.
func TestAnApprovalIsAskedInTheEditor(t *testing.T) {
	for option, want := range map[string]string{"once": "tok once", "deny": "tok deny"} {
		var item string
		g := visit(t, func(h *commandtest.Server, in message.Incoming) event.Outcome {
			if in.Kind == message.Permission {
				h.Record(&record.TurnBegin{Turn: "t2"})
				h.Record(&record.Assistant{Turn: "t2", Text: "it is " + in.Decision, Finish: record.FinishEndTurn})
				h.Record(&record.TurnEnd{Turn: "t2", Items: []string{}, Reason: record.ReasonDone})
				h.Emit(event.TurnFinished, "t2", event.Finished{Reason: record.ReasonDone})
				return event.Outcome{Turn: "t2", Reason: record.ReasonDone}
			}
			item = in.ID
			h.Record(&record.TurnBegin{Turn: "t1"})
			h.Record(&record.User{Item: in.ID, Text: in.Text})
			h.Begin("t1", in)
			h.Record(&record.Permission{Token: "tok", Event: "asked", Tag: "@web:example.org"})
			h.Record(&record.Assistant{Turn: "t1", Finish: record.FinishToolUse,
				ToolCalls: []record.ToolCall{{ID: "call7", Name: "fetch", Arguments: []byte("{}")}}})
			h.Record(&record.ToolResult{ToolCallID: "call7", Name: "fetch", Status: record.StatusDenied,
				Output: record.Output{Text: needsApproval + "tok: ask the user"}})
			h.Record(&record.TurnEnd{Turn: "t1", Items: []string{item}, Reason: record.ReasonWaiting})
			h.Ask(event.Ask{Token: "tok", AgentID: commandtest.Agent0, Tag: "@web:example.org", Shown: "example.org",
				Choices: []event.Choice{{Decision: "once", Text: "Once"}, {Decision: "deny", Text: "Deny"}}})
			h.Emit(event.PermissionRequested, "t1", event.Asked{})
			h.Emit(event.TurnFinished, "t1", event.Finished{Reason: record.ReasonWaiting, Items: []string{item}})
			return event.Outcome{Turn: "t1", Reason: record.ReasonWaiting}
		})
		asked := ""
		g.answer = func(params json.RawMessage) any {
			asked = string(params)
			return map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": option}}
		}
		if stop := g.prompt(g.session(), "look"); stop != "end_turn" || !g.told("agent_message_chunk it is "+option) {
			t.Errorf("%s: it stopped with %q, told was %q", option, stop, g.updates)
		}
		if !strings.Contains(asked, "example.org") || !strings.Contains(asked, `"toolCallId":"call7"`) || g.house.Decided() != want {
			t.Errorf("asked was %s, decided %q; want %q", asked, g.house.Decided(), want)
		}
	}
}

// A command of the editor is carried out by daycare, and its answer told; one that there is not is
// refused, and a path is not a command.
func TestACommandIsTyped(t *testing.T) {
	g := visit(t, func(h *commandtest.Server, in message.Incoming) event.Outcome {
		if in.Kind == message.Text {
			return answers("heard", record.ReasonDone)(h, in)
		}
		return event.Outcome{Turn: "t", Reason: "done", Text: string(in.Kind) + " " + in.Text}
	})
	s := g.session()
	for text, want := range map[string]string{"/reset": "reset", "/mark before": "mark before", "/mark": "Name the checkpoint",
		"/context": "No model calls"} {
		if stop := g.prompt(s, text); stop != "end_turn" {
			t.Errorf("%s: %q", text, stop)
		}
		if !slices.ContainsFunc(g.updates, func(u string) bool { return strings.HasPrefix(u, "agent_message_chunk "+want) }) {
			t.Errorf("%s: told was %q", text, g.updates)
		}
	}
	for text, want := range map[string]string{"/model": "models", "/model other": "/model: "} {
		if stop := g.prompt(s, text); stop == "end_turn" || !strings.Contains(stop, want) {
			t.Errorf("%s: %q although nothing can be chosen", text, stop)
		}
	}
	if stop := g.prompt(s, "/tmp/x is where?"); stop != "end_turn" || !g.told("agent_message_chunk heard") {
		t.Errorf("a path: %q, %q", stop, g.updates)
	}
}

// menu are the models and commands of a workspace. A command waits for release.
type menu struct {
	control.Catalog
	expanding, release chan struct{}
}

func (menu) Models(context.Context) ([]control.ModelInfo, error) {
	return []control.ModelInfo{{Choice: "main/large"}, {Choice: "main/small"}}, nil
}

func (menu) Commands(context.Context) ([]control.CommandInfo, error) {
	return []control.CommandInfo{{Name: "fix", Arguments: "FILE", File: "fix.md"}}, nil
}

func (m menu) Expand(_ context.Context, name, arguments string) (string, error) {
	if name != "fix" {
		return "", fault.NoCommand
	}
	m.expanding <- struct{}{}
	<-m.release
	return "Please fix " + arguments, nil
}

// at visits a workspace with commands of its own.
func (m menu) at(t *testing.T) *guest {
	g := visit(t, answers("fixed", record.ReasonDone))
	g.choices = m
	return g
}

func newMenu() menu { return menu{expanding: make(chan struct{}, 1), release: make(chan struct{})} }

// A command of the workspace is offered, and sends the message that it expands to.
func TestACommandOfTheWorkspaceIsTyped(t *testing.T) {
	m := newMenu()
	g := m.at(t)
	close(m.release)
	s := g.session()
	within(t, "the commands are offered", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return slices.Contains(g.offered, "fix") && slices.Contains(g.offered, "reset")
	})
	if stop := g.prompt(s, "/fix main.go"); stop != "end_turn" || !g.told("agent_message_chunk fixed") {
		t.Errorf("it stopped with %q, told was %q", stop, g.updates)
	}
	if got := g.house.Received(); len(got) != 1 || got[0].Text != "Please fix main.go" {
		t.Errorf("the agent got %+v", got)
	}
	if stop := g.prompt(s, "/mend main.go"); !strings.Contains(stop, "there is no command /mend") {
		t.Errorf("of a command that there is not: %q", stop)
	}
	if stop := g.prompt(s, "/model"); stop != "end_turn" || !g.told(
		"agent_message_chunk /model NAME changes the model:\n\n- main/large\n- main/small\n") {
		t.Errorf("it stopped with %q, told was %q", stop, g.updates)
	}
}

// A prompt that is canceled before it was sent is not sent, and nothing of the agent is stopped.
func TestAPromptIsCanceledBeforeItIsSent(t *testing.T) {
	m := newMenu()
	g := m.at(t)
	s := g.session()
	done := g.begin("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"/fix it"}]}`, s))
	<-m.expanding
	fmt.Fprintf(g.to, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`+"\n", s)
	if r := g.ask("session/list", `{}`); r.Error.Message != "" { // behind the cancel
		t.Error(r.Error)
	}
	close(m.release)
	if stop := stopOf(<-done); stop != "cancelled" || len(g.house.Received()) != 0 || len(g.house.Stops) != 0 {
		t.Errorf("it stopped with %q; the agent got %+v and was stopped %d times", stop, g.house.Received(), len(g.house.Stops))
	}
	if stop := g.prompt(s, "next"); stop != "end_turn" {
		t.Errorf("the next one: %q", stop)
	}
}

// A cancel that follows the line of a prompt at once is meant for it, also where it is faster.
func TestACancelIsFasterThanItsPrompt(t *testing.T) {
	over := make(chan struct{})
	g := visit(t, func(*commandtest.Server, message.Incoming) event.Outcome {
		<-over
		return event.Outcome{Reason: record.ReasonCanceled}
	})
	defer close(over)
	s := g.session()
	for range 20 { // which of the two is first is not said
		g.mu.Lock()
		g.n++
		id, done := fmt.Sprint(g.n), make(chan response, 1)
		g.waiting[id] = done
		g.mu.Unlock()
		fmt.Fprintf(g.to, `{"jsonrpc":"2.0","id":%s,"method":"session/prompt","params":{"sessionId":%q,`+
			`"prompt":[{"type":"text","text":"x"}]}}`+"\n"+
			`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`+"\n", id, s, s)
		if stop := stopOf(<-done); stop != "cancelled" {
			t.Fatalf("it stopped with %q", stop)
		}
	}
	w, _ := newWire(nil, nil)
	d := &Door{link: &link{}, wire: w, sessions: map[acp.SessionId]*session{}}
	alone := d.open("alone", "")
	begin := func(what string, want bool) {
		t.Helper()
		w.open["1"] = cmp.Or(w.open["1"], &waiting{prompts: "alone"})
		if p := alone.begin(func() {}); p.canceled != want {
			t.Errorf("%s: canceled %v", what, p.canceled)
		}
		alone.leave()
		delete(w.open, "1")
	}
	if w.withdrawn("alone") {
		t.Error("nothing is canceled where no prompt waits")
	}
	begin("behind a cancel of nothing", false)
	w.open["1"] = &waiting{prompts: "alone"}
	if !w.withdrawn("alone") {
		t.Error("a prompt that waits is not canceled")
	}
	begin("behind its own cancel", true)
	begin("the next one", false)
}

// duringATurn is an editor whose prompt has begun a turn, which ends with the test.
func duringATurn(t *testing.T) (g *guest, session string, done <-chan response) {
	begun, stopped := make(chan struct{}), make(chan struct{})
	g = visit(t, func(h *commandtest.Server, in message.Incoming) event.Outcome {
		h.Begin("t1", in)
		close(begun)
		<-stopped
		return event.Outcome{Turn: "t1", Reason: record.ReasonCanceled}
	})
	t.Cleanup(func() { close(stopped) })
	session = g.session()
	done = g.begin("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"x"}]}`, session))
	<-begun

	return g, session, done
}

// Who withdraws the request of a prompt cancels it.
func TestAPromptIsWithdrawn(t *testing.T) {
	g, _, done := duringATurn(t)
	fmt.Fprintf(g.to, `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%d}}`+"\n", g.n)
	if stop := stopOf(<-done); stop != "cancelled" && !strings.Contains(stop, "cancel") {
		t.Errorf("it stopped with %q", stop)
	}
}

// A prompt that was sent before is not sent again: it ends as the first one did.
func TestAPromptThatIsSentTwice(t *testing.T) {
	g := visit(t, answers("here", record.ReasonLimit))
	s := g.session()
	for n := range 2 {
		stop := stopOf(g.ask("session/prompt", fmt.Sprintf(
			`{"sessionId":%q,"messageId":"7c8b0d3e-0000-4000-8000-000000000001","prompt":[{"type":"text","text":"x"}]}`, s)))
		if stop != "max_turn_requests" {
			t.Errorf("number %d stopped with %q", n+1, stop)
		}
	}
	if got := g.house.Received(); len(got) != 1 || !strings.HasSuffix(got[0].Dedupe, ":7c8b0d3e-0000-4000-8000-000000000001") {
		t.Errorf("the agent got %+v", got)
	}
}

// A message that someone else takes out of the inbox ends its prompt.
func TestAPromptIsDropped(t *testing.T) {
	stopped := make(chan struct{})
	g := visit(t, func(h *commandtest.Server, in message.Incoming) event.Outcome {
		h.Emit(event.ItemDropped, "", event.Item{Item: in.ID})
		<-stopped
		return event.Outcome{Reason: record.ReasonCanceled}
	})
	defer close(stopped)
	if stop := g.prompt(g.session(), "x"); stop != "cancelled" {
		t.Errorf("it stopped with %q", stop)
	}
}

// What a background agent asks for is asked while the turn still runs, and withdrawn when someone else answers.
func TestARequestOfAnotherAgentDoesNotWaitForTheTurn(t *testing.T) {
	const child = "bbbbbbbbbbbbbbbbbbbbbbbb"
	g := visit(t, func(h *commandtest.Server, in message.Incoming) event.Outcome {
		if in.Kind == message.Permission {
			return event.Outcome{}
		}
		h.Begin("t1", in)
		h.Ask(event.Ask{Token: "tok", AgentID: child, Tag: "@web:example.org",
			Choices: []event.Choice{{Decision: "once", Text: "Once"}}})
		h.Emit(event.PermissionRequested, "", event.Asked{})
		within(t, "it is answered", func() bool { return h.Decided() != "" })
		return answers("it went on", record.ReasonDone)(h, in)
	})
	g.house.Known = append(g.house.Known, event.Agent{ID: child, Handle: "0/1/"})
	g.answer = func(json.RawMessage) any {
		return map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": "once"}}
	}
	if stop := g.prompt(g.session(), "x"); stop != "end_turn" || !g.told("agent_message_chunk it went on") {
		t.Errorf("it stopped with %q, told was %q", stop, g.updates)
	}
}

// asking is a turn that asks for something and waits; a decision ends the wait.
func asking(h *commandtest.Server, in message.Incoming) event.Outcome {
	turn := "turn-" + in.ID
	h.Record(&record.TurnBegin{Turn: turn})
	if in.Kind == message.Permission {
		h.Record(&record.TurnEnd{Turn: turn, Items: []string{}, Reason: record.ReasonDone})
		h.Emit(event.TurnFinished, turn, event.Finished{Reason: record.ReasonDone})
		return event.Outcome{Turn: turn, Reason: record.ReasonDone}
	}
	h.Record(&record.User{Item: in.ID, Text: in.Text})
	h.Begin(turn, in)
	h.Record(&record.Permission{Token: "tok", Event: "asked", Tag: "@web:example.org"})
	h.Record(&record.TurnEnd{Turn: turn, Items: []string{in.ID}, Reason: record.ReasonWaiting})
	h.Ask(event.Ask{Token: "tok", AgentID: commandtest.Agent0, Tag: "@web:example.org",
		Choices: []event.Choice{{Decision: "once", Text: "Once"}, {Decision: "deny", Text: "Deny"}}})
	h.Emit(event.TurnFinished, turn, event.Finished{Reason: record.ReasonWaiting, Items: []string{in.ID}})
	return event.Outcome{Turn: turn, Reason: record.ReasonWaiting}
}

// A request that its user puts off stays open for others, and is asked again with the next prompt.
func TestARequestThatIsPutOff(t *testing.T) {
	g := visit(t, asking)
	asked, answer := make(chan struct{}, 10), map[string]any{"outcome": "cancelled"}
	g.answer = func(json.RawMessage) any {
		asked <- struct{}{}
		return map[string]any{"outcome": answer}
	}
	s := g.session()
	done := g.begin("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"x"}]}`, s))
	<-asked
	fmt.Fprintf(g.to, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`+"\n", s)
	if stop := stopOf(<-done); stop != "cancelled" || g.house.Decided() != "" {
		t.Errorf("it stopped with %q, decided was %q", stop, g.house.Decided())
	}
	answer = map[string]any{"outcome": "selected", "optionId": "once"}
	if stop := g.prompt(s, "y"); stop != "end_turn" || !strings.HasPrefix(g.house.Decided(), "tok once") || len(asked) == 0 {
		t.Errorf("it stopped with %q, decided was %q, asked again %d times", stop, g.house.Decided(), len(asked))
	}
}

// A request that was open when its prompt was canceled is asked again with the next one, also where the editor has
// not answered it yet, and what the editor says of it then puts off nothing.
func TestAPromptThatBeginsBeforeTheEditorAnswers(t *testing.T) {
	withdrawn := 0
	w, _ := newWire(nil, nil)
	s := &session{door: &Door{wire: w},
		asked:  askedRequests{shown: map[string]context.CancelFunc{"tok": func() { withdrawn++ }, "old": nil}},
		prompt: &prompt{item: "it", closed: true, done: make(chan struct{}), abandon: func() {}}}
	s.cancel(s.prompt)(t.Context()) // without a connection: it stops no turn, as the next one is that of another prompt
	<-s.prompt.done
	s.prompt = nil
	if s.begin(func() {}); withdrawn != 1 || len(s.asked.shown) > 0 {
		t.Errorf("it was taken back %d times, counted as shown are %d", withdrawn, len(s.asked.shown))
	}
}

// A request that is shown is taken back when someone else answers it, or its prompt is canceled.
func TestARequestThatIsTakenBack(t *testing.T) {
	for _, canceled := range []bool{false, true} {
		g := visit(t, asking)
		asked := make(chan struct{}, 10)
		g.answer = func(json.RawMessage) any { asked <- struct{}{}; return nil }
		s := g.session()
		done := g.begin("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"x"}]}`, s))
		<-asked
		want := "end_turn"
		if canceled {
			want = "cancelled"
			fmt.Fprintf(g.to, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`+"\n", s)
		} else {
			if err := g.house.Client().Decide(t.Context(), "tok", "once", ""); err != nil {
				t.Fatal(err)
			}
			g.house.Emit(event.PermissionDecided, "", event.Asked{Token: "tok"})
		}
		if stop := stopOf(<-done); stop != want {
			t.Errorf("it stopped with %q, want %q", stop, want)
		}
		within(t, "the request is taken back", func() bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.taken == 1
		})
	}
}

// What a call needs is asked as soon as it is known of which call it is, while the turn still runs.
func TestARequestOfACallDoesNotWaitForTheTurn(t *testing.T) {
	g := visit(t, func(h *commandtest.Server, in message.Incoming) event.Outcome {
		if in.Kind == message.Permission {
			return event.Outcome{}
		}
		h.Record(&record.TurnBegin{Turn: "t"})
		h.Record(&record.User{Item: in.ID, Text: in.Text})
		h.Begin("t", in)
		h.Ask(event.Ask{Token: "tok", AgentID: commandtest.Agent0, Tag: "@web:example.org",
			Choices: []event.Choice{{Decision: "once", Text: "Once"}}})
		h.Record(&record.ToolResult{ToolCallID: "call7", Name: "fetch", Status: record.StatusDenied,
			Output: record.Output{Text: needsApproval + "tok: ask the user"}})
		h.Emit(event.ToolFinished, "t", event.Tool{Call: "call7"})
		within(t, "it is answered", func() bool { return h.Decided() != "" })
		h.Emit(event.PermissionGranted, "t", event.Asked{Token: "tok"})
		h.Record(&record.TurnEnd{Turn: "t", Items: []string{in.ID}, Reason: record.ReasonDone})
		h.Emit(event.TurnFinished, "t", event.Finished{Reason: record.ReasonDone, Items: []string{in.ID}})
		return event.Outcome{Turn: "t", Reason: record.ReasonDone}
	})
	g.answer = func(json.RawMessage) any {
		return map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": "once"}}
	}
	if stop := g.prompt(g.session(), "x"); stop != "end_turn" {
		t.Errorf("it stopped with %q", stop)
	}
	within(t, "its permissions are shown", func() bool { return g.told("current_mode_update") })
}

// An answer that begins while another has no record begins again.
func TestAnotherAnswerBegins(t *testing.T) {
	var g *guest
	g = visit(t, func(h *commandtest.Server, in message.Incoming) event.Outcome {
		h.Record(&record.TurnBegin{Turn: "t"})
		h.Record(&record.User{Item: in.ID, Text: in.Text})
		h.Begin("t", in)
		h.Emit(event.MessageDelta, "t", event.Delta{Text: "one"})
		h.Emit(event.MessageDelta, "t", event.Delta{Text: "two"})
		within(t, "both are told", func() bool { return g.told("agent_message_chunk two") })
		return answers("two", record.ReasonDone)(h, in)
	})
	if stop := g.prompt(g.session(), "x"); stop != "end_turn" || !g.told("agent_message_chunk "+beginsAgain) {
		t.Errorf("it stopped with %q, told was %q", stop, g.updates)
	}
}

// A conversation of many pages is sent whole and in its order.
func TestALongConversationIsLoaded(t *testing.T) {
	g := visit(t, answers("x", record.ReasonDone))
	g.house.Known[0].Connector, g.house.Known[0].ChannelID = "acp", "mine"
	const many = 1100
	for n := range many {
		g.house.Record(&record.User{Item: fmt.Sprint("i", n), Text: fmt.Sprint("message ", n)})
	}
	if r := g.ask("session/load", fmt.Sprintf(`{"sessionId":"mine","cwd":%q,"mcpServers":[]}`, g.workspace)); r.Error.Message != "" {
		t.Fatal(r.Error)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for _, u := range g.updates {
		if text, ok := strings.CutPrefix(u, "user_message_chunk message "); ok {
			if text != fmt.Sprint(n) {
				t.Fatalf("message %s comes as number %d", text, n)
			}
			n++
		}
	}
	if n != many {
		t.Errorf("%d of %d messages were told", n, many)
	}
}

// How full the context is is said as far as it is known; what daycare does not have is refused with a word.
func TestWhatASessionIsAsked(t *testing.T) {
	g := visit(t, answers("x", record.ReasonDone))
	s := g.session()
	for want, window := range map[string]int64{"500 tokens in the context of scripted.": 0,
		"500 of 1000 tokens (50 %) in the context of scripted; /compact shortens it.": 1000} {
		g.house.Known[0].Context, g.house.Known[0].Window = 500, window
		if stop := g.prompt(s, "/context"); stop != "end_turn" || !g.told("agent_message_chunk "+want) {
			t.Errorf("%q, told was %q", stop, g.updates)
		}
	}
	for method, want := range map[string]string{"authenticate": "needs no authentication",
		"session/set_config_option": "no config options"} {
		r := g.ask(method, fmt.Sprintf(`{"methodId":"x","sessionId":%q,"configId":"x","value":"y"}`, s))
		if !strings.Contains(r.Error.Message, want) {
			t.Errorf("%s: %s %+v", method, r.Result, r.Error)
		}
	}
}

// Who opens a session in the middle of an answer gets what of it was streamed; a new answer begins behind
// what is recorded.
func TestAnAnswerThatIsUnderWay(t *testing.T) {
	var g *guest
	g = visit(t, func(h *commandtest.Server, in message.Incoming) event.Outcome {
		h.Record(&record.TurnBegin{Turn: "t1"})
		h.Record(&record.User{Item: in.ID, Text: in.Text})
		h.Begin("t1", in)
		h.Record(&record.Assistant{Turn: "t1", Text: "first", Finish: record.FinishToolUse})
		h.Emit(event.MessageDelta, "t1", event.Delta{Text: "second"})
		within(t, "the piece is told", func() bool { return g.told("agent_message_chunk second") })
		h.Record(&record.Assistant{Turn: "t1", Text: "second", Finish: record.FinishEndTurn})
		h.Record(&record.TurnEnd{Turn: "t1", Items: []string{in.ID}, Reason: record.ReasonDone})
		h.Emit(event.TurnFinished, "t1", event.Finished{Reason: record.ReasonDone, Items: []string{in.ID}})
		return event.Outcome{Turn: "t1", Reason: record.ReasonDone}
	})
	g.house.Known[0].Connector, g.house.Known[0].ChannelID = "acp", "mine"
	g.house.Stream(event.Draft{Turn: "t0", Text: "half an answer"})
	if r := g.ask("session/load", fmt.Sprintf(`{"sessionId":"mine","cwd":%q,"mcpServers":[]}`, g.workspace)); r.Error.Message != "" ||
		!g.told("agent_message_chunk half an answer") {
		t.Errorf("%+v, told was %q", r.Error, g.updates)
	}
	g.house.Stream(event.Draft{})
	g.mu.Lock()
	g.updates = nil
	g.mu.Unlock()
	if stop := g.prompt("mine", "x"); stop != "end_turn" {
		t.Errorf("it stopped with %q", stop)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	text := ""
	for _, u := range g.updates {
		more, _ := strings.CutPrefix(u, "agent_message_chunk ")
		text += more
	}
	if !strings.Contains(text, "firstsecond") || strings.Count(text, "second") != 1 {
		t.Errorf("told was %q", g.updates)
	}
}

func within(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("not within 10 s: %s", what)
			return
		}
	}
}

// Sessions are listed, the newest first, and one that there is goes on with what was said.
func TestSessionsAreFoundAgain(t *testing.T) {
	g := visit(t, answers("again", record.ReasonDone))
	old, last := time.Unix(1700000000, 0), time.Unix(1700003600, 0)
	g.house.Known = []event.Agent{
		{ID: commandtest.Agent0, Handle: "0/", Type: "user", Connector: "acp", ChannelID: "mine", LastAt: &old},
		{ID: strings.Repeat("b", 24), Handle: "1/", Type: "user", Connector: "acp", ChannelID: "newer", LastAt: &last},
		{ID: strings.Repeat("c", 24), Handle: "2/", Type: "user", Connector: "acp", ChannelID: "over", State: event.Ended},
		{ID: strings.Repeat("d", 24), Handle: "3/", Type: "user", Connector: "terminal", ChannelID: "x", State: event.Idle},
	}
	g.house.Record(&record.TurnBegin{Turn: "t0"})
	g.house.Record(&record.User{Item: "i0", Text: "what I asked\nand more"})
	g.house.Record(&record.Assistant{Turn: "t0", Text: "what it said", Finish: record.FinishEndTurn})
	g.house.Record(&record.TurnEnd{Turn: "t0", Items: []string{"i0"}, Reason: record.ReasonDone})

	var list struct {
		Sessions []struct{ SessionID, Title, UpdatedAt string }
	}
	r := g.ask("session/list", `{}`)
	if err := json.Unmarshal(r.Result, &list); err != nil || len(list.Sessions) != 2 || list.Sessions[0].SessionID != "newer" ||
		list.Sessions[1].SessionID != "mine" || list.Sessions[1].Title != "what I asked" ||
		list.Sessions[1].UpdatedAt != "2023-11-14T22:13:20Z" {
		t.Errorf("%s %+v, %v", r.Result, r.Error, err)
	}
	for _, params := range []string{`{"cursor":"x"}`, `{"cursor":"-1"}`} {
		if r := g.ask("session/list", params); !strings.Contains(r.Error.Message, "cursor") {
			t.Errorf("%s: %s %+v", params, r.Result, r.Error)
		}
	}
	for params, want := range map[string]string{
		fmt.Sprintf(`{"sessionId":"none","cwd":%q,"mcpServers":[]}`, g.workspace): "there is no session",
		`{"sessionId":"mine","cwd":"/","mcpServers":[]}`:                          "not in the workspace",
		`{"sessionId":"mine","cwd":"here","mcpServers":[]}`:                       `"here" is not an absolute path`,
		`{"sessionId":"mine","cwd":"/no/such","mcpServers":[]}`:                   "no such file",
	} {
		if r := g.ask("session/load", params); !strings.Contains(r.Error.Message, want) {
			t.Errorf("%s: %s %+v", params, r.Result, r.Error)
		}
	}

	load := func(method string) {
		t.Helper()
		r := g.ask(method, fmt.Sprintf(`{"sessionId":"mine","cwd":%q,"mcpServers":[]}`, g.workspace))
		if r.Error.Message != "" {
			t.Errorf("%s: %+v", method, r.Error)
		}
	}
	if load("session/resume"); g.told("agent_message_chunk what it said") {
		t.Errorf("resumed, told was %q", g.updates)
	}
	if load("session/load"); !g.told("agent_message_chunk what it said") || !g.told("user_message_chunk what I asked\nand more") {
		t.Errorf("loaded, told was %q", g.updates)
	}
	if stop := g.prompt("mine", "more"); stop != "end_turn" || !g.told("agent_message_chunk again") {
		t.Errorf("it goes on with %q, %q", stop, g.updates)
	}
}

// The mode of a session is the profile of its agent.
func TestTheModeOfASession(t *testing.T) {
	g := visit(t, answers("x", record.ReasonDone))
	s := g.session()
	if r := g.ask("session/set_mode", fmt.Sprintf(`{"sessionId":%q,"modeId":"plan"}`, s)); r.Error.Message != "" {
		t.Errorf("%+v", r.Error)
	}
	g.house.Known[0].Connector, g.house.Known[0].ChannelID = "acp", s
	var loaded struct {
		Modes struct {
			CurrentModeID  string `json:"currentModeId"`
			AvailableModes []struct{ ID string }
		}
	}
	r := g.ask("session/load", fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"mcpServers":[]}`, s, g.workspace))
	if err := json.Unmarshal(r.Result, &loaded); err != nil || loaded.Modes.CurrentModeID != "plan" ||
		len(loaded.Modes.AvailableModes) != 5 {
		t.Errorf("%s %+v, %v", r.Result, r.Error, err)
	}
	if r := g.ask("session/set_mode", `{"sessionId":"none","modeId":"plan"}`); !strings.Contains(r.Error.Message, "no session") {
		t.Errorf("of none: %s %+v", r.Result, r.Error)
	}
}

// What an agent does is reported while it does it: thoughts, pieces of its answer, what its tools print,
// answers that were cut off, and what hooks say. A piece that was missed is in the draft.
func TestATurnIsToldWhileItIsWorkedOn(t *testing.T) {
	go1 := make(chan struct{})
	g := visit(t, func(h *commandtest.Server, in message.Incoming) event.Outcome {
		turn := "t1"
		h.Record(&record.TurnBegin{Turn: turn})
		h.Record(&record.User{Item: in.ID, Text: in.Text})
		h.Begin(turn, in)
		h.Emit(event.MessageThinking, turn, event.Delta{Text: "hm"})
		h.Emit(event.MessageDelta, turn, event.Delta{Text: "cut"})
		h.Emit(event.Retry, turn, event.Attempt{})
		h.Emit(event.Retry, turn, event.Attempt{Discard: true})
		h.Emit(event.HookSaid, turn, event.Reason{Reason: "mind the tests"})
		h.Emit(event.MessageDelta, turn, event.Delta{Text: "one"})
		h.Emit(event.MessageDelta, turn, event.Delta{Text: " two", Offset: 3})
		h.Emit(event.ItemDropped, turn, event.Item{Item: "another"})
		h.Emit(event.ToolStarted, turn, event.Tool{Call: "c1", Name: "exec", Arguments: []byte(`{"command":"make"}`)})
		h.Emit(event.ToolProgress, turn, event.Progress{Call: "c1", Text: "printed"})
		<-go1
		h.Record(&record.Assistant{Turn: turn, Text: "one two three", Finish: record.FinishEndTurn})
		h.Record(&record.TurnEnd{Turn: turn, Items: []string{in.ID}, Reason: record.ReasonDone})
		h.Emit(event.TurnFinished, turn, event.Finished{Reason: record.ReasonDone, Items: []string{in.ID}})
		return event.Outcome{Turn: turn, Reason: record.ReasonDone, Text: "one two three"}
	})
	s := g.session()
	done := g.begin("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"x"}]}`, s))
	for deadline := time.Now().Add(30 * time.Second); !g.told("tool_call_update"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("told was %q", g.updates)
		}
	}
	close(go1)
	if stop := stopOf(<-done); stop != "end_turn" {
		t.Errorf("it stopped with %q", stop)
	}

	g.mu.Lock()
	defer g.mu.Unlock()
	var got []string
	for _, u := range g.updates {
		last := max(0, len(got)-1)
		switch more, ok := strings.CutPrefix(u, "agent_message_chunk "); {
		case u == "available_commands_update":
		case ok && !strings.Contains(u, beginsAgain) && len(got) > 0 && strings.HasPrefix(got[last], "agent_message_chunk one"):
			got[last] += more // pieces may come together
		default:
			got = append(got, u)
		}
	}
	want := []string{"agent_thought_chunk hm", "agent_message_chunk cut", "agent_message_chunk " + beginsAgain,
		"agent_thought_chunk A hook says: mind the tests\n\n", "agent_message_chunk one two", "tool_call",
		"tool_call_update", "agent_message_chunk  three"}
	if !slices.Equal(got, want) {
		t.Errorf("told was\n%q, want\n%q", got, want)
	}
}

// A session that was closed cannot be used any more, and its prompt ends.
func TestASessionIsClosed(t *testing.T) {
	g, s, done := duringATurn(t)
	if r := g.ask("session/close", fmt.Sprintf(`{"sessionId":%q}`, s)); r.Error.Message != "" {
		t.Errorf("%+v", r.Error)
	}
	if stop := stopOf(<-done); stop != "cancelled" {
		t.Errorf("its prompt stopped with %q", stop)
	}
	for _, method := range []string{"session/close", "session/prompt"} {
		r := g.ask(method, fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"x"}]}`, s))
		if !strings.Contains(r.Error.Message, "no session") {
			t.Errorf("%s: %s %+v", method, r.Result, r.Error)
		}
	}
}

// The sessions are those of the workspace, a page at a time.
func TestPagesOfSessions(t *testing.T) {
	g := visit(t, answers("x", record.ReasonDone))
	g.house.Known = nil
	for n := range listed + 2 {
		last := time.Unix(1700000000-int64(n), 0)
		g.house.Known = append(g.house.Known, event.Agent{ID: commandtest.Agent0, Type: "user", Connector: "acp",
			ChannelID: fmt.Sprint("s", n), LastAt: &last})
	}
	type page struct {
		Sessions   []struct{ SessionID string }
		NextCursor string
	}
	list := func(params string) (p page) {
		t.Helper()
		if err := json.Unmarshal(g.ask("session/list", params).Result, &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	first := list(fmt.Sprintf(`{"cwd":%q}`, g.workspace))
	if len(first.Sessions) != listed || first.Sessions[0].SessionID != "s0" || first.NextCursor != fmt.Sprint(listed) {
		t.Errorf("%d, the next are from %q on", len(first.Sessions), first.NextCursor)
	}
	second := list(fmt.Sprintf(`{"cursor":%q}`, first.NextCursor))
	if len(second.Sessions) != 2 || second.Sessions[0].SessionID != fmt.Sprint("s", listed) || second.NextCursor != "" {
		t.Errorf("then %+v", second)
	}
	for _, cwd := range []string{"/", "/elsewhere"} {
		if other := list(fmt.Sprintf(`{"cwd":%q}`, cwd)); len(other.Sessions) != 0 {
			t.Errorf("of %s: %+v", cwd, other)
		}
	}
}

// Where the daemon went away one that was killed is started again, and one that was stopped is waited
// for, if that is why it does not answer.
func TestTheWayBackToTheDaemon(t *testing.T) {
	g := visit(t, answers("x", record.ReasonDone))
	var connects, dials int
	var dialed, connected []error
	l := &link{o: Options{
		Connect: func(context.Context) (*control.Client, error) {
			connects++
			if len(connected) == 0 {
				return g.house.Client(), nil
			}
			err := connected[0]
			connected = connected[1:]
			return nil, err
		},
		Dial: func(context.Context) (*control.Client, error) {
			dials++
			if len(dialed) == 0 {
				return g.house.Client(), nil
			}
			err := dialed[0]
			dialed = dialed[1:]
			return nil, err
		}}}
	defer l.forget()
	refused := fmt.Errorf("%w: %w", control.ErrNotRunning, syscall.ECONNREFUSED) // by one that had not quite ended
	for _, lost := range []error{io.ErrUnexpectedEOF, refused, syscall.ECONNRESET, control.ErrNotRunning} {
		connects, dials = 0, 0
		if err := l.back(t.Context(), lost); err != nil || connects != 1 || dials != 0 {
			t.Errorf("killed (%v): %d and %d tries, %v", lost, connects, dials, err)
		}
	}
	connects, dials, connected = 0, 0, []error{refused}
	if err := l.back(t.Context(), io.ErrUnexpectedEOF); err != nil || connects != 2 || dials != 0 {
		t.Errorf("killed, and met once more: %d and %d tries, %v", connects, dials, err)
	}
	connects, dials, dialed = 0, 0, []error{control.ErrNotRunning}
	if err := l.back(t.Context(), io.EOF); err != nil || connects != 0 || dials != 2 || l.client != nil {
		t.Errorf("stopped: %d and %d tries, %v", connects, dials, err)
	}
	connects, dials, dialed = 0, 0, []error{control.ErrNotRunning}
	if err := l.back(t.Context(), refused); err != nil || connects != 0 || dials != 2 {
		t.Errorf("stopped, and not there: %d and %d tries, %v", connects, dials, err)
	}
	connects, dials, dialed = 0, 0, []error{control.ErrNotRunning}
	l.o.Left = func() bool { return true }
	if err := l.back(t.Context(), refused); err != nil || connects != 1 || dials != 1 {
		t.Errorf("killed, as its socket says: %d and %d tries, %v", connects, dials, err)
	}
	l.o.Left = nil
	l.forget()
	dialed = []error{errors.New("refused")}
	if err := l.back(t.Context(), io.EOF); err == nil || err.Error() != "refused" {
		t.Errorf("refused: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dialed = []error{control.ErrNotRunning, control.ErrNotRunning}
	if err := l.back(ctx, io.EOF); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}

	connects = 0
	tries := 0
	for _, tt := range []struct {
		err          error
		tries, again int
	}{{control.ErrNotRunning, 3, 3}, {errors.New("other"), 1, 0}, {nil, 1, 0}} {
		connects, tries = 0, 0
		err := l.with(t.Context(), func(*control.Client) error { tries++; return tt.err })
		if !errors.Is(err, tt.err) || tries != tt.tries || connects != tt.again {
			t.Errorf("%v: %d tries over %d connections, %v", tt.err, tries, connects, err)
		}
	}
}
