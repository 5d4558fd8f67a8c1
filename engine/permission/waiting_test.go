package permission

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Of the requests that wait, those whose time is over are found, the one that was asked
// first before the others; what was answered leaves nothing behind.
func TestRequestsThatWait(t *testing.T) {
	w := newWaiting()
	for i := range 9 {
		w.add(Pending{Token: fmt.Sprint("p", i), Agent: fmt.Sprint("a", i%3), AskedAt: noon.Add(time.Duration(9-i) * time.Second),
			ExpiresAt: noon.Add(time.Duration(i/2) * time.Minute)})
	}
	w.add(Pending{Token: "p8", Agent: "a2", AskedAt: noon, ExpiresAt: noon.Add(4 * time.Minute)}) // once more
	tokens := func(list []Pending) string {
		var all []string
		for _, p := range list {
			all = append(all, p.Token)
		}
		return strings.Join(all, " ")
	}
	for after, want := range map[time.Duration]string{-time.Second: "", 0: "p1 p0", time.Minute: "p3 p2 p1 p0",
		time.Minute + time.Second: "p3 p2 p1 p0", 4 * time.Minute: "p8 p7 p6 p5 p4 p3 p2 p1 p0"} {
		if got := tokens(w.due(noon.Add(after))); got != want {
			t.Errorf("after %v due are %q, want %q", after, got, want)
		}
	}
	if got := tokens(w.of("a0")); got != "p6 p3 p0" {
		t.Errorf("of one agent wait %q", got)
	}
	if w.remove("p3"); tokens(w.of("a0")) != "p6 p0" {
		t.Errorf("after an answer wait %q", tokens(w.of("a0")))
	}
	for i := range 9 {
		w.remove(fmt.Sprint("p", i))
	}
	w.remove("never asked")
	if len(w.byToken)+len(w.ofAgent)+w.ending.Len() != 0 {
		t.Errorf("left are %v, %v, %d ends", w.byToken, w.ofAgent, w.ending.Len())
	}
}

// A refused answer is forgotten with its request.
func TestRefusedAnswersAreForgotten(t *testing.T) {
	q := open(t, t.TempDir())
	p := ask(t, q, request)
	edit(t, q, p, "git push", "git pull")
	if _, found := q.Answered(); len(found) != 1 || len(q.refused) != 1 {
		t.Fatalf("found %v, refused %v", found, q.refused)
	}
	if _, err := q.Settle(p.Token, Deny, "me", noon); err != nil {
		t.Fatal(err)
	}
	if len(q.refused) != 0 {
		t.Errorf("kept are %v", q.refused)
	}
}

// Folders that have another's name are found by path, opening one reports that, and opening
// one that is not there is no news.
func TestReplacedFoldersAreReported(t *testing.T) {
	ws := ground(t)
	a, b, gone := ws+"/a", ws+"/b", ws+"/gone"
	mkdir(t, a, b, gone, ws+"/c", ws+"/d", ws+"/e")
	f, told := folders(t, ws)
	if err := f.Know(Set{ReadDirs: []string{ws + "/e", b, gone, a, ws + "/d", ws + "/c"}}); err != nil {
		t.Fatal(err)
	}
	clear(told)
	if says := opened(f, a); says != "" || len(told) != 1 || told[a] != nil {
		t.Errorf("opened: %q, reported %v", says, told)
	}
	for _, path := range []string{a, b, ws + "/c", ws + "/d", ws + "/e"} {
		move(t, path, path+".away")
		mkdir(t, path)
	}
	move(t, gone, gone+".away")
	before := openFiles(t)
	var paths []string
	for _, r := range f.Check() {
		paths = append(paths, filepath.Base(r.Path))
	}
	if !slices.Equal(paths, []string{"a", "b", "c", "d", "e"}) || openFiles(t) != before {
		t.Errorf("replaced are %q; %d files were open, now %d", paths, before, openFiles(t))
	}
	if opened(f, a) == "" || opened(f, gone) == "" || told[a] == nil || len(told) != 1 {
		t.Errorf("reported are %v", told)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(entries)
}

// A request that comes again with another end has that end alone.
func TestARequestThatComesAgain(t *testing.T) {
	w := newWaiting()
	for _, hours := range []time.Duration{1, 2} {
		w.add(Pending{Token: "t", Agent: "a", ExpiresAt: noon.Add(hours * time.Hour)})
	}
	if first, ok := w.ending.Min(); w.ending.Len() != 1 || !ok || !first.at.Equal(noon.Add(2*time.Hour)) {
		t.Errorf("%d ends, the first %+v", w.ending.Len(), first)
	}
	if w.remove("t"); w.ending.Len() != 0 || len(w.ofAgent) != 0 || len(w.byToken) != 0 {
		t.Errorf("left are %d ends", w.ending.Len())
	}
}
