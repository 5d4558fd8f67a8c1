package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/workspace"
)

// A history of which nothing can be read any more says so, whatever it is asked.
func TestClosedHistoryIsAnError(t *testing.T) {
	for name, look := range map[string]func(h *History) error{
		"Context":  func(h *History) error { _, err := h.Context(); return err },
		"Session":  func(h *History) error { _, err := h.Session(); return err },
		"Totals":   func(h *History) error { _, _, err := h.Totals(0); return err },
		"Closed":   func(h *History) error { _, err := h.Closed(map[string]int64{"i": 0}); return err },
		"RewindTo": func(h *History) error { _, err := h.RewindTo(""); return err },
		"Rotate":   func(h *History) error { _, err := h.Rotate(); return err },
		"Refresh":  func(h *History) error { _, _, err := h.Refresh(); return err },
		"Append":   func(h *History) error { _, err := h.Append(&Note{Text: "x"}); return err },
	} {
		h, _ := reopen(t, large(t).dir, newClock())
		h.limits.rotate, h.recent.tail = 1000, nil
		h.Close()
		if err := look(h); err == nil && name != "Refresh" && name != "Rotate" {
			t.Errorf("%s of a closed history: no error", name)
		}
		if ended := h.endedBy([]Record{&Reset{}}); ended != nil {
			t.Errorf("a session that cannot be counted has ended as %+v", ended)
		}
	}
}

// A folder in the place of a file can be opened and not be read.
func TestFoldersInThePlaceOfFilesAreErrors(t *testing.T) {
	current, closed := t.TempDir(), t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(current, historyName), 0o700),
		os.MkdirAll(filepath.Join(closed, closedDir, "000001.jsonl"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for name, look := range looks {
		if err := look(current); err == nil {
			t.Errorf("%s of a folder: no error", name)
		}
		if err := look(closed); err == nil && !slices.Contains([]string{"Settled", "Rewindable", "Attached", "Open"}, name) {
			t.Errorf("%s with a folder as an older file: no error", name)
		}
	}
}

// An answer that is owed and is in a file that cannot be read keeps the agent from starting,
// and the file that was opened is closed again.
func TestOwedAnswerThatCannotBeRead(t *testing.T) {
	for name, start := range map[string]*Start{
		"listed":     {Session: "s", Continues: "history/000002.jsonl", Outs: []Out{{ID: "o1"}}},
		"not listed": {Session: "s", Continues: "history/000002.jsonl", OwedFrom: 1},
	} {
		dir := t.TempDir()
		if err := errors.Join(os.Mkdir(filepath.Join(dir, closedDir), 0o700),
			os.WriteFile(filepath.Join(dir, closedDir, "000002.jsonl"), nil, 0o600),
			os.WriteFile(filepath.Join(dir, historyName), Encode(&Entry{Seq: 9, At: checkedAt, Rec: start}), 0o600)); err != nil {
			t.Fatal(err)
		}
		loop(t, filepath.Join(dir, closedDir, "000001.jsonl"))
		if err := looks["Open"](dir); !errors.Is(err, syscall.ELOOP) {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir := t.TempDir()
	loop(t, filepath.Join(dir, blobDir))
	if err := looks["Open"](dir); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("with blobs that cannot be listed: %v", err)
	}
}

// The first record of a history that could not be written is an error.
func TestBeginThatFails(t *testing.T) {
	h, _ := reopen(t, t.TempDir(), newClock())
	crash.Arm(t, "eio@history.write#1")
	if err := h.Begin("s1"); err == nil {
		t.Error("the session has begun without a record")
	}
}

// A line that a save took away and that cannot be written again is an error, not a loss in silence.
func TestALineThatCannotBeWrittenAgain(t *testing.T) {
	h := begun(t)
	turn(t, h, "t1", "a", "b")
	lines := splitLines(content(t, h))
	save(t, h, bytes.Join(lines[:3], nil))
	met := crash.Arm(t, "eio@history.write#1")
	if _, err := h.Append(&Note{Text: "x"}); !errors.Is(err, disk.ErrFailed) || len(met()) == 0 {
		t.Errorf("%v, met %v", err, met())
	}
}

// A history that was taken away has no barrier to wait for.
func TestBarrierOfAHistoryThatIsGone(t *testing.T) {
	h := begun(t)
	if err := os.Remove(h.path()); err != nil {
		t.Fatal(err)
	}
	if err := h.Barrier(); !errors.Is(err, ErrGone) {
		t.Errorf("sync: %v", err)
	}
}

// To look for a place to rewind to is not an edit, and neither is a rotation.
func TestLookingIsNoEdit(t *testing.T) {
	h := large(t)
	if _, err := h.RewindTo(""); err != nil {
		t.Fatal(err)
	}
	if changed, _ := refresh(t, h); changed {
		t.Error("the search for a place changed the history")
	}
	add(t, h, &Note{Text: "in one write with it"}, &Reset{Session: "s2", V: Version, Reason: "user"})
	if !rotate(t, h) {
		t.Fatal("not rotated")
	}
	if changed, _ := refresh(t, h); changed {
		t.Error("a rotation counts as an edit")
	}
	if n, err := LastSeq(h.dir); err != nil || n != h.Obligations().LastSeq {
		t.Errorf("the newest record is %d, %v", n, err)
	}
	if at, err := LastAt(h.dir); err != nil || !at.Equal(h.Obligations().LastAt) {
		t.Errorf("the newest record is of %v, %v", at, err)
	}
}

// A user who saves while a history is rotated keeps the file; the next boundary will do.
func TestRotationBesideAPerson(t *testing.T) {
	h := large(t)
	add(t, h, &Reset{Session: "s2", V: Version, Reason: "user"})
	text := append(content(t, h), `{"type":"note","text":"by hand"}`+"\n"...)
	save(t, h, text)
	if name, err := h.rotate(1); err != nil || name != historyName || !bytes.Equal(content(t, h), text) {
		t.Errorf("rotated to %q, %v", name, err)
	}
}

// A history that was cut short while it is rotated stays as it is.
func TestRotationOfAHistoryThatWasCutShort(t *testing.T) {
	h := large(t)
	size := h.file.Size()
	if err := os.Truncate(h.path(), size/2); err != nil {
		t.Fatal(err)
	}
	if _, err := h.rotate(size - 10); !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		t.Errorf("rotated: %v", err)
	}
	if disk.Exists(filepath.Join(h.dir, closedDir)) {
		t.Error("there is a closed file")
	}
}

// A session whose costs add up to more than a number holds is in the list all the same.
func TestAnEndedSessionOfAnImpossibleCost(t *testing.T) {
	h := begun(t)
	dear := answering("t1", "b")
	dear.Cost = math.MaxFloat64
	add(t, h, &TurnBegin{Turn: "t1", Attempt: 1}, dear, dear, &TurnEnd{Turn: "t1", Reason: ReasonDone})
	add(t, h, &Reset{Session: "s2", V: Version, Reason: "user"})
	rotate(t, h)
	if list, err := EndedSessions(h.dir); err != nil || len(list) != 1 || list[0].ID != "s1" {
		t.Errorf("%+v, %v", list, err)
	}
}

// A context of more than half the limit stays where it is.
func TestNoRotationOfALongContext(t *testing.T) {
	h := large(t)
	add(t, h, &Summary{Text: "S", From: 2, KeptFrom: 3})
	if rotate(t, h) {
		t.Error("rotated, and nearly all of it was kept")
	}
	loop(t, filepath.Join(h.dir, closedDir))
	add(t, h, &Reset{Session: "s2", V: Version, Reason: "user"})
	if rotated, err := h.Rotate(); rotated || err == nil {
		t.Errorf("rotated %v, %v into a folder that cannot be read", rotated, err)
	}
}

// A rotated file begins with the number below the first line that it kept.
func TestNumberOfARotatedStart(t *testing.T) {
	for text, want := range map[string]int64{"": 40, `{"type":"note"}` + "\n": 40,
		`{"type":"note"}` + "\n" + lines(&Note{Text: "x"}): 0, lines(&Note{})[:5] + "\n" + `{"seq":9,"at"` + "\n": 8} {
		if got := startSeq([]byte(text), 40); got != want {
			t.Errorf("%q begins at %d, want %d", text, got, want)
		}
	}
}

// The counts in state.json are believed where they are of this session and no newer than
// the history; a line by hand behind them counts.
func TestCountsThatAreBelieved(t *testing.T) {
	h := begun(t) // 1
	turn(t, h, "t1", "title", "b")
	byHand := `{"type":"user_message","text":"by hand"}` + "\n"
	save(t, h, append(content(t, h), byHand...))
	for name, tt := range map[string]struct {
		s    State
		want int
	}{
		"none":               {State{}, 3},
		"another session":    {State{Seq: 5, Session: Session{ID: "other", Messages: 100}}, 3},
		"newer than history": {State{Seq: 99, Session: Session{ID: "s1", Messages: 100}}, 3},
		"this session":       {State{Seq: 5, Session: Session{ID: "s1", Messages: 100}}, 101},
	} {
		text, err := EncodeState(workspace.At(h.dir), tt.s)
		if err != nil {
			t.Fatal(err)
		}
		state(t, h.dir, string(text))
		again, _ := reopen(t, h.dir, newClock())
		if s, err := again.Session(); err != nil || s.Messages != tt.want {
			t.Errorf("%s: %d messages, %v, want %d", name, s.Messages, err, tt.want)
		}
	}
	turn(t, h, "t2", "after it", "d")
	if s, err := SessionOf(h.dir); err != nil || s.Messages == 102 {
		t.Errorf("%d messages, %v", s.Messages, err)
	}
}

// Whoever looks for a place to go back to steps over lines that cannot be read or have no number.
func TestRewindOverLinesByHand(t *testing.T) {
	h := begun(t)
	turn(t, h, "t1", "a", "b") // 2 to 5
	add(t, h, &Mark{Name: ""})
	save(t, h, append(content(t, h), `{"type":"turn_begin","turn":"t2"}`+"\n"+`{"type":"mark","name":"m"}`+"\ngarbage\n"...))
	if to, err := h.RewindTo(""); err != nil || to != 1 {
		t.Errorf("the newest turn began behind %d, %v", to, err)
	}
	for to, want := range map[string]string{"m": `no checkpoint "m"`, "99": "99 is not in this session, which has records 1 to 6"} {
		if _, err := h.RewindTo(to); !errors.Is(err, ErrNoRecord) || !strings.Contains(err.Error(), want) {
			t.Errorf("back to %q: %v", to, err)
		}
	}
	if to, err := h.RewindTo("3"); err != nil || to != 3 {
		t.Errorf("back to record 3: %d, %v", to, err)
	}
	if _, err := begun(t).RewindTo(""); err == nil || !strings.Contains(err.Error(), "no turn to rewind") {
		t.Errorf("of a new session: %v", err)
	}
}

// The session of a history whose end is a user's is the one that its start or reset names.
func TestSessionBehindAHandWrittenEnd(t *testing.T) {
	for _, opening := range []Record{&Start{Session: "s7"}, &Reset{Session: "s7"}} {
		dir := t.TempDir()
		text := lines(opening, &Note{Text: "o1"}) + `{"type":"turn_end","turn":"t","outs":[{"id":"o1"}],"reason":"done"}` + "\n"
		text = strings.Replace(text, `{"type":"turn_end"`, `{"type":"assistant_message","o1`+"\n"+`{"type":"turn_end"`, 1)
		if err := os.WriteFile(filepath.Join(dir, historyName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		h, _ := reopen(t, dir, newClock())
		if o := h.Obligations(); o.Session != "s7" || len(o.Outs) != 1 || o.LastSeq != 2 {
			t.Errorf("%+v", o)
		}
	}
}

// Two rotated files are read the older one first: what is missing in the newer one is missing.
func TestCheckReadsTheOldestFirst(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{"history/000001.jsonl": lines(&Start{Session: "s"}),
		"history/000002.jsonl": lines(&Start{Session: "s", Continues: "history/000001.jsonl"}, &ToolResult{ToolCallID: "c"}),
		historyName:            lines(&Start{Session: "s", Continues: "history/000002.jsonl"})}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	found, err := Check(dir, checkedAt)
	if diff := cmp.Diff([]string{"history-orphan-result"}, ids(found)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// What closed an item is found over lines that only name it, and what a refusal says.
func TestClosingOverLinesThatNameTheItem(t *testing.T) {
	h := begun(t)
	add(t, h, &Summary{Text: "S", From: 1, KeptFrom: 2, Provider: "p", Cost: 100})
	turn(t, h, "t1", "a", "b")
	add(t, h, &Note{Text: "it1 is done", Item: "other"}, &Note{Text: "no mark it2", Item: "ir", Refused: true}, &Mark{Name: "m"})
	save(t, h, append(content(t, h), `{"type":"mark","name":"x","item":""}`+"\n"...))
	if o, ok, err := Closing(h.dir, "it1"); err != nil || !ok || o.Turn != "t1" || o.Cost != 0.25 {
		t.Errorf("%+v, %v, %v", o, ok, err)
	}
	if o, ok, err := Closing(h.dir, "ir"); err != nil || !ok || o.Reason != "refused" || o.Text != "no mark it2" {
		t.Errorf("%+v, %v, %v", o, ok, err)
	}
	byHand := ` {"type":"mark","name":"y","item":"im"}` + "\n" + `{"type":"turn_end","turn":"t9","items":["ie"],"reason":"done"}` + "\n"
	save(t, h, append(content(t, h), byHand...))
	for item, want := range map[string]string{"im": "mark", "ie": "done"} {
		if o, ok, err := Closing(h.dir, item); err != nil || !ok || o.Reason != want {
			t.Errorf("%s, closed by a line of a user: %+v, %v, %v", item, o, ok, err)
		}
	}
	if o, ok, err := Closing(h.dir, ""); err != nil || ok {
		t.Errorf("no item was closed by %+v, %v", o, err)
	}
}

// A cut behind a record steps over lines that cannot be read, with and without a number, and
// over a user's end of a turn, which no cut can name.
func TestCutOverBrokenLines(t *testing.T) {
	h := begun(t)
	turn(t, h, "t1", "a", "b") // 2 to 5
	text := string(content(t, h))
	save(t, h, []byte(text+`{"seq":6,garbage`+"\ngarbage\n"+`{"type":"turn_end","turn":"t9"}`+"\ngarbage\n"))
	for _, at := range []int64{0, 5} {
		c, err := CutAt(h.dir, "a", at, "s2", checkedAt)
		if err != nil || c.At != 5 || c.Session.Messages != 2 {
			t.Errorf("cut at %d: %+v, %v", at, c.Session, err)
		}
	}
	if _, err := CutAt(t.TempDir(), "a", 0, "s2", checkedAt); !errors.Is(err, ErrNoRecord) ||
		err.Error() != "the history is empty" {
		t.Errorf("of nothing: %v", err)
	}
	add(t, h, &Summary{Text: "S", From: 2, KeptFrom: 9})
	if _, c := forked(t, h, h.Obligations().LastSeq); !strings.Contains(string(c.Content), `"keptFrom":3`) {
		t.Errorf("the summary, record 2, stands for something else:\n%s", c.Content)
	}
}

// A blob that a crash cut short is written again, a whole one is not.
func TestBlobThatIsCutShort(t *testing.T) {
	dir := t.TempDir()
	vol := disk.NewVolume(dir)
	sha, err := PutBlob(vol, dir, "text")
	if err != nil {
		t.Fatal(err)
	}
	met := crash.Arm(t, "eio@blob.write#1")
	if _, err := PutBlob(vol, dir, "text"); err != nil || len(met()) > 0 {
		t.Errorf("written again: %v, %v", met(), err)
	}
	crash.Arm(t, "")
	if err := os.WriteFile(filepath.Join(dir, blobDir, sha), []byte("te"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := PutBlob(vol, dir, "text"); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadBlob(dir, sha); err != nil || got != "text" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := ReadBlob(dir, "../"+historyName); err == nil || !strings.Contains(err.Error(), "is not a SHA-256") {
		t.Errorf("a path was read: %v", err)
	}
}

// An edit in place that leaves size and time as they were is seen at the next append, too,
// and the next append is found again behind it.
func TestEditInPlaceIsSeenAtTheNextAppend(t *testing.T) {
	h := editable(t)
	info, err := os.Stat(h.path())
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.Replace(content(t, h), []byte(`"text":"f"`), []byte(`"text":"F"`), 1)
	if err := errors.Join(os.WriteFile(h.path(), data, 0o600), os.Chtimes(h.path(), info.ModTime(), info.ModTime())); err != nil {
		t.Fatal(err)
	}
	turn(t, h, "t4", "g", "h")
	wantTexts(t, h, "a", "b", "c", "d", "e", "F", "g", "h")
	if changed, found := refresh(t, h); !changed || !slices.Equal(ids(found), []string{"history-by-hand"}) {
		t.Errorf("changed %v, found %v", changed, found)
	}
	if changed, _ := refresh(t, h); changed {
		t.Error("the edit is seen twice")
	}
}

// A history that is cut short while it is read is completed first.
func TestHistoryCutShortWhileItIsRead(t *testing.T) {
	h := editable(t)
	h.view.made = false
	if err := os.Truncate(h.path(), 700); err != nil {
		t.Fatal(err)
	}
	wantTexts(t, h, "a", "b", "c", "d", "e", "f")
	h.view.made = false
	if err := os.RemoveAll(h.dir); err != nil {
		t.Fatal(err)
	}
	tries := 0
	if err := h.steady(func() error { tries++; return fmt.Errorf("x: %w", io.ErrUnexpectedEOF) }); !errors.Is(err,
		ErrGone) || tries != 1 {
		t.Errorf("%v after %d tries", err, tries)
	}
}

// A record that was refused is not among those that are appended again after an edit.
func TestRefusedRecordIsNotAppendedAgain(t *testing.T) {
	h := editable(t)
	whole := content(t, h)
	if err := os.Remove(h.path()); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Append(&Note{Text: "refused"}); !errors.Is(err, ErrGone) {
		t.Fatalf("append to no file: %v", err)
	}
	save(t, h, bytes.Join(splitLines(whole)[:9], nil))
	refresh(t, h)
	if got := content(t, h); !bytes.Equal(got, whole) {
		t.Errorf("the history is\n%s\nwant\n%s", got, whole)
	}
}

// What is kept to be appended again is bounded.
func TestKeptLinesAreBounded(t *testing.T) {
	h := begun(t)
	for i := range 8 {
		turn(t, h, fmt.Sprint("t", i), strings.Repeat("x", keepBytes/3), "a")
	}
	if n := h.recent.bytes; n > 2*keepBytes || n < keepBytes/3 {
		t.Errorf("%d bytes are kept", n)
	}
}

// A line that was just written and is there is not missing, whatever else is.
func TestMissingLines(t *testing.T) {
	for _, tt := range []struct{ found, want []int64 }{
		{[]int64{1, 2, 5}, []int64{3, 4}}, {[]int64{1, 2, 4}, []int64{5}}, {[]int64{1, 2, 3, 4, 5}, nil}, {nil,
			[]int64{1, 2, 3, 4, 5}},
	} {
		var r recent
		for seq := range int64(5) {
			r.add(ownLine{&Entry{Seq: seq + 1, Rec: &Note{}}, 5})
		}
		var seqs []int64
		for _, l := range r.missing(slices.Values(tt.found), 5, 5) {
			seqs = append(seqs, l.Seq)
		}
		if diff := cmp.Diff(tt.want, seqs); diff != "" {
			t.Errorf("with %v in the file missing (-want +got):\n%s", tt.found, diff)
		}
	}
}

// A file that is published as it was is not written.
func TestPublishWithoutAChange(t *testing.T) {
	dir := t.TempDir()
	state(t, dir, `{"seq":1}`)
	met := crash.Arm(t, "eio@#1")
	if other, err := Publish(disk.NewVolume(dir), dir, stateName, []byte("{}"), []byte("{}")); err != nil ||
		other != nil || len(met()) > 0 {
		t.Errorf("%q, %v, %v", other, err, met())
	}
}

// The copy of the last good state is written once for each version, and only of what is there.
func TestCopyOfTheLastGoodState(t *testing.T) {
	dir := t.TempDir()
	state(t, dir, `{"queue":"collect"}`)
	if _, _, err := CurrentState(nil, dir); err != nil {
		t.Fatal(err)
	}
	if disk.Exists(filepath.Join(dir, keptState)) {
		t.Error("a look without a volume wrote something")
	}
	vol := disk.NewVolume(dir)
	for want := range 2 {
		met := crash.Arm(t, "eio@state.kept.write#1")
		if want == 1 {
			crash.Arm(t, "")
			CurrentState(vol, dir)
			met = crash.Arm(t, "eio@state.kept.write#1")
		}
		if _, _, err := CurrentState(vol, dir); err != nil || len(met()) != 1-want {
			t.Errorf("try %d: %v, %v", want, met(), err)
		}
	}
	crash.Arm(t, "")
	before, err := os.ReadFile(filepath.Join(dir, keptState))
	if err != nil {
		t.Fatal(err)
	}
	keepUpdate(vol, dir, []byte(`{"queue":"steer"}`))
	if err := os.Remove(filepath.Join(dir, stateName)); err != nil {
		t.Fatal(err)
	}
	keepUpdate(vol, dir, []byte(`{"queue":"steer"}`))
	if after, err := os.ReadFile(filepath.Join(dir, keptState)); err != nil || !bytes.Equal(before, after) {
		t.Errorf("kept is what nobody has: %s, %v", after, err)
	}
}

// A finding says what is wrong, and how long that does not count, where it does not count.
func TestWordsOfStateFindings(t *testing.T) {
	_, found := ParseState("state.json", []byte(`{"queue":7,"permissions":{"web":"yes"},"mine":1}`))
	var got []string
	for _, f := range found {
		got = append(got, fmt.Sprint(f.Reason, " ", f.Severity == finding.Error, " ", f.Remedy != ""))
	}
	want := []string{"queue: found 7, allowed: steer, followup, collect, interrupt true true",
		`permissions.web: found the text "yes", allowed: true or false true true`,
		`unknown member "mine" is kept but ignored false false`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f := finding.Finding{}
	if _, err := Decode([]byte(`{"type":`)); !errors.As(err, &f) || f.Column != 8 {
		t.Errorf("column %d, %v", f.Column, err)
	}
	if _, err := Decode([]byte("7")); !errors.As(err, &f) || f.Column != 1 {
		t.Errorf("column %d, %v", f.Column, err)
	}
}

// A user's line with a path stays a user's line for readers, with the path resolved.
func TestPathsInLinesByHand(t *testing.T) {
	ws := t.TempDir()
	dir := agentIn(t, ws)
	file := `"files":[{"id":"f","mimeType":"x","path":".daycare/files/f__n"}]`
	text := string(Encode(&Entry{Seq: 1, At: time.Unix(0, 0),
		Rec: &Start{Session: "s"}})) + `{"type":"user_message","text":"x",` + file + "}\n" +
		`{"type":"later","x":1}` + "\n"
	if err := os.WriteFile(filepath.Join(dir, historyName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, _, err := Tail(dir, 0, 0)
	if err != nil || len(got) != 3 {
		t.Fatalf("%q, %v", got, err)
	}
	if line := string(got[1]); !json.Valid(got[1]) || strings.Contains(line, `"crc"`) ||
		!strings.Contains(line, filepath.Join(ws, ".daycare/files/f__n")) {
		t.Errorf("%s", line)
	}
	if !disk.Sealed(got[0]) {
		t.Errorf("a line of daycare's own lost its checksum: %s", got[0])
	}
}

// A text that is stored again is durable on return, also if a crash came between its name and the sync of its folder.
func TestATextThatIsStoredAgainIsDurable(t *testing.T) {
	dir := t.TempDir()
	if _, err := PutBlob(disk.NewVolume(dir), dir, "long"); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 2; n++ { // the folder of the agent, and that of the texts
		met := crash.Arm(t, fmt.Sprintf("eio@blob.dirsync#%d", n))
		if sha, err := PutBlob(disk.NewVolume(dir), dir, "long"); err == nil {
			t.Errorf("%s is said to be durable, and sync %d failed", sha, n)
		}
		if failed := met(); len(failed) != 1 {
			t.Errorf("failed were %v, want sync %d", failed, n)
		}
	}
}
