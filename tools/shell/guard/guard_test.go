package guard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"daycare/engine/sensitive"
)

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestConfigsThatNameNoProgram(t *testing.T) {
	fine := "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = " +
		"true\n[remote \"origin\"]\n\turl = https://example.com/x.git\n" +
		"\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = " +
		"refs/heads/main\n[user]\n\tname = A B\n# comment\n; comment\n"
	for config, want := range map[string]bool{
		"": true, fine: true, "[CORE]\n\tBare = true\n": true, "[core]\n\tfsmonitor = x\n": false,
		"[core] bare = true\n": false, "[core]\n\thooksPath = x\n": false,
		"[include]\n\tpath = x\n": false, "[includeIf \"gitdir:/\"]\n\tpath = x\n": false,
		"[core]\n\tbare = true \\\n\tfsmonitor = x\n": false, "[core]\r\tfsmonitor = x\n": false,
		"[alias]\n\tst = !x\n": false, "[filter \"x\"]\n\tclean = x\n": false,
		"[remote \"x\"]\n\turl = ext::sh -c x\n": false, "[remote \"x\"]\n\turl = -x\n": false,
		"[remote \"x\"]\n\tuploadpack = x\n": false, "bare = true\n": false, "[core]\n\tbare\n": false,
		"[extensions]\n\tworktreeConfig = true\n": false, "[core \"x\"y]\n": false,
		"\ufeff[core]\n\tbare = true\n": false, "[core]\n\tworktree = /\n": false, "[core]\n\tsshCommand = x\n": false,
		"[diff]\n\texternal = x\n": false, "[gpg]\n\tprogram = x\n": false,
		"[core.x]\n\tfsmonitor = x\n": false, "[CORE]\n\tFsMonitor = x\n": false, "[core\x00]\n": false,
		"[commit]\n\tgpgsign = true\n": false,
	} {
		if err := plain(config); (err == nil) != want {
			t.Errorf("%q: %v, want harmless %v", config, err, want)
		}
	}
}

// What was looked at a moment ago is looked at again when it changed, however fast.
func TestLookSeesEveryChange(t *testing.T) {
	root, table := t.TempDir(), sensitive.With()
	tr := &tree{folders: map[string]folder{}}
	write(t, root+"/a/b/file", "x")
	if found, _ := tr.look(root, table, nil); len(found) > 0 {
		t.Fatalf("%v", found)
	}

	for i := range 200 {
		path := fmt.Sprintf("%s/a/b/.vscode%d", root, i)
		hidden := filepath.Join(root, "a", "b", ".vscode")
		write(t, path+"/tasks.json", "x")
		if err := os.Rename(path, hidden); err != nil {
			t.Fatal(err)
		}
		if found, _ := tr.look(root, table, nil); !slices.Contains(found, Item{hidden, Later}) {
			t.Fatalf("change %d was not seen: %v", i, found)
		}
		if err := os.RemoveAll(hidden); err != nil {
			t.Fatal(err)
		}
		if found, _ := tr.look(root, table, nil); len(found) > 0 {
			t.Fatalf("change %d back was not seen: %v", i, found)
		}
	}
}

// What a user makes while no command runs stays, also when commands run later, and what
// daycare made for him meanwhile.
func TestWhatIsOfAPersonStays(t *testing.T) {
	root := t.TempDir()
	g := New(sensitive.With())
	first, _, _ := g.Begin(nil, []string{root}, nil, []string{root})
	if held := first.End(); len(held) > 0 {
		t.Fatal(held)
	}

	write(t, root+"/.envrc", "mine")
	second, found, _ := g.Begin(nil, []string{root}, nil, []string{root})
	if !slices.Contains(found, Item{root + "/.envrc", Later}) {
		t.Errorf("what is there is not protected: %v", found)
	}
	third, _, _ := g.Begin(nil, []string{root}, nil, []string{root})
	g.Accept(root + "/sub/.vscode/tasks.json")
	write(t, root+"/sub/.vscode/tasks.json", "allowed")
	write(t, root+"/sub/.npmrc", "not allowed")
	held := append(second.End(), third.End()...)
	if len(held) != 1 || held[0].Aside != root+"/sub/.npmrc.held" || !exists(root+"/.envrc") || !exists(root+"/sub/.vscode/tasks.json") {
		t.Errorf("%+v", held)
	}

	(*Watch)(nil).End()
}

// A link is known by where it leads: one with its inode, which a file system gives away again, another link on the way, and
// a file where there was none are something new.
func TestALinkIsKnownByWhereItLeads(t *testing.T) {
	for name, way := range map[string]struct {
		links map[string]string // by their paths
		do    func(root string) error
		stays bool
	}{
		"as it was":     {map[string]string{"CLAUDE.md": "real"}, func(string) error { return nil }, true},
		"leads nowhere": {map[string]string{"CLAUDE.md": "nothing"}, func(string) error { return nil }, true},
		"another link, perhaps with its inode": {map[string]string{"CLAUDE.md": "real"}, func(root string) error {
			return errors.Join(os.Remove(root+"/CLAUDE.md"), os.Symlink("other", root+"/CLAUDE.md"))
		}, false},
		"another link on the way": {map[string]string{"CLAUDE.md": "between", "between": "real"}, func(root string) error {
			return errors.Join(os.Remove(root+"/between"), os.Symlink("other", root+"/between"))
		}, false},
		"another folder on the way": {map[string]string{"CLAUDE.md": "dir/file", "dir": "a"}, func(root string) error {
			return errors.Join(os.Remove(root+"/dir"), os.Symlink("b", root+"/dir"))
		}, false},
		"what it led to in vain": {map[string]string{"CLAUDE.md": "nothing"}, func(root string) error {
			return os.WriteFile(root+"/nothing", []byte("x"), 0o644)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			root, g := t.TempDir(), New(sensitive.With())
			for _, file := range []string{"real", "other", "a/file", "b/file"} {
				write(t, filepath.Join(root, file), "x")
			}
			for at, target := range way.links {
				if err := os.Symlink(target, filepath.Join(root, at)); err != nil {
					t.Fatal(err)
				}
			}

			w, _, err := g.Begin(nil, []string{root}, nil, nil)
			if err = errors.Join(err, way.do(root)); err != nil {
				t.Fatal(err)
			}
			held := w.End()
			if _, err := os.Lstat(root + "/CLAUDE.md"); (err == nil) != way.stays || (len(held) == 0) != way.stays {
				t.Errorf("it is there: %v, want %v; put aside: %+v", err == nil, way.stays, held)
			}
		})
	}
}

// What runs as a hook is kept, wherever the repository of a work tree is and however it names it.
func TestWhatRunsAsAHookIsKept(t *testing.T) {
	const config = "[core]\n\thooksPath = our/hooks # of all\n"
	for name, way := range map[string]struct {
		files, links map[string]string
		runs         string
	}{
		"named with a comment": {map[string]string{".git/config": config, "our/hooks/pre-commit": ""}, nil, "our/hooks"},
		"in a long configuration": {map[string]string{".git/config": config + strings.Repeat("# more\n", 10_000),
			"our/hooks/pre-commit": ""}, nil, "our/hooks"},
		"in another work tree": {map[string]string{".git/config": config, ".git/worktrees/w/commondir": "../..\n",
			"w/.git": "gitdir: ../.git/worktrees/w\n", "w/our/hooks/pre-commit": ""}, nil, "w/our/hooks"},
		"of one work tree": {map[string]string{".git/worktrees/w/config.worktree": config, ".git/worktrees/w/commondir": "../..\n",
			"w/.git": "gitdir: ../.git/worktrees/w\n", "w/our/hooks/pre-commit": ""}, nil, "w/our/hooks"},
		"of a module": {map[string]string{".git/modules/m/config": config, "m/.git": "gitdir: ../.git/modules/m\n",
			"m/our/hooks/pre-commit": ""}, nil, "m/our/hooks"},
		"by a link to the repository": {map[string]string{"repo/config": config, "our/hooks/pre-commit": ""},
			map[string]string{".git": "repo"}, "our/hooks"},
		"by a link among the hooks": {map[string]string{".git/hooks/README": "", "scripts/check": ""},
			map[string]string{".git/hooks/pre-commit": "../../scripts/check"}, "scripts/check"},
		"by a link in a folder of hooks": {map[string]string{".git/config": config, "our/hooks/x": "", "scripts/check": ""},
			map[string]string{"our/hooks/pre-commit": "../../scripts/check"}, "scripts/check"},
		"beside the hooks": {map[string]string{".git/config": "[core]\n\thooksPath = .git/own\n", ".git/own/pre-commit": ""}, nil,
			".git/own"},
	} {
		t.Run(name, func(t *testing.T) {
			root, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			for file, text := range way.files {
				write(t, filepath.Join(root, file), text)
			}
			for at, target := range way.links {
				if err := os.Symlink(target, filepath.Join(root, at)); err != nil {
					t.Fatal(err)
				}
			}

			w, found, err := New(sensitive.With()).Begin(nil, []string{root}, nil, nil)
			if err != nil || !slices.Contains(found, Item{filepath.Join(root, way.runs), Later}) {
				t.Errorf("it can be changed: %v, %v", found, err)
			}
			if held := w.End(); len(held) > 0 {
				t.Errorf("what was there is put aside: %+v", held)
			}
		})
	}
}

// What a hook comes to lead to while a command runs is put aside.
func TestAHookThatIsLedElsewhere(t *testing.T) {
	root := t.TempDir()
	write(t, root+"/.git/hooks/README", "")
	write(t, root+"/scripts/check", "")
	for at, target := range map[string]string{".git/hooks/pre-commit": "../../scripts/link", "scripts/link": "check",
		".git/hooks/pre-push": "../../scripts/nothing"} {
		if err := os.Symlink(target, filepath.Join(root, at)); err != nil {
			t.Fatal(err)
		}
	}

	w, _, err := New(sensitive.With()).Begin(nil, []string{root}, nil, nil)
	write(t, root+"/scripts/evil", "")
	write(t, root+"/scripts/nothing", "")
	if err = errors.Join(err, os.Remove(root+"/scripts/link"), os.Symlink("evil", root+"/scripts/link")); err != nil {
		t.Fatal(err)
	}
	held := w.End()
	if len(held) != 2 || exists(root+"/scripts/evil") || exists(root+"/scripts/nothing") || !exists(root+"/scripts/check") {
		t.Errorf("put aside: %+v", held)
	}
}

// A repository that a command made is judged again at the end of each command that still
// runs: one of them may have changed it since.
func TestARepositoryThatWasHarmlessIsJudgedAgain(t *testing.T) {
	root := t.TempDir()
	g := New(sensitive.With())
	first, _, _ := g.Begin(nil, []string{root}, nil, nil)
	second, _, _ := g.Begin(nil, []string{root}, nil, nil)
	repository := root + "/new/.git"
	write(t, repository+"/HEAD", "ref: refs/heads/main\n")
	write(t, repository+"/config", "[core]\n\tbare = false\n")

	for _, dir := range []string{"/objects", "/refs", "/hooks"} {
		if err := os.MkdirAll(repository+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if held := first.End(); len(held) > 0 {
		t.Fatalf("a harmless repository was put aside: %+v", held)
	}

	write(t, repository+"/config", "[core]\n\tfsmonitor = evil\n")
	held := second.End()
	if len(held) != 1 || held[0].Path != repository || exists(repository) {
		t.Errorf("the second command changed it, and it stayed: %+v", held)
	}
}

// BenchmarkLook is what a command pays for the folders it may write, twice.
func BenchmarkLook(b *testing.B) {
	for _, folders := range []int{100, 2_000, 20_000} {
		root, table := b.TempDir(), sensitive.With()
		for i := range folders {
			write(b, fmt.Sprintf("%s/%d/%d/file", root, i/100, i), "x")
		}
		tr := &tree{folders: map[string]folder{}}
		b.Run(fmt.Sprintf("%d folders", folders), func(b *testing.B) {
			for b.Loop() {
				tr.look(root, table, nil)
			}
		})
	}
}

// TestOneFolderHoldsUpNoOther: while one granted folder is looked into, which takes long if
// a command made many folders, commands of others begin and end.
func TestOneFolderHoldsUpNoOther(t *testing.T) {
	g, slow, other := New(sensitive.With()), t.TempDir(), t.TempDir()
	tr := g.use(slow)
	tr.mu.Lock() // as look does
	done := make(chan error)
	go func() {
		w, _, err := g.Begin([]string{other}, []string{other}, nil, nil)
		w.End()
		g.Accept(filepath.Join(other, ".envrc"))
		done <- err
	}()

	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("a command in another folder waits for it")
	}

	tr.mu.Unlock()
}

// TestTooManyFolders: where a command has made more folders than can be looked into no other
// is run, and the end of that one says so.
func TestTooManyFolders(t *testing.T) {
	defer func(n int) { maxFolders = n }(maxFolders)
	maxFolders = 10
	g, root := New(sensitive.With()), t.TempDir()
	w, _, err := g.Begin(nil, []string{root}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}

	for i := range 20 {
		if err := os.Mkdir(filepath.Join(root, strconv.Itoa(i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if held := w.End(); len(held) != 1 || !errors.Is(held[0].Err, ErrTooMany) {
		t.Errorf("the end of the command: %+v", held)
	}

	for _, read := range []bool{true, false} {
		roots := [2][]string{}
		roots[map[bool]int{true: 0, false: 1}[read]] = []string{root}
		if w, _, err := g.Begin(roots[0], roots[1], nil, nil); w != nil || !errors.Is(err, ErrTooMany) {
			t.Errorf("the next command: %v", err)
		}
	}

	os.RemoveAll(filepath.Join(root, "1"))
	for i := 10; i < 20; i++ {
		os.Remove(filepath.Join(root, strconv.Itoa(i)))
	}
	if w, _, err = g.Begin(nil, []string{root}, nil, nil); err != nil {
		t.Errorf("after some were removed: %v", err)
	}
	if held := w.End(); len(held) > 0 || g.trees[root].users != 0 || g.trees[root].running != 0 {
		t.Errorf("it is not at rest: %+v, %d, %d", held, g.trees[root].users, g.trees[root].running)
	}
}

// What is removed while the guard looks into its folder, or puts it aside, is not reported:
// it is gone.
func TestWhatIsRemovedMeanwhileIsNoItem(t *testing.T) {
	root := t.TempDir()
	if f := survey(filepath.Join(root, "gone"), node{}, sensitive.With()); len(f.items) > 0 {
		t.Errorf("a folder that is gone has %v", f.items)
	}
	for _, kind := range []Kind{Later, Repository, Sealed} {
		if aside, err := putAsideIfThere(root, Item{filepath.Join(root, "gone"), kind}); aside != "" || err != nil {
			t.Errorf("a %s that is gone is put aside as %q, %v", kind, aside, err)
		}
	}
}
