// Package lazyregexp has regular expressions that are compiled when they are first used.
//
// A daemon starts, and a command runs, in a few milliseconds. Compiling every expression
// of the program at each start would be a quarter of that, and most starts use few of
// them.
package lazyregexp

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// A Regexp is a package-level expression. Its methods are those of [regexp.Regexp], and
// as safe for use by many goroutines.
type Regexp struct {
	expr     string
	compiled func() *regexp.Regexp
}

// New takes an expression in the syntax of package regexp. One that is wrong panics when
// it is first used; in tests at once, so that none can stay unnoticed.
func New(expr string) *Regexp {
	r := &Regexp{expr, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })}
	if strings.HasSuffix(strings.TrimSuffix(os.Args[0], ".exe"), ".test") {
		r.compiled()
	}

	return r
}

// String returns the expression.
func (r *Regexp) String() string { return r.expr }

// MatchString reports whether there is a match in s.
func (r *Regexp) MatchString(s string) bool { return r.compiled().MatchString(s) }

// FindString returns the first match in s; "": there is none, or it is empty.
func (r *Regexp) FindString(s string) string { return r.compiled().FindString(s) }

// FindSubmatch returns the first match in b and the matches of its groups; nil without a match.
func (r *Regexp) FindSubmatch(b []byte) [][]byte { return r.compiled().FindSubmatch(b) }

// FindStringSubmatch returns the first match in s and the matches of its groups; nil without a match.
func (r *Regexp) FindStringSubmatch(s string) []string { return r.compiled().FindStringSubmatch(s) }

// FindStringSubmatchIndex is FindStringSubmatch with places, in bytes, instead of texts.
func (r *Regexp) FindStringSubmatchIndex(s string) []int {
	return r.compiled().FindStringSubmatchIndex(s)
}

// FindAll returns the first n matches in b; n < 0: all.
func (r *Regexp) FindAll(b []byte, n int) [][]byte { return r.compiled().FindAll(b, n) }

// FindAllStringSubmatch is FindAllString with the groups of each match.
func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.compiled().FindAllStringSubmatch(s, n)
}

// ReplaceAllString replaces the matches in s by with, where $1 is the first group.
func (r *Regexp) ReplaceAllString(s, with string) string {
	return r.compiled().ReplaceAllString(s, with)
}

// ReplaceAllStringFunc replaces each match in s by what f makes of it.
func (r *Regexp) ReplaceAllStringFunc(s string, f func(string) string) string {
	return r.compiled().ReplaceAllStringFunc(s, f)
}
