package prompt

import (
	"path/filepath"
	"strings"
	"testing"

	"daycare/engine/record"
)

// The model gets the path of the file as it lies now: what is recorded is relative to the
// agent's folder, or absolute, of a place where an older version kept the workspace.
func TestAKeptOutputIsNamedWhereItLies(t *testing.T) {
	file := filepath.Join(sources.Dir, record.BlobPath(longOutput))
	shortened := "head in x\n[… 2 of 9 bytes left out; the whole output is in blobs/" + longOutput + " …]\ntail"
	part := "head\n[… 2 of 9 bytes left out; the first 8 bytes are in blobs/" + longOutput + " …]\ntail"
	old := strings.Replace(shortened, "blobs/", "/home/an other/.daycare/agents/a1/blobs/", 1)
	for name, tt := range map[string]struct{ recorded, want string }{
		"relative":             {shortened, "the whole output is in " + file + " "},
		"a part":               {part, "the first 8 bytes are in " + file + " "},
		"absolute":             {old, "the whole output is in " + file + " "},
		"named by the program": {"I wrote in x/blobs/" + longOutput, "I wrote in x/blobs/" + longOutput},
		"not named":            {"nothing", "nothing"},
		"at its beginning":     {"blobs/" + longOutput, "blobs/" + longOutput},
	} {
		r := gave("c", "exec", record.StatusOK, tt.recorded)
		r.Output.Blob = longOutput
		got := NewBuilder(sources).result(r).Text
		if !strings.Contains(got, tt.want) || strings.Contains(got, "/home/") {
			t.Errorf("%s: %q, want %q in it", name, got, tt.want)
		}
	}
}
