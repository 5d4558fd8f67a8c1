package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/daemon"
	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/folders"
	"daycare/engine/message"
	"daycare/engine/workspace"
)

func (d desk) replay(args ...string) (code int, out string) {
	d.t.Helper()
	var printed bytes.Buffer
	root := func(c *term.App) *cobra.Command {
		root := &cobra.Command{Use: "daycare"}
		c.Attach(root)
		root.AddCommand(Replay(c))
		return root
	}
	app := d.app(&printed)
	app.In = strings.NewReader(d.typed)
	code = app.Run(context.Background(), root, append([]string{"-C", d.root, "replay"}, args...))

	return code, printed.String()
}

// answering is a desk whose user types these lines.
func (d desk) answering(lines string) desk {
	d.typed = lines
	return d
}

// replays runs replay and looks for texts in what it prints.
func (d desk) replays(code int, args []string, texts ...string) string {
	d.t.Helper()
	got, out := d.replay(args...)
	if got != code {
		d.t.Errorf("replay %v ends with %d, want %d:\n%s", args, got, code, out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			d.t.Errorf("replay %v: %q is missing in:\n%s", args, text, out)
		}
	}

	return out
}

// live runs the engine of the workspace while do works with it.
func (d desk) live(do func(ctx context.Context, c *control.Client)) {
	d.t.Helper()
	c, stop, err := daemon.Inside(d.t.Context(), workspace.At(d.root))
	if err != nil {
		d.t.Fatal(err)
	}
	do(d.t.Context(), c)
	if err := stop(); err != nil {
		d.t.Fatal(err)
	}
}

// say sends a message and waits for the answer.
func (d desk) say(ctx context.Context, c *control.Client, agent, text string) event.Outcome {
	d.t.Helper()
	o, err := c.Stream(ctx, agent, control.Message{Text: text}, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	return o
}

// wires is a server of all four formats: to a new message it calls two tools, to their results
// it answers.
func wires(t *testing.T) (settings string) {
	transcript := func(wire, name string) string {
		data, err := os.ReadFile(filepath.Join("../../../agents/providers", wire, "testdata/transcripts", name+".sse"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		wire := strings.Split(r.URL.Path, "/")[1]
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, transcript(wire, []string{"text", "tools"}[n.Add(1)%2]))
	}))
	t.Cleanup(server.Close)
	t.Setenv("LAB_KEY", "k")
	return fmt.Sprintf(`providers:
  - { id: a, type: anthropic, baseURL: %[1]s/anthropic, model: claude-sonnet-4-6, apiKeyEnv: LAB_KEY }
  - { id: o, type: openai, baseURL: %[1]s/openai, model: gpt-5.4-mini, apiKeyEnv: LAB_KEY }
  - { id: g, type: gemini, baseURL: %[1]s/gemini, model: gemini-3.8-flash, apiKeyEnv: LAB_KEY }
  - { id: r, type: openai, baseURL: %[1]s/responses, model: gpt-6.1-sol, apiKeyEnv: LAB_KEY, options: { wire: responses } }
`, server.URL)
}

type proofs struct {
	Calls, Exact int
	Proofs       []proof
}

func (d desk) proofs(id string) (p proofs) {
	d.t.Helper()
	_, out := d.replay(id, "--exact", "--json")
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		d.t.Fatalf("%v in %s", err, out)
	}
	return p
}

// Each request over four wire formats, made again from the files, is byte for byte what was sent,
// also after a rewind, a compaction and a change of the model; what cannot be exact says why.
func TestExactReplay(t *testing.T) {
	d := newDesk(t, wires(t))
	d.file(".daycare/SOUL.md", "Be brief.\n")
	turns := 24
	if os.Getenv("DAYCARE_LONG") != "" {
		turns = 1000 // two requests each
	}
	var agent, last string
	d.live(func(ctx context.Context, c *control.Client) {
		a, err := c.Create(ctx, control.NewAgent{})
		if err != nil {
			t.Fatal(err)
		}
		agent = a.ID
		for i := range turns {
			if _, err := c.Folders().Switch(ctx, agent, []string{"a", "o", "g", "r"}[i%4]); err != nil {
				t.Fatal(err)
			}
			o := d.say(ctx, c, agent, fmt.Sprintf("look at <%d> & tell", i))
			if last = o.Turn; o.Reason != "done" {
				t.Fatalf("%+v", o)
			}
			if i == turns/2 {
				if _, err := c.Folders().Rewind(ctx, agent, ""); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
	session := d.session(agent)
	p := d.proofs(session)
	t.Logf("%d requests, %d exact", p.Calls, p.Exact)
	if p.Calls != 2*turns || p.Exact != p.Calls {
		for _, one := range p.Proofs {
			if !one.Exact {
				t.Errorf("record %d of %s: %s", one.Seq, one.Model, one.Why)
				break
			}
		}
		t.Fatalf("%d of %d are exact, want all of %d", p.Exact, p.Calls, 2*turns)
	}
	d.replays(0, []string{last, "--exact"}, "exact    record", "2 of 2 requests are exact")

	// A record before them is edited by hand: those that have it are named, and the others stay exact.
	history := filepath.Join(d.root, ".daycare/agents", agent, "history.jsonl")
	good, err := os.ReadFile(history)
	if err != nil {
		t.Fatal(err)
	}
	edited := bytes.Replace(good, []byte("look at \\u003c20\\u003e"), []byte("look at \\u003c99\\u003e"), 1)
	if bytes.Equal(edited, good) {
		edited = bytes.Replace(good, []byte("look at <20>"), []byte("look at <99>"), 1)
	}
	if err := os.WriteFile(history, edited, 0o600); err != nil || bytes.Equal(edited, good) {
		t.Fatal("the history was not edited", err)
	}
	after := d.proofs(session)
	if after.Exact != 40 || !strings.Contains(after.Proofs[len(after.Proofs)-1].Why, "edited by hand since: record") {
		t.Errorf("%d of %d are exact; the last: %+v", after.Exact, after.Calls, after.Proofs[len(after.Proofs)-1])
	}
	if err := os.WriteFile(history, good, 0o600); err != nil {
		t.Fatal(err)
	}

	// The prompt is another one in the next turn, and the one before is not kept.
	d.file(".daycare/SOUL.md", "Be long.\n")
	d.live(func(ctx context.Context, c *control.Client) { d.say(ctx, c, agent, "again") })
	d.replays(1, []string{last, "--exact"}, "differs", "the system prompt was different", "0 of 2 requests are exact")
	if p := d.proofs(session); p.Exact != 2 {
		t.Errorf("%d are exact after a change of the prompt, want the 2 after it", p.Exact)
	}
}

// session is the id of an agent's conversation.
func (d desk) session(agent string) string {
	d.t.Helper()
	data, err := os.ReadFile(filepath.Join(d.root, ".daycare/agents", agent, "history.jsonl"))
	if err != nil {
		d.t.Fatal(err)
	}
	var start struct{ Session string }
	first, _, _ := bytes.Cut(data, []byte("\n"))
	if err := json.Unmarshal(first, &start); err != nil || start.Session == "" {
		d.t.Fatal(err, string(first))
	}

	return start.Session
}

// A replay gives the recorded results to another model, or another prompt, and shows both answers.
func TestReplayAnswersBesideEachOther(t *testing.T) {
	url, asked := vendor(t, func(n int64, body string) string {
		switch {
		case strings.Contains(body, `"model":"curious"`):
			return calls("read", `{"path":"other.txt"}`)
		case strings.Contains(body, `"model":"m2"`) && strings.Contains(body, "tea 3.20"):
			return says("It costs 3.20, says the other.")
		case strings.Contains(body, "You are terse") && strings.Contains(body, "tea 3.20"):
			return says("3.20")
		}
		return reads(n, body)
	})
	d := newDesk(t, remote(url, "m1"))
	t.Setenv("LAB_KEY", "k")
	d.file("prices.txt", "tea 3.20\n")
	var o event.Outcome
	d.live(func(ctx context.Context, c *control.Client) {
		a, err := c.Create(ctx, control.NewAgent{})
		if err != nil {
			t.Fatal(err)
		}
		o = d.say(ctx, c, a.ID, "what does tea cost?")
	})
	before, err := os.ReadFile(filepath.Join(d.root, ".daycare/agents", o.Agent, "history.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	d.file("prices.txt", "tea 9.99\n") // no tool runs, so nobody sees it
	asked.Store(0)

	out := d.replays(0, []string{o.Turn, "--model", "v/m2", "--times", "2"}, "recorded", "#2", "v/m2", "It costs 3.20, says the other.",
		"Tea is tea 3.20.", `read {"path":"prices.txt"}`, "200, 20", "done")
	if strings.Contains(out, "9.99") || asked.Load() != 4 {
		t.Errorf("%d requests were made:\n%s", asked.Load(), out)
	}
	d.file("terse.md", "You are terse.\n")
	d.replays(0, []string{o.Item, "--system", filepath.Join(d.root, "terse.md")}, "3.20")
	d.replays(0, []string{o.Turn, "--model", "v/curious"}, `it calls what was never recorded: read {"path":"other.txt"}`)
	d.replays(2, []string{o.Turn, "--unrecorded", "always"}, "--unrecorded must be one of ask, stop, dry-run, make")
	d.replays(3, []string{"nosuchturnofanyagent1234"}, "is in no history")
	d.replays(2, []string{o.Turn, "--exact", "--model", "v/m2"}, "--exact cannot be combined")
	d.replays(0, []string{d.session(o.Agent), "--json"}, `"sides":[{"name":"recorded"`)

	after, err := os.ReadFile(filepath.Join(d.root, ".daycare/agents", o.Agent, "history.jsonl"))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("a replay changed the history: %v", err)
	}
}

// The offline model sends nothing, so there is nothing to prove.
func TestNothingWasSent(t *testing.T) {
	d := newDesk(t, offline)
	var o event.Outcome
	d.live(func(ctx context.Context, c *control.Client) {
		a, err := c.Create(ctx, control.NewAgent{})
		if err != nil {
			t.Fatal(err)
		}
		o = d.say(ctx, c, a.ID, "hello")
	})
	d.replays(1, []string{o.Turn, "--exact"}, "the request was not recorded", "0 of 1 request is exact")
	d.replays(0, []string{o.Turn}, "Hello! I am daycare's offline model")
}

// A call that was never recorded is made in a copy, made, typed, or ends the replay.
func TestCallsThatWereNeverRecorded(t *testing.T) {
	url, _ := vendor(t, func(n int64, body string) string {
		switch {
		case strings.Contains(body, `"model":"writer"`) && strings.Contains(body, `overwrote list.txt`):
			return calls("read", `{"path":"list.txt"}`) // sees what it wrote
		case strings.Contains(body, `"model":"writer"`) && !strings.Contains(body, `"role":"tool"`):
			return calls("write", `{"path":"list.txt","content":"milk\n"}`)
		case strings.Contains(body, `"model":"noter"`) && !strings.Contains(body, `"role":"tool"`):
			return calls("memory_write", `{"title":"a","content":"b"}`)
		case strings.Contains(body, `"model":"looker"`):
			return calls("memory_list", `{}`)
		case strings.Contains(body, `typed by hand`):
			return says("It says typed by hand.")
		case strings.Contains(body, `"role":"tool"`):
			return says("Done.")
		}
		return says("Hello.")
	})
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	d := newDesk(t, remote(url, "m1"))
	t.Setenv("LAB_KEY", "k")
	d.file("list.txt", "bread\n")
	var o event.Outcome
	d.live(func(ctx context.Context, c *control.Client) {
		a, err := c.Create(ctx, control.NewAgent{})
		if err != nil {
			t.Fatal(err)
		}
		o = d.say(ctx, c, a.ID, "put milk on the list")
	})
	list := func(want string) {
		t.Helper()
		if got, err := os.ReadFile(filepath.Join(d.root, "list.txt")); err != nil || string(got) != want {
			t.Errorf("list.txt is %q, want %q: %v", got, want, err)
		}
	}
	writer := []string{o.Turn, "--model", "v/writer"}

	d.replays(0, writer, "it calls what was never recorded: write", "list.txt")
	d.replays(0, append(writer, "--unrecorded", "dry-run"), `write {"path":"list.txt","content":"milk\n"} (dry run)`, "read",
		"too many rounds")
	list("bread\n")
	d.replays(0, []string{o.Turn, "--model", "v/noter", "--unrecorded", "dry-run"}, "(dry run)", "Done.")
	d.replays(0, []string{o.Turn, "--model", "v/looker", "--unrecorded", "dry-run"}, "recorded, and a replay runs only")
	d.replays(0, []string{o.Turn, "--model", "v/noter", "--unrecorded", "make"}, "recorded, and a replay runs only")

	ask := append(writer, "--unrecorded", "ask")
	d.answering("x\n").replays(0, ask, "the model calls write", "never recorded: write") // an end of input stops
	d.answering("s\n").replays(0, ask, "never recorded: write")
	for _, asks := range [][]string{ask, append(writer, "--ask")} { // that is its earlier name
		d.answering("t\ntyped by hand\n").replays(0, asks, "(typed)", "It says typed by hand.")
	}
	list("bread\n")
	d.answering("m\ns\n").replays(0, ask, "(made)", `never recorded: read {"path":"list.txt"}`)
	list("milk\n")

	for _, pattern := range []string{"$TMPDIR/daycare-test-*", "$XDG_STATE_HOME/daycare/copies/*"} {
		pattern = os.ExpandEnv(pattern)
		if left, err := filepath.Glob(pattern); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	}
}

// Turns before a compaction, a reset, an export with an import, and a fork are replayed as they were, exactly.
func TestReplaysOfOldHistories(t *testing.T) {
	url, _ := vendor(t, func(n int64, _ string) string { return says(fmt.Sprint("answer ", n)) })
	d := newDesk(t, remote(url, "m1"))
	t.Setenv("LAB_KEY", "k")
	var turns []string
	var tar bytes.Buffer
	exact := func(what string) {
		t.Helper()
		for _, turn := range turns {
			if out := d.replays(0, []string{turn, "--exact"}, "1 of 1 request is exact"); t.Failed() {
				t.Fatalf("%s: %s", what, out)
			}
		}
	}
	var first, forked event.Agent
	d.live(func(ctx context.Context, c *control.Client) {
		var err error
		if first, err = c.Create(ctx, control.NewAgent{}); err != nil {
			t.Fatal(err)
		}
		s := &session{client: c, agent: first.ID, seen: map[string]bool{}, due: map[string]string{}}
		say := func(agent, text string) { turns = append(turns, d.say(ctx, c, agent, text).Turn) }
		say(first.ID, "one")
		say(first.ID, strings.Repeat("a long story ", 2000))
		for _, do := range []func(context.Context, string) (message.Receipt, error){c.Compact, c.Reset} {
			if _, err := do(ctx, first.ID); err != nil {
				t.Fatal(err)
			}
			if err := s.settle(ctx); err != nil {
				t.Fatal(err)
			}
			say(first.ID, "and then?")
		}
		if forked, err = c.Folders().Fork(ctx, first.ID, 0, "fork"); err != nil {
			t.Fatal(err)
		}
		say(forked.ID, "in the fork")
	})
	history, err := os.ReadFile(filepath.Join(d.root, ".daycare/agents", first.ID, "history.jsonl"))
	if err != nil || !bytes.Contains(history, []byte(`"type":"summary"`)) {
		t.Fatalf("nothing was compacted: %v", err)
	}
	exact("after all that")

	if err := folders.Export(filepath.Join(d.root, ".daycare"), first.ID, &tar); err != nil {
		t.Fatal(err)
	}
	d.live(func(ctx context.Context, c *control.Client) {
		for _, id := range []string{forked.ID, first.ID} {
			if _, err := c.Remove(ctx, id, true); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Folders().Import(ctx, &tar, ""); err != nil {
			t.Fatal(err)
		}
	})
	turns = turns[:len(turns)-1] // of the fork
	exact("imported")
}
