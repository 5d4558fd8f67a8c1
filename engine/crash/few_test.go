package crash_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"daycare/engine/crash"
	"daycare/engine/crash/crashtest"
)

// A sync that cannot be reflected for lack of descriptors fails: a mirror that misses it would show
// a loss that there is not.
func TestAMirrorWithFewDescriptors(t *testing.T) {
	begin := func(t *testing.T, what, first string) (op, holds func() error) {
		dir, m := t.TempDir(), crash.OpenMirror(t.TempDir())
		path := filepath.Join(dir, "file")
		write := func(text string) {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(first)
		f, err := os.Open(map[string]string{"a file": path, "a folder": dir}[what])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		if first != "" {
			if err := m.Sync(f, (*os.File).Sync); err != nil {
				t.Fatal(err)
			}
		}
		write(first + "more")
		id, err := crash.FileID(path)
		if err != nil {
			t.Fatal(err)
		}
		op = func() error { return m.Sync(f, (*os.File).Sync) }
		return op, func() error {
			name, want := id, first+"more"
			if what == "a folder" {
				name, want = "names.json", id
			}
			data, err := os.ReadFile(m.Path(name))
			if err == nil && (what == "a file" && string(data) != want || !strings.Contains(string(data), want)) {
				err = fmt.Errorf("the mirror has %q, want %q", data, want)
			}
			return err
		}
	}
	for _, what := range []string{"a file", "a folder"} {
		for _, first := range []string{"", "before "} {
			t.Run(what+" that had "+fmt.Sprintf("%q", first), func(t *testing.T) {
				crashtest.FewDescriptors(t, func(t *testing.T) (op, holds func() error) { return begin(t, what, first) })
			})
		}
	}
}
