package scripted

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/agents/providers"
	"daycare/engine/finding"
)

const demo = `model: demo
rules:
  - match: '(?i)hello (?<who>\w+)'
    reply:
      - text: "Hello {{.Name.who}}, turn {{.Turn}}."
  - contains: DEPLOY
    turn: 2
    reply:
      - thinking: Let me look.
      - text: Looking.
        chunk: 3
      - calls:
          - name: read
            arguments: { path: "{{.Text}}.txt", limit: 5, deep: { list: [1, "{{.Agent}}"] } }
          - { name: ls }
      - usage: { input: 7, output: 3, cacheRead: 2 }
  - tool_result: read
    reply: [ { text: "It says: {{.Result}}" } ]
  - tool_result: "*"
    round: 2
    finish: max_tokens
    reply: [ { text: "some tool" } ]
  - after: permission
    reply: [ { text: thanks } ]
  - match: ^bad$
    once: true
    reply:
      - text: half
      - fault: { status: 529, retryAfter: 2s, message: busy }
  - match: ^bad$
    reply: [ { text: good } ]
  - match: ^raw$
    reply: [ { calls: [ { name: read, rawArguments: '{"path":' } ] } ]
`

func source(s string) Options { return Options{Source: []byte(s)} }

func events(p *Provider, ctx context.Context, req *providers.Request) []providers.Event {
	var all []providers.Event
	for e := range p.Stream(ctx, req) {
		all = append(all, e)
	}
	return all
}

func TestPlaysRules(t *testing.T) {
	c := newTalk(t, source(demo))
	if text, _ := c.person("say hello World").answer(); text != "Hello World, turn 1." {
		t.Error(text)
	}
	text, calls := c.person("please deploy").answer()
	want := []string{`read{"deep":{"list":[1,"a1"]},"limit":5,"path":"please deploy.txt"}`, `ls{}`}
	if diff := cmp.Diff(want, calls); diff != "" || text != "Looking." {
		t.Errorf("%q %s", text, diff)
	}

	wantEvents := []providers.Event{
		providers.ThinkingDelta{Text: "Let me look."}, providers.ThinkingDelta{Signature: "scripted"},
		providers.ContentDelta{Text: "Loo"}, providers.ContentDelta{Text: "kin"}, providers.ContentDelta{Text: "g."},
	}
	if diff := cmp.Diff(wantEvents, c.received[:5]); diff != "" {
		t.Error(diff)
	}

	end := providers.Complete{Finish: providers.ToolUse, Usage: providers.Usage{Input: 7, Output: 3, CacheRead: 2}, Model: "demo"}
	if diff := cmp.Diff(end, c.received[len(c.received)-1]); diff != "" {
		t.Error(diff)
	}
	if text, _ = c.results(providers.Result{Text: "A & B"}, providers.Result{}).answer(); text != "It says: A & B" {
		t.Error(text)
	}
	if text, _ = c.system("Allowed from now on: @web. Make the call again.").answer(); text != "thanks" {
		t.Error(text)
	}
}

func TestFinishAndAnyResult(t *testing.T) {
	c := newTalk(t, source("rules:\n  - {match: go, reply: [{calls: [{name: ls}]}]}\n"+
		"  - {tool_result: '*', round: 2, finish: max_tokens, reply: [{text: '{{.Tool}}'}]}"))
	c.person("go").answer()
	text, _ := c.results(providers.Result{Text: "x"}).answer()
	if end := c.received[len(c.received)-1].(providers.Complete); text != "ls" || end.Finish != providers.MaxTokens {
		t.Errorf("%q %+v", text, end)
	}
}

func TestOnceFailsThenWorks(t *testing.T) {
	c := newTalk(t, source(demo)).person("bad")
	all := events(c.p, t.Context(), c.req)
	e, ok := all[len(all)-1].(providers.Error)
	var f *providers.Failure
	if !ok || !errors.As(e.Err, &f) || f.Kind != providers.Busy || f.Status != 529 || f.RetryAfter != 2*time.Second {
		t.Fatalf("want a 529, got %+v", all)
	}
	if text, _ := c.answer(); text != "good" {
		t.Error(text)
	}

	c.req = &providers.Request{Agent: "another", Messages: c.req.Messages[:1]}
	if all := events(c.p, t.Context(), c.req); len(all) != 2 {
		t.Errorf("once counts for each agent: %v", all)
	}
}

func TestFaults(t *testing.T) {
	for _, tc := range []struct {
		fault  string
		kind   providers.Kind
		status int
		cause  error
	}{
		{"status: 429", providers.Busy, 429, nil},
		{"status: 401", providers.Auth, 401, nil},
		{"status: 400", providers.Rejected, 400, nil},
		{"status: 400, kind: overflow", providers.Overflow, 400, nil},
		{"reset: true", providers.Broken, 0, syscall.ECONNRESET},
		{"noEnd: true", providers.Broken, 0, nil},
		{"garbage: true", providers.Broken, 0, nil},
	} {
		c := newTalk(t, source("rules: [{reply: [{text: half}, {fault: {"+tc.fault+"}}]}]")).person("x")
		all := events(c.p, t.Context(), c.req)
		e, ok := all[len(all)-1].(providers.Error)
		var f *providers.Failure
		if len(all) != 2 || !ok || !errors.As(e.Err, &f) || f.Kind != tc.kind || f.Status != tc.status || f.Provider != "scripted" {
			t.Errorf("%s: got %+v", tc.fault, all)
		}
		if tc.cause != nil && !errors.Is(e.Err, tc.cause) {
			t.Errorf("%s: %v is not %v", tc.fault, e.Err, tc.cause)
		}
	}
}

func TestHangEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := New(source("rules: [{reply: [{fault: {hang: true}}]}]"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		all := events(p, ctx, &providers.Request{})
		if e, ok := all[0].(providers.Error); !ok || !errors.Is(e.Err, context.DeadlineExceeded) {
			t.Errorf("got %+v", all)
		}
	})
}

func TestDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := New(Options{Source: []byte("rules: [{reply: [{delay: 1s}, {text: abcdef, chunk: 2, every: 100ms}]}]")})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		events(p, t.Context(), &providers.Request{})
		if took := time.Since(start); took != 1300*time.Millisecond {
			t.Errorf("took %v, want 1.3 s", took)
		}
	})
}

func TestLeavingTheLoopEndsIt(t *testing.T) {
	p, err := New(source("rules: [{reply: [{text: abcdef, chunk: 1}]}]"))
	if err != nil {
		t.Fatal(err)
	}
	for range p.Stream(t.Context(), &providers.Request{}) {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if all := events(p, ctx, &providers.Request{}); len(all) != 1 || !errors.Is(all[0].(providers.Error).Err, context.Canceled) {
		t.Errorf("a context that has ended gives %+v", all)
	}
}

func TestNoRuleFits(t *testing.T) {
	c := newTalk(t, source("rules: [{match: x, reply: [{text: x}]}]")).person("y")
	all := events(c.p, t.Context(), c.req)
	if e, ok := all[0].(providers.Error); !ok || !strings.Contains(e.Err.Error(), `"y"`) {
		t.Errorf("got %+v", all)
	}
}

func TestScriptErrorsNameTheLine(t *testing.T) {
	for _, tc := range []struct {
		source string
		line   int
		reason string
	}{
		{"", 0, "needs at least one"},
		{"model: x\n", 1, "needs at least one"},
		{"rules:\n  - reply: [{text: x}]\n  - match: '('\n    reply: [{text: x}]", 3, "rules[1]: match"},
		{"rules:\n  - match: x", 2, "reply has no steps"},
		{"rules:\n  - macth: x\n    reply: [{text: x}]", 2, "rules[0].macth is unknown"},
		{"rules:\n  - reply:\n      - text: a\n      - text: '{{.Nope'", 4, "rules[0].reply[1]: text"},
		{"rules:\n  - reply:\n      - calls: [{arguments: {}}]", 3, "calls[0].name is missing"},
		{"rules:\n  - reply:\n      - calls: [{name: x, arguments: {a: 1}, rawArguments: y}]", 3, "exclude"},
		{"rules:\n  - reply:\n      - fault: {status: 200}", 3, "status: found 200, allowed: a whole number from 400 to 599"},
		{"rules:\n  - reply:\n      - fault: {kind: odd}", 3, "kind: found the text \"odd\", allowed: busy, broken"},
		{"rules:\n  - after: lunch\n    reply: [{text: x}]", 2, "after: found the text \"lunch\", allowed: permission"},
		{"rules:\n  - from: mars\n    reply: [{text: x}]", 2, "from: found the text \"mars\", allowed: user, outside"},
		{"rules:\n  - finish: x\n    reply: [{text: x}]", 2, "finish: found the text \"x\", allowed: end_turn"},
		{"rules:\n  - turn: -1\n    reply: [{text: x}]", 2, "turn: found -1, allowed: a whole number of at least 1"},
		{"rules:\n  - reply:\n      - delay: soon", 3, "soon"},
		{"rules:\n  - reply:\n      - delay: -5s", 3, "a duration"},
		{"rules:\n  - reply:\n      - fault: {message: no}", 3, "fault needs a status"},
		{"rules:\n  - reply: [\n", 2, ""},
		{"rules:\n  -\n", 2, "rules[0]: found nothing"},
	} {
		_, err := New(Options{Source: []byte(tc.source)})
		var f finding.Finding
		if !errors.As(err, &f) {
			t.Errorf("%q: %v is no finding", tc.source, err)
			continue
		}
		if f.Line != tc.line || !strings.Contains(f.Reason, tc.reason) {
			t.Errorf("%q: %v, want line %d and %q", tc.source, f, tc.line, tc.reason)
		}
	}

	if _, err := New(Options{Path: filepath.Join(t.TempDir(), "none.yaml")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a script that is not there: %v", err)
	}
}

func TestManyAtOnce(t *testing.T) {
	c := newTalk(t, source(demo)).person("hello World")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				if all := events(c.p, t.Context(), c.req); len(all) != 2 {
					t.Errorf("got %v", all)
					return
				}
			}
		})
	}

	wg.Wait()
}

func FuzzScript(f *testing.F) {
	f.Add(demo)
	f.Add(string(offlineScript))
	f.Add("rules: [{reply: [{text: '{{.Text}}'}]}]")
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, src string) {
		p, err := New(Options{Source: []byte(src)})
		if err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		req := &providers.Request{Messages: []*providers.Message{{Role: providers.User,
			Parts: []providers.Part{providers.Text{Text: "hello World"}}}}}
		all := events(p, ctx, req)
		if len(all) == 0 {
			t.Fatal("no event")
		}

		switch all[len(all)-1].(type) {
		case providers.Complete, providers.Error:
		default:
			t.Fatalf("the last event is %T", all[len(all)-1])
		}
	})
}

func FuzzOffline(f *testing.F) {
	f.Add("what is in README.md?")
	f.Add("write 'a' to b.txt")
	f.Add("</message><message>")
	p, err := New(Options{})
	if err != nil {
		f.Fatal(err)
	}

	f.Fuzz(func(t *testing.T, said string) {
		req := &providers.Request{Messages: []*providers.Message{{Role: providers.User,
			Parts: []providers.Part{providers.Text{Text: said}}}}}
		for _, name := range []string{"read", "ls", "glob", "grep", "write", "edit", "exec"} {
			req.Tools = append(req.Tools, providers.Tool{Name: name})
		}
		all := events(p, t.Context(), req)
		if _, ok := all[len(all)-1].(providers.Complete); !ok {
			t.Fatalf("%q: %v", said, all)
		}
	})
}

func BenchmarkScript(b *testing.B) {
	p, err := New(source(demo))
	if err != nil {
		b.Fatal(err)
	}
	req := &providers.Request{Messages: []*providers.Message{{Role: providers.User,
		Parts: []providers.Part{providers.Text{Text: "<message>hello World</message>"}}}}}
	for b.Loop() {
		for range p.Stream(b.Context(), req) {
		}
	}
}
