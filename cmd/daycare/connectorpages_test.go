//go:build !race

package main

import (
	"os"
	"regexp"
	"testing"

	"daycare/cmd/daycare/plugins"
)

// Each connector has a page, which names each of its settings, except for those that
// settings.example.yaml explains for all connectors.
func TestConnectorsHavePages(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile("../../settings.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pages, seen := documents(t), 0
	for _, name := range plugins.ConnectorTypes {
		page, ok := pages["../../docs/connectors/"+name+".md"]
		if !ok {
			page, ok = pages["../../docs/"+name+".md"]
		}
		if !ok {
			t.Errorf("there is no docs/connectors/%s.md", name)
			continue
		}

		kind, _ := plugins.ConnectorKind(name)
		for _, f := range kind.Fields() {
			seen++
			key := regexp.MustCompile(`\b` + regexp.QuoteMeta(f.Key) + `\b`)
			common := regexp.MustCompile(`(?m)^ +#(- )?` + regexp.QuoteMeta(f.Key) + `:`)
			if !key.Match(page) && !common.Match(example) {
				t.Errorf("the page of %s does not name its setting %s", name, f.Key)
			}
		}
	}
	t.Logf("%d settings", seen)
}
