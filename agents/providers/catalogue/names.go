package catalogue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"daycare/engine/lazyregexp"
)

// An UnknownModel is a name that is in no list. It is an error and never replaced
// by one that looks like it: a model is money, and behaviour.
type UnknownModel struct {
	Name string
	Near []string // names that may have been meant, the nearest first
}

// Error names the model, and on a second line what to do.
func (e *UnknownModel) Error() string {
	do := "if it is newer than this version of daycare, add it to models in the settings: - id: " + e.Name
	if len(e.Near) > 0 {
		do = "similar names: " + strings.Join(e.Near, ", ") + "; " + do
	}

	return fmt.Sprintf("unknown model %q\n%s", e.Name, do)
}

// Check is an *UnknownModel for a name that is not known.
func (c *Catalogue) Check(provider, name string) error {
	if _, ok := c.Find(provider, name); ok {
		return nil
	}
	return &UnknownModel{Name: name, Near: c.Near(name, 3)}
}

// lookup finds a name in the list: as it is, then without its vendor,
// then without date and variant.
func (l *list) lookup(name string) (Model, bool) {
	k := key(name)
	i, ok := l.byKey[k]
	if !ok {
		i, ok = l.byKey[dated.ReplaceAllString(k, "")]
	}
	if !ok {
		return Model{}, false
	}

	m := l.Models[i]
	if strings.HasSuffix(strings.ToLower(name), ":free") {
		free := 0.0
		m.Price, m.Long, m.Next = Price{&free, &free, &free, &free}, nil, nil
	}

	return m, true
}

// key makes the spellings of one name equal: without vendor ("openai/",
// "models/"), in lower case, with dots and dashes alike, and without a variant
// that is served under the same name. Other words behind a colon are tags of a
// local server, and another model.
func key(name string) string {
	k := strings.ToLower(strings.TrimSpace(name))
	k = k[strings.LastIndexByte(k, '/')+1:]
	if plain, variant, ok := strings.Cut(k, ":"); ok && slices.Contains(variants, variant) {
		k = plain
	}

	return strings.ReplaceAll(k, ".", "-")
}

// variants are OpenRouter's.
var variants = []string{"free", "thinking", "online", "nitro", "floor", "extended", "exacto", "beta"}

// dated matches what vendors put behind a name to pin or float a version.
var dated = lazyregexp.New(`[-@](20\d{6}|20\d\d-\d\d-\d\d|latest|v\d+)$`)

// Near lists up to n names that are spelled like name, the nearest first.
func (c *Catalogue) Near(name string, n int) []string {
	k := dated.ReplaceAllString(key(name), "")
	type candidate struct {
		id   string
		away int
	}
	var near []candidate
	for _, m := range c.All() {
		away := distance(k, key(m.ID))
		if strings.HasPrefix(key(m.ID), k) && len(k) > 2 {
			away = 0 // a family without its member
		}
		if away <= max(2, len(k)/3) {
			near = append(near, candidate{m.ID, away})
		}
	}

	slices.SortStableFunc(near, func(a, b candidate) int { return cmp.Compare(a.away, b.away) })
	var names []string
	for _, c := range near[:min(n, len(near))] {
		names = append(names, c.id)
	}

	return names
}

// distance is the Levenshtein distance, of names of a usual length only.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	return levenshtein.ComputeDistance(a, b)
}
