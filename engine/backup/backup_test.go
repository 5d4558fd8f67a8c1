package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"daycare/engine/workspace"
)

const agent = home + "/agents/abcdefghijklmnopqrstuvwx/"

// filled makes a workspace with these files.
func filled(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}

	return root
}

func written(t *testing.T, o Options) []byte {
	t.Helper()
	if o.Scrub == nil {
		o.Scrub = func(b []byte) ([]byte, error) { return b, nil }
	}
	var b bytes.Buffer
	if err := Write(t.Context(), &b, o); err != nil {
		t.Fatal(err)
	}

	return b.Bytes()
}

// tree lists the files below a folder with what is in them.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(root, path)
		files[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return files
}

// What is restored is what was there, without what only the place or the process had.
func TestBackupAndRestore(t *testing.T) {
	long := strings.Repeat("0123456789abcdef\n", short/8)
	root := filled(t, map[string]string{
		home + "/settings.yaml": "token: very-secret\n", home + "/auth.json": "{}", home + "/daycare.lock": "{}",
		home + "/logs/daycare.jsonl": "{}",
		agent + "inbox.jsonl":        long, agent + "history.jsonl": long, agent + "history/000001.jsonl": "{}\n",
		agent + "state.json": "{}",
		"script.yaml":        "rules: []", "other.txt": "not named",
	})
	run := filepath.Join(root, home, "skills", "a", "run.sh")
	if err := errors.Join(os.MkdirAll(filepath.Dir(run), 0o700), os.WriteFile(run, []byte("#!/bin/sh"), 0o755),
		os.Symlink("/etc/passwd", filepath.Join(root, home, "USER.md"))); err != nil {
		t.Fatal(err)
	}

	data := written(t, Options{Place: workspace.At(root), Named: []string{"script.yaml", "gone.yaml"},
		Private: []string{home + "/auth.json"},
		Scrub:   func(b []byte) ([]byte, error) { return bytes.ReplaceAll(b, []byte("very-secret"), nil), nil }})

	to := t.TempDir()
	r, err := Restore(bytes.NewReader(data), workspace.At(to))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.LeftOut) != 2 || len(r.Aside) != 0 || r.Files != 7 {
		t.Errorf("%d files, left out %q, moved aside %q", r.Files, r.LeftOut, r.Aside)
	}

	got := tree(t, to)
	want := map[string]string{home + "/settings.yaml": "token: \n", agent + "inbox.jsonl": long, agent + "history.jsonl": long,
		agent + "history/000001.jsonl": "{}\n", agent + "state.json": "{}", "script.yaml": "rules: []",
		home + "/skills/a/run.sh": "#!/bin/sh"}
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s has %d bytes, want %d", name, len(got[name]), len(text))
		}
	}

	if len(got) != len(want) {
		t.Errorf("%d files came, want %d", len(got), len(want))
	}
	if info, err := os.Stat(filepath.Join(to, home, "skills", "a", "run.sh")); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("a program of a skill cannot be run any more: %v, %v", info, err)
	}
}

// What is there when a backup is restored lies aside afterwards, as it was.
func TestARestoreMovesAside(t *testing.T) {
	root := filled(t, map[string]string{home + "/SOUL.md": "new", "script.yaml": "new"})
	data := written(t, Options{Place: workspace.At(root), Named: []string{"script.yaml"}})
	to := filled(t, map[string]string{home + "/SOUL.md": "old", home + "/AGENTS.md": "old", "script.yaml": "old"})
	r, err := Restore(bytes.NewReader(data), workspace.At(to))
	if err != nil || len(r.Aside) != 2 {
		t.Fatalf("moved aside %q, %v", r.Aside, err)
	}

	got := tree(t, to)
	if got[home+"/SOUL.md"] != "new" || got["script.yaml"] != "new" || got[home+"/AGENTS.md"] != "" {
		t.Errorf("it is now %q", got)
	}
	if got[r.Aside[0]] != "old" || got[r.Aside[1]+"/SOUL.md"] != "old" || got[r.Aside[1]+"/AGENTS.md"] != "old" {
		t.Errorf("aside is %q", got)
	}
}

// rewritten is a backup with some of its files changed: change returns the files that stand
// in the place of one.
func rewritten(t *testing.T, data []byte, change func(h *tar.Header, content []byte) (*tar.Header, []byte)) []byte {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	out := gzip.NewWriter(&b)
	w := tar.NewWriter(out)
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		content, rerr := io.ReadAll(r)
		if err := errors.Join(err, rerr); err != nil {
			t.Fatal(err)
		}
		if h, content = change(h, content); h == nil {
			continue
		}

		h.Size = int64(len(content))
		_, err = w.Write(nil)
		err = errors.Join(err, w.WriteHeader(h))
		if h.Typeflag == tar.TypeReg && err == nil {
			_, err = w.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}

	if err := errors.Join(w.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Whatever is wrong with a backup, the reason is said, and the workspace is as it was.
func TestBadBackupsChangeNothing(t *testing.T) {
	good := written(t, Options{Place: workspace.At(filled(t, map[string]string{home + "/SOUL.md": "new", home + "/USER.md": "new"}))})
	type change = func(h *tar.Header, content []byte) (*tar.Header, []byte)
	on := func(name string, do func(h *tar.Header, content []byte) (*tar.Header, []byte)) []byte {
		return rewritten(t, good, func(h *tar.Header, content []byte) (*tar.Header, []byte) {
			if h.Name == name {
				return do(h, content)
			}
			return h, content
		})
	}
	named := func(name string) change {
		return func(h *tar.Header, content []byte) (*tar.Header, []byte) { h.Name = name; return h, content }
	}
	head := func(old, now string) change {
		return func(h *tar.Header, content []byte) (*tar.Header, []byte) {
			return h, bytes.Replace(content, []byte(old), []byte(now), 1)
		}
	}
	const soul = home + "/SOUL.md"
	for why, data := range map[string][]byte{
		"truncated":  good[:len(good)/2],
		"truncated ": good[:len(good)-4],
		"damaged or changed": on(soul, func(h *tar.Header, _ []byte) (*tar.Header, []byte) {
			return h, []byte("NEW")
		}),
		"is missing":  on(soul, func(*tar.Header, []byte) (*tar.Header, []byte) { return nil, nil }),
		"truncated  ": on(sumsName, func(*tar.Header, []byte) (*tar.Header, []byte) { return nil, nil }),
		"no checksum": on(sumsName, func(h *tar.Header, b []byte) (*tar.Header, []byte) {
			return h, b[:bytes.IndexByte(b, '\n')+1]
		}),
		"token too long": on(sumsName, func(h *tar.Header, b []byte) (*tar.Header, []byte) {
			return h, append(b, bytes.Repeat([]byte("x"), 100<<10)...)
		}),
		headName + ": ":           on(headName, head(`"format": 1`, `"format": `)),
		"first file":              on(headName, func(*tar.Header, []byte) (*tar.Header, []byte) { return nil, nil }),
		"format is 9":             on(headName, head(`"format": 1`, `"format": 9`)),
		"more than the declared":  on(headName, head(`"bytes": 6`, `"bytes": 5`)),
		"free: ":                  on(headName, head(`"bytes": 6`, `"bytes": 900000000000000`)),
		"free:  ":                 on(headName, head(`"bytes": 6`, `"bytes": -6`)),
		"free:   ":                on(headName, head(`"files": 2`, `"files": -2`)),
		"points outside":          on(soul, named(home+"/../../x")),
		"points outside ":         on(soul, named("/etc/passwd")),
		"file exists":             on(home+"/USER.md", named(soul+"/x")),
		`contains ".git/hooks/x"`: on(soul, named(".git/hooks/x")),
		"twice":                   on(soul, named(home+"/user.md")),
		"invalid header":          []byte("this is no backup at all, and long enough to look at"),
		"could not be finished: w": on(sumsName, func(h *tar.Header, _ []byte) (*tar.Header, []byte) {
			h.Name = failName
			return h, []byte("why")
		}),
		"link": on(soul, func(h *tar.Header, _ []byte) (*tar.Header, []byte) {
			h.Typeflag, h.Linkname = tar.TypeSymlink, "/etc/passwd"
			return h, nil
		}),
	} {
		to := filled(t, map[string]string{soul: "old"})
		_, err := Restore(bytes.NewReader(data), workspace.At(to))
		if !errors.Is(err, ErrBad) || !strings.Contains(err.Error(), strings.TrimRight(why, " ")) {
			t.Errorf("%q: %v", why, err)
		}
		if got := tree(t, to); len(got) != 1 || got[soul] != "old" {
			t.Errorf("%q: the workspace is now %q", why, got)
		}
		if _, err := Verify(bytes.NewReader(data)); err == nil && why != "free: " {
			t.Errorf("%q: it passes as whole", why)
		}
	}
	if _, err := Verify(bytes.NewReader(good)); err != nil {
		t.Errorf("a good one: %v", err)
	}
}

// Files that agents could put in a task's folder do not lead a backup anywhere.
func TestAgentsLeadNoBackupAstray(t *testing.T) {
	root := filled(t, map[string]string{"secret": "canary", home + "/cron/a/files/own.txt": "own", "script.yaml": "x"})
	files := filepath.Join(root, home, "cron", "a", "files")
	if err := errors.Join(os.Symlink(filepath.Join(root, "secret"), filepath.Join(files, "link")),
		os.Link(filepath.Join(root, "secret"), filepath.Join(files, "name")),
		os.Remove(filepath.Join(root, "script.yaml")), os.Symlink("secret", filepath.Join(root, "script.yaml"))); err != nil {
		t.Fatal(err)
	}

	data := written(t, Options{Place: workspace.At(root), Named: []string{"script.yaml", "../outside"}})
	to := t.TempDir()
	r, err := Restore(bytes.NewReader(data), workspace.At(to))
	if err != nil || len(r.LeftOut) != 4 {
		t.Errorf("left out %q, %v", r.LeftOut, err)
	}

	for name, text := range tree(t, to) {
		if strings.Contains(text, "canary") {
			t.Errorf("%s has it", name)
		}
	}
}

// A file that a restore refuses by its name is left out and named; all others are in the backup.
func TestNamesThatAreNotRestored(t *testing.T) {
	files := home + "/cron/x/files/"
	left := []string{files + "line\nbreak", files + `back\slash`, files + "bell\a", files + "\xff", files + "a/readme.md",
		".certs/cert.pem"}
	content := map[string]string{files + "a/README.md": "a", "certs/cert.pem": "b", home + "/SOUL.md": "c"}
	all := map[string]string{}
	maps.Copy(all, content)
	for _, name := range left {
		all[name] = "left"
	}
	at := workspace.At(filled(t, all))
	data := written(t, Options{Place: at, Named: []string{".certs/cert.pem", "certs/cert.pem"}})
	to := t.TempDir()
	r, err := Restore(bytes.NewReader(data), workspace.At(to))
	if err != nil {
		t.Fatal(err)
	}
	if got := tree(t, to); !maps.Equal(got, content) {
		t.Errorf("restored are %q, want %q", got, content)
	}
	for _, name := range left {
		is := func(what string) bool {
			return strings.HasPrefix(what, name+": ") || strings.HasPrefix(what, strconv.Quote(name)+": ")
		}
		if !slices.ContainsFunc(r.LeftOut, is) {
			t.Errorf("%q is not among what was left out: %q", name, r.LeftOut)
		}
	}
}

// In the moment of a rotation and of taking a dropped message a file has two names: the copy
// has one, that of before.
func TestAFileWithTwoNamesIsCopiedOnce(t *testing.T) {
	root := filled(t, map[string]string{agent + "history.jsonl": "{}\n", home + "/drop/b.md": "hello", home + "/SOUL.md": "soul"})
	taken := filepath.Join(root, home, "drop", ".taken")
	if err := errors.Join(os.MkdirAll(filepath.Join(root, agent, "history"), 0o700), os.MkdirAll(taken, 0o700),
		os.Link(filepath.Join(root, agent, "history.jsonl"), filepath.Join(root, agent, "history", "000001.jsonl")),
		os.Link(filepath.Join(root, home, "drop", "b.md"), filepath.Join(taken, "x__b.md")),
		os.Link(filepath.Join(root, home, "SOUL.md"), filepath.Join(root, home, ".SOUL.md"))); err != nil {
		t.Fatal(err)
	}

	to := t.TempDir()
	if _, err := Restore(bytes.NewReader(written(t, Options{Place: workspace.At(root)})), workspace.At(to)); err != nil {
		t.Fatal(err)
	}
	got := tree(t, to)
	if len(got) != 3 || got[agent+"history.jsonl"] == "" || got[home+"/drop/b.md"] == "" || got[home+"/SOUL.md"] == "" {
		t.Errorf("there is now %q", got)
	}
}

// A log that grows, and one that is closed, while they are copied, are as they were.
func TestLogsAreAsLongAsTheyWere(t *testing.T) {
	long := strings.Repeat("{}\n", short)
	root := filled(t, map[string]string{agent + "history.jsonl": long, home + "/usage/2026-01-01.jsonl": long,
		agent + "sessions.jsonl": long})
	s, err := take(Options{Place: workspace.At(root), Scrub: func(b []byte) ([]byte, error) { return b, nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.spool.Close()
	history := filepath.Join(root, agent, "history.jsonl")
	f, err := os.OpenFile(filepath.Join(root, home, "usage", "2026-01-01.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString("more\n")
		err = errors.Join(err, f.Close(), os.Mkdir(filepath.Join(root, agent, "history"), 0o700),
			os.Rename(history, filepath.Join(root, agent, "history", "000001.jsonl")), os.WriteFile(history, []byte("new\n"), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}

	for _, f := range s.files {
		r, closing, err := s.open(f)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if string(data) != long || err != nil || f.at >= 0 {
			t.Errorf("%s: %d bytes, %v, want the %d of before", f.Name, len(data), err, len(long))
		}
		if err := closing(); err != nil {
			t.Error(err)
		}
	}

	i := slices.IndexFunc(s.files, func(f seen) bool { return strings.HasSuffix(f.Name, "sessions.jsonl") })
	gone := filepath.Join(root, s.files[i].Name)
	if err := errors.Join(os.WriteFile(gone+"x", nil, 0o600), os.Rename(gone+"x", gone)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.open(s.files[i]); err == nil || !strings.Contains(err.Error(), "try again") {
		t.Errorf("a log in whose place there is another: %v", err)
	}
}
