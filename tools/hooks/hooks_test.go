package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

// whole is what a matcher of the settings stands for.
func whole(matcher string) string {
	if matcher == "" || matcher == "*" {
		return ""
	}
	return "^(?:" + matcher + ")$"
}

// set makes a Set of hooks.
func set(t *testing.T, list ...Hook) *Set {
	t.Helper()
	s, err := New(list, whole)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Each way in which a program can end means one thing at each moment.
func TestWhatAnswersMean(t *testing.T) {
	for name, tt := range map[string]struct {
		event Event
		end   End
		want  answer
		fails string // part of why it is a failure
	}{
		"nothing": {BeforeTool, End{}, answer{}, ""},
		"exit code 2 denies": {BeforeTool, End{Code: 2, Err: []byte("no pushing\n"), Out: []byte(`{"decision":"allow"}`)},
			answer{decision: Deny, reason: "no pushing"}, ""},
		"exit code 2 without a reason": {BeforeTool, End{Code: 2}, answer{decision: Deny, reason: "it gave no reason"}, ""},
		"another exit code":            {BeforeTool, End{Code: 1, Err: []byte("oops")}, answer{}, "exit code 1: oops"},
		"a missing program":            {BeforeTool, End{Code: 127}, answer{}, "exit code 127: (no message)"},
		"a signal":                     {BeforeTool, End{Code: -1, Signal: "killed"}, answer{}, "signal killed"},
		"too slow":                     {BeforeTool, End{Code: 2, TimedOut: true}, answer{}, "timeout"},
		"too much":                     {BeforeTool, End{Cut: true, Out: []byte("{")}, answer{}, "more than 65536 bytes"},
		"invalid JSON":                 {BeforeTool, End{Out: []byte(`{"decision": `)}, answer{}, "invalid JSON"},
		"JSON of another type":         {BeforeTool, End{Out: []byte(`{"continue": "no"}`)}, answer{}, "invalid JSON"},
		"an unknown decision":          {BeforeTool, End{Out: []byte(`{"decision":"maybe"}`)}, answer{}, `"maybe"`},
		"block": {AfterTool, End{Out: []byte(`{"decision":"block","reason":"format it"}`)},
			answer{decision: Deny, reason: "format it"}, ""},
		"approve": {BeforeTool, End{Out: []byte(`{"decision":"approve"}`)}, answer{decision: Allow}, ""},
		"the newer words": {BeforeTool,
			End{Out: []byte(` {"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask",` +
				`"permissionDecisionReason":"sure?"}} `)}, answer{decision: Ask, reason: "sure?"}, ""},
		"the newer words win": {BeforeTool,
			End{Out: []byte(`{"decision":"approve","hookSpecificOutput":{"permissionDecision":"deny"}}`)},
			answer{decision: Deny, reason: "it gave no reason"}, ""},
		"another input": {BeforeTool, End{Out: []byte(`{"hookSpecificOutput":{"updatedInput":{"command":"ls"}}}`)},
			answer{input: json.RawMessage(`{"command":"ls"}`)}, ""},
		"no other input": {BeforeTool, End{Out: []byte(`{"hookSpecificOutput":{"updatedInput":null}}`)}, answer{}, ""},
		"stop": {TurnEnd, End{Out: []byte(`{"continue":false,"stopReason":"enough"}`)},
			answer{stop: true, reason: "enough"}, ""},
		"a message for people": {TurnEnd, End{Out: []byte(`{"systemMessage":"look"}`)}, answer{notice: "look"}, ""},
		"context": {AfterTool,
			End{Out: []byte(`{"additionalContext":"a","hookSpecificOutput":{"additionalContext":"b"}}`)}, answer{context: "b"}, ""},
		"plain text where context goes": {SessionStart, End{Out: []byte("on branch main\n")}, answer{context: "on branch main"}, ""},
		"plain text elsewhere":          {BeforeTool, End{Out: []byte("checked\n")}, answer{}, ""},
	} {
		got, err := tt.end.read(tt.event)
		if tt.fails != "" {
			if err == nil || !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("%s: error %v, want %q", name, err, tt.fails)
			}
			continue
		}
		if err != nil || got.decision != tt.want.decision || got.reason != tt.want.reason || got.stop != tt.want.stop ||
			got.context != tt.want.context || string(got.input) != string(tt.want.input) || got.notice != tt.want.notice {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, tt.want)
		}
	}
}

// says is a runner whose programs print their own command.
func says(_ context.Context, j Job) (End, error) {
	switch j.Hook.Command {
	case "missing":
		return End{}, errors.New("no such program")
	case "deny":
		return End{Code: 2, Err: []byte("denied by it")}, nil
	}
	return End{Out: []byte(j.Hook.Command)}, nil
}

// Deny wins over ask, ask over allow, and the first that denies or stops is the last that runs.
func TestHooksOfOneMoment(t *testing.T) {
	const allow, ask, stop = `{"decision":"allow"}`, `{"decision":"ask","reason":"sure?"}`, `{"continue":false,"stopReason":"enough"}`
	other := func(cmd string) string { return `{"hookSpecificOutput":{"updatedInput":{"command":"` + cmd + `"}}}` }
	hook := func(cmd string) Hook { return Hook{Event: BeforeTool, Command: cmd} }
	approves := Hook{Event: BeforeTool, Command: allow, Approves: true}
	for name, tt := range map[string]struct {
		hooks    []Hook
		decision Decision
		reason   string
		ran      int
		approved bool
		stop     bool
		input    string
	}{
		"none":                          {nil, None, "", 0, false, false, ""},
		"no opinion":                    {[]Hook{hook("")}, None, "", 1, false, false, ""},
		"allow then ask":                {[]Hook{hook(allow), hook(ask)}, Ask, "sure?", 2, false, false, ""},
		"ask then allow":                {[]Hook{hook(ask), hook(allow)}, Ask, "sure?", 2, false, false, ""},
		"ask then an approval":          {[]Hook{hook(ask), approves}, Ask, "sure?", 2, false, false, ""},
		"an approval then ask":          {[]Hook{approves, hook(ask)}, Ask, "sure?", 2, false, false, ""},
		"an approval":                   {[]Hook{approves, hook("")}, Allow, "", 2, true, false, ""},
		"an allow that may not approve": {[]Hook{hook(allow)}, Allow, "", 1, false, false, ""},
		"an approval of another input":  {[]Hook{approves, hook(other("rm"))}, Allow, "", 2, false, false, `{"command":"rm"}`},
		"deny ends the row":             {[]Hook{hook("deny"), hook(allow)}, Deny, "denied by it", 1, false, false, ""},
		"deny after ask":                {[]Hook{hook(ask), hook("deny")}, Deny, "denied by it", 2, false, false, ""},
		"stop ends the row":             {[]Hook{hook(stop), hook(allow)}, None, "enough", 1, false, true, ""},
		"inputs follow each other":      {[]Hook{hook(other("a")), hook(other("b"))}, None, "", 2, false, false, `{"command":"b"}`},
		"a failure denies before a tool": {[]Hook{hook("missing")}, Deny,
			"the before_tool hook missing failed, so this is denied: no such program", 1, false, false, ""},
		"a failure that the owner allows": {[]Hook{{Event: BeforeTool, Command: "missing", OnError: "allow"}, hook(allow)}, Allow, "", 2,
			false, false, ""},
		"another tool": {[]Hook{{Event: BeforeTool, Matcher: "edit|write", Command: "deny"}}, None, "", 0,
			false, false, ""},
		"part of the name is not the name": {[]Hook{{Event: BeforeTool, Matcher: "exe", Command: "deny"}}, None, "", 0, false, false, ""},
		"the whole name": {[]Hook{{Event: BeforeTool, Matcher: "e.*|x", Command: "deny"}}, Deny, "denied by it", 1,
			false, false, ""},
		"another moment": {[]Hook{{Event: AfterTool, Command: "deny"}}, None, "", 0, false, false, ""},
	} {
		s := set(t, tt.hooks...)
		v := s.Run(t.Context(), Moment{Event: BeforeTool, Call: Call{Tool: "exec", Input: json.RawMessage(`{"command":"ls"}`)}}, says)
		if v.Decision != tt.decision || v.Reason != tt.reason || len(v.Ran) != tt.ran || v.Approved != "" != tt.approved ||
			v.Stop != tt.stop || string(v.Input) != tt.input {
			t.Errorf("%s: %+v", name, v)
		}
		if any := s.Any(BeforeTool, "exec"); any != (tt.ran > 0) {
			t.Errorf("%s: Any is %v", name, any)
		}
		if note := v.Note(Moment{Event: BeforeTool, Call: Call{Tool: "exec"}}); strings.Count(note, "before_tool hook for exec") != tt.ran {
			t.Errorf("%s: the note is %q", name, note)
		}
	}
}

// What fails closed by itself is what stands guard; the rest is told and continues.
func TestFailuresByMoment(t *testing.T) {
	for _, e := range Events {
		v := set(t, Hook{Event: e, Command: "missing"}).Run(t.Context(), Moment{Event: e}, says)
		closed := e == BeforeTool || e == OnMessage
		if (v.Decision == Deny) != closed || (len(v.Notices) == 1) == closed {
			t.Errorf("%s: %+v", e, v)
		}
	}
}

// A hook that is stopped denies, and no other is begun.
func TestAStoppedHookDenies(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	began := 0
	v := set(t, Hook{Event: BeforeTool, Command: "a"}, Hook{Event: BeforeTool, Command: "b"}).Run(ctx, Moment{Event: BeforeTool},
		func(context.Context, Job) (End, error) { began++; cancel(); return End{}, nil })
	if v.Decision != Deny || began != 1 {
		t.Errorf("%d began: %+v", began, v)
	}
}

// The input has the names that programs look for, and daycare's own beside them.
func TestInput(t *testing.T) {
	agent := Agent{ID: "a1", Handle: "0/", Name: "Ada", Session: "s1", History: "/w/history.jsonl", Dir: "/w"}
	for event, want := range map[Event]string{
		BeforeTool: `"hook_event_name":"PreToolUse","event":"before_tool","session_id":"s1","transcript_path":"/w/history.jsonl",` +
			`"cwd":"/w","turn_id":"t1","origin":"telegram/7","sources":["https://example.com/"],"agent_id":"a1","handle":"0/",` +
			`"agent_name":"Ada","tool_name":"exec","tool_use_id":"c1","tool_input":{"command":"ls"}}`,
		OnMessage:    `"hook_event_name":"UserPromptSubmit"`,
		BeforePrompt: `"hook_event_name":"before_prompt"`,
		TurnEnd:      `"stop_hook_active":false,"last_assistant_message":"done"`,
		Approval:     `"notification_type":"permission_prompt"`,
		SessionStart: `"source":"startup"`,
	} {
		m := Moment{Event: event, Agent: agent, Turn: "t1"}
		switch event {
		case BeforeTool:
			m.Origin, m.Sources, m.Tool, m.ID, m.Input = "telegram/7", []string{"https://example.com/"}, "exec", "c1",
				json.RawMessage(`{"command":"ls"}`)
		case TurnEnd:
			m.Answer = "done"
		case SessionStart:
			m.Source = "startup"
		}
		data, err := m.encode()
		if err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s: %s, %v; want %s", event, data, err, want)
		}
	}
	var in map[string]any
	data, err := Moment{Event: AfterTool, Call: Call{Response: &Response{"ok", "out"}}}.encode()
	if err != nil || json.Unmarshal(data, &in) != nil || in["tool_response"].(map[string]any)["output"] != "out" {
		t.Errorf("after_tool: %s, %v", data, err)
	}
}

// Long texts of a program are cut, and said to be.
func TestLongTextsAreCut(t *testing.T) {
	long := strings.Repeat("x", 20_000)
	v := set(t, Hook{Event: OnMessage, Command: long}).Run(t.Context(), Moment{Event: OnMessage}, says)
	if len(v.Context) > maxText+100 || !strings.Contains(v.Context, "10000 bytes of the hook's text left out") {
		t.Errorf("%d bytes of context", len(v.Context))
	}
	if note := v.Note(Moment{Event: OnMessage}); len(note) > 1_000 {
		t.Errorf("the note has %d bytes", len(note))
	}
}

// A matcher that cannot be read is an error with its hook; without hooks there is no Set.
func TestNew(t *testing.T) {
	if _, err := New([]Hook{{Event: BeforeTool, Matcher: "(", Command: "x", Timeout: time.Second}}, whole); err == nil {
		t.Error("a matcher that is no expression was accepted")
	}
	if s, err := New(nil, whole); s != nil || err != nil || s.Any(BeforeTool, "exec") {
		t.Errorf("without hooks: %v, %v", s, err)
	}
}

// History says in a line what a hook did: each thing that it did, and that it had no objection
// only if it did nothing.
func TestWhatAHookDidIsNoted(t *testing.T) {
	for want, tt := range map[string]struct {
		ran Ran
		a   answer
	}{
		"had no objection":             {Ran{}, answer{}},
		"allowed":                      {Ran{}, answer{decision: Allow}},
		"denied: no":                   {Ran{}, answer{decision: Deny, reason: "no"}},
		"asks: sure?":                  {Ran{}, answer{decision: Ask, reason: "sure?"}},
		"added 7 bytes of context":     {Ran{}, answer{context: "context"}},
		"says: look":                   {Ran{}, answer{notice: "look"}},
		`changed the input to {"a":1}`: {Ran{}, answer{input: []byte(`{"a":1}`)}},
		"ended the turn: enough":       {Ran{}, answer{stop: true, reason: "enough"}},
		"failed: exit 1":               {Ran{Error: "exit 1"}, answer{notice: "the hook failed: exit 1"}},
		"allowed; added 3 bytes of context; says: look": {Ran{}, answer{decision: Allow, context: "abc", notice: "look"}},
	} {
		if got := tt.ran.tells(tt.a); got != want {
			t.Errorf("noted is %q, want %q", got, want)
		}
	}
}
