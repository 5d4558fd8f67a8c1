package sensitive

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// harmlessSections are sections of a git configuration whose values git never runs.
var harmlessSections = []string{"user", "author", "committer", "remote", "branch", "submodule", "url", "color", "lfs", "gc"}

// GitNames returns the paths in a work tree that the configuration of its repository names
// as something to run or to read as configuration: a folder of hooks, a file to include, a
// program of a filter or an alias. Git runs what is there as it runs its own hooks, so it is
// as much in the table as they are. Folders of hooks need not exist.
func GitNames(tree, config string) (paths []string) {
	section := ""
	add := func(base, name string, missing bool) {
		name = strings.Trim(name, `"'!;`)
		if !filepath.IsAbs(name) {
			name = filepath.Join(base, name)
		}
		rel, err := filepath.Rel(tree, filepath.Clean(name))
		if err != nil || rel == "." || !filepath.IsLocal(rel) || Fold(strings.SplitN(rel, string(filepath.Separator), 2)[0]) == ".git" {
			return // outside, or guarded with the repository
		}

		path := filepath.Join(tree, rel)
		if info, err := os.Lstat(path); (missing || err == nil && !info.IsDir()) && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	for line := range strings.Lines(config) {
		line = strings.TrimSpace(line)
		if name, rest, closed := strings.Cut(line, "]"); strings.HasPrefix(line, "[") && closed {
			section, _, _ = strings.Cut(strings.ToLower(strings.TrimLeft(name, "[")), " ")
			line = strings.TrimSpace(rest) // a setting may follow on the same line
		}

		key, value, ok := strings.Cut(line, "=")
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		switch {
		case !ok || slices.Contains(harmlessSections, section):
		case section == "core" && key == "hookspath":
			add(tree, value, true)
		case section == "include" || section == "includeif":
			add(filepath.Join(tree, ".git"), value, true)
		default:
			for word := range strings.FieldsSeq(value) {
				add(tree, word, false)
			}
		}
	}

	return paths
}
