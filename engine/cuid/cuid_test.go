package cuid

import (
	"regexp"
	"testing"
)

func TestIDsAreOfTheirFormAndDiffer(t *testing.T) {
	form := regexp.MustCompile(`^[a-z][a-z0-9]{23}$`)
	seen := map[string]bool{}
	for name, make := range map[string]func() string{"secret": New, "unique": Unique} {
		for range 5000 {
			id := make()
			if !form.MatchString(id) {
				t.Fatalf("%s: %s", name, id)
			}
			if seen[id] {
				t.Fatalf("%s: %s twice", name, id)
			}
			seen[id] = true
		}
	}
}
