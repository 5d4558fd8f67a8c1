package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"daycare/engine/attacktest"
	"daycare/engine/crash/crashtest"
	"daycare/engine/disk"
	"daycare/engine/tarball"
	"daycare/engine/workspace"
)

// entries are the names in a backup, in their order.
func entries(t *testing.T, data []byte) (names []string) {
	t.Helper()
	rewritten(t, data, func(h *tar.Header, content []byte) (*tar.Header, []byte) {
		names = append(names, h.Name)
		return h, content
	})
	return names
}

// A backup says what it is, and what is in it.
func TestABackupSaysWhatItIs(t *testing.T) {
	root := filled(t, map[string]string{home + "/SOUL.md": "12345", home + "/auth.json": "{}", home + "/settings.yaml": "token: x",
		"script.yaml": "ab"})
	before := time.Now()
	o := Options{Place: workspace.At(root), Version: "1.2.3", Named: []string{"script.yaml", home + "/SOUL.md"},
		Private: []string{home + "/auth.json"},
		Scrub:   func([]byte) ([]byte, error) { return []byte("clean, and longer than before"), nil }}
	h, err := Verify(bytes.NewReader(written(t, o)))
	if err != nil || h.Format != format || h.Version != "1.2.3" || h.Workspace != filepath.Base(root) || h.Secrets ||
		h.Files != 3 || h.Bytes != 5+29+2 || len(h.LeftOut) > 0 || h.At.Before(before.Add(-time.Second)) || h.At.After(time.Now()) {
		t.Errorf("without secrets: %+v, %v", h, err)
	}
	o.Secrets, o.Scrub = true, func([]byte) ([]byte, error) { return nil, errors.New("not asked") }
	h, err = Verify(bytes.NewReader(written(t, o)))
	if err != nil || !h.Secrets || h.Files != 4 || h.Bytes != 5+2+8+2 {
		t.Errorf("with secrets: %+v, %v", h, err)
	}
}

// What only the process has is no part of a backup, and a socket is named as left out.
func TestWhatIsLeftOut(t *testing.T) {
	root := filled(t, map[string]string{home + "/a.md": "x", home + "/.ballast": "x", home + "/agents.index": "x",
		home + "/logs/x/y.log":         "x",
		home + "/" + spoolPrefix + "1": "x", home + "/daycare.lock": "x"})
	for _, name := range []string{"daycare.sock", "other.sock"} {
		l, err := net.Listen("unix", filepath.Join(root, home, name))
		if err != nil {
			t.Skip(err)
		}
		defer l.Close()
	}
	data := written(t, Options{Place: workspace.At(root)})
	h, err := Verify(bytes.NewReader(data))
	if names := entries(t, data); err != nil || len(h.LeftOut) != 1 || !strings.HasPrefix(h.LeftOut[0], home+"/other.sock: ") ||
		!slices.Equal(names, []string{headName, home + "/a.md", sumsName}) {
		t.Errorf("it has %v, left out %v, %v", names, h.LeftOut, err)
	}
}

// Dropped messages are in a backup in the order in which they came: what is restored gets
// them in that order.
func TestDroppedMessagesKeepTheirOrder(t *testing.T) {
	root := filled(t, map[string]string{home + "/tasks/old.md": "older than any message"})
	time.Sleep(20 * time.Millisecond) // of the file system's clock
	if err := errors.Join(os.Mkdir(filepath.Join(root, home, "drop"), 0o700),
		os.WriteFile(filepath.Join(root, home, "drop", "b.md"), []byte("first"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"c.md", "a.md"} {
		path := filepath.Join(root, home, "drop", name)
		time.Sleep(20 * time.Millisecond)
		if err := os.WriteFile(path, []byte{byte('0' + i)}, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	later := filepath.Join(root, home, "agents", "late.md") // later than any message, and before them in the backup
	time.Sleep(20 * time.Millisecond)
	if err := errors.Join(os.Mkdir(filepath.Dir(later), 0o700), os.WriteFile(later, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	want := []string{headName, home + "/agents/late.md", home + "/drop/b.md", home + "/drop/c.md", home + "/drop/a.md",
		home + "/tasks/old.md", sumsName}
	if names := entries(t, written(t, Options{Place: workspace.At(root)})); !slices.Equal(names, want) {
		t.Errorf("they are in the order %v, want %v", names, want)
	}
}

// What can change in place is copied at the moment itself, however long it is; only a long
// file that grows is read later.
func TestWhatIsCopiedAtOnce(t *testing.T) {
	long := strings.Repeat("x", short+1)
	later := []string{agent + "history.jsonl", agent + "history/000001.jsonl", agent + "blobs/00", home + "/files/id__x",
		home + "/trash/x/y.md"}
	atOnce := []string{agent + "inbox.jsonl", agent + "state.json", home + "/memory/a.md", home + "/cron/a/TASK.md",
		home + "/cron/a/files/z"} // which an agent can change: it is copied right after the moment
	files := map[string]string{home + "/usage/2026-01-01.jsonl": "short", home + "/usage/exact.jsonl": long[1:]}
	for _, name := range append(slices.Clone(later), atOnce...) {
		files[name] = long
	}
	root := filled(t, files)
	s, err := take(Options{Place: workspace.At(root)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.spool.Close()
	if len(s.files) != len(files) {
		t.Errorf("%d files were seen, want %d", len(s.files), len(files))
	}
	for _, f := range s.files {
		if is := f.at < 0; is != slices.Contains(later, f.Name) {
			t.Errorf("%s is read later: %v", f.Name, is)
		}
		if f.at >= 0 { // it may be anything by now
			if err := os.WriteFile(filepath.Join(root, f.Name), []byte("changed"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r, closing, err := s.open(f)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err := errors.Join(err, closing()); err != nil || string(data) != files[f.Name] {
			t.Errorf("%s has %d bytes, %v, want those of then", f.Name, len(data), err)
		}
	}
}

type failing struct{ after int }

func (f *failing) Write(b []byte) (int, error) {
	if f.after -= len(b); f.after < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(b), nil
}

// A backup that cannot begin writes nothing; one that fails later says so, in its last file
// too, and cannot be restored.
func TestABackupThatFails(t *testing.T) {
	root := filled(t, map[string]string{home + "/SOUL.md": "x", home + "/settings.yaml": "x"})
	scrub := func(b []byte) ([]byte, error) { return b, nil }
	for name, o := range map[string]Options{
		"no workspace": {Place: workspace.At(filepath.Join(root, "none")), Scrub: scrub},
		"no .daycare":  {Place: workspace.At(t.TempDir()), Scrub: scrub},
		"settings":     {Place: workspace.At(root), Scrub: func([]byte) ([]byte, error) { return nil, errors.New("broken settings") }},
	} {
		var b bytes.Buffer
		if err := Write(t.Context(), &b, o); err == nil || b.Len() > 0 || !strings.Contains(err.Error(), o.Place.Dir) {
			t.Errorf("%s: %d bytes, %v", name, b.Len(), err)
		}
	}
	left, err := filepath.Glob(filepath.Join(root, home, spoolPrefix+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the power goes"))
	var b bytes.Buffer
	err = Write(ctx, &b, Options{Place: workspace.At(root), Scrub: scrub})
	if err == nil || !strings.Contains(err.Error(), "the power goes") {
		t.Errorf("a backup that was ended: %v", err)
	}
	if names := entries(t, b.Bytes()); !slices.Equal(names, []string{failName}) {
		t.Errorf("it has %v", names)
	}
	if _, err := Verify(&b); !errors.Is(err, ErrBad) || !strings.Contains(err.Error(), "the power goes") {
		t.Errorf("it is read: %v", err)
	}
	for _, after := range []int{0, 20, 150} {
		if err := Write(t.Context(), &failing{after}, Options{Place: workspace.At(root), Scrub: scrub}); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("to a disk that is full after %d bytes: %v", after, err)
		}
	}
}

// A long file that was replaced while the backup was written ends it.
func TestAFileThatChangesWhileItIsWritten(t *testing.T) {
	root := filled(t, map[string]string{agent + "blobs/00": strings.Repeat("x", 2*short)})
	s, err := take(Options{Place: workspace.At(root)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.spool.Close()
	path := filepath.Join(root, agent, "blobs", "00")
	if err := os.Truncate(path, short); err != nil {
		t.Fatal(err)
	}
	if err := s.write(t.Context(), tarball.NewWriter(io.Discard)); err == nil {
		t.Error("a file that became shorter is written")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := s.write(t.Context(), tarball.NewWriter(io.Discard)); err == nil || !strings.Contains(err.Error(), "try again") {
		t.Errorf("of a file that is gone: %v", err)
	}
}

// A restore leaves alone what is the same already, and what it cannot do is undone.
func TestARestoreThatCannotBeDoneIsUndone(t *testing.T) {
	files := map[string]string{home + "/SOUL.md": "new", "0.yaml": "new", "a/b.yaml": "new", "c.yaml": "same", "d.yaml": ""}
	data := written(t, Options{Place: workspace.At(filled(t, files)), Named: []string{"0.yaml", "a/b.yaml", "c.yaml", "d.yaml"}})
	to := filled(t, map[string]string{home + "/SOUL.md": "old", "0.yaml": "old", "a": "a file in the way", "c.yaml": "same"})
	before := tree(t, to)
	r, err := Restore(bytes.NewReader(data), workspace.At(to))
	if err == nil || !strings.HasPrefix(err.Error(), "restore: ") {
		t.Errorf("over a file in the way: %+v, %v", r, err)
	}
	if now := tree(t, to); len(now) != len(before) || now["0.yaml"] != "old" || now[home+"/SOUL.md"] != "old" {
		t.Errorf("it is now %q", now)
	}
	if err := os.Remove(filepath.Join(to, "a")); err != nil {
		t.Fatal(err)
	}
	r, err = Restore(bytes.NewReader(data), workspace.At(to))
	if err != nil || len(r.Aside) != 2 || !strings.HasPrefix(r.Aside[0], "0.yaml.before-") {
		t.Errorf("moved aside are %v, %v; want what was another", r.Aside, err)
	}
	now := tree(t, to)
	for name, want := range files {
		if got, ok := now[name]; !ok || got != want {
			t.Errorf("%s is %q, %v", name, got, ok)
		}
	}
	if _, err := Restore(bytes.NewReader(data), workspace.At(filepath.Join(to, "none"))); err == nil {
		t.Error("it is restored into a folder that there is not")
	}
}

// What ends as a backup and continues is none, and so is one without a workspace.
func TestWhatFollowsABackup(t *testing.T) {
	good := written(t, Options{Place: workspace.At(filled(t, map[string]string{home + "/SOUL.md": "new"})), Named: nil})
	zip, err := gzip.NewReader(bytes.NewReader(good))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	zipped := func(tail int) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, err := w.Write(append(slices.Clone(plain), make([]byte, tail)...))
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	if _, err := Verify(bytes.NewReader(zipped(10 << 10))); err != nil {
		t.Errorf("with a block that is filled: %v", err)
	}
	if _, err := Verify(bytes.NewReader(zipped(2 * maxTail))); !errors.Is(err, ErrBad) ||
		!strings.Contains(err.Error(), "after its last file") {
		t.Errorf("with %d bytes behind it: %v", 2*maxTail, err)
	}
	more := rewritten(t, good, func(h *tar.Header, content []byte) (*tar.Header, []byte) { return h, content })
	if _, err := Verify(bytes.NewReader(more)); err != nil {
		t.Errorf("packed anew: %v", err)
	}
	empty := written(t, Options{Place: workspace.At(filled(t, map[string]string{home + "/daycare.lock": "", "a.yaml": "x"})),
		Named: []string{"a.yaml"}})
	to := t.TempDir()
	if _, err := Restore(bytes.NewReader(empty), workspace.At(to)); !errors.Is(err, ErrBad) || len(tree(t, to)) > 0 {
		t.Errorf("without a %s: %v, %v", home, err, tree(t, to))
	}
}

// A folder that may not be written in ends a restore, and what was done until then is undone.
func TestARestoreWithoutRightsIsUndone(t *testing.T) {
	attacktest.AsUser(t)
	if os.Getuid() == 0 {
		return // root may write everywhere
	}
	for name, tt := range map[string]struct{ there, comes string }{
		"over a file":                 {"sub/x.yaml", "sub/x.yaml"},
		"beside one":                  {"sub/y.yaml", "sub/x.yaml"},
		"in a folder that is missing": {"sub/y.yaml", "sub/deep/x.yaml"},
	} {
		files := map[string]string{home + "/SOUL.md": "new", "0.yaml": "new", tt.comes: "new"}
		data := written(t, Options{Place: workspace.At(filled(t, files)), Named: []string{"0.yaml", tt.comes}})
		to := filled(t, map[string]string{home + "/SOUL.md": "old", "0.yaml": "old", tt.there: "old"})
		for _, shut := range []string{filepath.Join(to, "sub"), to} {
			if err := os.Chmod(shut, 0o500); err != nil {
				t.Fatal(err)
			}
			r, err := Restore(bytes.NewReader(data), workspace.At(to))
			if now := tree(t, to); !errors.Is(err, os.ErrPermission) || len(now) != 3 || now["0.yaml"] != "old" || now[tt.there] != "old" {
				t.Errorf("%s, without rights in %s: %+v, %v, there is now %q", name, filepath.Base(shut), r, err, now)
			}
			if err := os.Chmod(shut, 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A file that cannot be moved aside is not replaced.
func TestARestoreOverANameThatCannotBeLonger(t *testing.T) {
	name := strings.Repeat("n", 250)
	data := written(t, Options{Place: workspace.At(filled(t, map[string]string{home + "/SOUL.md": "new", name: "new"})),
		Named: []string{name}})
	to := filled(t, map[string]string{home + "/SOUL.md": "old", name: "old"})
	r, err := Restore(bytes.NewReader(data), workspace.At(to))
	if now := tree(t, to); !errors.Is(err, syscall.ENAMETOOLONG) || len(now) != 2 || now[name] != "old" || now[home+"/SOUL.md"] != "old" {
		t.Errorf("%+v, %v, there is now %q", r, err, now)
	}
}

// Without enough descriptors a backup is whole, or an error, and so is a restore.
func TestBackupsWithFewDescriptors(t *testing.T) {
	files := map[string]string{home + "/SOUL.md": "soul", home + "/memory/deep/a.md": "a",
		agent + "history.jsonl": strings.Repeat("{}\n", short)}
	var data []byte
	crashtest.FewDescriptors(t, func(t *testing.T) (op, holds func() error) {
		root := filled(t, files)
		var b bytes.Buffer
		op = func() error { return Write(t.Context(), &b, Options{Place: workspace.At(root)}) }
		return op, func() error {
			data = b.Bytes()
			h, err := Verify(bytes.NewReader(data))
			if err == nil && (h.Files != len(files) || len(h.LeftOut) > 0) {
				err = fmt.Errorf("it has %d files, left out are %q", h.Files, h.LeftOut)
			}
			return err
		}
	})
	crashtest.FewDescriptors(t, func(t *testing.T) (op, holds func() error) {
		to := t.TempDir()
		op = func() error { _, err := Restore(bytes.NewReader(data), workspace.At(to)); return err }
		return op, func() error {
			if now := tree(t, to); !maps.Equal(now, files) {
				return fmt.Errorf("there are %d files", len(now))
			}
			return nil
		}
	})
}

// A backup of what cannot be copied at one moment is refused, and says where.
func TestABackupWithoutRightsSaysSo(t *testing.T) {
	attacktest.AsUser(t)
	if os.Getuid() == 0 {
		return // root may write everywhere
	}
	root := filled(t, map[string]string{home + "/SOUL.md": "x", home + "/memory/a.md": "x"})
	for shut, mode := range map[string]os.FileMode{home: 0o500, home + "/memory": 0, home + "/SOUL.md": 0} {
		path := filepath.Join(root, shut)
		was, err := os.Stat(path)
		if err == nil {
			err = os.Chmod(path, mode)
		}
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := Write(t.Context(), &b, Options{Place: workspace.At(root)}); !errors.Is(err, os.ErrPermission) || b.Len() > 0 ||
			!strings.Contains(err.Error(), root) {
			t.Errorf("%s: %d bytes, %v", shut, b.Len(), err)
		}
		if err := os.Chmod(path, was.Mode()); err != nil {
			t.Fatal(err)
		}
	}
}

// A restore leaves room on the disk.
func TestARestoreLeavesRoom(t *testing.T) {
	to := t.TempDir()
	free, _, err := disk.Space(to)
	if err != nil || free < 2*reserve {
		t.Skip(free, err)
	}
	good := written(t, Options{Place: workspace.At(filled(t, map[string]string{home + "/SOUL.md": "new"}))})
	data := rewritten(t, good, func(h *tar.Header, content []byte) (*tar.Header, []byte) {
		if h.Name == headName {
			content = bytes.Replace(content, []byte(`"bytes": 3`), fmt.Appendf(nil, `"bytes": %d`, free-reserve/2), 1)
		}
		return h, content
	})
	if _, err := Restore(bytes.NewReader(data), workspace.At(to)); !errors.Is(err, ErrBad) || !strings.Contains(err.Error(), "; free: ") {
		t.Errorf("a backup that fills the disk: %v", err)
	}
}

// However early a backup ends, it is not taken for a whole one.
func TestBackupsThatAreCutShort(t *testing.T) {
	good := written(t, Options{Place: workspace.At(filled(t, map[string]string{home + "/SOUL.md": strings.Repeat("new", 100)}))})
	for n := range good {
		if _, err := Verify(bytes.NewReader(good[:n])); !errors.Is(err, ErrBad) || !strings.Contains(err.Error(), "truncated") {
			t.Errorf("%d of %d bytes: %v", n, len(good), err)
		}
	}
}

// What an agent swaps in its task's folder meanwhile is left out, which costs the backup
// nothing else; of daycare's own files it is an error.
func TestAFileThatIsSwappedMeanwhile(t *testing.T) {
	root := filled(t, map[string]string{home + "/cron/a/files/x": "x", home + "/SOUL.md": "x"})
	s, err := take(Options{Place: workspace.At(root)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.spool.Close()
	for _, f := range s.files {
		path := filepath.Join(root, f.Name)
		if err := errors.Join(os.WriteFile(path+".new", []byte("y"), 0o600), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
		left, seen := len(s.leftOut), len(s.files)
		err := s.keep(f)
		if (err == nil) != f.theirs || (len(s.leftOut) > left) != f.theirs || len(s.files) != seen {
			t.Errorf("%s: %v, left out %v, %d files", f.Name, err, s.leftOut, len(s.files))
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := s.keep(f); (err == nil) != f.theirs || len(s.files) != seen {
			t.Errorf("%s, which is gone: %v, %d files", f.Name, err, len(s.files))
		}
	}
}

// A task's folder that is gone by the time its files are copied, or that is a link by then, is
// left out: an agent can do that at any moment.
func TestAFolderOfAnAgentThatGoesMeanwhile(t *testing.T) {
	for name, change := range map[string]func(files string) error{
		"removed": os.RemoveAll,
		"a link by now": func(files string) error {
			return errors.Join(os.Rename(files, files+"-moved"), os.Symlink(files+"-moved", files))
		},
	} {
		root := filled(t, map[string]string{home + "/cron/a/files/x": "x", home + "/SOUL.md": "x"})
		s, err := take(Options{Place: workspace.At(root)})
		if err != nil {
			t.Fatal(err)
		}
		defer s.spool.Close()
		i := slices.IndexFunc(s.files, func(f seen) bool { return f.theirs })
		f := s.files[i]
		if err := change(filepath.Join(root, home, "cron", "a", "files")); err != nil {
			t.Fatal(err)
		}
		seen := len(s.files)
		if err := s.keep(f); err != nil || len(s.files) != seen {
			t.Errorf("%s: %v, %d files more", name, err, len(s.files)-seen)
		}
	}
}

// apart makes a workspace whose own files are elsewhere: its data folder has them under their own names.
func apart(t *testing.T, work, data map[string]string) workspace.Place {
	t.Helper()
	at := workspace.Place{Dir: filled(t, work), Data: filepath.Join(filled(t, nil), "data")}
	for name, text := range data {
		path := filepath.Join(at.Data, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return at
}

// A backup is restored with its own files elsewhere: they come to the data folder, with a note of
// whose they are, and the others to the workspace. What was there is aside, under names that can be found.
func TestARestoreWithItsDataElsewhere(t *testing.T) {
	files := map[string]string{home + "/SOUL.md": "new", "a.yaml": "new", "deep/run.sh": "new"}
	root := filled(t, files)
	if err := os.Chmod(filepath.Join(root, "deep/run.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	data := written(t, Options{Place: workspace.At(root), Named: []string{"a.yaml", "deep/run.sh"}})
	for name, there := range map[string]map[string]string{"over another": {"SOUL.md": "old"}, "where nothing is": nil} {
		at := apart(t, map[string]string{"a.yaml": "old", "other": "stays"}, there)
		if there == nil {
			at.Data = filepath.Join(at.Data, "made", "data")
		}
		r, err := Restore(bytes.NewReader(data), at)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}

		work, own := tree(t, at.Dir), tree(t, at.Data)
		if len(r.Aside) != 1+len(there) || len(work) != 4 || work["a.yaml"] != "new" || work["deep/run.sh"] != "new" ||
			work["other"] != "stays" || work[r.Aside[0]] != "old" {
			t.Errorf("%s: in the workspace are %q, aside %q", name, work, r.Aside)
		}
		if len(own) != 2 || own["SOUL.md"] != "new" || own[workspace.FileName] != string(at.Record()) {
			t.Errorf("%s: in the data folder are %q", name, own)
		}
		if there != nil && tree(t, r.Aside[1])["SOUL.md"] != "old" {
			t.Errorf("%s: aside is %q", name, r.Aside)
		}
		if info, err := os.Stat(filepath.Join(at.Dir, "deep/run.sh")); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: a program is now %v, %v", name, info.Mode(), err)
		}
		if left, err := os.ReadDir(filepath.Dir(at.Data)); err != nil || len(left) != 1+len(there) {
			t.Errorf("%s: beside the data folder are %v, %v", name, left, err)
		}
	}
}

// What cannot be restored with its own files elsewhere is undone in both places.
func TestARestoreWithItsDataElsewhereIsUndone(t *testing.T) {
	files := map[string]string{home + "/SOUL.md": "new", "a.yaml": "new", "b/c.yaml": "new"}
	good := written(t, Options{Place: workspace.At(filled(t, files)), Named: []string{"a.yaml", "b/c.yaml"}})
	large := make([]byte, maxNamed+1)
	sums := map[string][32]byte{}
	swollen := rewritten(t, good, func(h *tar.Header, content []byte) (*tar.Header, []byte) {
		switch h.Name {
		case headName:
			content = bytes.Replace(content, []byte(`"bytes": 9`), fmt.Appendf(nil, `"bytes": %d`, len(large)+6), 1)
		case "b/c.yaml":
			content = large
		case sumsName:
			content = nil
			for name, sum := range sums {
				content = fmt.Appendf(content, "%x  %s\n", sum, name)
			}
		}
		sums[h.Name] = sha256.Sum256(content)
		return h, content
	})
	claimed := rewritten(t, good, func(h *tar.Header, content []byte) (*tar.Header, []byte) {
		if h.Name == home+"/SOUL.md" {
			h.Name = home + "/" + workspace.FileName
		}
		if h.Name == sumsName {
			content = bytes.Replace(content, []byte("SOUL.md"), []byte(workspace.FileName), 1)
		}
		return h, content
	})

	old := map[string]string{"SOUL.md": "old"}
	for name, tt := range map[string]struct {
		data     []byte
		work     map[string]string
		dir, own string // below the workspace and the data folder, where it is restored; "": at them
	}{
		"a file in the way":                         {good, map[string]string{"a.yaml": "old", "b": "a file"}, "", ""},
		"a file in the way of a new one":            {good, map[string]string{"b": "a file"}, "", ""},
		"without a workspace":                       {good, map[string]string{}, "none", ""},
		"without a place for the data":              {good, map[string]string{}, "", "SOUL.md/deep/data"},
		"a file larger than any that settings name": {swollen, map[string]string{"a.yaml": "old"}, "", ""},
		"a note of whose the data is":               {claimed, map[string]string{"a.yaml": "old"}, "", ""},
	} {
		at := apart(t, tt.work, old)
		to := workspace.Place{Dir: filepath.Join(at.Dir, tt.dir), Data: filepath.Join(at.Data, tt.own)}
		r, err := Restore(bytes.NewReader(tt.data), to)
		if err == nil || !strings.HasPrefix(err.Error(), "restore: ") || errors.Is(err, ErrBad) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		if work, own := tree(t, at.Dir), tree(t, at.Data); !maps.Equal(work, tt.work) || !maps.Equal(own, old) {
			t.Errorf("%s: in the workspace are %q, in the data folder %q", name, work, own)
		}
		if left, err := os.ReadDir(filepath.Dir(at.Data)); err != nil || len(left) != 1 {
			t.Errorf("%s: beside the data folder are %v, %v", name, left, err)
		}
	}
}

// A backup of a workspace that is not there, beside its own files that are, is an error.
func TestABackupWithoutItsWorkspace(t *testing.T) {
	at := apart(t, nil, map[string]string{"SOUL.md": "x"})
	at.Dir = filepath.Join(at.Dir, "none")
	var b bytes.Buffer
	err := Write(t.Context(), &b, Options{Place: at, Named: []string{"a.yaml"}})
	if !errors.Is(err, os.ErrNotExist) || b.Len() > 0 {
		t.Errorf("%d bytes, %v", b.Len(), err)
	}
}

// Files of agents that change while a backup is made, in each way, do not end it: what can be copied is in it, as long as
// its entry says, and the rest is named.
func TestFilesOfAgentsThatChange(t *testing.T) {
	files := home + "/cron/watch/files/"
	long := strings.Repeat("x", 2*short)
	root := filled(t, map[string]string{files + "grows.log": long, files + "short.log": long, files + "gone": long,
		files + "replaced": long, files + "linked": long, home + "/auth.json": strings.Repeat("secret", short)})
	at := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	o := Options{Place: workspace.At(root), Private: []string{home + "/auth.json"}}
	s := &snapshot{opts: o, home: at(home), names: map[string]bool{}}
	spool, err := os.CreateTemp(t.TempDir(), "")
	must(t, err)
	defer spool.Close()
	s.spool = spool
	must(t, s.walk())
	must(t, os.WriteFile(at(files+"grows.log"), []byte(long+"more"), 0o600))
	must(t, os.Truncate(at(files+"short.log"), 10))
	must(t, os.Remove(at(files+"gone")))
	must(t, os.WriteFile(at(files+"new"), []byte(strings.Repeat("y", 3*short)), 0o600))
	must(t, os.Rename(at(files+"new"), at(files+"replaced")))
	must(t, os.Remove(at(files+"linked")))
	must(t, os.Link(at(home+"/auth.json"), at(files+"linked")))
	must(t, s.later())
	must(t, os.Truncate(at(files+"grows.log"), 1)) // it is copied already

	var archive bytes.Buffer
	must(t, s.write(t.Context(), tarball.NewWriter(&archive)))
	sizes := map[string]int64{}
	for _, f := range s.files {
		sizes[f.Name] = f.Size
	}
	want := map[string]int64{files + "grows.log": 2*short + 4, files + "short.log": 10, files + "replaced": 3 * short}
	if !maps.Equal(sizes, want) {
		t.Errorf("the backup has %v, want %v", sizes, want)
	}
	for _, name := range []string{"gone", "linked"} {
		if !slices.ContainsFunc(s.leftOut, func(l string) bool { return strings.HasPrefix(l, files+name+": ") }) {
			t.Errorf("%s is not named among what is left out: %q", name, s.leftOut)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
