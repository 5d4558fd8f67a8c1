// Package release compares the versions of daycare: MAJOR.MINOR.PATCH, with -WORD for one that
// comes before it, ordered as https://semver.org says.
package release

import (
	"strings"

	"golang.org/x/mod/semver"
)

// Valid reports whether a text is a version: all three numbers are there, and nothing about
// the build.
func Valid(v string) bool { return semver.Canonical(prefixed(v)) == prefixed(v) }

// Compare is negative if version a is older than b, 0 if they are the same, else positive. What
// is not a version is older than all that are.
func Compare(a, b string) int { return semver.Compare(prefixed(a), prefixed(b)) }

// prefixed is a version as package semver writes it.
func prefixed(v string) string { return "v" + strings.TrimPrefix(v, "v") }
