package doctor

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"daycare/engine/disk"
	"daycare/engine/workspace"
)

// Each JSON Schema is that of a kind of file, and each kind that names a schema has one.
func TestSchemasAreThoseOfKinds(t *testing.T) {
	named := map[string]bool{}
	for _, k := range kinds {
		if k.schema == "" {
			continue
		}
		named[k.schema] = true
		if _, err := SchemaOf(k.schema); err != nil {
			t.Errorf("%s: %v", k.pattern, err)
		}
	}

	for _, name := range formNames() {
		if !named[name] {
			t.Errorf("no kind of file has the schema %s: add its name to a row of kinds", name)
		}
	}
}

// A row says what a file is and who owns it, and no row before it takes its files.
func TestKindsAreWhole(t *testing.T) {
	for i, k := range kinds {
		if k.what == "" || k.schema != "" && k.check == nil {
			t.Errorf("%s: a kind says what it is, and one with a schema is checked", k.pattern)
		}
		if k.ledger && (k.schema == "" || path.Ext(k.pattern) != ".jsonl") {
			t.Errorf("%s: doctor repairs lines of JSON", k.pattern)
		}
		if info, err := os.Stat(filepath.Join("..", "..", "..", k.owner)); k.owner == "" || err != nil || !info.IsDir() {
			t.Errorf("%s: there is no package %q", k.pattern, k.owner)
		}

		example := strings.ReplaceAll(strings.ReplaceAll(k.pattern, "**", "x"), "*", "x")
		first := slices.IndexFunc(kinds, func(k kind) bool { return k.at(example) })
		if first != i {
			t.Errorf("%s is taken to be %s", example, kinds[max(first, 0)].pattern)
		}
		if as, _ := kindOfFile("/w/" + example); k.check != nil && as.schema != k.schema {
			t.Errorf("validate takes %s to be %s", example, as.pattern)
		}
	}
}

// What gc looks for, and what doctor keeps from others, is of a kind.
func TestWhatMayGoIsPrivate(t *testing.T) {
	parts := privateParts()
	ends := 0
	for _, k := range kinds {
		top, _, below := strings.Cut(k.pattern, "/")
		if slices.Contains(parts, top) != (k.mode != 0) {
			t.Errorf("%s has mode %o, other files in %s another", k.pattern, k.mode, top)
		}
		if k.gc == nil {
			continue
		}
		ends++
		if k.gc.why == "" || !below || k.mode == 0 {
			t.Errorf("%s may be deleted: it needs a reason, and is no file that people keep", k.pattern)
		}
	}

	if ends != 5 {
		t.Errorf("%d kinds may be deleted, want one for each age of the settings: trash, blobs, history, logs, undo", ends)
	}
}

// Files that have no kind are seen: the table does not fit everything.
func TestUnknownFilesAreSeen(t *testing.T) {
	root := t.TempDir()
	for _, rel := range []string{"notes.txt", "agents/a/notes.txt", "agents/a/b/state.json", "cron/TASK.md", "logs/x/y.jsonl"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, rel)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, rel), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if Known(rel) {
			t.Errorf("%s is known", rel)
		}
		if found, err := disk.Glob(root, path.Clean(rel)); err != nil || len(found) != 1 {
			t.Errorf("%s: %v, %v", rel, found, err)
		}
	}

	if files, err := Files(root); err != nil || len(files) > 0 {
		t.Errorf("validate lists %v, %v", files, err)
	}
}

// Every kind of file can be checked, whatever is in it: a file that cannot is a finding, and keeps nothing from the others.
func TestEveryKindCanBeChecked(t *testing.T) {
	for _, k := range kinds {
		if k.check == nil {
			continue
		}
		path := filepath.Join(t.TempDir(), workspace.Home, strings.ReplaceAll(k.pattern, "*", "x"))
		for _, content := range []string{"{}", "{", ""} {
			if _, err := k.check(k.schema, path, []byte(content)); err != nil {
				t.Errorf("%s with %q: %v", k.pattern, content, err)
			}
		}
	}
	if found, err := object("", "a2a.json", []byte("{")); err != nil || len(found) == 0 {
		t.Errorf("half an object has no finding, %v", err)
	}
}
