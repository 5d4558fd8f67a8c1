//go:build !race

package changes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A kill at each step of an apply leaves each file whole, and the next command does the rest.
func TestKilledApplies(t *testing.T) {
	old := map[string]string{"a": "1\n", "b": "one\ntwo\nthree\nfour\n", "dir/c": "1\n", "gone": "1\n"}
	want := map[string]string{"a": "2\n", "b": "ONE\ntwo\nthree\nFOUR\n", "dir/c": "2\n", "new/deep/d": "2\n"}
	kills := 0
	for k := 1; ; k++ {
		b := newBench(t, old)
		tree := b.copy.Tree()
		for _, path := range []string{"a", "dir/c", "new/deep/d"} {
			b.put(tree, path, "2\n")
		}
		b.put(tree, "b", "ONE\ntwo\nthree\nfour\n")
		b.put(b.of, "b", "one\ntwo\nthree\nFOUR\n")
		if err := os.Remove(filepath.Join(tree, "gone")); err != nil {
			t.Fatal(err)
		}
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "CHANGES_APPLY="+b.copy.Dir, fmt.Sprintf("DAYCARE_FAILPOINT=kill@#%d:50", k))
		out, err := child.CombinedOutput()
		whole(t, k, has(t, b.of), old, want)
		if err == nil {
			break
		}
		if child.ProcessState.Exited() {
			t.Fatalf("step %d: %v\n%s", k, err, out)
		}
		kills++
		if err := b.copy.Resume(); err != nil {
			t.Fatalf("step %d: %v", k, err)
		}
		b.apply(b.changes(), true)
		if got := clean(has(t, b.of)); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("step %d: the folder has %q", k, got)
		}
		b.expect()
	}
	t.Logf("%d kills", kills)
	if kills < 20 {
		t.Errorf("only %d steps", kills)
	}
}

// A kill at each step of taking back leaves each file whole, and the next try does the rest.
func TestKilledWhileTakingBack(t *testing.T) {
	kills := 0
	for k := 1; ; k++ {
		d := newDesk(t)
		d.by("b", "old\n")
		d.by("c", "old\n")
		for _, path := range []string{"a", "b", "dir/d"} {
			d.write(1, path, "new\n")
		}
		d.write(1, "c", "")
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "CHANGES_BACK="+filepath.Dir(d.store.Dir), fmt.Sprintf("DAYCARE_FAILPOINT=kill@#%d:50", k))
		out, err := child.CombinedOutput()
		for path, text := range clean(has(t, d.dir)) {
			if text != "old\n" && text != "new\n" {
				t.Errorf("step %d: %s is %q", k, path, text)
			}
		}
		if err == nil {
			break
		}
		if child.ProcessState.Exited() {
			t.Fatalf("step %d: %v\n%s", k, err, out)
		}
		kills++
		if code := takeAll(filepath.Dir(d.store.Dir)); code != 0 {
			t.Fatalf("step %d: it cannot be resumed", k)
		}
		if got := clean(has(t, d.dir)); len(got) != 2 || got["b"] != "old\n" || got["c"] != "old\n" {
			t.Fatalf("step %d: the folder has %q", k, got)
		}
	}
	t.Logf("%d kills", kills)
	if kills < 10 {
		t.Errorf("only %d steps", kills)
	}
}

// clean is a folder without the temporary files that a kill leaves beside what it wrote.
func clean(files map[string]string) map[string]string {
	for path := range files {
		if strings.HasPrefix(filepath.Base(path), ".tmp-") {
			delete(files, path)
		}
	}
	return files
}

func whole(t *testing.T, k int, files, old, want map[string]string) {
	t.Helper()
	for path, text := range clean(files) {
		if text != old[path] && text != want[path] && text != "one\ntwo\nthree\nFOUR\n" {
			t.Errorf("step %d: %s is %q", k, path, text)
		}
	}
	for path := range old {
		if _, there := files[path]; !there && want[path] != "" {
			t.Errorf("step %d: %s is lost", k, path)
		}
	}
}
