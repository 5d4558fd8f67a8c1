package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
)

func (d desk) simulate(code int, script string, args ...string) string {
	d.t.Helper()
	d.file("week.yaml", script)
	var printed bytes.Buffer
	root := func(c *term.App) *cobra.Command {
		root := &cobra.Command{Use: "daycare"}
		c.Attach(root)
		root.AddCommand(Simulate(c))
		return root
	}
	if got := d.app(&printed).Run(context.Background(), root, append([]string{"-C", d.root, "simulate", filepath.Join(d.root, "week.yaml")},
		args...)); got != code {
		d.t.Errorf("simulate ends with %d, want %d:\n%s", got, code, printed.String())
	}

	return printed.String()
}

type simulatedWeek struct {
	Total     figure
	Agents    []figure
	Days      []figure
	Approvals []approval
	Steps     int
}

func (d desk) played(script string) (w simulatedWeek) {
	d.t.Helper()
	out := d.simulate(0, script, "--json")
	if err := json.Unmarshal([]byte(out), &w); err != nil {
		d.t.Fatalf("%v in %s", err, out)
	}

	return w
}

const task = `---
taskId: %ID
schedule: "0 9 * * *"
---
write the report
`

// A week with a task each day, two messages, an outage, a night in which the machine is off, and approvals.
func TestASimulatedWeek(t *testing.T) {
	d := newDesk(t, "providers: [ { id: v, type: openai, baseURL: \"https://example.org/v1\", model: m1, apiKeyEnv: LAB_KEY } ]\n"+
		"models: [ { id: m1, price: { input: 10, output: 100 } } ]\ncron: { timezone: UTC }\n")
	t.Setenv("LAB_KEY", "k")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	d.live(func(ctx context.Context, c *control.Client) {
		if _, err := c.Create(ctx, control.NewAgent{Type: "permanent", Name: "Ops"}); err != nil {
			t.Fatal(err)
		}
	})
	d.file(".daycare/cron/report/TASK.md", strings.Replace(task, "%ID", "wzssiov9uheon5ytwbdp4mzu", 1))
	before := d.tree()
	w := d.played(`
from: 2026-12-07T00:00Z
for: 7d
answers: allow
answerAfter: 30m
script:
  rules:
    - { contains: deploy, round: 1, reply: [ { calls: [ { name: request_permission,
        arguments: { permission: "@web:example.com", reason: to look } } ] } ] }
    - { contains: report, reply: [ { text: reported }, { usage: { input: 1000, output: 100 } } ] }
    - { reply: [ { text: ok }, { usage: { input: 100, output: 10 } } ] }
events:
  - { at: 1d10h, to: Ops, say: deploy it }
  - { at: 2d10h, say: hello }
  - { at: 3d8h, fault: { status: 529, for: 4h } }
  - { at: 4d8h, off: 3h }
`)
	var days []string
	for _, day := range w.Days {
		days = append(days, fmt.Sprint(day.Who[:3], " ", day.Turns, " ", day.Failed))
	}
	// On Thursday the provider is down, and on Friday at nine the machine is off.
	if want := "Mon 1 0, Tue 3 0, Wed 2 0, Thu 1 1, Fri 1 0, Sat 1 0, Sun 1 0"; strings.Join(days, ", ") != want {
		t.Errorf("the days are %q, want %q", days, want)
	}
	if len(w.Agents) != 3 || w.Agents[1].Turns != 7 || w.Agents[1].Calls != 6 || w.Agents[1].Input != 6000 || w.Agents[1].Cost < 0.1199 ||
		w.Agents[1].Cost > 0.1201 || w.Total.Turns != 10 || len(w.Approvals) != 1 {
		t.Fatalf("%+v", w)
	}
	at := time.Date(2026, 12, 8, 10, 0, 0, 0, time.UTC)
	if a := w.Approvals[0]; a.Permission != "@web:example.com" || a.Answer != "once" || !a.At.Equal(at) {
		t.Errorf("%+v", a)
	}
	if after := d.tree(); after != before {
		t.Errorf("the workspace changed:\n%s\nwas\n%s", after, before)
	}
}

// tree lists the files of a workspace.
func (d desk) tree() string {
	var b strings.Builder
	err := filepath.WalkDir(d.root, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() && filepath.Base(path) != "week.yaml" {
			info, ierr := e.Info()
			if err = ierr; err == nil {
				b.WriteString(path + " " + info.ModTime().String() + "\n")
			}
		}
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return b.String()
}

// Requests that nobody answers expire; budgets stop agents until the next day; the heartbeat beats. The same script
// plays the same again.
func TestSimulatedLimits(t *testing.T) {
	d := newDesk(t, "providers: [ { id: v, type: openai, baseURL: \"https://example.org/v1\", model: m1 } ]\n"+
		"models: [ { id: m1, price: { input: 10, output: 100 }, maxOutput: 1000 } ]\ncron: { timezone: UTC }\n"+
		"heartbeat: { every: 6h }\nbudget: { perDay: { usd: 0.5 } }\npermissions: { expiry: 12h }\ntools: { exec: { sandbox: off } }\n")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	d.file(".daycare/heartbeat/news.md", "what is new?\n")
	script := `
from: 2026-12-07T00:00Z
for: 3d
answers: none
script:
  rules:
    - { contains: ask, round: 1, reply: [ { calls: [ { name: request_permission,
        arguments: { permission: "@web:example.com", reason: to look } } ] } ] }
    - { contains: what is new, reply: [ { text: a lot }, { usage: { input: 1000, output: 100 } } ] }
    - { reply: [ { text: ok }, { usage: { input: 0, output: 0 } } ] }
events:
  - { at: 1h, say: ask me }
  - { every: 1d, say: hello }
`
	first, again := d.played(script), d.played(script)
	if first.Total.Turns == 0 || fmt.Sprint(first.Days) != fmt.Sprint(again.Days) || len(first.Approvals) != len(again.Approvals) {
		t.Errorf("the first time it was %+v, then %+v", first, again)
	}
	if a := first.Approvals[0]; a.Permission != "@web:example.com" || a.Answer != "" {
		t.Errorf("%+v", a)
	}
	for _, day := range first.Days {
		if day.Cost > 0.5 {
			t.Errorf("%s costs %v, above the budget", day.Who, day.Cost)
		}
	}
	out := d.simulate(0, strings.Replace(script, "3d", "1d", 1))
	for _, text := range []string{"Mon 2026-12-07 00:00 to Tue 2026-12-08 00:00, played in", "total", "would be requested",
		"@web:example.com", "none"} {
		if !strings.Contains(out, text) {
			t.Errorf("%q is missing in\n%s", text, out)
		}
	}
	if left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "daycare-simulation-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// Each mistake in a script has its place, and nothing is played.
func TestMistakesInSimulations(t *testing.T) {
	d := newDesk(t, offline)
	for script, want := range map[string]string{
		"{}":                              "for is missing",
		"for: 7":                          "for: \"7\" is not a length of time",
		"for: 400d":                       "is longer than a year",
		"for: 9999999999d":                "is longer than a year",
		"for: 1d\nfrom: yesterday":        "not a time, such as 2026-12-07",
		"for: 1d\nanswers: maybe":         "answers",
		"for: 1d\nfiles: { ../x: y }":     "is not in the workspace",
		"for: 1d\nevents: [ { at: 1h } ]": "has 0 of say, fault and off, allowed: one",
		"for: 1d\nevents: [ { say: a, off: 1h } ]":   "has 2 of say, fault and off",
		"for: 1d\nevents: [ { say: a, every: 1s }]":  "is less than a minute",
		"for: 1d\nevents: [ { off: 2h, every: 1h }]": "is longer than its interval, every",
		"for: 1d\nevents: [ { fault: {} } ]":         "for",
		"for: 1d\nevents: [ { sey: a } ]":            "did you mean \"say\"?",
	} {
		if out := d.simulate(2, script); !strings.Contains(out, want) || !strings.Contains(out, "week.yaml:") {
			t.Errorf("%s: %q is missing in\n%s", script, want, out)
		}
	}
	for script, want := range map[string]string{
		"for: 1d\nevents: [ { at: 1h, to: nobody, say: hello } ]": "nobody",
		"for: 1d\nscript: missing.yaml":                           "missing.yaml",
	} {
		if out := d.simulate(map[bool]int{true: 3, false: 1}[strings.Contains(script, "nobody")], script); !strings.Contains(out, want) {
			t.Errorf("%s: %q is missing in\n%s", script, want, out)
		}
	}
}
