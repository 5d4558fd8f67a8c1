package scripted

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/agents/providers"
)

// talkTo is a conversation with a provider, as a runtime leads it.
type talkTo struct {
	t        *testing.T
	p        *Provider
	req      *providers.Request
	received []providers.Event
}

// theOffline is made once: compiling its patterns takes longer than a test.
var theOffline = sync.OnceValues(func() (*Provider, error) { return New(Options{}) })

func newTalk(t *testing.T, o Options) *talkTo {
	t.Helper()
	p, err := theOffline()
	if o.Source != nil {
		p, err = New(o)
	}
	if err != nil {
		t.Fatal(err)
	}

	req := &providers.Request{Agent: "a1"}
	for _, name := range []string{"read", "ls", "glob", "grep", "write", "edit", "exec"} {
		req.Tools = append(req.Tools, providers.Tool{Name: name})
	}
	return &talkTo{t: t, p: p, req: req}
}

// person adds what a user says, wrapped as agents/prompt does it.
func (c *talkTo) person(text string) *talkTo {
	text = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
	return c.user("<time>2026-11-20 18:22 CET (Europe/Berlin)</time><message>" + text + "</message>")
}

func (c *talkTo) system(text string) *talkTo {
	return c.user(`<time>2026-11-20 18:22 CET (Europe/Berlin)</time><system_message origin="system">` + text + "</system_message>")
}

func (c *talkTo) user(text string) *talkTo {
	c.req.Messages = append(c.req.Messages, &providers.Message{Role: providers.User, Parts: []providers.Part{providers.Text{Text: text}}})
	return c
}

// results answers the calls of the last message, in order.
func (c *talkTo) results(results ...providers.Result) *talkTo {
	c.t.Helper()
	calls := partsOf[providers.Call](c.req.Messages[len(c.req.Messages)-1])
	if len(calls) != len(results) {
		c.t.Fatalf("%d calls were made, want %d: %v", len(calls), len(results), calls)
	}
	m := &providers.Message{Role: providers.Results}
	for i, r := range results {
		r.CallID, r.Name = calls[i].ID, calls[i].Name
		m.Parts = append(m.Parts, r)
	}
	c.req.Messages = append(c.req.Messages, m)

	return c
}

// answer lets the model answer and adds that to the conversation.
func (c *talkTo) answer() (text string, calls []string) {
	c.t.Helper()
	m := &providers.Message{Role: providers.Assistant}
	c.received = nil
	for e := range c.p.Stream(c.t.Context(), c.req) {
		c.received = append(c.received, e)
		switch e := e.(type) {
		case providers.ContentDelta:
			text += e.Text
		case providers.ToolUseStop:
			name := c.received[len(c.received)-3].(providers.ToolUseStart).Name
			if !json.Valid([]byte(e.Arguments)) {
				c.t.Errorf("arguments are no JSON: %s", e.Arguments)
			}
			calls = append(calls, name+e.Arguments)
			m.Parts = append(m.Parts, providers.Call{ID: e.ID, Name: name, Arguments: json.RawMessage(e.Arguments)})
		case providers.Error:
			c.t.Fatalf("error: %v", e.Err)
		}
	}

	if _, ok := c.received[len(c.received)-1].(providers.Complete); !ok {
		c.t.Fatalf("the last event is %T, want Complete", c.received[len(c.received)-1])
	}
	if text != "" {
		m.Parts = append(m.Parts, providers.Text{Text: text})
	}

	c.req.Messages = append(c.req.Messages, m)
	return text, calls
}

// What users type on their first try, and the call that must come of it. An
// answer that begins with a word instead of a call is the beginning of the text.
func TestUnderstands(t *testing.T) {
	for _, tc := range []struct{ said, want string }{
		{"what is in README.md?", `read{"path":"README.md"}`},
		{"What's in the file docs/a b.md", `I cannot`},
		{"read main.go", `read{"path":"main.go"}`},
		{"read @main.go", `read{"path":"main.go"}`},
		{"what is in @docs/a.md?", `read{"path":"docs/a.md"}`},
		{"write 'hello' to @hello.txt", `write{"content":"hello\n","path":"hello.txt"}`},
		{"Please read main.go.", `read{"path":"main.go"}`},
		{"can you show me go.mod?", `read{"path":"go.mod"}`},
		{"cat cmd/daycare/main.go", `read{"path":"cmd/daycare/main.go"}`},
		{"summarise README.md", `read{"path":"README.md"}`},
		{"what does README.md say about install?", `grep{"path":"README.md","pattern":"(?i)install"}`},
		{"does go.mod mention cobra?", `grep{"path":"go.mod","pattern":"(?i)cobra"}`},
		{"list files", `ls{"path":"."}`},
		{"List the files here", `ls{"path":"."}`},
		{"list files in docs", `ls{"path":"docs"}`},
		{"what files are in the docs folder?", `ls{"path":"docs"}`},
		{"ls", `ls{"path":"."}`},
		{"ls docs/", `ls{"path":"docs/"}`},
		{"what is in docs/?", `ls{"path":"docs/"}`},
		{"what is in this folder?", `ls{"path":"."}`},
		{"what's here?", `ls{"path":"."}`},
		{"find *.go", `glob{"pattern":"**/*.go"}`},
		{"where is main.go?", `glob{"pattern":"**/main.go"}`},
		{"search for TODO", `grep{"pattern":"TODO"}`},
		{"search for WORD in DIR", `grep{"path":"DIR","pattern":"WORD"}`},
		{"grep func main in cmd/", `grep{"path":"cmd/","pattern":"func main"}`},
		{"write 'hello' to hello.txt", `write{"content":"hello\n","path":"hello.txt"}`},
		{"Write “it's <b>done</b>?” to out.html", `write{"content":"it's \u003cb\u003edone\u003c/b\u003e?\n","path":"out.html"}`},
		{"create notes.txt with buy milk and eggs", `write{"content":"buy milk and eggs\n","path":"notes.txt"}`},
		{"replace foo with bar in main.go", `edit{"new":"bar","old":"foo","path":"main.go"}`},
		{"change 1 to 2 in n.txt", `edit{"new":"2","old":"1","path":"n.txt"}`},
		{"run go version", `exec{"command":"go version"}`},
		{"run `ls -la | wc -l`", `exec{"command":"ls -la | wc -l"}`},
		{"please run the command: echo hi?", `exec{"command":"echo hi?"}`},
		{"run echo {{.Text}}", `exec{"command":"echo {{.Text}}"}`},
		{"$ git status", `exec{"command":"git status"}`},
		{"hello", "Hello! I am daycare's offline model"},
		{"Hi there!", "Hello! I am"},
		{"help", "I am daycare's offline model"},
		{"what can you do?", "I am daycare's offline model"},
		{"who are you?", "I am daycare's offline model: a few fixed rules"},
		{"how do I set up an API key?", "To connect a real model"},
		{"thanks!", "You are welcome."},
		{"", "I got no text."},
		{"write me a poem about the sea", "I cannot answer that: I am daycare's offline model"},
		{"what is the meaning of life?", "I cannot answer that"},
	} {
		text, calls := newTalk(t, Options{}).person(tc.said).answer()
		got := strings.Join(calls, " ")
		if got == "" {
			got = text[:min(len(tc.want), len(text))]
		}
		if got != tc.want {
			t.Errorf("%q\n got %s\nwant %s\ntext %s", tc.said, got, tc.want, text)
		}
	}
}

// Each line of the help is a request that the offline model understands.
func TestHelpNamesWhatItUnderstands(t *testing.T) {
	help, _ := newTalk(t, Options{}).person("help").answer()
	n := 0
	for line := range strings.Lines(help) {
		if !strings.HasPrefix(line, "- ") {
			continue
		}
		for i, request := range strings.Split(line, "`") {
			if i%2 == 0 {
				continue
			}
			n++
			if text, calls := newTalk(t, Options{}).person(request).answer(); len(calls) != 1 {
				t.Errorf("%q: %v %s", request, calls, text)
			}
		}
	}

	t.Logf("%d requests", n)
	if n < 9 {
		t.Errorf("the help names %d requests:\n%s", n, help)
	}
}

func TestAnswersFromResults(t *testing.T) {
	for _, tc := range []struct {
		said   string
		result providers.Result
		want   string
	}{
		{"read README.md", providers.Result{Text: "1\t# Daycare\n2\t```\n"}, "````\n1\t# Daycare\n2\t```\n````"},
		{"read none.md", providers.Result{Text: "no such file: none.md", IsError: true}, "no such file: none.md"},
		{"list files", providers.Result{Text: "docs/\ngo.mod  1.2 KB\n"}, "`ls` answered:\n\n```\ndocs/\ngo.mod  1.2 KB\n```"},
		{"write 'x' to a.txt", providers.Result{Text: "created a.txt (1 lines, 2 B)"}, "created a.txt"},
		{"replace a with b in a.txt", providers.Result{Text: "old is not in a.txt.", IsError: true}, "old is not in a.txt."},
		{"run false", providers.Result{Text: "[exit code 1]", IsError: true}, "The command printed:\n\n```\n[exit code 1]\n```"},
		{"run rm x", providers.Result{Text: "needs approval pfh0haxfpzowht3oi213cqos", IsError: true}, "I need your approval"},
		{"read long.txt", providers.Result{Text: strings.Repeat("ö", 5000)}, "```\n" + strings.Repeat("ö", 4000) + "…\n```"},
	} {
		c := newTalk(t, Options{}).person(tc.said)
		c.answer()
		text, calls := c.results(tc.result).answer()
		if len(calls) > 0 {
			t.Errorf("%q: after the result it calls %v", tc.said, calls)
		}
		if !strings.Contains(text, tc.want) {
			t.Errorf("%q\n got %s\nwant %s", tc.said, text, tc.want)
		}
	}
}

func TestAnswersEachOfSeveralMessages(t *testing.T) {
	c := newTalk(t, Options{}).person("read a.txt").person("hello").system("This conversation was shortened.").person("list files")
	text, calls := c.answer()
	if diff := cmp.Diff([]string{`read{"path":"a.txt"}`, `ls{"path":"."}`}, calls); diff != "" || !strings.HasPrefix(text, "Hello!") {
		t.Fatal(text, diff)
	}

	// One more is folded in while the tools run.
	c.results(providers.Result{Text: "aaa"}, providers.Result{Text: "bbb/\n"}).person("run pwd")
	text, calls = c.answer()
	if diff := cmp.Diff([]string{`exec{"command":"pwd"}`}, calls); diff != "" {
		t.Fatal(diff)
	}
	if want := "```\naaa\n```\n\n`ls` answered:\n\n```\nbbb/\n```"; text != want {
		t.Errorf("got %q, want %q", text, want)
	}
	if text, _ := c.results(providers.Result{Text: "/ws"}).answer(); text != "The command printed:\n\n```\n/ws\n```" {
		t.Error(text)
	}

	// Messages sent right after each other arrive as one; a text of several lines is one.
	for said, want := range map[string]int{"read a.txt\nread b.txt": 2, "list files\nagain: list files": 1, "write 'a\nread b' to c": 1} {
		if text, calls := newTalk(t, Options{}).person(said).answer(); len(calls) != want {
			t.Errorf("%q: %v %s", said, calls, text)
		}
	}
}

func TestGoesOnAfterApproval(t *testing.T) {
	waits := providers.Result{Text: "needs approval pfh0haxfpzowht3oi213cqos: a person has been asked", IsError: true}
	ask := func() *talkTo {
		c := newTalk(t, Options{}).person("run make denied")
		c.answer()
		if text, _ := c.results(waits).answer(); !strings.Contains(text, "I need your approval") {
			t.Fatal(text)
		}
		c.person("thanks").answer()
		return c
	}
	for _, note := range []string{
		"Allowed once: @exec:make denied (make denied). Make exactly the same call again now; the permission is used up by it.",
		"Allowed from now on: @exec:make denied (make denied). Make the call again.",
		"Allowed from now on: every command that begins with these words and nothing else in it: make denied. Make the call (make " +
			"denied) again.",
	} {
		c := ask()
		_, calls := c.system(note).answer()
		if diff := cmp.Diff([]string{`exec{"command":"make denied"}`}, calls); diff != "" {
			t.Fatalf("%s\nthe same call must be made again: %s", note, diff)
		}
		if text, _ := c.results(providers.Result{Text: "built\n[exit code 0]"}).answer(); !strings.Contains(text, "built") {
			t.Error(text)
		}
	}

	for note, want := range map[string]string{
		"Denied: @exec:make denied (make denied). Do not try it again, nor by " +
			"another way.": "All right, I leave it.",
		"Nobody answered the request for @exec:make denied (make denied) in time. It counts as denied: do not try it again on " +
			"your own.": "All right, I leave it.",
		"Allowed from now on: @web:x.org (https://x.org/). Make the call again.": "Thank you. Please ask me again.",
	} {
		if text, calls := ask().system(note).answer(); len(calls) > 0 || text != want {
			t.Errorf("%s\n%q %v", note, text, calls)
		}
	}
}

func TestSystemMessages(t *testing.T) {
	from := func(origin, text string) (string, []string) {
		return newTalk(t, Options{}).user(`<time>2026-11-20 18:22 CET</time><system_message origin="` + origin + `">` +
			text + "</system_message>").answer()
	}
	if text, _ := from("system", "If nothing needs attention answer HEARTBEAT_OK."); text != "HEARTBEAT_OK" {
		t.Error(text)
	}
	if text, _ := from("tz4a98xxat96iws9zmbrgj3a", "The log &lt;is&gt; clean."); !strings.Contains(text, "The log <is> clean.") {
		t.Error(text)
	}
	if text, _ := from("system", "This conversation was shortened."); text != "NO_MESSAGE" {
		t.Error(text)
	}
	if _, calls := from("system", "list files"); len(calls) != 1 {
		t.Errorf("a task on a clock is not carried out: %v", calls)
	}
}

func TestOutsideChangesNothing(t *testing.T) {
	for said, want := range map[string]int{"write 'x' to a.txt": 0, "create a.txt with x": 0, "run rm -rf x": 0, "$ rm x": 0,
		"replace a with b in c.txt": 0, "list files": 1, "read a.txt": 1} {
		text, calls := newTalk(t, Options{}).user(`<time>2026-11-20 18:22 CET</time><message untrusted="true">` + said +
			"</message>").answer()
		if len(calls) != want || want == 0 && !strings.Contains(text, "from outside") {
			t.Errorf("%q: %q %v", said, text, calls)
		}
	}
}

func TestUsageIsEstimated(t *testing.T) {
	c := newTalk(t, Options{})
	c.req.System = strings.Repeat("s", 400)
	c.person("hello").answer()
	u := c.received[len(c.received)-1].(providers.Complete).Usage
	if !u.Estimated || u.Input < 100 || u.Output < 20 {
		t.Errorf("usage %+v", u)
	}
}

func BenchmarkOffline(b *testing.B) {
	p, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	req := &providers.Request{Tools: []providers.Tool{{Name: "read"}}, Messages: []*providers.Message{
		{Role: providers.User, Parts: []providers.Part{providers.Text{Text: "<message>read main.go</message>"}}}}}
	for b.Loop() {
		for range p.Stream(context.Background(), req) {
		}
	}
}
