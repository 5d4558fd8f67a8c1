package whatsapp

import (
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"
)

// files is a keeper in memory, of which reading may fail.
type files struct {
	all  map[string]string
	fail error
}

func (f *files) Load(_, name string) ([]byte, error) {
	if f.fail != nil {
		return nil, f.fail
	}
	data, ok := f.all[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(data), nil
}

func (f *files) Save(_, name string, data []byte) error {
	f.all[name] = string(data)
	return nil
}

// A file that cannot be read at this moment is not replaced; when it can be, both are kept.
func TestStateThatCannotBeRead(t *testing.T) {
	t.Parallel()
	const before = `{"wrote": {"ada": "2026-01-01T10:00:00Z"}, "commands": ["one"]}`
	f := &files{all: map[string]string{stateFile: before}, fail: errors.New("too many open files")}
	s := newState("w", f, slog.New(slog.DiscardHandler))
	if err := s.did("two"); err == nil || f.all[stateFile] != before {
		t.Errorf("saved over what could not be read: %v\n%s", err, f.all[stateFile])
	}
	f.fail = nil
	s.wrote("bob", "m1", time.Now())
	if err := s.did("three"); err != nil {
		t.Fatal(err)
	}
	next := newState("w", f, slog.New(slog.DiscardHandler))
	if got := next.kept.Commands; !slices.Equal(got, []string{"one", "two", "three"}) {
		t.Errorf("the commands are %q", got)
	}
	if len(next.kept.Wrote) != 2 {
		t.Errorf("who wrote is %v", next.kept.Wrote)
	}
}

// One that is broken is kept under another name.
func TestBrokenState(t *testing.T) {
	t.Parallel()
	f := &files{all: map[string]string{stateFile: "{broken"}}
	if err := newState("w", f, slog.New(slog.DiscardHandler)).did("one"); err != nil {
		t.Fatal(err)
	}
	if f.all[brokenFile] != "{broken" || !strings.Contains(f.all[stateFile], "one") {
		t.Errorf("the files are %q", f.all)
	}
}
