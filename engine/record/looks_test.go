package record

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/engine/beneath"
)

// Whoever looks for something in a history parses the lines that can have it, not the
// others: of 300 calls and results in a turn none costs more than its bytes.
func TestLooksParseOnlyWhatTheyNeed(t *testing.T) {
	h := begun(t)
	turn(t, h, "t1", "a", "b")
	seq := h.Obligations().LastSeq
	add(t, h, &TurnBegin{Turn: "t2", Items: []string{"it2"}, Attempt: 1}, user("it2", "go"))

	for i := range 300 {
		add(t, h, &ToolStart{ToolCallID: fmt.Sprint("c", i), Name: "item"},
			&ToolResult{ToolCallID: fmt.Sprint("c", i), Status: StatusOK, Output: Output{Text: strings.Repeat("x", 100)}})
	}

	for name, look := range map[string]func(dir string) error{
		"Closed":  func(string) error { _, err := h.Closed(map[string]int64{"none": 0}); return err },
		"Totals":  func(string) error { _, _, err := h.Totals(seq); return err },
		"Closing": func(string) error { _, _, err := Closing(h.dir, "none"); return err },
		"Spent":   looks["Spent"], "InContext": looks["InContext"], "CostAfter": looks["CostAfter"], "Attached": looks["Attached"],
	} {
		n := testing.AllocsPerRun(1, func() {
			if err := look(h.dir); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		if n > 300 {
			t.Errorf("%s takes %.0f allocations for 600 lines", name, n)
		}
	}
}

// Two looks are equal while neither file was written. Where a part of the history is in other files, or what has the
// name of one is no file, they prove nothing.
func TestLooksAtTheFilesOfAnAgent(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	look := func(what string, want bool) Look {
		t.Helper()
		l, ok := LookAt(dir)
		if ok != want {
			t.Errorf("%s: the look counts: %v", what, ok)
		}
		return l
	}
	none := look("no files", true)
	put(stateName, "{}")
	put(historyName, "x")
	both := look("both files", true)
	if both == none || both != look("again", true) {
		t.Error("looks differ where nothing changed, or not where files came")
	}
	for _, name := range []string{stateName, historyName} {
		put(name, "{} and more")
		if now := look(name, true); now == both {
			t.Errorf("%s was written, and looks as before", name)
		}
	}

	old, fresh := beneath.Stamp{Changed: 1}, beneath.Stamp{Changed: int64(time.Hour) + 1}
	for l, want := range map[Look]bool{{old, old}: true, {old, fresh}: false, {fresh, old}: false, {fresh, fresh}: false} {
		if got := l.Lasts(time.Unix(0, fresh.Changed)); got != want {
			t.Errorf("%+v lasts: %v", l, got)
		}
	}

	if err := os.Mkdir(filepath.Join(dir, closedDir), 0o700); err != nil {
		t.Fatal(err)
	}
	look("more files of history", false)
	if err := os.Remove(filepath.Join(dir, closedDir)); err != nil {
		t.Fatal(err)
	}
	put(closedDir, "x")
	look("a file in the place of the folder", false)
	if err := os.Remove(filepath.Join(dir, closedDir)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{stateName, historyName} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
			t.Fatal(err)
		}
		look("a folder in the place of "+name, false)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		put(name, "x")
	}
}

// The look that an append makes after its write is enough for a moment, unless something came between.
func TestRefreshSinceLooksOnceAMoment(t *testing.T) {
	for name, tt := range map[string]struct {
		ago, since time.Duration // when the append looked, and when what came between ended
		sees       bool
	}{"at once": {-time.Minute, time.Hour, false}, "something came between": {time.Millisecond, 0, true},
		"a moment later": {2 * atOnce, time.Hour, true}} {
		h := begun(t)
		turn(t, h, "t1", "q", "green")
		save(t, h, bytes.Replace(content(t, h), []byte("green"), []byte("black"), 1))

		h.looked = time.Now().Add(-tt.ago)
		changed, _, err := h.RefreshSince(time.Now().Add(-tt.since))
		if changed != tt.sees || err != nil {
			t.Errorf("%s: changed is %v, %v", name, changed, err)
		}
		if changed, _, err := h.Refresh(); changed == tt.sees || err != nil {
			t.Errorf("%s: the next look: %v, %v", name, changed, err)
		}
	}
}

// An edit that an append took over is told by the next refresh, however soon that comes.
func TestRefreshSinceTellsOfAnEditThatAnAppendFound(t *testing.T) {
	h := begun(t)
	turn(t, h, "t1", "q", "green")
	save(t, h, bytes.Replace(content(t, h), []byte("green"), []byte("black"), 1))
	turn(t, h, "t2", "q", "next")
	h.looked = time.Now().Add(time.Minute)
	if changed, _, err := h.RefreshSince(time.Time{}); !changed || err != nil {
		t.Errorf("changed is %v, %v", changed, err)
	}
	wantTexts(t, h, "q", "black", "q", "next")
}
