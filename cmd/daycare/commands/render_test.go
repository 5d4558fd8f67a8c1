package commands

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"daycare/cmd/daycare/commandtest"
	"daycare/cmd/daycare/term"
	"daycare/engine/event"
	"daycare/engine/fault"
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
			widths[ansi.StringWidth(before)] = true
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

func TestByPrefix(t *testing.T) {
	ids := []string{"abcd1111", "abcd2222", "xyz"}
	for typed, want := range map[string]int{"abcd1111": fault.ExitOK, "abcd1": fault.ExitOK, "xyz": fault.ExitOK,
		"abcd": fault.ExitUsage, "abc": fault.ExitNotFound, "nope": fault.ExitNotFound} {
		_, err := byPrefix("item", ids, typed, "")
		if code, _ := term.Explain(err); code != want {
			t.Errorf("%q: exit code %d, want %d (%v)", typed, code, want, err)
		}
	}
}

// TestReading runs the commands that read against the fake API.
func TestReading(t *testing.T) {
	h := commandtest.NewHouse(t, nil)
	h.Items = []event.Waiting{{ID: "item1234", Seq: 1, At: noon, Type: "message", Text: "hello", Bytes: 120, State: "waiting"}}
	h.Known[0].Queued = 1
	h.Open = []event.Ask{permission.Pending{Token: "tok12345", Agent: commandtest.Agent0, AskedAt: noon, ExpiresAt: noon,
		Request: permission.Request{Tag: "@web", Reason: "to look it up",
			Detail: permission.Detail{Command: strings.Repeat("x", 200) + "\u202e;"}}}.Ask()}
	h.Record(&record.User{Text: "hello", Zone: "UTC"})
	s := commandtest.NewShell(t, h, "", Status, Agents, Inbox, Permissions, Tools)
	for _, test := range []struct {
		args []string
		code int
		has  string
	}{
		{[]string{"status"}, fault.ExitOK, "running, pid 42"},
		{[]string{"status", "--json"}, fault.ExitOK, `"pid":42`},
		{[]string{"agents", "ls"}, fault.ExitOK, "0/      me    user"},
		{[]string{"agents", "show", "me"}, fault.ExitOK, "item1234  message  waiting"},
		{[]string{"agents", "tail", "0/"}, fault.ExitOK, "you       hello"},
		{[]string{"agents", "tail", "0/", "--json"}, fault.ExitOK, `{"seq":1,`},
		{[]string{"inbox", "ls"}, fault.ExitOK, "item1234  message  waiting"},
		{[]string{"inbox", "show", "0/", "item"}, fault.ExitOK, "\nhello\n"},
		{[]string{"inbox", "show", "0/", "none"}, fault.ExitNotFound, ""},
		{[]string{"permissions", "ls"}, fault.ExitOK, "tok12345  0/  @web"},
		{[]string{"permissions", "ls"}, fault.ExitOK, strings.Repeat("x", 200) + "[U+202E];"},
		{[]string{"permissions", "show", "tok1"}, fault.ExitOK,
			strings.Repeat("x", 200) + "[U+202E];\npermission  @web\nreason      to look it up\n"},
		{[]string{"tools", "ls"}, fault.ExitOK, "read  read-only              0       Read a file"},
		{[]string{"agents", "kill", "0/"}, fault.ExitNotRunning, ""},
	} {
		if code := s.Do(test.args...); code != test.code || !strings.Contains(s.Stdout.String(), test.has) {
			t.Errorf("%v: exit code %d, want %d; stdout must have %q:\n%s%s",
				test.args, code, test.code, test.has, s.Stdout.String(), s.Stderr.String())
		}
	}
}
