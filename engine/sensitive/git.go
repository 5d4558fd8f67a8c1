package sensitive

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"daycare/engine/beneath"
)

// harmlessSections are sections of a git configuration whose values git never runs.
var harmlessSections = []string{"user", "author", "committer", "remote", "branch", "submodule", "url", "color", "lfs", "gc"}

// Bounds of what is read of git: of a file, in bytes, and how many files of a repository, and of the user.
const (
	maxConfig  = 64 << 10
	maxConfigs = 50
)

// GitNames returns the paths in a work tree that its repository, or the configuration of the user, names as something
// to run or to read as configuration: a folder of hooks, a file to include, a program of a filter or an
// alias, and what a link among the hooks leads to. Git runs what is there as it runs its own
// hooks, so it is as much in the table as they are. Folders of hooks need not exist.
func GitNames(tree string) (paths []string) {
	own, common := gitFolders(tree)
	n := &naming{tree: tree}
	for _, path := range []string{filepath.Join(common, "config"), filepath.Join(own, "config.worktree")} {
		n.read(path)
	}
	n.everywhere, n.files = true, 0 // however many files the repository has
	for _, path := range gitOfUsers(common) {
		n.read(path)
	}
	for _, hooks := range append(slices.Clone(n.paths), filepath.Join(common, "hooks")) {
		n.paths = append(n.paths, behind(tree, hooks)...)
	}

	return n.paths
}

// gitOfUsers are the files that configure git in all repositories, if there is one in this folder.
// https://git-scm.com/docs/git-config#FILES
func gitOfUsers(repository string) (paths []string) {
	if info, err := os.Stat(repository); err != nil || !info.IsDir() {
		return nil
	}
	paths = append(paths, "/etc/gitconfig")
	home, err := os.UserHomeDir()
	if err == nil {
		paths = append(paths, filepath.Join(home, ".gitconfig"))
	}
	if dir := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		paths = append(paths, filepath.Join(dir, "git", "config"))
	} else if err == nil {
		paths = append(paths, filepath.Join(home, ".config", "git", "config"))
	}

	return paths
}

// inRepository are the entries of a repository that make it one or that git obeys, beside
// HEAD.
var inRepository = []string{"objects", "refs", "config", "config.worktree", "commondir", "gitdir", "hooks", "modules", "worktrees"}

// GitAnchor returns what a right must name to reach path from root, beside what Anchor finds by
// names: a folder that is a repository without being called .git, or becomes one with path, or
// what the repository of a folder on the way names to be run. "": none.
func GitAnchor(root, path string) string {
	rel, err := filepath.Rel(root, path)
	if err != nil || rel == "." || !filepath.IsLocal(rel) {
		return ""
	}

	for at := path; at != root; at = filepath.Dir(at) {
		dir := filepath.Dir(at)
		if dir != root && slices.Contains(inRepository, Fold(filepath.Base(at))) {
			if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err == nil {
				return dir
			}
		}
		for _, name := range GitNames(dir) {
			if path == name || strings.HasPrefix(path, name+string(filepath.Separator)) {
				return name
			}
		}
	}

	return ""
}

// gitFolders are the folders of the repository of a work tree: its own one, and that which it
// shares with other work trees.
func gitFolders(tree string) (own, common string) {
	leads := func(from, name, prefix string) string {
		text, _ := beneath.ReadFile(from, name, maxConfig) // a folder, or not there
		to, ok := strings.CutPrefix(strings.TrimSpace(string(text)), prefix)
		switch to = strings.TrimSpace(to); {
		case !ok || to == "":
			return ""
		case filepath.IsAbs(to):
			return to
		}
		return filepath.Join(from, to)
	}

	if own = leads(tree, ".git", "gitdir:"); own == "" {
		own = filepath.Join(tree, ".git")
	}
	if common = leads(own, "commondir", ""); common == "" {
		common = own
	}

	return own, common
}

// A naming is what configurations name in a work tree.
type naming struct {
	tree  string
	paths []string
	files int // read of the repository, or of the user: at most maxConfigs

	// everywhere: they are for all repositories, so that a word such as a branch's name is not meant as a file here.
	everywhere bool
}

// read takes a file of a configuration, with those that it includes.
func (n *naming) read(path string) {
	if n.files++; n.files > maxConfigs { // they may include each other
		return
	}
	config, _ := beneath.Regular(path, maxConfig) // of a longer one the beginning; else nothing is named
	n.take(filepath.Dir(path), string(config))
}

// take takes a configuration in the folder base.
func (n *naming) take(base, config string) {
	section := ""
	for line := range strings.Lines(config) {
		line = strings.TrimSpace(line)
		if name, rest, closed := strings.Cut(line, "]"); strings.HasPrefix(line, "[") && closed {
			section, _, _ = strings.Cut(strings.ToLower(strings.TrimLeft(name, "[")), " ")
			line = strings.TrimSpace(rest) // a setting may follow on the same line
		}

		key, value, ok := strings.Cut(line, "=")
		key, value = strings.ToLower(strings.TrimSpace(key)), uncommented(value)
		switch {
		case !ok || slices.Contains(harmlessSections, section):
		case section == "core" && key == "hookspath":
			n.add(n.tree, value, true)
		case section == "include" || section == "includeif":
			n.add(base, value, true)
			n.read(meant(base, unquoted(value)))
		default:
			for word := range strings.FieldsSeq(value) {
				if !n.everywhere || strings.Contains(word, "/") {
					n.add(n.tree, word, false)
				}
			}
		}
	}
}

// add adds a path, as a configuration names it; missing: also one of nothing, or of a folder.
func (n *naming) add(from, name string, missing bool) {
	path := inTree(n.tree, from, unquoted(name))
	if info, err := os.Lstat(path); path != "" && (missing || err == nil && !info.IsDir()) && !slices.Contains(n.paths, path) {
		n.paths = append(n.paths, path)
	}
}

// unquoted is a value without what is around a name in it.
func unquoted(value string) string { return strings.Trim(value, `"'!;`) }

// meant is the path that a name in the folder from means.
func meant(from, name string) string {
	if below, ok := strings.CutPrefix(name, "~/"); ok {
		from, _ = os.UserHomeDir() // "" leads nowhere
		name = below
	}
	if filepath.IsAbs(name) {
		return name
	}

	return filepath.Join(from, name)
}

// uncommented is the value of a setting without what follows as a comment.
func uncommented(value string) string {
	quoted := false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '#' || c == ';'):
			return strings.TrimSpace(value[:i])
		}
	}

	return strings.TrimSpace(value)
}

// inTree is the path that a name means, if that is in the work tree and is not guarded with
// the repository; else "".
func inTree(tree, from, name string) string {
	name = meant(from, name)
	rel, err := filepath.Rel(tree, filepath.Clean(name))
	if err != nil || !filepath.IsLocal(rel) { // links may lead back
		rel, err = filepath.Rel(beneath.Real(tree), beneath.Real(name))
	}
	if err != nil || rel == "." || !filepath.IsLocal(rel) {
		return ""
	}

	names := strings.Split(rel, string(filepath.Separator))
	if Fold(names[0]) == ".git" && (len(names) == 1 || slices.Contains([]string{"hooks", "modules", "worktrees"}, Fold(names[1]))) {
		return ""
	}

	return filepath.Join(tree, rel)
}

// behind are the files in the work tree that links in a folder of hooks lead to.
func behind(tree, hooks string) (paths []string) {
	dir, err := beneath.Root(hooks)
	if err != nil {
		return nil
	}
	defer dir.Close()
	f, err := dir.Open(".")
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.ReadDir(-1) // as far as it can be read

	for _, e := range entries {
		if e.Type()&os.ModeSymlink == 0 {
			continue
		}
		path := inTree(tree, hooks, beneath.Real(filepath.Join(hooks, e.Name())))
		if info, err := os.Lstat(path); path != "" && err == nil && info.Mode().IsRegular() {
			paths = append(paths, path)
		}
	}

	return paths
}
