package crash

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The environment is read once, so what is armed is tried in a child process.
func TestMain(m *testing.M) {
	if path := os.Getenv("CRASH_TEST_CHILD"); path != "" {
		child(path)
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
		{"enospc@inbox.write#1;erofs@inbox.sync#1", false, []string{full, "err_read-only_file_system", "ok", "ok", "ok", "ok"}, "0123456789|"},
	} {
		t.Run(tt.failpoint, func(t *testing.T) {
			t.Parallel()
			out, file, err := run(t, tt.failpoint)
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
	if current() != nil {
		t.Skip("failpoints are armed")
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
