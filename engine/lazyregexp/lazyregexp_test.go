package lazyregexp

import (
	"regexp"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each method gives what regexp gives.
func TestMethods(t *testing.T) {
	const expr, text = `(\w)=(\d*)`, "a=1, b=22, c="
	lazy, plain := New(expr), regexp.MustCompile(expr)
	upper := func(s string) string { return "<" + s + ">" }
	for name, tt := range map[string]struct{ got, want any }{
		"String":                  {lazy.String(), plain.String()},
		"MatchString":             {lazy.MatchString(text), true},
		"MatchString, none":       {lazy.MatchString("="), false},
		"FindString":              {lazy.FindString(text), plain.FindString(text)},
		"FindSubmatch":            {lazy.FindSubmatch([]byte(text)), plain.FindSubmatch([]byte(text))},
		"FindStringSubmatch":      {lazy.FindStringSubmatch(text), plain.FindStringSubmatch(text)},
		"FindStringSubmatchIndex": {lazy.FindStringSubmatchIndex(text), plain.FindStringSubmatchIndex(text)},
		"FindAll":                 {lazy.FindAll([]byte(text), 2), plain.FindAll([]byte(text), 2)},
		"FindAllStringSubmatch":   {lazy.FindAllStringSubmatch(text, -1), plain.FindAllStringSubmatch(text, -1)},
		"ReplaceAllString":        {lazy.ReplaceAllString(text, "$2=$1"), plain.ReplaceAllString(text, "$2=$1")},
		"ReplaceAllStringFunc":    {lazy.ReplaceAllStringFunc(text, upper), plain.ReplaceAllStringFunc(text, upper)},
	} {
		if d := cmp.Diff(tt.want, tt.got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestManyUseOneAtOnce(t *testing.T) {
	r := New(`^x+$`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if !r.MatchString("xxx") {
				t.Error("no match")
			}
		})
	}
	wg.Wait()
}

// A wrong expression does not get past the tests of its package, used or not.
func TestWrongExpression(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a wrong expression was taken")
		}
	}()
	New(`(`)
}
