package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Nothing on the way to the sandbox may see the command's variables.
func TestOuterEnvironmentIsEmpty(t *testing.T) {
	for _, r := range []*Runner{{Level: Bwrap, helper: "/h", bwrap: "/b"}, {Level: Landlock, helper: "/h"}} {
		l, err := r.Wrap(View{Dir: "/", Home: t.TempDir()}, []string{"/bin/true"}, []string{"LD_PRELOAD=/x"})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if len(l.Env) > 0 || strings.Contains(strings.Join(l.Argv, " "), "LD_PRELOAD") {
			t.Errorf("%s: %v %v", r.Level, l.Env, l.Argv)
		}
	}
}

func tree(t *testing.T, files ...string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}

	for _, f := range files {
		path := filepath.Join(root, f)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}

	return root
}

func TestWithout(t *testing.T) {
	root := tree(t, "a/x", "a/b/y", "a/b/c/z", "d/w", "file")
	if err := os.Symlink("/etc", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}

	for _, tt := range []struct {
		hidden        string
		parts, opened string
	}{
		{"", ".", ""},
		{"../elsewhere", ".", ""},
		{"d", "a file", "."},
		{"a/b/c", "a/b/y a/x d file", ". a a/b"},
		{"a/none", "a/b a/x d file", ". a"},
		{".", "", ""},
		{"..", "", ""},
	} {
		var hidden []string
		if tt.hidden != "" {
			hidden = []string{filepath.Join(root, tt.hidden)}
		}
		parts, opened, err := without(root, hidden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([2]string{tt.parts, tt.opened}, [2]string{relative(root, parts), relative(root, opened)}); diff != "" {
			t.Errorf("without %q: %s", tt.hidden, diff)
		}
	}
}

func relative(root string, paths []string) string {
	for i, p := range paths {
		paths[i], _ = filepath.Rel(root, p)
	}
	slices.Sort(paths)
	return strings.Join(paths, " ")
}

// A hidden file that does not exist yet must not be made: the folder that it would
// be in is read only, its entries are not.
func TestMissingHiddenFile(t *testing.T) {
	root := tree(t, "home/.profile", "home/docs/x")
	home := filepath.Join(root, "home")
	line, _ := bwrapLine(t, View{Dir: home, Home: t.TempDir(), Write: []string{home},
		Hidden: []string{home + "/.zshenv", home + "/.config/fish", home + "/.profile"}})
	for _, want := range []string{"--ro-bind-try " + home + " " + home, "--bind-try " + home + "/docs",
		"--ro-bind /dev/null " + home + "/.profile"} {
		if !strings.Contains(line, want) {
			t.Errorf("%q is not in %s", want, line)
		}
	}

	if strings.Contains(line, "--bind-try "+home+" ") {
		t.Error("the folder is writable")
	}
}

// A hidden file that was found, and is gone by now, changes nothing: its folder stays
// writable, and nothing is mounted where it was.
func TestFoundFileThatIsGone(t *testing.T) {
	root := tree(t, "w/.netrc", "w/keys/a", "w/keys/b")
	w := filepath.Join(root, "w")
	line, covered := bwrapLine(t, View{Dir: w, Home: t.TempDir(), Write: []string{w}, Own: []string{w + "/keys/a"},
		Found: []string{w + "/run.sock", w + "/.netrc", w + "/keys", "/elsewhere/run.sock"}})
	if !strings.Contains(line, "--bind-try "+w+" "+w) || strings.Contains(line, "run.sock") || strings.Contains(line, ".netrc") {
		t.Error(line)
	}
	if diff := cmp.Diff([]string{w + "/run.sock", w + "/.netrc"}, covered); diff != "" {
		t.Errorf("what the helper covers: %s", diff)
	}

	// What is opened in a hidden folder has to be mounted after it.
	cover, opened := strings.Index(line, "--tmpfs "+w+"/keys "), strings.Index(line, "--bind-try "+w+"/keys/a ")
	if cover < 0 || opened < cover {
		t.Error(line)
	}
}

// bwrapLine is the command line of a view, and what is covered in it.
func bwrapLine(t *testing.T, v View) (line string, covered []string) {
	t.Helper()
	r := &Runner{Level: Bwrap, helper: "/h", bwrap: "bwrap"}
	args, task, err := r.inside(v, []string{"/bin/true"}, nil)
	if err != nil {
		t.Fatal(err)
	}

	return strings.Join(args, " "), task.Plan.Covered
}

// A grant does not open what is hidden, also where it names it.
func TestHiddenWinsOverGrants(t *testing.T) {
	root := tree(t, "data/agents/x", "data/files/f", "data/own/o")
	data := filepath.Join(root, "data")
	line, _ := bwrapLine(t, View{Dir: "/", Home: t.TempDir(), Read: []string{data + "/agents"}, Write: []string{data + "/agents/x"},
		Hidden: []string{data}, Shown: []string{data + "/files"}, Own: []string{data + "/own"}})
	if strings.Contains(line, data+"/agents") || !strings.Contains(line, "--ro-bind-try "+data+"/files") ||
		!strings.Contains(line, "--bind-try "+data+"/own") {
		t.Error(line)
	}
}

// The profile cannot be tried here; it is at least what was meant.
func TestSeatbeltProfile(t *testing.T) {
	got := seatbeltProfile(View{Home: "/h", Read: []string{"/r"}, Write: []string{`/w"x`},
		Hidden: []string{"/w/.daycare"}, Locked: []string{"/w/.git/config"}, Shown: []string{"/w/.daycare/files"}})
	want := `(version 1)
(deny default)
(allow process-exec process-fork signal (target same-sandbox))
(allow sysctl-read mach-lookup file-read-metadata)
(deny network*)
(deny file-link)
(allow file-read* (subpath "/usr") (subpath "/bin") (subpath "/sbin") (subpath "/System") ` +
		`(subpath "/Library") (subpath "/private/etc") (subpath "/opt") (subpath "/dev"))
(allow file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (literal "/dev/dtracehelper"))
(allow file-read* (subpath "/r") (subpath "/h"))
(allow file-read* file-write* (subpath "/w\"x") (subpath "/h"))
(deny file-write* (subpath "/w/.git/config"))
(deny file-read* file-write* (subpath "/w/.daycare") (subpath "/private/etc/master.passwd"))
(allow file-read* (subpath "/w/.daycare/files"))
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestHelperRefusesNonsense(t *testing.T) {
	for _, args := range [][]string{{"daycare", helperWord, "x"}, {"daycare", helperWord, "restrict"},
		{"daycare", helperWord, "restrict", "--", "/bin/true"},
		{"daycare", helperWord, "supervise", "x", "0", "--", "/bin/true"}} {
		mode, rest := Mode(args)
		if code := helper(mode, rest); mode != args[2] || code != Failed {
			t.Errorf("%v: mode %q, %d", args, mode, code)
		}
	}
	for _, args := range [][]string{{"daycare", "chat", helperWord}, {"daycare", helperWord}, {"daycare"}} {
		if mode, _ := Mode(args); mode != "" {
			t.Errorf("%v is a helper", args)
		}
	}
}

// Where nothing opens the helper for a command, as on macOS, it is run and can be read by its path.
func TestTheHelperItself(t *testing.T) {
	for level, want := range map[Level]string{Landlock: selfFile, Seatbelt: "/h/daycare", None: "/h/daycare"} {
		r := &Runner{Level: level, helper: "/h/daycare"}
		l, err := r.Itself(View{Dir: "/", Home: t.TempDir(), Read: []string{"/r"}}, Probe, "x")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		line := strings.Join(l.Argv, " ")
		if !strings.HasSuffix(line, " "+want+" "+helperWord+" probe x") {
			t.Errorf("%s: %s, want %s", level, line, want)
		}
		if level == Seatbelt && !strings.Contains(line, `(subpath "/r") (subpath "/h/daycare")`) {
			t.Errorf("it cannot be read: %s", line)
		}
	}
}
