package guard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"daycare/engine/beneath"
	"daycare/engine/sensitive"
)

// obeyed are the names in a repository of what git runs, of what tells it what to run,
// and of what leads it to such things elsewhere.
var obeyed = []string{"config", "config.worktree", "hooks", "commondir", "gitdir", "modules", "worktrees"}

// inner are those that a repository has.
func inner(repository string) (items []Item) {
	for _, name := range obeyed {
		if path := filepath.Join(repository, name); exists(path) {
			items = append(items, Item{path, Inner})
		}
	}

	if path := filepath.Join(repository, "rebase-merge"); exists(path) {
		items = append(items, Item{path, Unfinished})
	}

	return items
}

// goesOnWithProgram reports whether "git rebase --continue" would run a program that the
// list of an unfinished rebase names, or whether that cannot be judged.
func goesOnWithProgram(rebase string) bool {
	list, err := beneath.ReadFile(rebase, "git-rebase-todo", maxConfig)
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	return err != nil || slices.ContainsFunc(strings.Split(string(list), "\n"), func(line string) bool {
		word, _, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(line), "\t", " "), " ")
		return word == "x" || word == "exec"
	})
}

// makeHooks makes the folder of hooks that a repository does not have, as git does: what
// is not there cannot be kept from changes.
func makeHooks(top, hooks string) error {
	root, err := os.OpenRoot(top)
	if err != nil {
		return err
	}
	defer root.Close()
	rel, err := filepath.Rel(top, hooks)
	if err != nil {
		return err
	}

	return root.Mkdir(rel, 0o755)
}

// harmless returns nil for a repository in which git runs nothing, whoever uses it: as
// git init and git clone make it. Whatever is not known to be so is not.
func harmless(repository string) error {
	root, err := os.OpenRoot(repository)
	if err != nil {
		return err
	}
	defer root.Close()

	for _, name := range obeyed {
		if name == "config" || name == "hooks" {
			continue
		}
		if _, err := root.Lstat(name); err == nil {
			return fmt.Errorf("it has %s", name)
		}
	}

	if err := samplesOnly(root); err != nil {
		return err
	}
	config, _, err := beneath.Read(root, "config", maxConfig)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("its config cannot be judged: %w", err)
	}

	return plain(string(config))
}

// namedBy is what exists in a work tree of that which its repository names to be run, and
// that the table does not have anyway.
func namedBy(tree string, table sensitive.Table) (items []Item) {
	for _, path := range sensitive.GitNames(tree) {
		anchor := sensitive.Anchor(tree, path, table.Later)
		if exists(path) && (anchor == "" || isGit(anchor)) { // in a repository the rest can be written
			items = append(items, Item{path, Later})
		}
	}

	return items
}

// maxConfig bounds what is read of a file of git, in bytes.
const maxConfig = 64 << 10

// samplesOnly is nil if there are no hooks, or those that git brings as examples.
func samplesOnly(root *os.Root) error {
	info, err := root.Lstat("hooks")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil || !info.IsDir() {
		return errors.New("its hooks are not a folder")
	}

	f, err := root.Open("hooks")
	if err != nil {
		return err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return err
	}

	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".sample") {
			return fmt.Errorf("it has the hook %s", e.Name())
		}
	}

	return nil
}

// harmlessKeys are the settings of a repository that name no program, by section.
var harmlessKeys = map[string]string{
	"core":       " repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol ",
	"remote":     " url fetch ",
	"branch":     " remote merge ",
	"user":       " name email ",
	"extensions": " objectformat refstorage ",
	"init":       " defaultbranch ",
	"commit":     " gpgsign ",
}

// plain is nil for a config that says nothing else, in the form in which git itself
// writes it: a section or a setting a line, nothing quoted or continued.
func plain(config string) error {
	section := ""
	for line := range strings.Lines(config) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case strings.ContainsAny(line, "\\\x00\r"):
			return fmt.Errorf("its config has %q", line)
		case line[0] == '[':
			name, ok := strings.CutSuffix(line[1:], "]")
			name, sub, quoted := strings.Cut(name, ` "`)
			sub, closed := strings.CutSuffix(sub, `"`)
			section = strings.ToLower(name)
			if !ok || quoted && (!closed || strings.ContainsAny(sub, `"]`)) || harmlessKeys[section] == "" {
				return fmt.Errorf("its config has the section %q", line)
			}
		default:
			key, value, ok := strings.Cut(line, "=")
			key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
			if !ok || !strings.Contains(harmlessKeys[section], " "+key+" ") || strings.Contains(value, "::") ||
				strings.HasPrefix(value, "-") {
				return fmt.Errorf("its config has the setting %q", line)
			}
			if section == "commit" && value != "false" {
				return fmt.Errorf("its config has the setting %q", line)
			}
		}
	}

	return nil
}

// putAsideIfThere is putAside for what someone can remove at any moment: then it returns "".
func putAsideIfThere(top string, item Item) (aside string, err error) {
	const tries = 100 // it can be made again just as often
	for range tries {
		if aside, err = putAside(top, item); !errors.Is(err, os.ErrNotExist) {
			return aside, err
		}
		if !exists(item.Path) {
			return "", nil
		}
	}

	return "", err
}

// putAside renames an item, so that nothing finds it by its name any more, and returns
// the new path. Of a repository it renames HEAD, too: without HEAD it is not a repository, whatever
// it is called. A sealed folder is opened, to be looked into.
func putAside(top string, item Item) (string, error) {
	root, err := os.OpenRoot(top)
	if err != nil {
		return "", err
	}
	defer root.Close()
	rel, err := filepath.Rel(top, item.Path)
	if err != nil {
		return "", err
	}
	if item.Kind == Sealed {
		return item.Path, root.Chmod(rel, 0o700)
	}
	if info, err := root.Lstat(rel); err == nil && info.IsDir() {
		if _, err := root.Lstat(filepath.Join(rel, "HEAD")); err == nil {
			if _, err := rename(root, filepath.Join(rel, "HEAD")); err != nil {
				return "", err
			}
		}
		if item.Kind == Repository && !isGit(rel) {
			return item.Path, nil
		}
	}

	to, err := rename(root, rel)
	return filepath.Join(top, to), err
}

func rename(root *os.Root, rel string) (string, error) {
	for n := 1; ; n++ {
		to := sensitive.Aside(rel, n)
		if _, err := root.Lstat(to); err == nil && n < 1000 {
			continue
		}
		return to, root.Rename(rel, to)
	}
}

// A Vector is something by which git runs a program, or is led to where one is named.
type Vector struct{ Path, Why string }

// Vectors are those beneath a folder that git itself seldom makes, or that a command
// could not have left there. A configuration and hooks of a repository called .git are
// none: users have these.
func Vectors(root string, table sensitive.Table) (all []Vector) {
	items, _ := (&tree{folders: map[string]folder{}}).look(root, table, nil) // as far as it can be looked into
	for _, item := range items {
		switch name := filepath.Base(item.Path); {
		case item.Kind == Inner && name == "commondir" && isGit(filepath.Dir(item.Path)):
			all = append(all, Vector{item.Path, "git reads the configuration of another folder, which this names"})
		case item.Kind == Later && isGit(item.Path) && !ofGit(item.Path):
			all = append(all, Vector{item.Path, "git takes a folder for its own that this leads to, and runs what its configuration names"})
		case item.Kind == Repository && !isGit(item.Path) && !isGit(filepath.Dir(filepath.Dir(item.Path))) && harmless(item.Path) != nil:
			all = append(all, Vector{item.Path,
				fmt.Sprintf("git takes this folder for a repository, and would run what it says (%v)", harmless(item.Path))})
		}
	}

	return all
}

// ofGit reports whether a file .git is one as git writes it for its submodules and work
// trees.
func ofGit(path string) bool {
	data, err := beneath.ReadFile(filepath.Dir(path), filepath.Base(path), maxConfig)
	return err == nil && (strings.Contains(string(data), "/.git/modules/") || strings.Contains(string(data), "/.git/worktrees/"))
}
