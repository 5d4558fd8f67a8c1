package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestAgentTable(t *testing.T) {
	last, oldest := noon.Add(-2*time.Minute), noon.Add(-90*time.Second)
	list := []event.Agent{
		{Handle: "10/", ID: "d", Name: "Ops", Type: "permanent", State: event.Idle},
		{Handle: "0/0", ID: "b", Name: "log-reader", Type: "subagent", State: event.UsingTool, Detail: "grep", Cost: 0.01234, Model: "m"},
		{Handle: "0/", ID: "a", Name: "Jürgen 的", Type: "user", State: event.Queued, Queued: 2, OldestAt: &oldest, LastAt: &last},
		{Handle: "2/", ID: "c", Name: "two\nlines\x1b[31m", Type: "user", State: event.Idle},
	}
	slices.SortStableFunc(list, byHandle)
	var b strings.Builder
	if err := agentTable(list, true, noon).Write(&b, false); err != nil {
		t.Fatal(err)
	}
	want := `
HANDLE  NAME                TYPE       STATE        INBOX    LAST    COST     MODEL
0/      Jürgen 的            user       queued       2 (1m)   2m ago  $0.0000  -
  0/0   log-reader          subagent   tool (grep)  0        never   $0.0123  m
2/      two lines\x1b[31m   user       idle         0        never   $0.0000  -
10/     Ops                 permanent  idle         0        never   $0.0000  -
`
	if diff := cmp.Diff(strings.TrimPrefix(squeeze(want), "\n"), squeeze(b.String())); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	widths := map[int]bool{}
	for line := range strings.Lines(b.String()) {
		before, _, _ := strings.Cut(line, "$")
		if before != line {
			widths[len([]rune(before))] = true
		}
	}
	if len(widths) != 1 {
		t.Errorf("the cost column begins at %v, want one place:\n%s", widths, b.String())
	}
}

// squeeze makes every run of spaces one, so that a test need not count them.
func squeeze(s string) string {
	var lines []string
	for line := range strings.SplitSeq(s, "\n") {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

func TestAgo(t *testing.T) {
	for _, test := range []struct {
		d    time.Duration
		want string
	}{
		{0, "just now"}, {-time.Hour, "just now"}, {30 * time.Second, "30s ago"}, {2 * time.Minute, "2m ago"},
		{47 * time.Hour, "47h ago"}, {72 * time.Hour, "3d ago"}, {60 * 24 * time.Hour, "2026-09-21"},
	} {
		if got := term.Ago(noon.Add(-test.d), noon); got != test.want {
			t.Errorf("ago(%s) = %q, want %q", test.d, got, test.want)
		}
	}
	if got := term.Ago(time.Time{}, noon); got != "never" {
		t.Errorf("ago(zero) = %q, want never", got)
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain\n\ttext ü":  "plain\n\ttext ü",
		"a\x1b]0;title\ab": `a\x1b]0;title\x07b`,
		"rm \u202egnp.txt": `rm \u202egnp.txt`,
		"c\u009b31m\r":     `c\x9b31m\x0d`,
	} {
		if got := term.Clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\x1b[0m\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		if got := term.Clean(s); strings.IndexFunc(got, term.Steers) >= 0 {
			t.Errorf("clean(%q) = %q still steers a terminal", s, got)
		}
	})
}

func TestExplain(t *testing.T) {
	for _, test := range []struct {
		err  error
		code int
	}{
		{nil, term.ExitOK},
		{errors.New("anything"), term.ExitFailure},
		{term.Usage(newRoot(&term.App{}), "wrong"), term.ExitUsage},
		{&control.Ambiguous{Ref: "ab", Candidates: []string{"0/ abc", "1/ abd"}}, term.ExitUsage},
		{message.ErrUnknownAgent, term.ExitNotFound},
		{control.ErrNoAsk, term.ExitNotFound},
		{inbox.ErrUnknown, term.ExitNotFound},
		{control.ErrNotRunning, term.ExitNotRunning},
		{fmt.Errorf("%w: %w", control.ErrCut, control.ErrNotRunning), term.ExitNotRunning},
		{&control.Decided{Decision: "once", By: "me"}, term.ExitDenied},
		{needsApproval(event.Ask{Token: "t"}), term.ExitDenied},
		{disk.ErrFailed, term.ExitDisk},
		{context.DeadlineExceeded, term.ExitTimeout},
		{term.ErrInterrupted, term.ExitInterrupted},
		{control.ErrBusy, term.ExitFailure},
	} {
		err := test.err
		if err != nil {
			err = fmt.Errorf("do something: %w", err)
		}
		if code, _ := term.Explain(err); code != test.code {
			t.Errorf("%v: exit code %d, want %d", test.err, code, test.code)
		}
	}
}

func TestDescribe(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local)
	for _, test := range []struct {
		rec  record.Record
		want string
	}{
		{&record.User{Text: "two\nlines"}, "   7  11-20 12:00:00  you       two\n                                lines"},
		{&record.User{Text: "done", Origin: "child", Silent: true}, "   7  11-20 12:00:00  system    (silent, from child) done"},
		{&record.Assistant{Text: "Hi.", Finish: record.FinishEndTurn}, "   7  11-20 12:00:00  agent     Hi."},
		{&record.Assistant{Finish: record.FinishToolUse,
			ToolCalls: []record.ToolCall{{Name: "exec", Arguments: []byte(`{"cwd":"/","command":"ls -l"}`)}}},
			"   7  11-20 12:00:00  agent     → exec ls -l"},
		{&record.ToolResult{Name: "exec", Status: record.StatusOK, MS: 12, Output: record.Output{Text: "a\nb"}},
			"   7  11-20 12:00:00  result    exec ok 12ms  a b"},
		{&record.TurnEnd{Reason: record.ReasonDone}, ""},
		{&record.TurnEnd{Reason: record.ReasonError, Error: "no key"}, "   7  11-20 12:00:00  turn      ended error: no key"},
		{&record.TurnBegin{}, ""},
		{&record.Delivery{Out: "o", RemoteID: "7"}, ""},
	} {
		got := describe(&record.Entry{Seq: 7, At: at, Rec: test.rec}, false)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.rec.Type(), diff)
		}
	}
}

func TestCallLine(t *testing.T) {
	for _, test := range []struct{ name, args, want string }{
		{"read", `{"limit":5,"path":"a.txt"}`, "read a.txt"},
		{"odd", `{"zeta":"z","beta":"b"}`, "odd b"},
		{"none", `{"n":1}`, "none"},
		{"broken", `{"path":`, "broken"},
		{"text", `"raw"`, "text"},
		{"write", `{"path":"x","content":"` + strings.Repeat("y", 500) + `"}`, "write x"},
	} {
		if got := callLine(test.name, []byte(test.args)); got != test.want {
			t.Errorf("callLine(%s, %s) = %q, want %q", test.name, test.args, got, test.want)
		}
	}
}

func TestByPrefix(t *testing.T) {
	ids := []string{"abcd1111", "abcd2222", "xyz"}
	for typed, want := range map[string]int{"abcd1111": term.ExitOK, "abcd1": term.ExitOK, "xyz": term.ExitOK,
		"abcd": term.ExitUsage, "abc": term.ExitNotFound, "nope": term.ExitNotFound} {
		_, err := byPrefix("item", ids, typed, "")
		if code, _ := term.Explain(err); code != want {
			t.Errorf("%q: exit code %d, want %d (%v)", typed, code, want, err)
		}
	}
}

func TestInFamily(t *testing.T) {
	agents := []event.Agent{{ID: "a"}, {ID: "b", ParentAgentID: "a"}, {ID: "c", ParentAgentID: "b"},
		{ID: "x", ParentAgentID: "y"}, {ID: "y", ParentAgentID: "x"}}
	for _, test := range []struct {
		id   string
		want bool
	}{{"a", true}, {"c", true}, {"x", false}, {"unknown", false}} {
		if got := inFamily(agents, test.id, "a"); got != test.want {
			t.Errorf("inFamily(%s, a) = %v, want %v", test.id, got, test.want)
		}
	}
}

func TestIsCommand(t *testing.T) {
	for line, want := range map[string]bool{"/stop": true, "/reset now": true, "/etc/hosts says": false,
		"/notes.txt": false, "/": false, "hello": false} {
		if got := isCommand(line); got != want {
			t.Errorf("isCommand(%q) = %v, want %v", line, got, want)
		}
	}
}

// TestReading runs the commands that read against the fake API.
func TestReading(t *testing.T) {
	h := newHouse(t, nil)
	h.items = []event.Waiting{{ID: "item1234", Seq: 1, At: noon, Type: "message", Text: "hello", Bytes: 120, State: "waiting"}}
	h.agents[0].Queued = 1
	h.asks = []event.Ask{permission.Pending{Token: "tok12345", Agent: agent0, AskedAt: noon, ExpiresAt: noon,
		Request: permission.Request{Tag: "@web", Reason: "to look it up",
			Detail: permission.Detail{Command: strings.Repeat("x", 200) + "\u202e;"}}}.Ask()}
	h.record(&record.User{Text: "hello", Zone: "UTC"})
	s := newShell(t, h, "")
	for _, test := range []struct {
		args []string
		code int
		has  string
	}{
		{[]string{"status"}, term.ExitOK, "running, pid 42"},
		{[]string{"status", "--json"}, term.ExitOK, `"pid":42`},
		{[]string{"agents", "ls"}, term.ExitOK, "0/      me    user"},
		{[]string{"agents", "show", "me"}, term.ExitOK, "item1234  message  waiting"},
		{[]string{"agents", "tail", "0/"}, term.ExitOK, "you       hello"},
		{[]string{"agents", "tail", "0/", "--json"}, term.ExitOK, `{"seq":1,`},
		{[]string{"inbox", "ls"}, term.ExitOK, "item1234  message  waiting"},
		{[]string{"inbox", "show", "0/", "item"}, term.ExitOK, "\nhello\n"},
		{[]string{"inbox", "show", "0/", "none"}, term.ExitNotFound, ""},
		{[]string{"permissions", "ls"}, term.ExitOK, "tok12345  0/  @web"},
		{[]string{"permissions", "ls"}, term.ExitOK, strings.Repeat("x", 200) + "[U+202E];"},
		{[]string{"permissions", "show", "tok1"}, term.ExitOK,
			strings.Repeat("x", 200) + "[U+202E];\npermission  @web\nreason      to look it up\n"},
		{[]string{"tools", "ls"}, term.ExitOK, "read  read-only      0       Read a file"},
		{[]string{"agents", "kill", "0/"}, term.ExitNotRunning, ""},
	} {
		if code := s.do(test.args...); code != test.code || !strings.Contains(s.out.String(), test.has) {
			t.Errorf("%v: exit code %d, want %d; stdout must have %q:\n%s%s",
				test.args, code, test.code, test.has, s.out.String(), s.err.String())
		}
	}
}
