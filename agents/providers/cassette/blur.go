package cassette

import (
	"fmt"
	"regexp"
	"strings"

	"daycare/engine/lazyregexp"
)

// A Blur says what of a text is not the same in every run.
type Blur struct {
	// Names are texts with what stands for them in a tape: the path of a folder with $WORKSPACE.
	// The first that fits is replaced, so a path goes before one that it begins with.
	Names []Name
	// Ignore are patterns of what does not count: durations, dates. A tape has … in their place.
	Ignore []*regexp.Regexp
}

// A Name is a text, and what stands for it in a tape.
type Name struct{ Text, As string }

var (
	// times are the clock of the model: see agents/prompt.
	times = lazyregexp.New(`<time>[^<]*</time>`)
	// made are ids as daycare makes them: cuid2, 24 characters.
	made = lazyregexp.New(`\b[a-z][a-z0-9]{23}\b`)
	// numbered are ids in a tape.
	numbered = lazyregexp.New(`\$ID[0-9]+`)
)

// A view is how the texts of one request are blurred: ids are numbered as they appear in it.
type view struct {
	blur   Blur
	ids    map[string]string // what stands for an id
	actual map[string]string // the other way round
}

func newView(b Blur) *view {
	return &view{blur: b, ids: map[string]string{}, actual: map[string]string{}}
}

// text is a part of a request as a tape has it.
func (v *view) text(s string) string {
	return made.ReplaceAllStringFunc(v.named(v.blur.ignored(times.ReplaceAllString(s, "<time/>"))), v.id)
}

// answer is a part of an answer as a tape has it: all of it counts, and of the ids those that
// the request had.
func (v *view) answer(s string) string {
	return made.ReplaceAllStringFunc(v.named(s), func(id string) string {
		if as, known := v.ids[id]; known {
			return as
		}
		return id
	})
}

// ignored is a text without what does not count.
func (b Blur) ignored(s string) string {
	for _, pattern := range b.Ignore {
		s = pattern.ReplaceAllString(s, "…")
	}
	return s
}

// named has what stands for texts in their place.
func (v *view) named(s string) string {
	for _, n := range v.blur.Names {
		s = strings.ReplaceAll(s, n.Text, n.As)
	}
	return s
}

// id is what stands for an id. A word of letters alone is none.
func (v *view) id(id string) string {
	if !strings.ContainsAny(id, "0123456789") {
		return id
	}
	as, known := v.ids[id]
	if !known {
		as = fmt.Sprintf("$ID%d", len(v.ids)+1)
		v.ids[id], v.actual[as] = as, id
	}

	return as
}

// played is a part of a recorded answer as it would be in this run.
func (v *view) played(s string) string {
	s = numbered.ReplaceAllStringFunc(s, func(as string) string {
		if id, known := v.actual[as]; known {
			return id
		}
		return as
	})
	for _, n := range v.blur.Names {
		s = strings.ReplaceAll(s, n.As, n.Text)
	}

	return s
}
