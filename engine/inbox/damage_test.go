package inbox_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// sample makes an inbox of about size bytes with nothing done, and returns its
// folder, its content and the ids in order.
func sample(t testing.TB, size int) (dir string, data []byte, ids []string) {
	t.Helper()
	dir = t.TempDir()
	f, _ := open(t, dir)
	defer f.Close()
	path := filepath.Join(dir, inbox.FileName)
	for n := 0; len(data) < size; n++ {
		r, err := f.Accept(t.Context(), inbox.Item{Kind: message.Text, Dedupe: fmt.Sprint("k:", n),
			Text: fmt.Sprintf("message %d %s", n, strings.Repeat("x", 37*n%700))})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.Item)
		if data, err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}

	return dir, data, ids
}

// survivors opens a damaged inbox and returns the ids that are still there.
func survivors(t *testing.T, dir string, data []byte) (map[string]bool, []finding.Finding) {
	t.Helper()
	path := filepath.Join(dir, inbox.FileName)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}

	// Looking at it from outside must not panic either.
	if _, err := inbox.Survey(dir); err != nil {
		t.Error(err)
	}
	if _, err := inbox.Settled(dir); err != nil {
		t.Error(err)
	}

	f, found, err := inbox.Open(disk.NewVolume(dir), dir, nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := map[string]bool{}
	for _, h := range f.Open() {
		got[h.ID] = true
		if _, err := f.Read(h.ID); err != nil {
			t.Errorf("read item %s: %v", h.ID, err)
		}
	}

	torn, _ := filepath.Glob(path + ".torn-*")
	for _, p := range torn {
		os.Remove(p)
	}
	return got, found
}

// hit is what damage to bytes from..to (exclusive) of data touches: the lines in
// which one of the bytes lies, newline not included.
func hit(data []byte, ids []string, from, to int) map[string]bool {
	touched := map[string]bool{}
	n := 0
	for off, line := range disk.Lines(data) {
		if int(off) < to && int(off)+len(line) > from {
			touched[ids[n]] = true
		}
		n++
	}

	return touched
}

func check(t *testing.T, what string, ids []string, got, touched map[string]bool, found []finding.Finding) {
	t.Helper()
	for _, id := range ids {
		if !touched[id] && !got[id] {
			t.Errorf("%s: cost item %s, which it does not touch", what, id)
		}
	}

	if len(touched) > 0 && len(found) == 0 {
		t.Errorf("%s: not reported", what)
	}
	for _, f := range found {
		if f.File == "" || f.ID == "inbox-broken-line" && (f.Line == 0 || f.Column == 0) {
			t.Errorf("%s: a finding without a place: %+v", what, f)
		}
	}
}

// A damage at any offset costs the lines it touches, no other, and is reported.
// By default it is tried at a sample of offsets, all of those around newlines.
func TestDamageAtEveryOffset(t *testing.T) {
	dir, data, ids := sample(t, 12<<10)
	for at := range len(data) {
		near := at > 0 && data[at-1] == '\n' || data[at] == '\n' || at+1 < len(data) && data[at+1] == '\n'
		if os.Getenv("DAYCARE_LONG") == "" && !(at%997 == 0 || near && at%5 == 0) {
			continue
		}
		cut := bytes.Clone(data[:at])
		got, found := survivors(t, dir, cut)
		touched := hit(data, ids, at, len(data))
		if at > 0 && data[at] == '\n' {
			// Only the newline is missing: the line is whole and is kept.
			delete(touched, ids[bytes.Count(cut, []byte{'\n'})])
		}
		if at == 0 || data[at-1] == '\n' || data[at] == '\n' {
			found = append(found, finding.Finding{File: "nothing to report"})
		}

		check(t, fmt.Sprintf("cut at %d", at), ids, got, touched, found)

		flipped := bytes.Clone(data)
		flipped[at] ^= 1 << (at % 8)
		got, found = survivors(t, dir, flipped)
		check(t, fmt.Sprintf("flip at %d", at), ids, got, hit(data, ids, at, at+1), found)

		zeroed := bytes.Clone(data)
		end := min(at+512, len(data))
		clear(zeroed[at:end])
		got, found = survivors(t, dir, zeroed)
		check(t, fmt.Sprintf("zeros from %d", at), ids, got, hit(data, ids, at, end), found)

		blank := append(append(bytes.Clone(data[:at]), '\n'), data[at:]...)
		got, found = survivors(t, dir, blank)
		check(t, fmt.Sprintf("newline at %d", at), ids, got, splits(data, ids, at), found)
	}
}

// splits is the line that a newline at this offset breaks: none if it stands
// between two lines.
func splits(data []byte, ids []string, at int) map[string]bool {
	if at == 0 || data[at-1] == '\n' || data[at] == '\n' {
		return nil
	}
	return map[string]bool{ids[bytes.Count(data[:at], []byte{'\n'})]: true}
}

func TestBrokenLineIsReportedOnceAndKept(t *testing.T) {
	dir, data, ids := sample(t, 1000)
	path := filepath.Join(dir, inbox.FileName)
	lines := bytes.SplitAfter(data, []byte{'\n'})
	broken := bytes.Join([][]byte{lines[0], []byte("{\"seq\":2,\"type\":nonsense}\n"), bytes.Join(lines[1:], nil)}, nil)
	os.WriteFile(path, broken, 0o600)
	f, found := open(t, dir)
	defer f.Close()
	if len(found) != 1 || !strings.HasPrefix(found[0].Place(), path+":2:18") {
		t.Errorf("findings: %v", found)
	}
	if f.Len() != len(ids) {
		t.Errorf("%d of %d items", f.Len(), len(ids))
	}

	os.WriteFile(path, append(broken, '\n'), 0o600)
	if err := f.Refresh(); err != nil {
		t.Fatal(err)
	}
	if again := f.Findings(); len(again) > 0 {
		t.Errorf("said again: %v", again)
	}
}

func FuzzOpen(f *testing.F) {
	_, data, _ := sample(f, 2000)
	f.Add(data)
	f.Add([]byte(`{"type":"done","ids":["a"],"open":0}` + "\n"))
	f.Add([]byte(`{"type":"keys","keys":["00 1 a","zz"]}` + "\n" + `{"type":"message","id":"a"}`))
	f.Add([]byte("\n\n{\"seq\":1}{\"seq\":1,\"crc\":\"00000000\"}\x00\n"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, inbox.FileName)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		box, _, err := inbox.Open(disk.NewVolume(dir), dir, nil, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		defer box.Close()
		heads := box.Open()
		for _, h := range heads {
			if _, err := box.Take(h.ID); err != nil {
				t.Errorf("take: %v", err)
			}
		}

		settled, _ := inbox.Settled(dir)
		if settled && len(heads) > 0 && !bytes.Contains(data, []byte(`"open":0`)) {
			t.Error("an inbox with open items counts as settled")
		}
		r, err := box.Accept(t.Context(), inbox.Item{Kind: message.Text, Text: "x"})
		if err != nil && box.Len() < inbox.MaxItems {
			t.Errorf("accept: %v", err)
		}
		if err == nil {
			if it, err := box.Read(r.Item); err != nil || it.Text != "x" {
				t.Errorf("read back: %+v, %v", it, err)
			}
		}

		torn, _ := filepath.Glob(path + ".torn-*")
		for _, p := range torn {
			os.Remove(p)
		}
	})
}
