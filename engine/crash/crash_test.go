package crash

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The environment is read once, so what is armed is tried in a child process.
func TestMain(m *testing.M) {
	if path := os.Getenv("CRASH_TEST_CHILD"); path != "" {
		child(path)
		os.Exit(0)
	}

	switch {
	case os.Getenv("CRASH_TEST_CLOCK") != "":
		clock()
		os.Exit(0)
	case os.Getenv("CRASH_TEST_OPEN") != "":
		open()
		os.Exit(0)
	}

	os.Exit(m.Run())
}

// child passes three points of three shapes, twice, and says how each went.
func child(path string) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	said := func(err error) {
		if err != nil {
			os.Stdout.WriteString("err " + err.Error() + "\n")
		} else {
			os.Stdout.WriteString("ok\n")
		}
	}
	for range 2 {
		_, err := Write("inbox.write", []byte("0123456789"), f.Write)
		said(err)
		said(Do("inbox.sync", func() error { _, err := f.WriteString("|"); return err }))
		Point("inbox.accepted")
		said(nil)
	}
}

func run(t *testing.T, failpoint string) (out []string, file string, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CRASH_TEST_CHILD="+path, "DAYCARE_FAILPOINT="+failpoint)
	raw, err := cmd.Output()
	content, rerr := os.ReadFile(path)
	if rerr != nil && err == nil {
		t.Fatal(rerr)
	}

	return strings.Fields(strings.ReplaceAll(strings.TrimSpace(string(raw)), " ", "_")), string(content), err
}

func TestArmed(t *testing.T) {
	const full = "err_no_space_left_on_device"
	for _, tt := range []struct {
		failpoint string
		killed    bool
		out       []string
		file      string
	}{
		{"", false, []string{"ok", "ok", "ok", "ok", "ok", "ok"}, "0123456789|0123456789|"},
		{"kill@inbox.write#1", true, nil, ""},
		{"kill@inbox.write#1:50", true, nil, "01234"},
		{"kill@inbox.write#2:99", true, []string{"ok", "ok", "ok"}, "0123456789|012345678"},
		{"kill@inbox.sync#1", true, []string{"ok"}, "0123456789"},
		{"kill@inbox.sync#1:100", true, []string{"ok"}, "0123456789|"},
		{"stall@inbox.sync#1", true, []string{"ok"}, "0123456789"},
		{"kill@inbox.accepted#1", true, []string{"ok", "ok"}, "0123456789|"},
		{"kill@#4", true, []string{"ok", "ok", "ok"}, "0123456789|"},
		{"enospc@inbox.write#1", false, []string{full, "ok", "ok", "ok", "ok", "ok"}, "|0123456789|"},
		{"short@inbox.write#1:30", false, []string{full, "ok", "ok", "ok", "ok", "ok"}, "012|0123456789|"},
		{"enospc@inbox.write#1+", false, []string{full, "ok", "ok", full, "ok", "ok"}, "||"},
		{"eio@inbox.sync#2", false, []string{"ok", "ok", "ok", "ok", "err_input/output_error", "ok"}, "0123456789|0123456789"},
		{"emfile@inbox.sync#1", false, []string{"ok", "err_too_many_open_files", "ok", "ok", "ok", "ok"}, "01234567890123456789|"},
		{"eacces@inbox.sync#1", false, []string{"ok", "err_permission_denied", "ok", "ok", "ok", "ok"}, "01234567890123456789|"},
		{"slow@#1+", false, []string{"ok", "ok", "ok", "ok", "ok", "ok"}, "0123456789|0123456789|"},
		{"clock+72h@inbox.write#1", false, []string{"ok", "ok", "ok", "ok", "ok", "ok"}, "0123456789|0123456789|"},
		{"enospc@inbox.write#1;erofs@inbox.sync#1", false,
			[]string{full, "err_read-only_file_system", "ok", "ok", "ok", "ok"}, "0123456789|"},
	} {
		t.Run(tt.failpoint, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			out, file, err := run(t, tt.failpoint)
			if took := time.Since(begin); strings.HasPrefix(tt.failpoint, "stall@") && took < stalled {
				t.Errorf("it died after %v, and was to hang for %v", took, stalled)
			}
			if tt.killed != killed(err) {
				t.Fatalf("ended with %v; want killed: %v", err, tt.killed)
			}
			if d := cmp.Diff(tt.out, out); d != "" && len(tt.out)+len(out) > 0 {
				t.Errorf("what the steps returned (-want +got):\n%s", d)
			}
			if file != tt.file {
				t.Errorf("file holds %q, want %q", file, tt.file)
			}
		})
	}
}

func killed(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

func TestTrace(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CRASH_TEST_CHILD="+filepath.Join(t.TempDir(), "file"), "DAYCARE_FAILPOINT_TRACE="+trace)
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}

	got, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Repeat("inbox.write\ninbox.sync\ninbox.accepted\n", 2)
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("trace (-want +got):\n%s", d)
	}
}

// The clock can be moved at a step and from the start. A child that was moved says by how
// many hours.
func TestClock(t *testing.T) {
	for _, tt := range []struct{ failpoint, start, want string }{
		{"", "", "0 0"},
		{"", "48h", "48 48"},
		{"clock-24h@inbox.accepted#1", "", "0 -24"},
		{"clock+72h@#1", "-1h", "-1 71"},
	} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "CRASH_TEST_CLOCK=1", "DAYCARE_FAILPOINT="+tt.failpoint, "DAYCARE_FAILPOINT_CLOCK="+tt.start)
		out, err := cmd.Output()
		if err != nil || strings.TrimSpace(string(out)) != tt.want {
			t.Errorf("%q, %q ahead at the start: moved by %s (%v), want %s", tt.failpoint, tt.start, out, err, tt.want)
		}
	}
}

// clock says by how many hours Now is ahead, before and after a point.
func clock() {
	hours := func() int { return int(time.Until(Now()).Round(time.Hour).Hours()) }
	before := hours()
	Point("inbox.accepted")
	fmt.Println(before, hours())
}

// What is out of descriptors fails before it has a file, and has passed the point.
func TestOpenWithoutDescriptors(t *testing.T) {
	for failpoint, want := range map[string]string{"": "opened 1", "emfile@inbox.sync#1": "too many open files 1",
		"eio@inbox.sync#1": "opened 1"} {
		cmd := exec.Command(os.Args[0])
		trace := filepath.Join(t.TempDir(), "trace")
		cmd.Env = append(os.Environ(), "CRASH_TEST_OPEN=1", "DAYCARE_FAILPOINT="+failpoint, "DAYCARE_FAILPOINT_TRACE="+trace)
		out, err := cmd.Output()
		passed, _ := os.ReadFile(trace)
		if got := fmt.Sprintf("%s %d", out, strings.Count(string(passed), "inbox.sync")); err != nil || got != want {
			t.Errorf("%q: %s (%v), want %s", failpoint, got, err, want)
		}
	}
}

// open opens a file for a step and, if that can be done, makes the step.
func open() {
	f, err := Open("inbox.sync", func() (*os.File, error) { return os.Open(os.Args[0]) })
	if err != nil {
		fmt.Print(errors.Unwrap(err))
		return
	}
	defer f.Close()
	_ = Do("inbox.sync", func() error { return nil })
	fmt.Print("opened")
}

// A rename that no sync covered is in neither listing; a sync of one directory brings the
// other in line in a journal, and in no other file system.
func TestMirrorOfARename(t *testing.T) {
	root := t.TempDir()
	from, to := filepath.Join(root, "from"), filepath.Join(root, "to")
	m := OpenMirror(t.TempDir())
	sync := func(dir string) {
		t.Helper()
		f, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := m.Sync(f, (*os.File).Sync); err != nil {
			t.Fatal(err)
		}
	}

	for _, dir := range []string{from, to} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(from, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}

	sync(from)
	sync(to)
	if err := os.Rename(filepath.Join(from, "a"), filepath.Join(to, "b")); err != nil {
		t.Fatal(err)
	}
	want := func(when string, dir string, names, own int) {
		t.Helper()
		id, err := FileID(dir)
		if err != nil {
			t.Fatal(err)
		}
		all, err1 := m.Names(id)
		mine, err2 := m.OwnNames(id)
		if err1 != nil || err2 != nil || len(all) != names || len(mine) != own {
			t.Errorf("%s: %s has %v with a journal and %v without one; want %d and %d names", when, filepath.Base(dir),
				all, mine, names, own)
		}
	}
	want("before a sync", from, 1, 1)
	want("before a sync", to, 0, 0)
	sync(to)
	want("after the target was synced", from, 0, 1)
	want("after the target was synced", to, 1, 1)
}

func TestWrongArmingExits(t *testing.T) {
	for _, spec := range []string{"kill", "kill@inbox.write", "burn@inbox.write#1", "kill@no.such#1", "kill@inbox.write#0",
		"kill@inbox.write#x", "kill@inbox.write#1:101", "kill@inbox.write#1:x"} {
		if _, err := parse(spec); err == nil {
			t.Errorf("%q was accepted", spec)
		}
	}
	if _, _, err := run(t, "kill@no.such#1"); err == nil {
		t.Error("a process with a wrong failpoint ran; it must exit, or a harness would test nothing")
	}
}

func TestUnarmed(t *testing.T) {
	if os.Getenv("DAYCARE_FAILPOINT")+os.Getenv("DAYCARE_FAILPOINT_TRACE") != "" {
		t.Skip("failpoints are armed")
	}
	if current() != nil {
		t.Error("something is armed although the environment says nothing")
	}
	if n := testing.AllocsPerRun(100, func() { Point("inbox.accepted") }); n > 0 {
		t.Errorf("an unarmed point makes %v allocations", n)
	}
}

func TestNamesAreUnique(t *testing.T) {
	all := Names()
	slices.Sort(all)
	if got := slices.Compact(slices.Clone(all)); len(got) != len(all) {
		t.Errorf("%d of %d names are double", len(all)-len(got), len(all))
	}
}

// A test arms its own process, and when it has ended nothing is armed any more.
func TestArm(t *testing.T) {
	sync := func() error { return Do("inbox.sync", func() error { return nil }) }
	t.Run("armed", func(t *testing.T) {
		met := Arm(t, "eio@inbox.sync#2")
		if err := sync(); err != nil || len(met()) != 0 {
			t.Errorf("the first sync: %v, met %v", err, met())
		}
		if err := sync(); !errors.Is(err, syscall.EIO) || !slices.Equal(met(), []string{"inbox.sync"}) {
			t.Errorf("the second sync: %v, met %v", err, met())
		}
	})

	if err := sync(); err != nil {
		t.Errorf("after the test: %v", err)
	}
}
