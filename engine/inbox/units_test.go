package inbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/message"
)

// Adjacent messages are joined only if they are of one sender by one way.
func TestSenders(t *testing.T) {
	route := &message.Address{Connector: "c", ChannelID: "1", UserID: "u", ThreadID: "t"}
	seen := map[string]string{}
	for name, it := range map[string]Item{
		"plain": {}, "a name": {Context: message.Context{Sender: "Ada"}}, "an address": {Route: route},
		"both":      {Route: route, Context: message.Context{Sender: "Ada"}},
		"untrusted": {Route: route, Context: message.Context{Sender: "Ada"}, Untrusted: true},
		"an agent":  {Origin: "a", Route: route}, "another agent": {Origin: "b", Route: route},
		"long":              {Context: message.Context{Sender: strings.Repeat("x", 300)}},
		"another long":      {Context: message.Context{Sender: strings.Repeat("x", 301)}},
		"as long as may be": {Context: message.Context{Sender: strings.Repeat("x", maxSender)}},
	} {
		s := senderOf(&it)
		if other, ok := seen[s]; ok || len(s) > maxSender {
			t.Errorf("%q and %q are one sender, %q", name, other, s)
		}
		seen[s] = name
	}

	if s := senderOf(&Item{Route: route, Context: message.Context{Sender: "Ada"}}); s != "c/1/t/u Ada" {
		t.Errorf("%q", s)
	}
	if s := senderOf(&Item{Context: message.Context{Sender: strings.Repeat("x", maxSender)}}); strings.HasPrefix(s, "#") {
		t.Errorf("%q", s)
	}

	for key, want := range map[string]string{"": "", "mine": "", "room:7:8": "room", ":7": ""} {
		if got := connectorOf(&Item{Dedupe: key}); got != want {
			t.Errorf("%q came by %q", key, got)
		}
	}
}

// A key is young for a week, also under a clock that cannot be right.
func TestYoung(t *testing.T) {
	f := openIn(t, t.TempDir(), nil)
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	f.ages.now = func() time.Time { return now }
	f.ages.opened = time.Now().Add(-8 * 24 * time.Hour) // by the clock that nobody sets

	for name, tt := range map[string]struct {
		age  time.Duration
		ran  time.Duration
		want bool
	}{
		"now": {0, 0, true}, "a week": {DedupeWindow, 0, true}, "over a week": {DedupeWindow + time.Second, 0, false},
		"ten years":                          {ageless, 0, false},
		"over ten years, before the start":   {ageless + time.Second, 0, false},
		"over ten years, a day after it":     {ageless + time.Second, 2 * 24 * time.Hour, true},
		"in the future, before the start":    {-time.Second, 0, false},
		"in the future, just before the end": {-time.Second, 8 * 24 * time.Hour, true},
	} {
		if got := f.ages.young(key{at: now.Add(-tt.age).Unix(), ran: int64(tt.ran / time.Second)}); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// The id of a key's item is read from its line or from the list of keys, or not at all.
func TestIDAt(t *testing.T) {
	line := string(appendItem(nil, &Item{Seq: 7, At: time.Unix(1e9, 0), ID: "anid", Kind: message.Text, Text: "x"}))
	for raw, want := range map[string]string{
		line: "anid 7", line[:20]: " 7", `0011 7 anid","0012`: "anid 0", `0011 7`: " 0", `0011 7 a b"`: " 0", "": " 0",
		`{"id":"x"}`: "x 0", `{"seq":3,"a":{"id":"x"}}`: " 3", `{"seq":3,"id":7}`: " 3",
		`{broken`: " 0", `{"other":"id","id":"x"}`: "x 0",
	} {
		id, seq := idAt([]byte(raw))
		if got := fmt.Sprint(id, " ", seq); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}

// What is not UTF-8 is replaced, and what is stays.
func TestStringsInLines(t *testing.T) {
	for in, want := range map[string]string{"a\xffb": "\"a\ufffdb\"", "a\ufffdb": "\"a\ufffdb\"", "\xc3": "\"\ufffd\"",
		"ä\n\"": `"ä\n\""`} {
		got := string(appendString(nil, in))
		var back string
		if err := json.Unmarshal([]byte(got), &back); err != nil || !utf8.ValidString(got) || in != "a\xffb" && in != "\xc3" && back != in {
			t.Errorf("%q is %s, %v", in, got, err)
		}
		var same string
		if err := json.Unmarshal([]byte(want), &same); err != nil || same != back {
			t.Errorf("%q is %s, want %s", in, got, want)
		}
	}
}

// The place of an error in its line is counted from 1.
func TestColumn(t *testing.T) {
	var v struct{ Seq int }
	for text, want := range map[string]int{`{"seq":x}`: 8, ``: 1, `{"seq":"x"}`: 10} {
		if got := column(fmt.Errorf("x: %w", json.Unmarshal([]byte(text), &v))); got != want {
			t.Errorf("%q: column %d, want %d", text, got, want)
		}
	}

	if column(errUnknownType) != 1 {
		t.Error("an error without a place has one")
	}
	for text, want := range map[string]string{`{"type":"later","id":"x"}`: "unknown type", `{"id":"x"}`: `no "type"`,
		`{"type":"message"}`: `no "id"`, `{"type":"dropped"}`: `no "id"`, `{"type":"done"}`: "", `{"type":"keys"}`: "",
		`{"type":"front","id":"x"}`: ""} {
		if _, err := decode([]byte(text)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// What is kept of what is wrong is bounded, newest first to stay; a line is told once.
func TestFindingsAreBounded(t *testing.T) {
	f := openIn(t, t.TempDir(), nil)
	for i := range maxFound + 5 {
		f.seen.add("x", finding.Info, fmt.Sprint(i), "")
	}
	if found := f.Findings(); len(found) != maxFound || found[0].Reason != "5" || len(f.Findings()) != 0 {
		t.Errorf("%d findings, the first is %v", len(found), found[0])
	}

	var lines strings.Builder
	for i := range maxBroken + 3 {
		fmt.Fprintf(&lines, "broken %d\n", i)
	}
	ix, found := scan("p", []byte(lines.String()), map[uint64]bool{})
	if len(ix.broken) != maxBroken || len(found) != maxBroken+3 || len(ix.odd) != maxBroken+3 || found[2].Line != 3 ||
		found[2].File != "p" {
		t.Errorf("%d broken, %d found, %d odd", len(ix.broken), len(found), len(ix.odd))
	}

	told := map[uint64]bool{}
	for _, want := range []int{1, 0} {
		if _, found := scan("p", []byte("broken\n"), told); len(found) != want {
			t.Errorf("%v", found)
		}
	}

	if n := (&index{bytes: 10, keys: map[uint64]key{1: {}, 2: {}}, odd: []span{{0, 3}, {9, 4}}}).live(); n != 10+2*keyBytes+7 {
		t.Errorf("%d bytes are live", n)
	}
}

// An item whose line a user made another one, in a way that the size and the time of the
// file do not show, is gone, and the other one is there.
func TestAnItemWhoseLineBecameAnother(t *testing.T) {
	f := openIn(t, t.TempDir(), nil)
	one := accepted(t, f, text("first"))
	path := filepath.Join(string(f.dir), "inbox.jsonl")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Repeat("x", len(one))
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteAt(bytes.ReplaceAll(data, []byte(one), []byte(other)), 0)
	if err := errors.Join(err, file.Close(), os.Chtimes(path, info.ModTime(), info.ModTime())); err != nil {
		t.Fatal(err)
	}
	if it, err := f.Read(one); !errors.Is(err, ErrUnknown) {
		t.Errorf("it is %+v, %v", it, err)
	}
	if it, err := f.Read(other); err != nil || it.Text != "first" {
		t.Errorf("the other one is %+v, %v", it, err)
	}
}

// An item is read as it stands in the file: also where it was moved, and from memory where
// the file does not have it.
func TestBodies(t *testing.T) {
	f := openIn(t, t.TempDir(), nil)
	one, two := accepted(t, f, text("first")), accepted(t, f, text("second"))
	a, b := f.ix.byID[one], f.ix.byID[two]
	a.off, b.off = b.off, a.off // as after an edit that nobody noticed
	if it, err := f.body(a); err != nil || it.Text != "first" || a.off != 0 {
		t.Errorf("%+v, %v, at %d", it, err, a.off)
	}

	a.off = -1
	if it, err := f.body(a); err != nil || it.Text != "first" {
		t.Errorf("owed to the file: %+v, %v", it, err)
	}
	a.line = []byte("{broken")
	if it, err := f.body(a); err == nil {
		t.Errorf("nowhere: %+v", it)
	}
	before := content(t, f)
	if err := f.Edit(one, "edited"); err == nil || content(t, f) != before {
		t.Errorf("edited, although it is nowhere: %v", err)
	}
	if _, err := f.Take(two, one); err == nil || b.Taken {
		t.Errorf("all are taken or none: %v", err)
	}
	if _, err := f.Take(two, "none"); !errors.Is(err, ErrUnknown) || b.Taken {
		t.Errorf("%v", err)
	}
	if items, err := f.Take(two); err != nil || len(items) != 1 || items[0].Text != "second" || !b.Taken {
		t.Errorf("%+v, %v", items, err)
	}
	if _, err := f.Take(two); !errors.Is(err, ErrTaken) {
		t.Errorf("%v", err)
	}

	select {
	case <-f.Arrived():
	default:
	}
	if f.Untake(two, "none"); b.Taken {
		t.Error("it is still taken")
	}

	select {
	case <-f.Arrived():
	default:
		t.Error("nobody hears that it waits again")
	}
	if err := f.Front(two); err != nil {
		t.Fatal(err)
	}

	select {
	case <-f.Arrived():
	default:
		t.Error("nobody hears that it is before all others")
	}
	if it, err := f.Read("none"); !errors.Is(err, ErrUnknown) {
		t.Errorf("%+v, %v", it, err)
	}
}

// Lines that are urgent are appended in the same breath as the file is read, and what
// becomes of them is said.
func TestUrgentLines(t *testing.T) {
	if urgent(settleTries-1, []byte("x")) != nil || string(urgent(settleTries, []byte("x"))) != "x" {
		t.Error("when lines are urgent has changed")
	}
	f := openIn(t, t.TempDir(), nil)
	accepted(t, f, text("x"))
	line := appendItem(nil, &Item{Seq: 9, At: time.Now(), ID: strings.Repeat("u", 24), Kind: message.Text, Text: "urgent"})
	before, err := os.ReadFile(f.dir.path())
	if err != nil {
		t.Fatal(err)
	}

	crash.Arm(t, "enospc@inbox.write#1")
	data, release, landed, err := f.loadAnd(line)
	release()
	if !errors.Is(err, disk.ErrFull) || landed || string(data) != string(before) {
		t.Errorf("on a full disk: %q, %v, %v", data, landed, err)
	}
	crash.Arm(t, "enospc@inbox.write#1")
	if landed, err := f.reload(line); !errors.Is(err, disk.ErrFull) || landed || f.Len() != 1 {
		t.Errorf("on a full disk: %v, %v", landed, err)
	}

	crash.Arm(t, "")
	if landed, err := f.reload(line); err != nil || !landed || f.Len() != 2 {
		t.Errorf("%v, %v, %d items", landed, err, f.Len())
	}
	if err := errors.Join(os.RemoveAll(string(f.dir))); err != nil {
		t.Fatal(err)
	}
	data, release, landed, err = f.loadAnd(line)
	release()
	if err == nil || landed || data != nil {
		t.Errorf("without a folder: %q, %v, %v", data, landed, err)
	}
	if landed, err := f.reload(line); err == nil || landed || f.Len() != 2 || len(f.lost) != 0 {
		t.Errorf("without a folder: %v, %v, %d items, %d owed to the file", landed, err, f.Len(), len(f.lost))
	}

	select {
	case <-f.Arrived():
	default:
	}
	f.publish(nil)

	select {
	case <-f.Arrived():
		t.Error("something arrived, and nothing waited")
	default:
	}
}

// A file that cannot be rotated stays as it is, and the agent continues, unless the disk failed.
func TestRotationThatFails(t *testing.T) {
	for fault, failed := range map[string]bool{"enospc@inbox.rotate.write#1": false,
		"emfile@inbox.rotate.rename#1": false, "emfile@inbox.rotate.dirsync#1": false,
		"eio@inbox.rotate.sync#1": true, "eio@inbox.rotate.rename#1": true} {
		t.Run(fault, func(t *testing.T) {
			f := openIn(t, t.TempDir(), nil)
			id := accepted(t, f, text(strings.Repeat("x", rotateAt)))
			kept := accepted(t, f, text("kept"))
			crash.Arm(t, fault)
			if err := f.Done(id); (err != nil) != failed || failed && !errors.Is(err, disk.ErrFailed) {
				t.Fatalf("%v", err)
			}
			if failed {
				return
			}
			if open := f.Open(); len(open) != 1 || open[0].ID != kept {
				t.Errorf("open are %+v", open)
			}
			if err := f.Done(accepted(t, f, text("next"))); err != nil || f.log.Size() > 10_000 {
				t.Errorf("%v, and the file has %d bytes", err, f.log.Size())
			}
			if it, err := f.Read(kept); err != nil || it.Text != "kept" {
				t.Errorf("%+v, %v", it, err)
			}
		})
	}

	f := openIn(t, t.TempDir(), nil)
	accepted(t, f, text("x"))
	if err := f.rewrite(f.log.Size() + 100); err != nil || f.Len() != 1 {
		t.Errorf("a file that is being cut: %v", err)
	}
	saved, err := os.ReadFile(f.dir.path())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.dir.path(), append(saved, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.rewrite(int64(len(saved))); err != nil || f.log.Changed() || f.Len() != 1 {
		t.Errorf("a file that was edited: %v", err)
	}
}

// What looks like the beginning of a line many times and is none has no line in it.
func TestBeginningsOfNoLine(t *testing.T) {
	for _, n := range []int{1, 7, 8, 9, 20} {
		if from, ok := wholeFrom([]byte(strings.Repeat(lineMark, n))); ok || from != 0 {
			t.Errorf("of %d beginnings one is a line, at %d", n, from)
		}
	}
}
