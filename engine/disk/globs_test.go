package disk

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// globs finds patterns that begin with something else than a constant, such as "/proc/[0-9]*".
var globs = regexp.MustCompile(`filepath\.Glob\(([^"])`)

// A workspace may are in a folder whose name has brackets in it. What is built into a
// pattern of filepath.Glob then matches nothing: waiting requests, usage files and agents
// would not be found.
func TestNoPatternHasThePathOfAWorkspace(t *testing.T) {
	excused := []string{"cmd/daycare/chaos/", "agents/providers/providertest/", "tools/shell/sandbox/"} // folders with names of their own
	root := filepath.Join("..", "..")
	looked := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		looked++
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}

		for _, prefix := range excused {
			if strings.HasPrefix(filepath.ToSlash(rel), prefix) {
				return nil
			}
		}
		source, err := os.ReadFile(path)
		if err == nil && globs.Match(source) {
			t.Errorf("%s: use disk.Glob, which takes the folder as it is", rel)
		}

		return err
	})
	if err != nil || looked < 100 {
		t.Fatalf("looked at %d files: %v", looked, err)
	}
}
