//go:build !race

package record

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A history that somebody wrote with another program has thousands of lines to report; the file is not read again for each.
func TestManyLinesToReportAreCountedOnce(t *testing.T) {
	const n = 20_000
	dir := t.TempDir()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"seq":%d,"at":"2026-01-02T03:04:05Z","type":"user_message","text":"%s"}`+"\n", i+1, strings.Repeat("x", 4000))
	}
	path := filepath.Join(dir, historyName)
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	src, file, err := openSource(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()

	began, line := time.Now(), n
	var r report
	if _, err := src.back(func(l rawLine) bool {
		r.decode(l)
		if got := r.take(); len(got) != 1 || got[0].Line != line {
			t.Fatalf("line %d is reported as %v", line, got)
		}
		line--
		return true
	}); err != nil || line != 0 {
		t.Errorf("%d lines are left (%v)", line, err)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("%d lines took %s", n, took)
	}
}
