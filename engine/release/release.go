// Package release compares the versions of daycare: MAJOR.MINOR.PATCH, with -WORD for one that
// comes before it.
package release

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Valid reports whether a text is a version.
func Valid(v string) bool {
	_, _, ok := parse(v)
	return ok
}

// Compare is negative if version a is older than b, 0 if they are the same, else positive. What
// is no version is older than all that are.
func Compare(a, b string) int {
	na, wa, _ := parse(a)
	nb, wb, _ := parse(b)
	if c := slices.Compare(na, nb); c != 0 {
		return c
	}
	if wa == "" || wb == "" { // the release itself is the newest of its number
		return cmp.Compare(len(wb), len(wa))
	}
	return strings.Compare(wa, wb)
}

func parse(v string) (numbers []int, word string, ok bool) {
	v, word, pre := strings.Cut(strings.TrimPrefix(v, "v"), "-")
	if pre && word == "" {
		return nil, "", false
	}
	for part := range strings.SplitSeq(v, ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil, "", false
		}
		numbers = append(numbers, n)
	}
	if len(numbers) != 3 {
		return nil, "", false
	}
	return numbers, word, true
}
