package record

import (
	"bytes"
	"daycare/engine/disk"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// damaged is a history of about size bytes with lines of uneven length.
func damaged(t testing.TB, size int) []byte {
	h := begun(t)
	for i := 0; h.file.Size() < int64(size); i++ {
		turn(t, h, fmt.Sprint("t", i), fmt.Sprint("q", i, strings.Repeat("?", i*37%900)),
			fmt.Sprint("r", i, strings.Repeat(".", i*91%1300)))
	}
	return content(t, h)
}

// survivors are the lines of data that no byte of [from, to) belongs to, newline
// included, and that are whole.
func survivors(data []byte, from, to int) []string {
	var all []string
	at := 0
	for _, line := range bytes.SplitAfter(data, []byte("\n")) {
		if len(line) > 0 && (at+len(line) <= from || at >= to) {
			all = append(all, strings.TrimSuffix(string(line), "\n"))
		}
		at += len(line)
	}

	return all
}

// check opens a damaged history and fails if a line that was not touched is lost,
// if damage is not told, or if nothing can be appended any more.
func check(t *testing.T, what string, data []byte, whole []string, silent bool) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, historyName), data, 0o600); err != nil {
		t.Fatal(err)
	}
	h, found := reopen(t, dir, newClock())
	defer h.Close()
	seen := map[string]bool{}
	err := h.backAll(func(l rawLine) bool {
		if disk.Sealed(l.text) || h.report.decode(l) != nil {
			seen[strings.TrimSpace(string(l.text))] = true
		}
		return true
	})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}

	found = append(found, h.report.take()...)
	for _, line := range whole {
		if !seen[line] {
			t.Fatalf("%s: an untouched line was lost: %.80s", what, line)
		}
	}

	if !silent && len(found) == 0 {
		t.Fatalf("%s: damage was not told", what)
	}
	for _, f := range found {
		if f.ID != "history-torn" && f.Line == 0 {
			t.Fatalf("%s: finding without a line: %v", what, f)
		}
	}

	before := h.Obligations().LastSeq
	if _, err := h.Append(&Note{Text: "goes on"}); err != nil {
		t.Fatalf("%s: append: %v", what, err)
	}
	if got := h.Obligations().LastSeq; got != before+1 {
		t.Fatalf("%s: seq %d after %d", what, got, before)
	}
	if _, err := h.Context(); err != nil {
		t.Fatalf("%s: context: %v", what, err)
	}
	if _, err := Settled(dir); err != nil {
		t.Fatalf("%s: settled: %v", what, err)
	}
}

func TestBlankLinesAndMissingNewline(t *testing.T) {
	data := damaged(t, 4<<10)
	all := survivors(data, 0, 0)
	check(t, "blank lines", bytes.ReplaceAll(data, []byte("\n"), []byte("\n\n \r\n")), all, true)
	check(t, "no newline at the end", bytes.TrimSuffix(data, []byte("\n")), all, true)
	check(t, "CRLF", bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n")), all, true)
	check(t, "empty", nil, nil, true)
	check(t, "no history at all", []byte("shopping list:\nmilk\n"), nil, false)
}

func TestTornTailIsKept(t *testing.T) {
	h := begun(t)
	turn(t, h, "t1", "a", "b")
	half := `{"seq":6,"at":"2026-11-20T17:2`
	f, err := os.OpenFile(h.path(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f, half); err != nil {
		t.Fatal(err)
	}

	f.Close()
	h.Close() // it died
	again, found := reopen(t, h.dir, newClock())
	if len(found) != 1 || found[0].ID != "history-torn" {
		t.Errorf("found %v", found)
	}

	kept, err := filepath.Glob(h.path() + ".torn-*")
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %v, %v", kept, err)
	}
	if data, _ := os.ReadFile(kept[0]); string(data) != half {
		t.Errorf("kept %q", data)
	}

	wantTexts(t, again, "a", "b")
}
