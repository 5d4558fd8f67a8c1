package movein

import "daycare/engine/lazyregexp"

// Notes of a day, as other programs name them: 2026-11-20.md, and 202611/20261120.md.
var (
	dashedDay = lazyregexp.New(`^(?:.*/)?(\d{4}-\d{2}-\d{2})\.md$`)
	plainDay  = lazyregexp.New(`^\d{6}/(\d{4})(\d{2})(\d{2})\.md$`)
)

// noteName is where a note goes in the memory: notes of a day go to daily/.
func noteName(rel string) string {
	if m := plainDay.FindStringSubmatch(rel); m != nil {
		return "daily/" + m[1] + "-" + m[2] + "-" + m[3] + ".md"
	}
	if m := dashedDay.FindStringSubmatch(rel); m != nil {
		return "daily/" + m[1] + ".md"
	}

	return rel
}
