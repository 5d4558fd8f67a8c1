package files

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"daycare/tools"
)

// maxFound is how many names glob returns.
const maxFound = 200

type globArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
}

type found struct {
	path string
	at   time.Time
}

// maxWays is how many patterns without alternatives one may stand for: each is tried with every name.
const maxWays = 1000

// usable reports whether a pattern is valid and no name takes long to be matched with it.
func usable(pattern string) bool {
	if len(pattern) > maxPattern || !doublestar.ValidatePattern(pattern) {
		return false
	}
	ways, open := 1, []int{}
	for i := 0; i < len(pattern); i++ {
		last := len(open) - 1
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case c == '{':
			open = append(open, 1)
		case c == ',' && last >= 0:
			open[last]++
		case c == '}' && last >= 0:
			if ways, open = ways*open[last], open[:last]; ways > maxWays {
				return false
			}
		}
	}

	return true
}

// maxPattern bounds a pattern, in bytes.
const maxPattern = 4096

func glob(ctx context.Context, r *reach, a globArgs) (tools.Result, error) {
	if !usable(a.Pattern) {
		return tools.Errorf("the pattern %q is not valid; ** is any folders, "+
			"* any name, ? one character, [a-z] a set, {a,b} either, which may stand for %d patterns at most", a.Pattern, maxWays), nil
	}
	start, pattern := a.start()
	p, err := r.locate(start, false)
	if err != nil {
		return tools.Result{}, err
	}
	defer p.close()
	if p.info == nil || !p.info.IsDir() {
		return tools.Result{}, fmt.Errorf("no such folder: %s", r.shown(p.abs))
	}

	var all []found
	full, err := r.walk(ctx, p, false, func(v visit) error {
		if doublestar.MatchUnvalidated(pattern, v.rel) {
			all = append(all, found{filepath.Join(p.abs, filepath.FromSlash(v.rel)), v.info.ModTime()})
		}
		return nil
	})
	if err != nil {
		return tools.Result{}, err
	}

	slices.SortStableFunc(all, func(a, b found) int { return b.at.Compare(a.at) })
	return tools.Result{Text: foundText(r, all, full)}, nil
}

// start is the folder to begin at, and what is matched below it. What stands before the
// first wildcard may also lead out, so it is judged as any path is.
func (a globArgs) start() (path, pattern string) {
	base, pattern := doublestar.SplitPattern(filepath.ToSlash(a.Pattern))
	if filepath.IsAbs(base) {
		return base, pattern
	}

	return filepath.Join(a.Path, base), pattern
}

func foundText(r *reach, all []found, full bool) string {
	var b strings.Builder
	for _, f := range all[:min(len(all), maxFound)] {
		b.WriteString(printable(r.shown(f.path)) + "\n")
	}

	switch {
	case len(all) == 0:
		b.WriteString("[no file matches]\n")
	case len(all) > maxFound:
		fmt.Fprintf(&b, "[the newest %d of %d; make the pattern narrower]\n", maxFound, len(all))
	}

	if !full {
		b.WriteString(stoppedEarly)
	}

	return b.String()
}

const stoppedEarly = "[stopped early: too many files; name a folder further down]\n"
