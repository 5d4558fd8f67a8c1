package record

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"daycare/engine/crash"
	"daycare/engine/finding"
)

func refresh(t testing.TB, h *History) (bool, []finding.Finding) {
	t.Helper()
	changed, found, err := h.Refresh()
	if err != nil {
		t.Fatalf("refresh: %v", err)
	}
	return changed, found
}

// editable is a history of three turns, with its context in use.
func editable(t testing.TB) *History {
	h := begun(t)
	turn(t, h, "t1", "a", "b")
	turn(t, h, "t2", "c", "d")
	turn(t, h, "t3", "e", "f")
	wantTexts(t, h, "a", "b", "c", "d", "e", "f")
	return h
}

func TestTurnTakenOutInTheMiddle(t *testing.T) {
	h := editable(t)
	lines := splitLines(content(t, h))
	save(t, h, bytes.Join(slices.Delete(lines, 5, 9), nil))
	changed, found := refresh(t, h)
	if !changed || len(found) != 0 {
		t.Errorf("changed %v, found %v", changed, found)
	}

	wantTexts(t, h, "a", "b", "e", "f")
	if g := generation(t, h); g != 1 {
		t.Errorf("generation %d, want 1", g)
	}
	turn(t, h, "t4", "g", "h")
	wantTexts(t, h, "a", "b", "e", "f", "g", "h")
}

func TestTurnTakenOutAtTheEndIsAppendedAgain(t *testing.T) {
	h := editable(t)
	whole := content(t, h)
	lines := splitLines(whole)
	save(t, h, bytes.Join(lines[:9], nil))
	turn(t, h, "t4", "g", "h")
	wantTexts(t, h, "a", "b", "c", "d", "e", "f", "g", "h")
	if !bytes.HasPrefix(content(t, h), whole) {
		t.Error("the lines appended again are not the ones that were there")
	}
	if g := generation(t, h); g != 0 {
		t.Errorf("generation %d for a context that only grew", g)
	}
	if changed, found := refresh(t, h); !changed || !slices.Equal(ids(found), []string{"history-appended-again"}) {
		t.Errorf("changed %v, found %v", changed, found)
	}
}

// A user who saves again while the records are appended that a save lacked loses nothing, and neither does the agent.
func TestASaveWhileRecordsAreAppendedAgain(t *testing.T) {
	h := editable(t)
	whole := content(t, h)
	save(t, h, bytes.Join(splitLines(whole)[:9], nil))
	crash.Meanwhile(t, "history.write", func(k int) {
		if k == 1 {
			save(t, h, append(bytes.Join(splitLines(whole)[:5], nil), `{"type":"note","text":"by hand"}`+"\n"...))
		}
	})
	add(t, h, &TurnBegin{Turn: "t4", Items: []string{"i4"}, Attempt: 1})
	for text, n := range map[string]int{"by hand": 1, `"turn_begin","turn":"t4"`: 1, `"text":"f"`: 1, `"text":"c"`: 1} {
		if now := content(t, h); bytes.Count(now, []byte(text)) != n {
			t.Errorf("%s is not in the file once\n%s", text, now)
		}
	}
}

func TestAnswerRewritten(t *testing.T) {
	h := editable(t)
	save(t, h, bytes.Replace(content(t, h), []byte(`"text":"d"`), []byte(`"text":"much better"`), 1))
	_, found := refresh(t, h)
	if !slices.Equal(ids(found), []string{"history-by-hand"}) || found[0].Line != 8 {
		t.Errorf("found %v", found)
	}
	wantTexts(t, h, "a", "b", "c", "much better", "e", "f")
	if _, found := refresh(t, h); len(found) != 0 {
		t.Errorf("told twice: %v", found)
	}
}

// TestEditOfTheSameSize: an editor that writes in place leaves the inode, and here
// the size too.
func TestEditOfTheSameSize(t *testing.T) {
	h := editable(t)
	data := bytes.Replace(content(t, h), []byte(`"reason":"done"`), []byte(`"reason":"loop"`), -1)
	if err := os.WriteFile(h.path(), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if changed, _ := refresh(t, h); !changed {
		t.Error("an edit of the newest line in place was not seen")
	}
}

func TestLineAddedByHand(t *testing.T) {
	h := editable(t)
	lines := splitLines(content(t, h))
	lines = slices.Insert(lines, 7, []byte(`{"type":"user_message","text":"and think of Ada"}`+"\n"))
	lines = append(lines, []byte("\n\n"), []byte(`{"type":"user_message","text":"last words"}`)) // without newline
	save(t, h, bytes.Join(lines, nil))
	refresh(t, h)
	wantTexts(t, h, "a", "b", "c", "and think of Ada", "d", "e", "f", "last words")
	turn(t, h, "t4", "g", "h")
	wantTexts(t, h, "a", "b", "c", "and think of Ada", "d", "e", "f", "last words", "g", "h")
	if changed, _ := refresh(t, h); changed {
		t.Error("the same edit was seen twice")
	}
}

func TestSaveWithoutChange(t *testing.T) {
	h := editable(t)
	before, _ := h.Context()
	save(t, h, content(t, h))
	if changed, _ := refresh(t, h); !changed {
		t.Error("a new file in the place of the old was not seen")
	}
	after, _ := h.Context()
	if after.Generation != before.Generation || after.Entries[0] != before.Entries[0] {
		t.Error("the context was taken for another although nothing changed in it")
	}
}

// A blank line, which an editor may leave, is nothing to report.
func TestBlankLinesByHand(t *testing.T) {
	h := editable(t)
	save(t, h, append(bytes.ReplaceAll(content(t, h), []byte("\n"), []byte("\n \n\n")), '\n'))
	if changed, found := refresh(t, h); !changed || len(found) != 0 {
		t.Errorf("changed %v, found %v", changed, found)
	}
	wantTexts(t, h, "a", "b", "c", "d", "e", "f")
}

func TestTruncatedInPlace(t *testing.T) {
	for _, keep := range []int{0, 1, 700, 1500} {
		h := editable(t)
		whole := content(t, h)
		if err := os.Truncate(h.path(), int64(keep)); err != nil {
			t.Fatal(err)
		}
		turn(t, h, "t4", "g", "h")
		if got := content(t, h); !bytes.Contains(got, splitLines(whole)[12]) {
			t.Errorf("cut to %d bytes: the newest turn is lost:\n%s", keep, got)
		}

		all := strings.Join(texts(t, h), "")
		if !strings.HasSuffix(all, "cdefgh") {
			t.Errorf("cut to %d bytes: context %q", keep, all)
		}
	}
}

func TestOpenTurnSurvivesAnEditorThatSavesAnOldCopy(t *testing.T) {
	h := editable(t)
	old := content(t, h)
	add(t, h, &TurnBegin{Turn: "t4", Items: []string{"i4"}, Attempt: 1}, user("i4", "g"))
	add(t, h, &Assistant{Turn: "t4", Finish: FinishToolUse, ToolCalls: []ToolCall{{ID: "c1", Name: "exec", Arguments: []byte(`{}`)}}})
	save(t, h, old)
	add(t, h, &ToolStart{ToolCallID: "c1", Name: "exec"})
	if err := h.Barrier(); err != nil {
		t.Fatal(err)
	}
	if o := owes(t, h); o.Turn == nil || !o.Turn.Calls[0].Started || o.Turn.Items[0] != "i4" {
		t.Errorf("open turn after an edit: %+v", o.Turn)
	}

	// And once more, between the append and its barrier.
	add(t, h, &ToolResult{ToolCallID: "c1", Name: "exec", Status: StatusOK})
	save(t, h, old)
	if err := h.Barrier(); err != nil {
		t.Fatal(err)
	}
	if o := owes(t, h); len(o.Turn.Calls) != 0 {
		t.Errorf("what a barrier covered is not in the file: %+v", o.Turn)
	}
}

func TestRecordsTakenOutOnPurposeStayOut(t *testing.T) {
	h := editable(t)
	lines := splitLines(content(t, h))
	save(t, h, bytes.Join(slices.Delete(slices.Clone(lines), 9, 11), nil)) // question of t3
	refresh(t, h)
	wantTexts(t, h, "a", "b", "c", "d", "f")
	save(t, h, bytes.Join(lines[:5], nil)) // now everything after t1
	refresh(t, h)
	wantTexts(t, h, "a", "b", "c", "d", "f")
}

func TestGone(t *testing.T) {
	h := editable(t)
	if err := os.RemoveAll(h.dir); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Append(&Note{Text: "x"}); !errors.Is(err, ErrGone) {
		t.Errorf("append: %v, want ErrGone", err)
	}
	if _, _, err := h.Refresh(); !errors.Is(err, ErrGone) {
		t.Errorf("refresh: %v, want ErrGone", err)
	}
	if _, err := os.Stat(h.dir); err == nil {
		t.Error("the folder was made again")
	}
	if _, _, err := Open(h.vol, h.dir, time.Now, h.log); !errors.Is(err, ErrGone) {
		t.Errorf("open: %v, want ErrGone", err)
	}
	if err := h.vol.Err(); err != nil {
		t.Errorf("a folder taken away counts as a failed disk: %v", err)
	}
}

// TestEditorThatMovesTheFileAway does what vim does with backupcopy=no.
func TestEditorThatMovesTheFileAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := editable(t)
		h.limits.quiet = 20 * time.Millisecond
		data := content(t, h)
		if err := os.Rename(h.path(), h.path()+"~"); err != nil {
			t.Fatal(err)
		}

		done := make(chan error)
		go func() {
			time.Sleep(15 * time.Millisecond)
			f, err := os.Create(h.path())
			for half := range slices.Chunk(data, len(data)/3) {
				if err == nil {
					_, err = f.Write(half)
				}
				time.Sleep(5 * time.Millisecond)
			}
			done <- errors.Join(err, f.Close())
		}()

		turn(t, h, "t4", "g", "h")
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		refresh(t, h)
		wantTexts(t, h, "a", "b", "c", "d", "e", "f", "g", "h")
	})
}

// TestHostileSaves: an editor that keeps saving what it read some time ago. What
// the runtime appended is never lost.
func TestHostileSaves(t *testing.T) {
	h := begun(t)
	stop, done := make(chan bool), make(chan error)
	go func() {
		temp := filepath.Join(h.dir, "editor")
		for {
			data, err := os.ReadFile(h.path())
			select {
			case <-stop:
				done <- err
				return
			case <-time.After(3 * time.Millisecond):
			}

			if err == nil {
				err = os.WriteFile(temp, data, 0o600)
			}
			if err == nil {
				err = os.Rename(temp, h.path())
			}
			if err != nil {
				t.Error(err)
			}
		}
	}()

	var want []string
	for i := range 60 {
		name := string(rune('a'+i%26)) + strings.Repeat("x", i/26)
		turn(t, h, "t"+name, "q"+name, "r"+name)
		want = append(want, "q"+name, "r"+name)
		if err := h.Barrier(); err != nil {
			t.Fatal(err)
		}
	}

	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	refresh(t, h)
	wantTexts(t, h, want...)
	again, _ := reopen(t, h.dir, newClock())
	wantTexts(t, again, want...)
}

// TestBarriersBesideTheWork: the barrier of a delivery runs beside the next turn,
// while a user saves.
func TestBarriersBesideTheWork(t *testing.T) {
	h := begun(t)
	done := make(chan error)
	go func() {
		for range 50 {
			if err := h.Barrier(); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()

	for i := range 30 {
		turn(t, h, "t"+string(rune('A'+i)), "q", "r")
		texts(t, h)
		if i%7 == 0 {
			save(t, h, content(t, h))
		}
	}

	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := len(texts(t, h)); n != 60 {
		t.Errorf("%d entries, want 60", n)
	}
}
