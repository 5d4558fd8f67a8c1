package lab

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
)

func runBatch(c *term.App, args ...string) int {
	root := func(c *term.App) *cobra.Command {
		root := &cobra.Command{Use: "daycare"}
		c.Attach(root)
		root.AddCommand(Batch(c))
		return root
	}
	return c.Run(context.Background(), root, args)
}

func (d desk) batch(code int, args []string, texts ...string) {
	d.t.Helper()
	var printed bytes.Buffer
	got := runBatch(d.app(&printed), append([]string{"-C", d.root, "batch", filepath.Join(d.root, "q.jsonl")}, args...)...)
	if got != code {
		d.t.Errorf("batch %v ends with %d, want %d:\n%s", args, got, code, printed.String())
	}
	for _, text := range texts {
		if !strings.Contains(printed.String(), text) {
			d.t.Errorf("batch %v: %q is missing in:\n%s", args, text, printed.String())
		}
	}
}

func (d desk) answers() (all []answered) {
	d.t.Helper()
	data, err := os.ReadFile(filepath.Join(d.root, "q.results.jsonl"))
	if err != nil {
		d.t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		var a answered
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			d.t.Fatal(err)
		}
		all = append(all, a)
	}

	return all
}

// number is what a model of these tests is asked for.
var number = regexp.MustCompile(`say (\d+)`)

func TestBatch(t *testing.T) {
	url, asked := vendor(t, func(_ int64, body string) string {
		pirate := ""
		if strings.Contains(body, "You are a pirate") {
			pirate = " arr"
		}
		return says("I say " + number.FindStringSubmatch(body)[1] + pirate)
	})
	d := newDesk(t, remote(url, "m1"))
	t.Setenv("LAB_KEY", "k")
	d.live(func(ctx context.Context, c *control.Client) {
		n := control.NewAgent{Type: "permanent", Name: "Ops", SystemPrompt: "You are a pirate."}
		if _, err := c.Create(ctx, n); err != nil {
			t.Fatal(err)
		}
	})
	d.file("q.jsonl", "{\"id\":\"a\",\"prompt\":\"say 1\"}\n\n\"say 2\"\n\"say 2\"\n{\"prompt\":\"say 3\"}\n")
	d.batch(0, []string{"--agent", "Ops", "--concurrency", "2"}, "4 of 4 lines answered, 4 now, 0 failed, $0.0080")
	all := d.answers()
	if len(all) != 4 || asked.Load() != 4 {
		t.Fatalf("%d requests, %+v", asked.Load(), all)
	}
	for _, a := range all {
		if a.Reason != "done" || a.Answer != strings.Replace(a.Prompt, "say", "I say", 1)+" arr" || a.Cost == 0 {
			t.Errorf("%+v", a)
		}
	}

	// Again, nothing is asked; a new line is, until the budget is used up.
	d.batch(0, nil, "4 of 4 lines answered, 0 now")
	d.file("q.jsonl", "{\"id\":\"a\",\"prompt\":\"say 1\"}\n\"say 4\"\n\"say 5\"\n")
	d.batch(1, []string{"--budget", "0.009", "--concurrency", "1"}, "1 now", "the budget of $0.009 is used up: 1 line was not asked")
	if asked.Load() != 5 {
		t.Errorf("%d requests were made", asked.Load())
	}
	d.live(func(ctx context.Context, c *control.Client) {
		if agents, err := c.Agents(ctx); err != nil || len(agents) != 1 {
			t.Errorf("agents were left behind: %+v %v", agents, err)
		}
	})

	d.file("q.jsonl", "{\"prompt\":\"say 1\"}\n{\"promt\":\"x\"}\n{\"id\":\"x\"}\n{\"prompt\":7}\n{no\n{\"id\":\"b\",\"prompt\":\"b\"}\n"+
		"{\"id\":\"b\",\"prompt\":\"b\"}\n")
	d.batch(2, nil, `q.jsonl:2:1: unknown field "promt"`, "q.jsonl:3:1: prompt is missing", "q.jsonl:4:", "q.jsonl:5:2: invalid character",
		`q.jsonl:7:1: line 6 already has the id "b"`)
}

// Any line is a prompt, or has a place where it is wrong.
func FuzzReadPrompt(f *testing.F) {
	for _, line := range []string{`{"prompt":"a"}`, `"a"`, `{"prompt":7}`, `{no`, `{"id":"x"}`, `{} {}`, `"\ud800"`} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if len(bytes.TrimSpace(line)) == 0 {
			return // it is left out
		}
		q, wrong := readPrompt(line)
		if wrong == nil && strings.TrimSpace(q.Prompt) == "" || wrong != nil && wrong.Column < 1 {
			t.Errorf("%q: %+v, %+v", line, q, wrong)
		}
	})
}

// Killed again and again, at any moment, each line is answered once and its cost counted once.
func TestKilledBatch(t *testing.T) {
	lines, kills := 40, 5
	if os.Getenv("DAYCARE_LONG") != "" {
		lines = 1000
	}
	url, asked := vendor(t, func(_ int64, body string) string {
		time.Sleep(20 * time.Millisecond)
		return says("I say " + number.FindStringSubmatch(body)[1])
	})
	d := newDesk(t, remote(url, "m1"))
	var text strings.Builder
	for i := range lines {
		fmt.Fprintf(&text, "{\"id\":\"q%d\",\"prompt\":\"say %d\"}\n", i, i)
	}
	d.file("q.jsonl", text.String())
	start := func() (*exec.Cmd, *bytes.Buffer) {
		cmd := exec.Command(os.Args[0], "-C", d.root, "batch", filepath.Join(d.root, "q.jsonl"))
		cmd.Env = append(os.Environ(), "LAB_BATCH=1", "LAB_KEY=k")
		out := &bytes.Buffer{}
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, out
	}

	var ended sync.WaitGroup
	for k := range kills {
		cmd, _ := start()
		enough := asked.Load() + int64(lines/(kills+2)) // some way on
		for asked.Load() < enough {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(k*7) * time.Millisecond) // at another moment each time
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		ended.Go(func() { _ = cmd.Wait() }) // it was killed
		ended.Wait()
	}
	cmd, out := start()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	seen, cost := map[string]int{}, 0.0
	for _, a := range d.answers() {
		seen[a.ID]++
		cost += a.Cost
		if a.Answer != strings.Replace(a.Prompt, "say", "I say", 1) || a.Reason != "done" {
			t.Errorf("%+v", a)
		}
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s was answered %d times", id, n)
		}
	}
	if len(seen) != lines {
		t.Errorf("%d of %d lines were answered", len(seen), lines)
	}

	histories, err := filepath.Glob(filepath.Join(d.root, ".daycare/trash/*/history.jsonl"))
	if err != nil || len(histories) != lines {
		t.Fatalf("%d agents are in the trash, want one for each of %d lines: %v", len(histories), lines, err)
	}
	for _, path := range histories {
		data, err := os.ReadFile(path)
		if n := bytes.Count(data, []byte(`"type":"user_message"`)); err != nil || n != 1 {
			t.Errorf("%s has %d messages of the user: %v", path, n, err)
		}
		if n := bytes.Count(data, []byte(`"reason":"done"`)); n != 1 {
			t.Errorf("%s has %d turns that ended", path, n)
		}
	}
	if !strings.Contains(out.String(), fmt.Sprintf("%d of %d lines answered", lines, lines)) ||
		!strings.Contains(out.String(), fmt.Sprintf("$%.4f", cost)) {
		t.Errorf("the last run says %s, and the results cost %.4f", out, cost)
	}
	t.Logf("%d lines, %d kills, %d requests", lines, kills, asked.Load())
}
