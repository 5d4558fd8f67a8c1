package disk

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Failpoints are read from the environment once per process, so a faulty disk is
// tried in a child: this test binary, told by DISK_TEST_CHILD which scenario to
// run in which folder.
var scenarios = map[string]func(dir string) error{
	"fill":          fillDisk,
	"fail":          failDisk,
	"names":         loseNames,
	"reopen":        reopenLog,
	"ballast":       useBallast,
	"replace":       replaceLog,
	"publish":       publishFile,
	"replaceEdited": replaceEdited,
	"lock":          holdLock,
}

func TestMain(m *testing.M) {
	if name, dir, ok := strings.Cut(os.Getenv("DISK_TEST_CHILD"), "@"); ok {
		if err := scenarios[name](dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child runs a scenario with a failpoint armed. A child that is killed is fine;
// one that reports an error is not.
func child(t *testing.T, scenario, dir, failpoint string) (died bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "DISK_TEST_CHILD="+scenario+"@"+dir, "DAYCARE_FAILPOINT="+failpoint, "GORACE=atexit_sleep_ms=0")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() < 0 {
		return true
	}
	if err != nil {
		t.Fatalf("scenario %s under %q: %v\n%s", scenario, failpoint, err, out)
	}

	return false
}

func appendLines(l *Log, from, to int) error {
	for i := from; i < to; i++ {
		if _, err := l.Append(fmt.Appendf(nil, "line %d\n", i)); err != nil {
			return fmt.Errorf("line %d: %w", i, err)
		}
	}
	return nil
}

func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func expect(path, want string) error {
	got, err := os.ReadFile(path)
	if err == nil && string(got) != want {
		err = fmt.Errorf("%s holds %q, want %q", filepath.Base(path), got, want)
	}
	return err
}

// fillDisk appends to a disk on which the second write of log "inbox" finds no
// room.
func fillDisk(dir string) error {
	v := NewVolume(dir)
	l, _, err := v.OpenLog(filepath.Join(dir, "log"), LogOptions{Name: "inbox"})
	if err != nil {
		return err
	}
	if err := appendLines(l, 0, 1); err != nil {
		return err
	}
	if _, err := l.Append([]byte("does not fit\n")); !errors.Is(err, ErrFull) {
		return fmt.Errorf("append to a full disk: %v, want ErrFull", err)
	}
	if err := expect(l.path, numbered(0, 1)); err != nil {
		return fmt.Errorf("after a write that did not fit: %w", err)
	}
	if v.Err() != nil {
		return fmt.Errorf("a full disk failed the volume: %w", v.Err())
	}

	// This disk has room in truth, so service resumes at the next look.
	if v.Full() {
		return errors.New("the volume stays full with room on the disk")
	}
	if err := appendLines(l, 1, 2); err != nil {
		return err
	}
	if err := l.Barrier(); err != nil {
		return err
	}

	return expect(l.path, numbered(0, 2))
}

// useBallast is fillDisk on a log that may use the space kept back.
func useBallast(dir string) error {
	v := NewVolume(dir)
	if err := v.Reserve(); err != nil {
		return err
	}
	if info, err := os.Stat(v.ballast()); err != nil || info.Size() != ballastBytes {
		return fmt.Errorf("ballast: %v %v", info, err)
	}

	l, _, err := v.OpenLog(filepath.Join(dir, "log"), LogOptions{Name: "history", Ballast: true})
	if err != nil {
		return err
	}
	if err := appendLines(l, 0, 3); err != nil {
		return err
	}
	if Exists(v.ballast()) {
		return errors.New("the ballast is still there after a write that needed it")
	}
	if !v.full.Load() {
		return errors.New("the volume does not know that it is full")
	}
	if v.Full() || !Exists(v.ballast()) {
		return errors.New("the ballast was not made again when there was room")
	}

	return expect(l.path, numbered(0, 3))
}

// failDisk meets an error that is not a full disk, after which nothing may be
// acknowledged any more.
func failDisk(dir string) error {
	v := NewVolume(dir)
	l, _, err := v.OpenLog(filepath.Join(dir, "log"), LogOptions{Name: "inbox"})
	if err != nil {
		return err
	}
	err = appendLines(l, 0, 1)
	if err == nil {
		err = l.Barrier()
	}
	if !errors.Is(err, ErrFailed) {
		return fmt.Errorf("append and barrier: %v, want ErrFailed", err)
	}

	select {
	case <-v.Failed():
	default:
		return errors.New("Failed is not closed")
	}
	if _, err := l.Append([]byte("x\n")); !errors.Is(err, ErrFailed) {
		return fmt.Errorf("append after a failure: %v, want ErrFailed", err)
	}
	if err := l.Barrier(); !errors.Is(err, ErrFailed) {
		return fmt.Errorf("barrier after a failure: %v, want ErrFailed", err)
	}
	if err := v.WriteFile("state", filepath.Join(dir, "state"), nil); !errors.Is(err, ErrFailed) {
		return fmt.Errorf("write file after a failure: %v, want ErrFailed", err)
	}
	if _, _, err := v.OpenLog(filepath.Join(dir, "other"), LogOptions{Name: "inbox"}); !errors.Is(err, ErrFailed) {
		return fmt.Errorf("open log after a failure: %v, want ErrFailed", err)
	}

	return nil
}

// loseNames works on a file system that cannot sync folders.
func loseNames(dir string) error {
	if ok, err := SyncsFolders(dir); ok || err != nil {
		return fmt.Errorf("the probe says %v, %v", ok, err)
	}
	v := NewVolume(dir)
	l, _, err := v.OpenLog(filepath.Join(dir, "log"), LogOptions{Name: "inbox"})
	if err != nil {
		return err
	}
	if err := errors.Join(appendLines(l, 0, 1), l.Barrier(), v.MkdirAll(filepath.Join(dir, "a", "b")),
		v.WriteFile("state", filepath.Join(dir, "a", "b", "state"), nil), v.Err()); err != nil {
		return err
	}
	if !v.CannotSyncFolders() {
		return errors.New("the volume does not know that folders cannot be synced")
	}
	if !l.Durable() {
		return errors.New("what was appended does not count as durable")
	}

	return nil
}

func replaceLog(dir string) error {
	v := NewVolume(dir)
	l, _, err := v.OpenLog(filepath.Join(dir, "log"), LogOptions{Name: "history"})
	if err != nil {
		return err
	}
	return l.Replace([]byte("new\n"), filepath.Join(dir, "kept"))
}

// replaceEdited is replaceLog with a save of a user after the look at the file.
func replaceEdited(dir string) error {
	v := NewVolume(dir)
	l, _, err := v.OpenLog(filepath.Join(dir, "log"), LogOptions{Name: "history"})
	if err != nil {
		return err
	}
	aside, err := l.aside("history.rotate", []byte("new\n"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "editor"), []byte("by hand\n"), 0o600); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(dir, "editor"), l.path); err != nil {
		return err
	}

	_, _, err = l.swap("history.rotate", aside, l.id)
	return err
}

// publishFile replaces "old"; what stands there may be something else.
func publishFile(dir string) error {
	_, err := NewVolume(dir).Exchange("state", filepath.Join(dir, "state"), []byte("new"), []byte("old"))
	if errors.Is(err, ErrChanged) {
		return nil
	}
	return err
}

// holdLock holds a lock until its standard input ends.
func holdLock(dir string) error {
	_, _, err := TryLock(filepath.Join(dir, "lock"), Holder{PID: os.Getpid(), Socket: "there"})
	if err != nil {
		return err
	}
	fmt.Println("locked")
	return json.NewDecoder(os.Stdin).Decode(new(any))
}

func TestFullDisk(t *testing.T) {
	for _, percent := range []string{"0", "1", "50", "99", "100"} {
		child(t, "fill", t.TempDir(), "enospc@inbox.write#2:"+percent)
		child(t, "ballast", t.TempDir(), "enospc@history.write#2:"+percent)
	}
}

func TestFailedDisk(t *testing.T) {
	for _, failpoint := range []string{"eio@inbox.write#1", "eio@inbox.write#1:50", "erofs@inbox.write#1", "eio@inbox.sync#1",
		"enospc@inbox.sync#1", "eio@log.dirsync#1"} {
		child(t, "fail", t.TempDir(), failpoint)
	}
}

// FUSE, 9p and SMB may answer EINVAL to the sync of a folder, which says that they have
// none, not that something was lost. The sync of a file has no such excuse.
func TestFileSystemThatCannotSyncFolders(t *testing.T) {
	child(t, "names", t.TempDir(), "einval@probe.dirsync#1;einval@log.dirsync#1+;einval@mkdir.dirsync#1+;einval@state.dirsync#1+")
	child(t, "fail", t.TempDir(), "einval@inbox.sync#1")
}

// A crash at any step of a replacement leaves the old content or the new one
// under the name, whole, and the old one under its second name before that.
func TestReplaceDies(t *testing.T) {
	for _, step := range []string{"write#1:0", "write#1:50", "sync#1", "dirsync#1", "link#1", "link#1:100", "dirsync#2",
		"rename#1", "rename#1:100", "dirsync#3"} {
		dir := t.TempDir()
		path, kept := filepath.Join(dir, "log"), filepath.Join(dir, "kept")
		os.WriteFile(path, []byte("old\n"), 0o600)
		if !child(t, "replace", dir, "kill@history.rotate."+step) {
			t.Fatalf("%s: the child lived", step)
		}

		content, err := os.ReadFile(path)
		if err != nil || string(content) != "old\n" && string(content) != "new\n" {
			t.Errorf("%s: the log holds %q, %v", step, content, err)
		}
		if string(content) == "new\n" {
			if err := expect(kept, "old\n"); err != nil {
				t.Errorf("%s: the old log is gone: %v", step, err)
			}
		}
		if err := NewVolume(dir).Recover(dir); err != nil {
			t.Fatal(err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
			t.Errorf("%s: left behind: %v", step, left)
		}

		// The interrupted rotation can be made again.
		if string(content) == "old\n" && child(t, "replace", dir, "") {
			t.Errorf("%s: the second attempt died", step)
		}
	}
}

func TestExchangeDies(t *testing.T) {
	for _, step := range []string{"write#1:50", "sync#1", "rename#1", "rename#1:100", "dirsync#1"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "state")
		os.WriteFile(path, []byte("old"), 0o600)
		if !child(t, "publish", dir, "kill@state."+step) {
			t.Fatalf("%s: the child lived", step)
		}
		if content, err := os.ReadFile(path); err != nil || string(content) != "old" && string(content) != "new" {
			t.Errorf("%s: the file holds %q, %v", step, content, err)
		}
		recovered(t, dir, "state")
	}
}

// recovered runs Recover and expects that exactly these files are left.
func recovered(t *testing.T, dir string, want ...string) {
	t.Helper()
	if err := NewVolume(dir).Recover(dir); err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(dir)
	var got []string
	for _, e := range entries {
		name, _, conflict := strings.Cut(e.Name(), ".conflict-")
		if conflict {
			name += ".conflict"
		}
		got = append(got, name)
	}

	if !slices.Equal(got, want) {
		t.Errorf("the folder holds %q, want %q", got, want)
	}
}

// A user saves, and before daycare has looked at what it swapped out it dies. At
// the next start the save is back; unless the user saved once more, then it lies
// beside.
func TestExchangeDiesOnASave(t *testing.T) {
	for _, step := range []string{"write#1:50", "sync#1", "rename#1", "rename#1:100"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "state")
		os.WriteFile(path, []byte("by hand"), 0o600)
		if !child(t, "publish", dir, "kill@state."+step) {
			t.Fatalf("%s: the child lived", step)
		}
		recovered(t, dir, "state")
		if got := content(t, path); got != "by hand" {
			t.Errorf("%s: the file holds %q; the save is lost", step, got)
		}
	}

	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	os.WriteFile(path, []byte("by hand"), 0o600)
	child(t, "publish", dir, "kill@state.rename#1:100")
	os.WriteFile(path, []byte("by hand again"), 0o600)
	recovered(t, dir, "state", "state.conflict")
	kept, _ := filepath.Glob(path + ".conflict-*")
	if got := content(t, path) + content(t, kept[0]); got != "by hand againby hand" {
		t.Errorf("file and copy hold %q", got)
	}
}

// The same for a log that is rotated.
func TestReplaceDiesOnASave(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	os.WriteFile(path, []byte("old\n"), 0o600)
	if !child(t, "replaceEdited", dir, "kill@history.rotate.rename#1:100") {
		t.Fatal("the child lived")
	}
	os.Remove(filepath.Join(dir, "kept"))
	recovered(t, dir, "log")
	if got := content(t, path); got != "by hand\n" {
		t.Errorf("the log holds %q; the save is lost", got)
	}
}
