package schedule

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/finding"
)

// A prompt is made with a title, and a call that is repeated finds the one that was made.
func TestPromptsAreAdded(t *testing.T) {
	w := hearts(t)
	s, changed := counted(w)
	p, err := s.AddPrompt(" Disk: full? ", "Is the disk full?\n", "test -d /x", "08:00-22:00", true)
	if err != nil || *changed != 1 {
		t.Fatalf("%v, changed %d times", err, *changed)
	}
	want := Prompt{Slug: "disk-full", Title: "Disk: full?", Enabled: true, Hours: must(ParseHours("08:00-22:00")),
		Gate: &Gate{Command: "test -d /x", Timeout: gateTimeout}, Text: "Is the disk full?"}
	b, found, err := s.Heartbeat()
	if err != nil || len(found) > 0 || len(b.Prompts) != 1 {
		t.Fatalf("%+v, %v, %v", b, found, err)
	}
	for _, got := range []Prompt{p.Prompt, b.Prompts[0].Prompt} {
		if d := cmp.Diff(want, got, cmp.AllowUnexported(Hours{})); d != "" {
			t.Errorf("made (-want +got):\n%s", d)
		}
	}
	for i, tt := range []struct {
		title, text string
		replay      bool
		slug        string
	}{
		{"Disk: full?", "Is the disk full?", true, "disk-full"}, {"Disk: full?", "Is the disk full?", false, "disk-full-2"},
		{"Disk: full?", "Is it?", true, "disk-full-3"}, {"", "Look at all new mails, please.", true, "look-at-all-new"},
		{" ", "Look at all new mails, please.", true, "look-at-all-new"},
	} {
		p, err := s.AddPrompt(tt.title, tt.text, "", "", tt.replay)
		if err != nil || p.Slug != tt.slug || p.Text != tt.text || p.Hours != (Hours{}) && p.Slug != "disk-full" {
			t.Errorf("%d: %+v, %v; want %s", i, p, err, tt.slug)
		}
	}
	if *changed != 4 {
		t.Errorf("changed %d times, want once for each that was made", *changed)
	}
	for name, err := range map[string]error{
		"no text":   second(s.AddPrompt("x", " ", "", "", false)),
		"bad hours": second(s.AddPrompt("x", "x", "", "8-22", false)),
		"too long":  second(s.AddPrompt("x", strings.Repeat("word ", maxFile/5), "", "", false)),
	} {
		if err == nil {
			t.Errorf("%s: it is made", name)
		}
	}
	if all, _ := filepath.Glob(filepath.Join(w.root, "heartbeat/*.md")); len(all) != 4 || *changed != 4 {
		t.Errorf("there are %v", all)
	}
}

// The heartbeat is due if any prompt takes part, it is not switched off and has not stopped.
func TestWhenTheHeartbeatIsDue(t *testing.T) {
	const on, off = "x", "---\nenabled: false\n---\nx"
	for name, tt := range map[string]struct {
		prompts []string
		every   time.Duration
		due     bool
	}{
		"none":                          {nil, 30 * time.Minute, false},
		"one":                           {[]string{on}, 30 * time.Minute, true},
		"one that is off":               {[]string{off}, 30 * time.Minute, false},
		"the first is on":               {[]string{on, off}, 30 * time.Minute, true},
		"the second is on":              {[]string{off, on}, 30 * time.Minute, true},
		"broken":                        {[]string{"---\nactiveHours: x\n---\nx"}, 30 * time.Minute, false},
		"without a text":                {[]string{"---\ntitle: x\n---\n"}, 30 * time.Minute, false},
		"without marks":                 {[]string{"Is it?"}, 30 * time.Minute, true},
		"switched off":                  {[]string{on}, 0, false},
		"broken beside one that is not": {[]string{"---\nactiveHours: x\n---\nx", on}, 30 * time.Minute, true},
	} {
		w := hearts(t)
		w.every = tt.every
		for i, text := range tt.prompts {
			w.write(fmt.Sprintf("heartbeat/p%d.md", i), text)
		}
		next := w.settle()
		b, _, err := w.sched.Heartbeat()
		if err != nil || len(b.Prompts) != len(tt.prompts) || b.Every != tt.every || b.Last != nil || b.Running || b.Stopped {
			t.Errorf("%s: %+v, %v", name, b, err)
		}
		want := time.Time{}
		if tt.due {
			want = noon.Add(tt.every)
		}
		if !b.Next.Equal(want) || !next.Equal(want) {
			t.Errorf("%s: it is due %v, and the loop wakes %v; want %v", name, b.Next, next, want)
		}
	}
}

// What is shown of the heartbeat is what its ledger says.
func TestWhatIsShownOfTheHeartbeat(t *testing.T) {
	w := hearts(t)
	w.write("heartbeat/disk.md", "Is the disk full?")
	w.due = func(w *world, f Firing) (Result, error) {
		if b, _, err := w.sched.Heartbeat(); err != nil || !b.Running {
			t.Errorf("in a beat: %+v, %v", b, err)
		}
		return Result{}, errors.New("no key")
	}
	for n := 1; n <= maxFails; n++ {
		w.until(noon.Add(time.Duration(n)*30*time.Minute + time.Second))
		b, _, err := w.sched.Heartbeat()
		if err != nil || b.Running || b.Last == nil || b.Last.Outcome != Failed && b.Last.Outcome != Skipped ||
			b.Stopped != (n == maxFails) ||
			b.Next.IsZero() != b.Stopped {
			t.Errorf("after %d failures: %+v, %v", n, b, err)
		}
		if runs, err := w.sched.PromptRuns(2); err != nil || n < maxFails && len(runs) != min(n, 2) {
			t.Errorf("after %d failures the newest two are %+v, %v", n, runs, err)
		}
	}
}

// A user runs the heartbeat whatever the time and whether or not anything has changed.
func TestBeatByHand(t *testing.T) {
	w := hearts(t)
	if _, err := w.sched.BeatNow(); !errors.Is(err, ErrNotFound) {
		t.Errorf("without a prompt: %v", err)
	}
	w.every = 0
	w.write("heartbeat/disk.md", "---\nactiveHours: 20:00-22:00\n---\nIs the disk full?")
	w.sched.Store.Hours = func() Hours { return must(ParseHours("21:00-22:00")) }
	var inside error
	w.due = func(w *world, f Firing) (Result, error) {
		w.accept(f)
		_, inside = w.sched.BeatNow()
		return Result{Outcome: Ran, Text: "fine", Nothing: true}, nil
	}
	for n := range 2 {
		w.now = w.now.Add(time.Minute)
		for len(w.sched.wake) > 0 {
			<-w.sched.wake
		}
		slot, err := w.sched.BeatNow()
		if err != nil || !slot.Equal(w.now) || len(w.sched.wake) == 0 {
			t.Fatalf("at %v: %v, %v; the loop is woken: %v", w.now, slot, err, len(w.sched.wake) > 0)
		}
		if _, err := w.sched.BeatNow(); !errors.Is(err, ErrBusy) {
			t.Errorf("a second one at once: %v", err)
		}
		if w.settle(); len(w.firings) != n+1 || !errors.Is(inside, ErrBusy) {
			t.Fatalf("%d beats, and inside of one: %v", len(w.firings), inside)
		}
		if f := w.firings[n]; f.Via != ViaHand || !strings.HasSuffix(f.Dedupe, "-hand") || !f.Slot.Equal(slot) || f.Why != "run by hand" {
			t.Errorf("fired %+v", f)
		}
	}
	w.until(w.now.Add(24 * time.Hour))
	if len(w.firings) != 2 {
		t.Errorf("a heartbeat that is switched off was fired %d times", len(w.firings)-2)
	}
}

// What is fine is looked at again when what it looks at changes: its own text, the files that
// it names or, if it names nothing, any, the output of its command or its gate.
func TestWhatMakesTheHeartbeatAskAgain(t *testing.T) {
	out := map[string]string{}
	for name, tt := range map[string]struct {
		prompt string
		change func(w *world)
		again  bool
	}{
		"nothing": {"Look.", func(*world) {}, false},
		"its text": {"---\nwatch: mail/*\n---\nLook.",
			func(w *world) { w.write("heartbeat/p.md", "---\nwatch: mail/*\n---\nLook again.") }, true},
		"its title": {"---\nwatch: mail/*\n---\nLook.",
			func(w *world) { w.write("heartbeat/p.md", "---\ntitle: x\nwatch: mail/*\n---\nLook.") }, true},
		"any file":              {"Look.", func(w *world) { w.write("notes/new", "x") }, true},
		"a file that it names":  {"---\nwatch: mail/*\n---\nLook.", func(w *world) { w.write("mail/new", "x") }, true},
		"a file it does not":    {"---\nwatch: mail/*\n---\nLook.", func(w *world) { w.write("notes/new", "x") }, false},
		"beside its command":    {"---\nwatchCommand: date\n---\nLook.", func(w *world) { w.write("notes/new", "x") }, false},
		"beside its gate":       {"---\ngate: open\n---\nLook.", func(w *world) { w.write("notes/new", "x") }, false},
		"what its command says": {"---\nwatchCommand: date\n---\nLook.", func(w *world) { out["date"] = "monday" }, true},
		"what its gate says":    {"---\ngate: open\n---\nLook.", func(w *world) { out["open"] = "2 mails" }, true},
		"files of ours": {"Look.", func(w *world) {
			w.write("heartbeat/none.txt", "x")
			w.write(".git/index", "x")
			w.write("a/node_modules/x", "x")
		}, false},
		"a file of the same size": {"---\nwatch: old\n---\nLook.", func(w *world) { w.write("old", "y") }, true},
		"a file that is gone": {"---\nwatch: old\n---\nLook.",
			func(w *world) { os.Remove(filepath.Join(filepath.Dir(w.root), "old")) }, true},
	} {
		clear(out)
		w := hearts(t)
		w.gate = func(_ context.Context, _, _ string, g Gate) (Output, error) { return Output{Text: out[g.Command]}, nil }
		w.start()
		w.write("old", "x")
		w.write("mail/old", "x")
		w.write("heartbeat/p.md", tt.prompt)
		w.due = func(w *world, f Firing) (Result, error) {
			w.accept(f)
			return Result{Outcome: Ran, Text: "HEARTBEAT_OK", Nothing: true}, nil
		}
		w.until(noon.Add(61 * time.Minute))
		if w.offered != 1 {
			t.Errorf("%s: before the change it was asked %d times, want 1: %v", name, w.offered, w.beats())
		}
		tt.change(w)
		w.until(noon.Add(91 * time.Minute))
		if again := w.offered > 1; again != tt.again {
			t.Errorf("%s: asked again: %v, want %v", name, again, tt.again)
		}
	}
}

// A heartbeat that the clock was ahead of counts from where the clock is now.
func TestHeartbeatAfterTheClockWasAhead(t *testing.T) {
	w := hearts(t)
	w.write("heartbeat/disk.md", "Is the disk full?")
	w.settle()
	w.now = noon.Add(48 * time.Hour)
	w.settle()
	w.now = noon.Add(time.Hour)
	w.settle()
	before := w.offered
	w.until(noon.Add(85 * time.Minute))
	if w.offered != before {
		t.Errorf("asked %d times before its pause was over", w.offered-before)
	}
	w.until(noon.Add(95 * time.Minute))
	if w.offered != before+1 {
		t.Errorf("asked %d times in the first pause after, want 1", w.offered-before)
	}
}

// A prompt that cannot be read is reported beside the others, and stops no task and no
// heartbeat.
func TestAPromptThatCannotBeRead(t *testing.T) {
	w := hearts(t)
	path := filepath.Join(w.root, "heartbeat/disk.md")
	w.write("heartbeat/disk.md", strings.Repeat("x", 4*maxFile+1))
	w.task("t", "every: 10m")
	w.until(noon.Add(35 * time.Minute))
	w.want("t", "12:10 ran", "12:20 ran", "12:30 ran")
	if len(w.beats()) != 0 {
		t.Errorf("beats are %v, with nothing to look at", w.beats())
	}
	b, _, err := w.sched.Heartbeat()
	if err != nil || len(b.Prompts) != 1 || b.Prompts[0].Slug != "disk" || !unreadOnly(b.Prompts[0].Found, path) {
		t.Errorf("the heartbeat is %+v, %v", b, err)
	}
	w.write("heartbeat/other.md", "Is the other full?")
	w.until(noon.Add(70 * time.Minute))
	if len(w.beats()) != 1 {
		t.Errorf("beats are %v, want one of the other", w.beats())
	}
	if !slices.ContainsFunc(w.sched.seen.told, func(f finding.Finding) bool { return f.File == path }) {
		t.Errorf("findings are %v", w.sched.seen.told)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w.write("heartbeat/disk.md", "Is the disk full?")
	if b, _, err = w.sched.Heartbeat(); err != nil || len(b.Prompts) != 2 || len(b.Prompts[0].Found) > 0 {
		t.Errorf("when it is repaired the heartbeat is %+v, %v", b, err)
	}
}

// The beginning of an answer is cut between letters.
func TestTheBeginningOfAnAnswer(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{strings.Repeat("x", 500), strings.Repeat("x", 500)}, {strings.Repeat("x", 501), strings.Repeat("x", 500) + "…"},
		{strings.Repeat("x", 499) + "ü", strings.Repeat("x", 499) + "…"},
	} {
		if got := beginning(tt.text); got != tt.want {
			t.Errorf("of %d bytes: %q", len(tt.text), got)
		}
	}
	for _, tt := range []struct{ text, want string }{
		{" a\n b\t", "a b"}, {strings.Repeat("x", 200), strings.Repeat("x", 200)},
		{strings.Repeat("x", 201), strings.Repeat("x", 200) + "…"},
		{strings.Repeat("x", 199) + "ü", strings.Repeat("x", 199) + "…"},
	} {
		if got := oneLine(tt.text); got != tt.want {
			t.Errorf("on a line %q is %q", tt.text, got)
		}
	}
}
