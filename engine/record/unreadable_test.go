package record

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"daycare/engine/disk"
)

// looks are all functions that read the files of an agent's folder.
var looks = map[string]func(dir string) error{
	"Tail":       func(dir string) error { _, _, err := Tail(dir, 0, 0); return err },
	"LastSeq":    func(dir string) error { _, err := LastSeq(dir); return err },
	"LastAt":     func(dir string) error { _, err := LastAt(dir); return err },
	"Spent":      func(dir string) error { return Spent(dir, time.Time{}, func(Spend) {}) },
	"InContext":  func(dir string) error { _, err := InContext(dir); return err },
	"CostAfter":  func(dir string) error { _, err := CostAfter(dir, 0); return err },
	"SourcesOf":  func(dir string) error { _, err := SourcesOf(dir); return err },
	"Closing":    func(dir string) error { _, _, err := Closing(dir, "i"); return err },
	"TraceOf":    func(dir string) error { _, _, err := TraceOf(dir, "i"); return err },
	"ContextOf":  func(dir string) error { _, err := ContextOf(dir); return err },
	"CutAt 5":    func(dir string) error { _, err := CutAt(dir, "a", 5, "s", time.Now()); return err },
	"CutAt":      func(dir string) error { _, err := CutAt(dir, "a", 0, "s", time.Now()); return err },
	"SessionOf":  func(dir string) error { _, err := SessionOf(dir); return err },
	"OnceOf":     func(dir string) error { _, err := OnceOf(dir); return err },
	"Check":      func(dir string) error { _, err := Check(dir, time.Now()); return err },
	"Settled":    func(dir string) error { _, err := Settled(dir); return err },
	"Rewindable": func(dir string) error { _, err := Rewindable(dir, "7"); return err },
	"Rewound":    func(dir string) error { _, err := Rewound(dir, []string{"c"}, 0); return err },
	"Attached":   func(dir string) error { _, err := NewAttached().Names(dir); return err },
	"Open": func(dir string) error {
		h, _, err := Open(disk.NewVolume(dir), dir, time.Now, nil)
		if err == nil {
			h.Close()
		}
		return err
	},
}

func loop(t *testing.T, path string) {
	t.Helper()
	if err := os.Symlink(filepath.Base(path), path); err != nil {
		t.Fatal(err)
	}
}

// What cannot be read now may say anything: it is not as if there were nothing.
func TestFilesThatCannotBeReadAreErrors(t *testing.T) {
	history := t.TempDir()
	loop(t, filepath.Join(history, historyName))
	closed := t.TempDir()
	loop(t, filepath.Join(closed, closedDir))
	part := t.TempDir()
	if err := os.Mkdir(filepath.Join(part, closedDir), 0o700); err != nil {
		t.Fatal(err)
	}

	loop(t, filepath.Join(part, closedDir, "000001.jsonl"))
	current := map[string]bool{"Settled": true, "Rewindable": true, "Attached": true} // these read the open file alone
	for name, look := range looks {
		if err := look(history); !errors.Is(err, syscall.ELOOP) {
			t.Errorf("%s with a history that cannot be opened: %v", name, err)
		}
		for what, dir := range map[string]string{"a folder of closed files": closed, "a closed file": part} {
			if err := look(dir); !errors.Is(err, syscall.ELOOP) && !current[name] {
				t.Errorf("%s with %s that cannot be opened: %v", name, what, err)
			}
		}
	}

	files := t.TempDir()
	for _, name := range []string{stateName, draftName, sessionsName, "file"} {
		loop(t, filepath.Join(files, name))
	}
	if err := os.Mkdir(filepath.Join(files, blobDir), 0o700); err != nil {
		t.Fatal(err)
	}

	sha := "0000000000000000000000000000000000000000000000000000000000000000"
	loop(t, filepath.Join(files, blobDir, sha))
	_, _, _, state := ReadState(files)
	_, _, draft := ReadDraft(files)
	_, sessions := EndedSessions(files)
	_, blob := ReadBlob(files, sha)
	_, publish := Publish(nil, filepath.Join(files, "file"), stateName, nil, nil)
	_, end := EndState(nil, files, Ended{})
	_, _, now := CurrentState(nil, files)
	for what, err := range map[string]error{"state": state, "draft": draft, "sessions": sessions, "blob": blob, "publish": publish,
		"end": end, "the current state": now, "update": UpdateState(nil, files, func(*State) {})} {
		if !errors.Is(err, syscall.ELOOP) {
			t.Errorf("%s: %v", what, err)
		}
	}

	if _, err := Publish(nil, filepath.Join(files, "none"), stateName, nil, nil); !errors.Is(err, ErrGone) {
		t.Errorf("publish into no folder: %v", err)
	}
	if err := UpdateState(nil, filepath.Join(files, "none"), func(*State) {}); !errors.Is(err, ErrGone) {
		t.Errorf("update of no folder: %v", err)
	}
	if err := RemoveDraft(filepath.Join(files, "file", "x")); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("remove draft: %v", err)
	}
	if _, _, err := Open(disk.NewVolume(files), filepath.Join(files, "none"), time.Now, nil); !errors.Is(err, ErrGone) {
		t.Errorf("open without a folder: %v", err)
	}
}

// Where there is nothing, there is nothing: no error, no value.
func TestFoldersWithoutFiles(t *testing.T) {
	dir := t.TempDir()
	for name, look := range looks {
		err := look(dir)
		if absent := name == "CutAt" || name == "CutAt 5" ||
			name == "Rewindable"; absent != errors.Is(err, ErrNoRecord) || !absent && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	if list, err := EndedSessions(dir); err != nil || list != nil {
		t.Errorf("ended sessions: %v, %v", list, err)
	}
	if s, raw, found, err := ReadState(dir); err != nil || raw != nil || found != nil || s.Session.ID != "" {
		t.Errorf("state: %+v, %q, %v, %v", s, raw, found, err)
	}
}
