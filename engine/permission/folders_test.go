package permission

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"daycare/engine/beneath"
	"daycare/engine/crash/crashtest"
	"daycare/engine/disk"
	"daycare/engine/workspace"
)

// ground is a workspace with .daycare in it, links resolved.
func ground(t *testing.T) string {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		err = os.MkdirAll(filepath.Join(top, "ws", ".daycare"), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}

	return filepath.Join(top, "ws")
}

func mkdir(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func folders(t *testing.T, ws string) (*Folders, map[string]error) {
	t.Helper()
	told := map[string]error{}
	at := workspace.At(ws)
	f, err := OpenFolders(disk.NewVolume(at.Data), at, func(path string, err error) { told[path] = err })
	if err != nil {
		t.Fatal(err)
	}
	return f, told
}

// opened is what opening a folder says: "" if it is the one that was given.
func opened(f *Folders, path string) string {
	dir, _, err := f.Open(path)
	if err != nil {
		return err.Error()
	}
	dir.Close()
	return ""
}

func TestPinsSurviveARestart(t *testing.T) {
	ws := ground(t)
	mole, beside := filepath.Join(ws, "mole"), filepath.Join(filepath.Dir(ws), "beside")
	mkdir(t, mole, beside, filepath.Join(ws, "other"))
	f, _ := folders(t, ws)
	if err := f.Know(Set{WorkingDir: mole, ReadDirs: []string{beside, filepath.Join(ws, "none")}}); err != nil {
		t.Fatal(err)
	}

	move(t, mole, mole+"2")
	move(t, filepath.Join(ws, "other"), mole)
	f, told := folders(t, ws)
	if got := opened(f, mole); !strings.Contains(got, "another folder now has its name\n") {
		t.Errorf("after a restart: %q", got)
	}
	if told[mole] == nil || len(f.Check()) != 1 || f.Check()[0].Path != mole {
		t.Errorf("reported %v, checked %v", told, f.Check())
	}
	if got := opened(f, beside); got != "" {
		t.Error(got)
	}
	if err := f.Give(Write{mole}); err != nil {
		t.Fatal(err)
	}
	if f, _ = folders(t, ws); opened(f, mole) != "" {
		t.Errorf("given again: %s", opened(f, mole))
	}
}

// A workspace that was moved keeps its pins; one that was copied has others.
func TestPinsOfAWorkspaceThatMoved(t *testing.T) {
	ws := ground(t)
	mole := filepath.Join(ws, "mole")
	mkdir(t, mole)
	f, _ := folders(t, ws)
	if err := f.Know(Default(mole)); err != nil {
		t.Fatal(err)
	}

	kept, err := os.ReadFile(filepath.Join(ws, ".daycare", FoldersFile))
	if err != nil || strings.Contains(string(kept), ws) {
		t.Errorf("paths in the workspace are not relative (%v):\n%s", err, kept)
	}
	moved := ws + "-moved"
	move(t, ws, moved)
	mkdir(t, moved+"/other")
	move(t, moved+"/mole", moved+"/away")
	move(t, moved+"/other", moved+"/mole")
	if f, _ = folders(t, moved); !strings.Contains(opened(f, moved+"/mole"), "another folder") {
		t.Error("the pins are gone after a move")
	}

	copied := ws + "-copied"
	mkdir(t, copied+"/.daycare", copied+"/mole")
	if err := os.WriteFile(filepath.Join(copied, ".daycare", FoldersFile), kept, 0o600); err != nil {
		t.Fatal(err)
	}
	if f, _ = folders(t, copied); opened(f, copied+"/mole") != "" || len(f.Check()) > 0 {
		t.Errorf("a copy does not work: %s", opened(f, copied+"/mole"))
	}
}

// Device numbers may be others after the machine was started.
func TestPinsAfterABoot(t *testing.T) {
	ws := ground(t)
	mole := filepath.Join(ws, "mole")
	mkdir(t, mole)
	f, _ := folders(t, ws)
	if err := f.Know(Default(mole)); err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(ws, ".daycare", FoldersFile)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var kept foldersOnDisk
	if err := json.Unmarshal(data, &kept); err != nil {
		t.Fatal(err)
	}

	boot := kept.Boot
	kept.Root.Dev += 7
	for name, p := range kept.Folders {
		p.Dev += 7
		kept.Folders[name] = p
	}

	for boot, want := range map[string]bool{"another": true, kept.Boot: true} { // the same boot: the workspace is a copy
		kept.Boot = boot
		data, _ = json.Marshal(kept)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		f, _ := folders(t, ws)
		if got := opened(f, mole); (got == "") != want {
			t.Errorf("boot %q: %s", boot, got)
		}
	}

	// Within one boot the number of a disk stays: a folder on another one is another folder.
	kept.Boot, kept.Root.Dev = boot, kept.Root.Dev-7
	data, _ = json.Marshal(kept)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if f, _ := folders(t, ws); opened(f, mole) == "" {
		t.Error("a folder on another disk was taken for the pinned one")
	}

	// A boot may give the disk another number, and the pins are as good as before.
	kept.Boot = "another"
	data, _ = json.Marshal(kept)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}

	move(t, mole, mole+".away")
	mkdir(t, mole)
	if f, _ := folders(t, ws); opened(f, mole) == "" {
		t.Error("another folder was taken for the pinned one after a boot")
	}
}

func TestBrokenPinsSayWhatToDo(t *testing.T) {
	ws := ground(t)
	path := filepath.Join(ws, ".daycare", FoldersFile)
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolders(nil, workspace.At(ws), func(string, error) {}); err == nil || !strings.Contains(err.Error(), "\ndelete it") {
		t.Errorf("%v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", path); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolders(nil, workspace.At(ws), func(string, error) {}); !errors.Is(err, beneath.ErrLink) {
		t.Errorf("a link is read: %v", err)
	}
}

// A grant of a file is the file in the folder that its path names, found without links.
func TestGrantOfAFile(t *testing.T) {
	ws := ground(t)
	mkdir(t, ws+"/dir", ws+"/other")
	for _, path := range []string{"/dir/f", "/other/f"} {
		if err := os.WriteFile(ws+path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	f, _ := folders(t, ws)
	if real, _, err := f.Locate(ws + "/dir/f"); err != nil || real != ws+"/dir/f" {
		t.Errorf("%s, %v", real, err)
	}
	if _, _, err := f.Locate(ws + "/dir/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}

	move(t, ws+"/dir", ws+"/away")
	if err := os.Symlink("other", ws+"/dir"); err != nil {
		t.Fatal(err)
	}
	var other *Replaced
	if _, _, err := f.Locate(ws + "/dir/f"); !errors.As(err, &other) {
		t.Errorf("through a link: %v", err)
	}
	if err := os.Symlink("f", ws+"/other/l"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Locate(ws + "/other/l"); err == nil {
		t.Error("a link is located")
	}
}

// A folder is pinned once, and again only when more may be done in it.
func TestKnow(t *testing.T) {
	ws := ground(t)
	top := filepath.Dir(ws)
	mkdir(t, top+"/r", top+"/w")
	f := NewFolders("")
	for _, tt := range []struct {
		path    string
		write   bool
		changed bool
		pin     bool // it is known to be written in
	}{
		{top + "/r", false, true, false}, {top + "/r", false, false, false}, {top + "/r", true, true, true},
		{top + "/r", true, false, true},
		{top + "/r", false, false, true}, {top + "/none", true, false, false}, {top + "/none", false, false, false},
	} {
		if got := f.know(tt.path, tt.write); got != tt.changed || f.known[tt.path].Write != tt.pin {
			t.Errorf("%s, write %v: changed %v, pinned %+v", tt.path, tt.write, got, f.known[tt.path])
		}
	}

	if f.Writable(top + "/w") {
		t.Error("nobody writes in /w")
	}
	if err := errors.Join(f.Give(Write{top + "/w"}), f.Give(Read{top + "/w"}), f.Give(Web{})); err != nil {
		t.Fatal(err)
	}
	if !f.Writable(top+"/w") || !f.Writable(top+"/w/x") || f.Writable(top) {
		t.Error("a folder that was given to write is not writable, or its parent is")
	}

	mkdir(t, top+"/only")
	if err := f.Give(Read{top + "/only"}); err != nil || f.Writable(top+"/only") || !f.pinned(top+"/only") {
		t.Errorf("a folder that was given to read: %v, writable %v", err, f.Writable(top+"/only"))
	}
}

// What pins nothing and unpins nothing is not written.
func TestNothingGivenIsNotWritten(t *testing.T) {
	ws := ground(t)
	mkdir(t, ws+"/mole")
	f, _ := folders(t, ws)
	path := filepath.Join(ws, ".daycare", FoldersFile)
	if err := errors.Join(f.Give(Read{ws + "/none"}), f.Give(Web{})); err != nil || disk.Exists(path) {
		t.Errorf("written for nothing: %v", err)
	}
	if err := f.Give(Read{ws + "/mole"}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(ws + "/mole"); err != nil {
		t.Fatal(err)
	}
	if err := f.Give(Read{ws + "/mole"}); err != nil {
		t.Fatal(err)
	}
	for _, set := range []Set{{WorkingDir: ws}, {WorkingDir: ws, ReadDirs: []string{ws + "/none"}}} {
		if err := errors.Join(f.Know(set), os.Remove(path), f.Know(set)); err != nil || disk.Exists(path) {
			t.Errorf("%+v, which is known, is written again: %v", set, err)
		}
		if err := f.save(); err != nil {
			t.Fatal(err)
		}
	}
	if f, _ := folders(t, ws); f.pinned(ws + "/mole") {
		t.Error("a folder that is gone, and was given, is pinned after a restart")
	}
}

// Pins that may not last are no pins.
func TestPinsAreDurable(t *testing.T) {
	crashtest.EachStepFails(t, "eio", func(t *testing.T) func() error {
		ws := ground(t)
		mkdir(t, ws+"/mole")
		f, _ := folders(t, ws)
		return func() error { return f.Know(Set{WorkingDir: ws + "/mole"}) }
	})
	crashtest.EachStepFails(t, "eio", func(t *testing.T) func() error {
		ws := ground(t)
		mkdir(t, ws+"/mole")
		f, _ := folders(t, ws)
		return func() error { return f.Give(Read{ws + "/mole"}) }
	})
}

// Around a file, or what is not there yet, is its folder; a pinned folder that is gone is
// gone, and what is neither is an error.
func TestAround(t *testing.T) {
	ws := ground(t)
	top := filepath.Dir(ws)
	mkdir(t, top+"/r", top+"/gone")
	if err := os.WriteFile(top+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}

	for _, f := range []*Folders{NewFolders(""), NewFolders(top)} { // found from the root, and from what an agent can write
		if err := f.Know(Set{WorkingDir: "", ReadDirs: []string{top + "/r", top + "/gone"}}); err != nil {
			t.Fatal(err)
		}
		if f.know(top+"/gone", false); !f.pinned(top + "/gone") {
			t.Fatal("not pinned")
		}

		move(t, top+"/gone", top+"/away")
		for path, want := range map[string]string{"/r": "/r", "/r/": "/r", "/file": "", "/new": "", "/gone": "none", "/none/x": "none"} {
			dir, at, real, err := f.Around(top + path)
			if want == "none" {
				if !errors.Is(err, fs.ErrNotExist) || dir != nil {
					t.Errorf("%s: %s, %v, want that it is gone", path, at, err)
				}
				continue
			}
			if err != nil || at != top+want || real != top+want {
				t.Errorf("%s: %s, %s, %v, want %s", path, at, real, err, want)
				continue
			}
			dir.Close()
		}

		move(t, top+"/away", top+"/gone")
		if _, _, err := f.Open(top + "/file"); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("a file is opened as a folder: %v", err)
		}
		if dir, _, err := f.Open(top + "/none"); !errors.Is(err, fs.ErrNotExist) || dir != nil {
			t.Errorf("nothing is opened: %v", err)
		}
	}
}

// A folder that is only read is not one in which an agent can write, and a pin says of
// which device it is as long as the machine runs.
func TestKnowTellsReadFromWrite(t *testing.T) {
	ws := ground(t)
	top := filepath.Dir(ws)
	mkdir(t, top+"/r", ws+"/w")
	f, _ := folders(t, ws)
	if err := f.Know(Set{WorkingDir: ws + "/w", ReadDirs: []string{top + "/r"}}); err != nil {
		t.Fatal(err)
	}
	if f.Writable(top+"/r") || !f.Writable(ws+"/w") {
		t.Errorf("pinned are %+v", f.known)
	}

	kept, err := os.ReadFile(filepath.Join(ws, ".daycare", FoldersFile))
	if err != nil || !strings.Contains(string(kept), `"`+top+`/r"`) || !strings.Contains(string(kept), `"w"`) {
		t.Errorf("written are %s, %v", kept, err)
	}
	if n := len(NewFolders("").known); n != 0 {
		t.Errorf("without a workspace %d folders are known", n)
	}
	if _, err := os.Stat("/proc/sys/kernel/random/boot_id"); err == nil && BootID() == "" {
		t.Error("the boot has no id")
	}
}

// A link that stands for a granted file is not followed.
func TestALinkForAFileIsNotLocated(t *testing.T) {
	ws := ground(t)
	if err := errors.Join(os.WriteFile(ws+"/f", nil, 0o600), os.Symlink("f", ws+"/l")); err != nil {
		t.Fatal(err)
	}
	f := NewFolders("")
	if real, _, err := f.Locate(ws + "/f"); err != nil || real != ws+"/f" {
		t.Errorf("%s, %v", real, err)
	}
	if real, _, err := f.Locate(ws + "/l"); !errors.Is(err, beneath.ErrLink) {
		t.Errorf("%s, %v", real, err)
	}
	if real, _, err := f.Locate(ws + "/none/f"); !errors.Is(err, fs.ErrNotExist) || real != "" {
		t.Errorf("%s, %v", real, err)
	}
}

// A folder that is refused does not stay open.
func TestRefusedFoldersAreClosed(t *testing.T) {
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("no /proc here")
		}
		return len(entries)
	}
	ws := ground(t)
	mkdir(t, ws+"/mole", ws+"/other", ws+"/../beside")
	f, _ := folders(t, ws)
	beside := filepath.Clean(ws + "/../beside")
	if err := f.Know(Set{WorkingDir: ws + "/mole", ReadDirs: []string{beside}}); err != nil {
		t.Fatal(err)
	}

	move(t, ws+"/mole", ws+"/mole2")
	move(t, ws+"/other", ws+"/mole")
	move(t, beside, beside+"2")
	mkdir(t, beside)
	before := open()

	for range 20 {
		if opened(f, ws+"/mole") == "" || opened(f, beside) == "" {
			t.Fatal("not refused")
		}
	}
	if f.Check(); open() > before+5 {
		t.Errorf("%d descriptors are open, %d were before", open(), before)
	}
}
