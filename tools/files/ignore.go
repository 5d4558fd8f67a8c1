package files

import (
	"io"
	"os"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"daycare/engine/beneath"
)

// ignoreRules are those of one .gitignore.
type ignoreRules struct {
	base  string // its folder, from where the walk began
	rules []ignoreRule
}

type ignoreRule struct {
	pattern string // of doublestar, from base
	not     bool   // takes an earlier rule back
	folders bool   // counts for folders only
}

// maxIgnore bounds a .gitignore, in bytes.
const maxIgnore = 64 << 10

// readIgnore reads the .gitignore of a folder; what cannot be read has no rules.
func readIgnore(dir *os.Root, base string) ignoreRules {
	none := ignoreRules{}
	info, err := dir.Lstat(".gitignore")
	if err != nil {
		return none
	}

	f, _ := beneath.Open(dir, ".gitignore", info) // of none nothing is read
	defer f.Close()
	data, _ := io.ReadAll(io.LimitReader(f, maxIgnore))

	return ignoreRules{base, parseIgnore(string(data))}
}

func parseIgnore(text string) []ignoreRule {
	var rules []ignoreRule
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		var r ignoreRule
		if line, r.not = strings.CutPrefix(line, "!"); line == "" || line[0] == '#' {
			continue
		}

		line, r.folders = strings.CutSuffix(line, "/")
		switch {
		case strings.HasPrefix(line, "/"):
			r.pattern = line[1:]
		case strings.Contains(line, "/"):
			r.pattern = line
		default:
			r.pattern = "**/" + line // a bare name counts at any depth
		}

		if r.pattern != "" && usable(r.pattern) {
			rules = append(rules, r)
		}
	}

	return rules
}

// ignored reports what the .gitignore files on the way say of path; the last
// rule that fits counts. A file below an ignored folder is never asked for.
func ignored(all []ignoreRules, path string, isDir bool) bool {
	out := false
	for _, set := range all {
		rel := strings.TrimPrefix(strings.TrimPrefix(path, set.base), "/")
		for _, r := range set.rules {
			if (!r.folders || isDir) && doublestar.MatchUnvalidated(r.pattern, rel) {
				out = !r.not
			}
		}
	}

	return out
}
