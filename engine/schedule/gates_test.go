package schedule

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// A gate opens if its command ends well. Why it did not is told, and its output is bounded.
func TestWhatAGateSays(t *testing.T) {
	var asked context.Context
	ask := func(out Output, err error) (string, string, error) {
		run := func(ctx context.Context, agent, dir string, g Gate) (Output, error) {
			asked = ctx
			if agent != "anna" || dir != "/dir" || g.Command != "x" {
				t.Errorf("asked %s in %s for %+v", agent, dir, g)
			}
			if _, bounded := ctx.Deadline(); !bounded || ctx.Err() != nil {
				t.Error("its time is not bounded")
			}

			return out, err
		}

		return gates{run: run}.ask(t.Context(), "anna", "/dir", Gate{Command: "x", Timeout: 5 * time.Second})
	}
	for name, tt := range map[string]struct {
		out        Output
		err        error
		text, skip string
	}{
		"open":              {Output{Text: " 5 lines\n"}, nil, "5 lines", ""},
		"open and silent":   {Output{}, nil, "", ""},
		"closed":            {Output{Code: 1, Text: "nothing\nthere\n"}, nil, "", "gate: exit code 1 nothing there"},
		"closed and silent": {Output{Code: 2}, nil, "", "gate: exit code 2"},
		"refused":           {Output{Refused: "waits for approval abc", Text: "x"}, nil, "", "gate: waits for approval abc"},
		"too slow":          {Output{}, context.DeadlineExceeded, "", "gate: took longer than 5s"},
		"as much as fits":   {Output{Text: strings.Repeat("x", maxExtra)}, nil, strings.Repeat("x", maxExtra), ""},
		"too much":          {Output{Text: strings.Repeat("x", maxExtra+1)}, nil, strings.Repeat("x", maxExtra) + "\n[cut]", ""},
		"cut in a letter":   {Output{Text: strings.Repeat("x", maxExtra-1) + "ü"}, nil, strings.Repeat("x", maxExtra-1) + "\n[cut]", ""},
		"no text":           {Output{Text: "a\xffb"}, nil, "a\ufffdb", ""},
	} {
		text, skip, err := ask(tt.out, tt.err)
		if err != nil || text != tt.text || skip != tt.skip || !utf8.ValidString(text) {
			t.Errorf("%s: %q, %q, %v", name, text, skip, err)
		}
		if asked.Err() == nil {
			t.Errorf("%s: its time goes on when it has ended", name)
		}
	}

	wrong := errors.New("no shell")
	if text, skip, err := ask(Output{}, wrong); !errors.Is(err, wrong) || text+skip != "" {
		t.Errorf("a gate that cannot be asked: %q, %q, %v", text, skip, err)
	}
	if text, skip, err := (gates{}).ask(t.Context(), "anna", "/dir", Gate{}); err != nil || text != "" || skip == "" {
		t.Errorf("where no commands are run: %q, %q, %v", text, skip, err)
	}
}

// What is watched is told apart by the output of a command and by how it ended.
func TestWhatACommandSaysIsWatched(t *testing.T) {
	look := func(gs gates, patterns []string, command string) (sum, skip string, err error) {
		d := newDigest()
		skip, err = gs.inputs(t.Context(), "anna", "/dir", patterns, command, d)
		return d.sum(), skip, err
	}
	saying := func(out Output, err error) gates {
		return gates{run: func(context.Context, string, string, Gate) (Output, error) { return out, err }}
	}
	sums := map[string]string{}
	for name, out := range map[string]Output{"a": {Text: "a"}, "b": {Text: "b"}, "a that failed": {Text: "a", Code: 1}, "nothing": {}} {
		sum, skip, err := look(saying(out, nil), nil, "x")
		if skip != "" || err != nil || sums[sum] != "" {
			t.Errorf("%s: %q, %v; the same as %s", name, skip, err, sums[sum])
		}
		sums[sum] = name
		if again, _, _ := look(saying(out, nil), nil, "x"); again != sum {
			t.Errorf("%s is different when it is looked at again", name)
		}
	}

	wrong := errors.New("no shell")
	if _, _, err := look(saying(Output{}, wrong), nil, "x"); !errors.Is(err, wrong) {
		t.Errorf("a command that cannot be run: %v", err)
	}
	if _, skip, err := look(saying(Output{Refused: "not yet"}, nil), nil, "x"); skip != "not yet" || err != nil {
		t.Errorf("a command that is refused: %q, %v", skip, err)
	}
	if _, skip, err := look(gates{}, nil, "x"); skip == "" || err != nil {
		t.Errorf("where no commands are run: %q, %v", skip, err)
	}
	if _, skip, err := look(gates{workspace: t.TempDir()}, []string{"**"}, ""); skip != "" || err != nil {
		t.Errorf("without a command: %q, %v", skip, err)
	}
}

// Texts are distinguished by their kind and by where one ends.
func TestWhatTextsAreToldApartBy(t *testing.T) {
	names := map[string]int{}
	for i, texts := range [][2]string{{"gate ab", "gate c"}, {"gate a", "gate bc"}, {"gate ab", "command c"}, {"command ab", "gate c"}} {
		d := newDigest()
		for _, text := range texts {
			kind, text, _ := strings.Cut(text, " ")
			d.text(kind, text)
		}
		if same, known := names[d.sum()]; known {
			t.Errorf("%q is the same as number %d", texts, same)
		}
		names[d.sum()] = i
	}
}

// Of very many files the first are watched, in the order of their names; of a folder that is gone none.
func TestWhatIsWatchedIsBounded(t *testing.T) {
	dir := t.TempDir()
	name := func(i int) string { return filepath.Join(dir, fmt.Sprintf("f%05d", i)) }
	if err := os.WriteFile(name(0), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= maxWatched; i++ {
		if err := os.Link(name(0), name(i)); err != nil {
			t.Fatal(err)
		}
	}
	look := func(dir string) string {
		d := newDigest()
		d.files(dir, []string{"**"})
		return d.sum()
	}
	before := look(dir)
	for i, seen := range map[int]bool{maxWatched: false, maxWatched - 1: true} {
		if err := os.Rename(name(i), name(i)+"x"); err != nil {
			t.Fatal(err)
		}
		if now := look(dir); (now != before) != seen {
			t.Errorf("a change of file %d is seen: %v", i+1, now != before)
		}
		if err := os.Rename(name(i)+"x", name(i)); err != nil {
			t.Fatal(err)
		}
	}
	if none := look(filepath.Join(dir, "none")); none != newDigest().sum() {
		t.Errorf("of a folder that is not there something is seen: %s", none)
	}
}

// What a firing says is what the task's file says, and where the run comes from.
func TestWhatAFiringSays(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	var gates []Gate
	w.gate = func(_ context.Context, _, _ string, g Gate) (Output, error) {
		gates = append(gates, g)
		return Output{Text: "open"}, nil
	}
	w.start()
	w.task("t", "taskId: tz4a98xxat96iws9zmbrgj3a\nname: Name\nevery: 10m\ntimezone: Europe/Berlin\ncreatedBy: bert\n"+
		"source: mail from eve\nmodel: m\ngate: { command: x, timeoutMs: 500, permissions: [p], allowedDomains: [d] }\nwatch: notes/*")
	w.write("cron/t/MEMORY.md", "remember\n")
	w.until(noon.Add(time.Minute))
	w.write("notes/a", "x")
	w.until(noon.Add(11 * time.Minute))
	w.now = noon.Add(12 * time.Minute)
	if _, err := w.sched.RunNow("t"); err != nil {
		t.Fatal(err)
	}

	w.settle()
	if len(w.firings) != 2 || len(gates) != 2 {
		t.Fatalf("%d firings, %d gates: %v", len(w.firings), len(gates), w.outcomes("t"))
	}

	for i, trigger := range []Trigger{
		{Via: ViaSchedule, Slot: noon.Add(10 * time.Minute), Why: "changed: notes/*",
			Dedupe: "cron:tz4a98xxat96iws9zmbrgj3a/2026-11-20T12:10:00Z"},
		{Via: ViaHand, Slot: noon.Add(12 * time.Minute), Why: "run by hand",
			Dedupe: "cron:tz4a98xxat96iws9zmbrgj3a/2026-11-20T12:12:00.000Z-hand"},
	} {
		want := Firing{Trigger: trigger}
		want.Kind, want.Slug, want.Name, want.TaskID, want.Agent, want.Maker = Cron, "t", "Name", "tz4a98xxat96iws9zmbrgj3a", "", "bert"
		want.Source, want.Model, want.Prompt, want.Memory, want.Gate = "mail from eve", "m", "Do it.", "remember\n", "open"
		want.Zone, want.Dir = zone(t, "Europe/Berlin"), filepath.Join(w.root, "cron/t/files")
		got := w.firings[i]
		if got.Zone.String() != want.Zone.String() {
			t.Errorf("%d: its zone is %s", i, got.Zone)
		}
		if got.Zone = want.Zone; got != want {
			t.Errorf("%d: fired\n%+v, want\n%+v", i, got, want)
		}
		if !exists(want.Dir) {
			t.Error("its folder is not there")
		}
		if g := gates[i]; g.Timeout != 500*time.Millisecond || g.ByHand != (want.Via == ViaHand) || len(g.Permissions) != 1 ||
			len(g.AllowedDomains) != 1 {
			t.Errorf("%d: the gate is %+v", i, g)
		}
	}
}

// A run of which the agent cannot be found, or which cannot be handed over, is noted as
// failed; a look at what is watched is tried again.
func TestARunThatCannotBegin(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	wrong := errors.New("no agent\nof that name")
	looks := 0
	target := func(_ context.Context, f Firing) (string, error) {
		if f.Via == ViaWatch {
			looks++
		}
		return "", wrong
	}
	w.sched.o.Target = target
	w.task("t", "every: 10m")
	w.task("watch", "watch: notes/*")
	w.until(noon.Add(10 * time.Minute))
	w.want("t", "12:10 failed (no agent of that name)")
	w.want("watch")
	if looks < 5 {
		t.Errorf("what is watched was looked at %d times in ten minutes", looks)
	}

	w.start()
	w.due = func(*world, Firing) (Result, error) { return Result{}, wrong }
	w.until(noon.Add(20 * time.Minute))
	w.want("t", "12:10 failed (no agent of that name)", "12:20 failed (no agent of that name)")
	w.due = func(*world, Firing) (Result, error) { return Result{Outcome: Skipped, Reason: "busy"}, nil }
	w.until(noon.Add(30 * time.Minute))
	w.want("t", "12:10 failed (no agent of that name)", "12:20 failed (no agent of that name)", "12:30 skipped (busy)")
	h := hearts(t)
	h.sched.o.Target = target
	h.write("heartbeat/disk.md", "Is the disk full?")
	if h.until(noon.Add(31 * time.Minute)); len(h.beats()) != 1 || !strings.Contains(h.beats()[0], "12:30 failed no agent of that name") {
		t.Errorf("beats are %v", h.beats())
	}
}

// A task of an agent that has a folder of its own gets none: its gate runs where that agent works.
func TestATaskOfAnotherAgentHasNoFolder(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.start()
	w.task("t", "every: 10m\nagentId: anna")
	w.until(noon.Add(11 * time.Minute))
	if len(w.firings) != 1 || w.firings[0].Agent != "anna" || w.firings[0].Dir != "" || exists(filepath.Join(w.root, "cron/t/files")) {
		t.Errorf("fired %+v", w.firings)
	}
}
