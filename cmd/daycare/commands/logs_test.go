package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"daycare/cmd/daycare/follow"
	"daycare/cmd/daycare/logfile"
	"daycare/cmd/daycare/term"
	"daycare/engine/plain"
)

// lineNumbers reads the numbers that a test wrote into log files, oldest first.
func lineNumbers(t *testing.T, path string, files int) (all []int) {
	t.Helper()
	for n := files; n >= 0; n-- {
		err := eachLine(logfile.Numbered(path, n), follow.Open("").Is, func(line []byte) error {
			var l struct{ N int }
			if err := json.Unmarshal(line, &l); err != nil {
				return fmt.Errorf("%s: %w", line, err)
			}
			all = append(all, l.N)
			return nil
		})
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}

	return all
}

func TestLogRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs", "daycare.jsonl")
	f, err := logfile.Open(path, 1000, 3)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewJSONHandler(f, nil))
	for n := range 100 {
		log.Info("line", "n", n)
		if n == 50 { // a restart continues in the same file
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if f, err = logfile.Open(path, 1000, 3); err != nil {
				t.Fatal(err)
			}
			log = slog.New(slog.NewJSONHandler(f, nil))
		}
	}

	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	numbers := lineNumbers(t, path, 10)
	for i := 1; i < len(numbers); i++ {
		if numbers[i] != numbers[i-1]+1 {
			t.Fatalf("lines are missing or out of order: %v", numbers)
		}
	}

	if numbers[len(numbers)-1] != 99 || len(numbers) < 20 {
		t.Errorf("%d lines up to %d are left", len(numbers), numbers[len(numbers)-1])
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 3 {
		t.Errorf("%d files, %v; want 3", len(entries), err)
	}

	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Size() > 1000 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %d bytes, %v", e.Name(), info.Mode(), info.Size(), err)
		}
	}
}

// A log that cannot be written does not stop anybody.
func TestLogWithoutFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	f, err := logfile.Open(filepath.Join(dir, "l"), 10, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}

	for range 3 {
		if n, err := f.Write([]byte("0123456789\n")); n != 11 || err != nil {
			t.Errorf("Write = %d, %v", n, err)
		}
	}
}

func TestFollowLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daycare.jsonl")
	f, err := logfile.Open(path, 2000, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	log := slog.New(slog.NewJSONHandler(f, nil))
	log.Info("before", "n", -1)
	out := newLines()
	c := &term.App{Streams: term.Streams{Out: out}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	tail := follow.Open(path)
	defer tail.Close()
	show := func(raw []byte) error { return showLog(c, &logQuery{}, raw) }
	if err := showNewest(&logQuery{level: slog.LevelError}, tail, show); err != nil {
		t.Fatal(err)
	}

	go func() { done <- followLog(ctx, &logQuery{level: slog.LevelInfo}, tail, show) }()
	for n := 0; n < 60; n++ {
		log.Info("line", "n", n)
		if n%7 == 0 {
			out.until(t, n+1) // who falls back by two files loses one
		}
	}

	out.until(t, 60)
	cancel()
	<-done
	var want []int
	for n := range 60 {
		want = append(want, n)
	}

	if diff := cmp.Diff(want, out.numbers(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// lineSink collects lines and says when there are enough.
type lineSink struct {
	lines chan string
	got   []string
}

func newLines() *lineSink { return &lineSink{lines: make(chan string, 1000)} }

func (l *lineSink) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		l.lines <- strings.TrimSpace(line)
	}
	return len(p), nil
}

func (l *lineSink) until(t *testing.T, n int) {
	t.Helper()
	for end := time.After(time.Minute); len(l.got) < n; {
		select {
		case line := <-l.lines:
			l.got = append(l.got, line)
		case <-end:
			t.Fatalf("only %d lines came: %q", len(l.got), l.got)
		}
	}
}

func (l *lineSink) numbers(t *testing.T) (all []int) {
	t.Helper()
	for _, line := range l.got {
		var v struct{ N int }
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, v.N)
	}

	return all
}

func TestPrettyLog(t *testing.T) {
	raw := `{"time":"2026-11-20T10:00:00Z","level":"WARN","msg":"retrying model\u001b[2J again","agent":"aaaa","n":2,"reason":"too much,` +
		` too soon"}`
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC).Local().Format("01-02 15:04:05")
	want := at + ` WARN  retrying model\x1b[2J again  agent=0/ n=2 reason="too much, too soon"`
	if got := prettyLog([]byte(raw), func(id string) string { return map[string]string{"aaaa": "0/"}[id] }, false); string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := prettyLog([]byte("not JSON"), nil, false); got != "not JSON" {
		t.Errorf("got %s", got)
	}
}

// TestNoOutputSteersATerminal: what is written as JSON may come to a terminal through a
// pipe, and says the same with every character spelled that one would obey.
func TestNoOutputSteersATerminal(t *testing.T) {
	said := "a\x1b[2J\u009b2J\u0085\x7f\u202e\u2066 \"é\t\n<b>"
	raw, err := json.Marshal(map[string]string{"msg": said})
	if err != nil {
		t.Fatal(err)
	}

	for name, print := range map[string]func(c *term.App) error{
		"logs":           func(c *term.App) error { return showLog(c, &logQuery{}, raw) },
		"logs --json":    func(c *term.App) error { c.JSON = true; return showLog(c, &logQuery{}, append(raw, '\r')) },
		"agent records":  func(c *term.App) error { c.JSON = true; return showRecords(c, []json.RawMessage{raw}) },
		"any list":       func(c *term.App) error { return c.PrintJSON(map[string]string{"msg": said}) },
		"a broken line":  func(c *term.App) error { return c.PrintLine([]byte("{\"msg\":\"\x1b[2J\u009b")) },
		"bytes alone":    func(c *term.App) error { return c.PrintLine([]byte("{\"msg\":\"\x9b2J\"}")) },
		"a nested value": func(c *term.App) error { return c.PrintJSON(map[string]json.RawMessage{"of": raw}) },
	} {
		var out bytes.Buffer
		if err := print(&term.App{Streams: term.Streams{Out: &out}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if strings.ContainsFunc(out.String(), plain.Steers) || !utf8.ValidString(out.String()) {
			t.Errorf("%s prints %q", name, out.String())
		}

		var got struct {
			Msg string
			Of  struct{ Msg string }
		}
		if name == "a broken line" || name == "bytes alone" {
			continue
		}
		if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.Msg+got.Of.Msg != said {
			t.Errorf("%s says %q, %v", name, got.Msg, err)
		}
	}
}
