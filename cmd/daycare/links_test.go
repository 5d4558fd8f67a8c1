//go:build !race

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"daycare/engine/lazyregexp"
)

// links are the relative links of a document, and its pictures.
var links = lazyregexp.New(`\]\(([^)\s#:]+)(#[^)\s]*)?\)|src="([^":]+)"`)

// What the documents link to is there, and docs/README.md leads to each of them.
func TestLinksBetweenDocuments(t *testing.T) {
	t.Parallel()
	all, linked, seen := documents(t), map[string]bool{}, 0
	indexes := []string{"../../docs/README.md", "../../docs/recipes/README.md", "../../docs/connectors/README.md"}
	for path, data := range all {
		for _, m := range links.FindAllStringSubmatch(string(data), -1) {
			target := filepath.Join(filepath.Dir(path), m[1]+m[3])
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", path, m[1], err)
			}
			if anchor := strings.TrimPrefix(m[2], "#"); anchor != "" && !anchors(all[target])[anchor] {
				t.Errorf("%s links to %s%s, and there is no such heading", path, m[1], m[2])
			}
			if slices.Contains(indexes, path) {
				linked[target] = true
			}
			seen++
		}
	}

	for path := range all {
		if strings.HasPrefix(path, "../../docs/") && path != "../../docs/README.md" && !linked[path] {
			t.Errorf("no index leads to %s", path)
		}
	}
	t.Logf("%d links", seen)
}

// anchors are the headings of a document as links name them.
func anchors(document []byte) map[string]bool {
	names := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllSubmatch(document, -1) {
		name := regexp.MustCompile("[^a-z0-9 _-]").ReplaceAllString(strings.ToLower(string(m[1])), "")
		names[strings.ReplaceAll(name, " ", "-")] = true
	}
	return names
}
