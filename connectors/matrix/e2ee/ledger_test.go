package e2ee

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"daycare/engine/disk"
)

// reopen opens the ledger that is in a file, as the next process does.
func reopen(t *testing.T, path string) *ledger {
	t.Helper()
	file, _, err := disk.NewVolume(filepath.Dir(path)).OpenLog(path, disk.LogOptions{Name: "ledger"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	l, err := openLedger(file)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// What was put is there after the next start if it was flushed, and not in parts otherwise.
func TestLedgerIsDurableAtAFlush(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.jsonl")
	l := reopen(t, path)
	for i := range 3 {
		if err := l.put("a", fmt.Sprint(i), i); err != nil {
			t.Fatal(err)
		}
	}
	l.drop("a", "1")
	if err := l.flush(); err != nil {
		t.Fatal(err)
	}
	if err := l.put("a", "late", true); err != nil {
		t.Fatal(err)
	}

	next := reopen(t, path)
	if got := strings.Join(next.keys("a"), " "); got != "0 2" {
		t.Errorf("after a kill the keys are %q, want 0 2", got)
	}
	var two int
	if ok, err := next.get("a", "2", &two); !ok || err != nil || two != 2 {
		t.Errorf("2 is %d, %v, %v", two, ok, err)
	}
	if ok, err := next.get("a", "2", new(string)); ok || err == nil {
		t.Error("a number was read as a text")
	}
}

// A file with many old values is rewritten, and has the same current ones.
func TestLedgerIsRewritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.jsonl")
	l := reopen(t, path)
	for i := range 200 {
		if err := l.put("a", "changes", strings.Repeat(fmt.Sprint(i%10), 4<<10)); err != nil {
			t.Fatal(err)
		}
		if err := l.put("b", fmt.Sprint(i), i); err != nil {
			t.Fatal(err)
		}
		if err := l.flush(); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() > 2*slack {
		t.Errorf("the file has %d bytes (%v)", info.Size(), err)
	}
	next := reopen(t, path)
	var text string
	if ok, err := next.get("a", "changes", &text); !ok || err != nil || !strings.HasPrefix(text, "9") {
		t.Errorf("the newest value is lost: %.5q, %v, %v", text, ok, err)
	}
	if n := len(next.keys("b")); n != 200 {
		t.Errorf("%d of 200 keys are there", n)
	}
}

// A file that cannot be read is an error and stays as it is.
func TestLedgerOfRubbish(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.jsonl")
	const rubbish = "[{\"s\":\"a\"}]\nnot JSON\n"
	if err := os.WriteFile(path, []byte(rubbish), 0o600); err != nil {
		t.Fatal(err)
	}
	file, _, err := disk.NewVolume(filepath.Dir(path)).OpenLog(path, disk.LogOptions{Name: "ledger"})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := openLedger(file); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("rubbish was read: %v", err)
	}
	if now, _ := os.ReadFile(path); string(now) != rubbish {
		t.Errorf("the file is %q now", now)
	}
}
