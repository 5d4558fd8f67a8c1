package control

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"daycare/engine/event"
)

// TestDocumentation: docs/api.md has every route, every code of an error and every
// type of event.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	said := func(what string) {
		if !strings.Contains(string(page), "`"+what+"`") {
			t.Errorf("docs/api.md does not say `%s`", what)
		}
	}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	route := regexp.MustCompile(`HandleFunc\("([A-Z]+ /[^"]*)"`)
	code := regexp.MustCompile(`(?m)^\tcode[A-Z]\w+ += "(\w+)"$`)
	routes, codes := 0, len(sentinels)
	for _, name := range sources {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range route.FindAllSubmatch(source, -1) {
			said(string(m[1]))
			routes++
		}
		for _, m := range code.FindAllSubmatch(source, -1) {
			said(string(m[1]))
			codes++
		}
	}
	for _, s := range sentinels {
		said(s.code)
	}
	for _, typ := range event.Types {
		said(string(typ))
	}
	if routes < 50 || codes < 30 {
		t.Errorf("only %d routes and %d codes were found in the source", routes, codes)
	}
}
