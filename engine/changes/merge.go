package changes

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
)

// A Conflict says where two changes of a text cannot be merged.
type Conflict struct{ Line int } // in the text that both began with

func (c *Conflict) Error() string {
	return fmt.Sprintf("both sides changed line %d, or lines beside it", c.Line)
}

// Merge makes both changes of a text in one, unless they touch the same lines or neighbouring ones.
// Changes that are the same on both sides are made once. Errors: *Conflict.
func Merge(base, ours, theirs string) (string, error) {
	for _, text := range []string{base, ours, theirs} {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return "", fmt.Errorf("it is not text")
		}
	}
	mine, other := udiff.Lines(base, ours), udiff.Lines(base, theirs)
	for _, m := range mine {
		for _, o := range other {
			if m != o && m.Start <= o.End && o.Start <= m.End {
				return "", &Conflict{strings.Count(base[:max(m.Start, o.Start)], "\n") + 1}
			}
		}
	}
	both, _ := udiff.Merge(mine, other) // which do not overlap

	return udiff.Apply(base, both)
}
