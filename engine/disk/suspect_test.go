package disk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/engine/crash"
)

// reopenLog is a start: it opens the log, appends a line and makes a barrier.
func reopenLog(dir string) error {
	v := NewVolume(dir)
	l, _, err := v.OpenLog(filepath.Join(dir, "log"), LogOptions{Name: "history"})
	if err != nil {
		return err
	}
	if err := appendLines(l, 2, 3); err != nil {
		return err
	}

	return l.Barrier()
}

// After a failed sync the kernel may take pages for written that the disk never got. The
// next start writes the end of the log once more before it trusts a sync; the one after
// that has no need to, and a line that was appended is never written over.
func TestLogIsWrittenAgainAfterAFailedSync(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	trace := filepath.Join(dir, "trace")
	t.Setenv("DAYCARE_FAILPOINT_TRACE", trace)
	rewrites := func(failpoint string) int {
		t.Helper()
		os.Remove(trace)
		child(t, "reopen", dir, failpoint)
		return strings.Count(content(t, trace), "log.rewrite\n")
	}
	if n := rewrites(""); n != 0 {
		t.Errorf("a log without a failure before it was written again %d times", n)
	}

	os.WriteFile(path, []byte(numbered(0, 1)), 0o600)
	child(t, "fail", dir, "eio@inbox.sync#1") // it appends line 0 once more and fails
	before := content(t, path)
	time.Sleep(20 * time.Millisecond) // a tick of the file system's clock
	if n := rewrites(""); n != 1 {
		t.Errorf("after a failed sync the log was written again %d times, want once", n)
	}
	if got, want := content(t, path), before+numbered(2, 3); got != want {
		t.Errorf("the log holds %q, want %q", got, want)
	}
	if n := rewrites(""); n != 0 {
		t.Errorf("at the start after that it was written again %d times", n)
	}
	if got, want := content(t, path), before+numbered(2, 3)+numbered(2, 3); got != want {
		t.Errorf("the log holds %q, want %q", got, want)
	}
}

// A crash in the middle leaves what was there: the bytes are the same.
func TestDeathWhileALogIsWrittenAgain(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	os.WriteFile(path, []byte(numbered(0, 100)), 0o600)
	NewVolume(dir).markFailure()
	if !child(t, "reopen", dir, "kill@log.rewrite#1:50") {
		t.Fatal("the child lived")
	}
	if got := content(t, path); got != numbered(0, 100) {
		t.Errorf("the log holds %d bytes, want %d", len(got), len(numbered(0, 100)))
	}
}

// Of a long log the end is written again, and the whole is as it was.
func TestTheEndOfALongLogIsWrittenAgain(t *testing.T) {
	dir := t.TempDir()
	path, line := filepath.Join(dir, "log"), strings.Repeat("x", 1023)+"\n"
	long := strings.Repeat(line, suspectTail/len(line)+100)
	write(t, path, long)
	v := NewVolume(dir)
	v.markFailure()
	rewritten := 0
	crash.Meanwhile(t, "log.rewrite", func(k int) { rewritten = k })
	if err := reopenLog(dir); err != nil || rewritten != 1 {
		t.Errorf("written again %d times: %v", rewritten, err)
	}
	if got := content(t, path); got != long+numbered(2, 3) {
		t.Errorf("the log has %d bytes, want %d and a line", len(got), len(long))
	}
}
