package control

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"daycare/engine/event"
)

// TestDocumentation: docs/api.md has every type of event. Package fault compares its errors.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range event.Types {
		if !strings.Contains(string(page), "`"+string(typ)+"`") {
			t.Errorf("docs/api.md does not say `%s`", typ)
		}
	}
}

// TestDocumentedScopes: docs/api.md has every route with its scope, and no other.
func TestDocumentedScopes(t *testing.T) {
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, line := range regexp.MustCompile("(?m)^\\| (`[A-Z]+ /[^|]*) \\| ([^|]*) \\|").FindAllStringSubmatch(string(page), -1) {
		routes, scopes := strings.Split(line[1], " · "), strings.Split(line[2], " · ")
		for i, r := range routes {
			said[strings.Trim(r, "`")] = scopes[min(i, len(scopes)-1)]
		}
	}
	for _, row := range tableOf(whole(&pair{fake: &fake{}})) {
		want := string(row.scope)
		if row.reach == all {
			want += "*"
		}
		if said[row.pattern] != want {
			t.Errorf("docs/api.md says the scope of `%s` is %q, it is %q", row.pattern, said[row.pattern], want)
		}
		delete(said, row.pattern)
	}
	for pattern := range said {
		t.Errorf("docs/api.md has the route `%s`, which is not served", pattern)
	}
}
