package main

import (
	"path/filepath"
	"testing"

	"daycare/tools"
)

// Schemas are compiled when their tools are called; here all of them are.
func TestSchemasOfAllToolsCompile(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, home, "settings.yaml"), "")
	r, err := openFiles(t.Context(), dir, t.Errorf)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	n := 0
	for spec := range r.toolset.all().All() {
		n++
		if _, err := tools.NewChecker(spec); err != nil {
			t.Errorf("%s: %v", spec.Name, err)
		}
	}
	if n < 40 {
		t.Errorf("only %d tools", n)
	}
	t.Logf("%d tools", n)
}
