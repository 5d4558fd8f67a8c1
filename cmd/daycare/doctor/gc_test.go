package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/cmd/daycare/logfile"
	"daycare/engine/config"
	"daycare/engine/workspace"
)

// What any history names stays, what is young stays, and what a running daemon may
// be writing stays.
func TestCollector(t *testing.T) {
	now := time.Now()
	used, old, unused, young := strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("c", 64), strings.Repeat("d", 64)
	root := t.TempDir()
	write := func(path, content string, age time.Duration) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now, now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	day := 24 * time.Hour
	write("agents/one/history.jsonl", `{"blob":"`+used+`"}`+"\n", 90*day)
	write("agents/one/history/2026-01-01.jsonl", `{"text":"see blobs/`+old+`"}`+"\n", 90*day)
	for _, name := range []string{used, old, unused, "notes.txt"} {
		write("agents/one/blobs/"+name, "output", 60*day)
	}
	write("agents/one/blobs/"+young, "output", 2*time.Minute)
	write("agents/one/history.jsonl.torn-1", "half", 60*day)
	write("agents/.tmp-handles-1", "half", time.Minute)
	write("trash/"+now.Add(-60*day).UTC().Format(trashTime)+"-two/history.jsonl", "{}\n", 90*day)
	write("trash/"+now.Add(-day).UTC().Format(trashTime)+"-three/history.jsonl", "{}\n", 90*day)

	write("logs/daycare.jsonl", "{}\n", 60*day)
	write(logfile.Numbered("logs/daycare.jsonl", 1), "{}\n", 60*day)
	write(logfile.Numbered("logs/daycare.jsonl", 2), "{}\n", day)
	after := func(age time.Duration) config.Retention { return config.Retention{Trash: age, Blobs: age} }
	month := []string{"blobs/" + unused, "history.jsonl.torn-1", "two"}
	for _, test := range []struct {
		name string
		ages config.Retention
		held bool
		want []string
	}{
		{"a month", after(30 * day), false, month},
		{"a month, beside a daemon", after(30 * day), true, month},
		{"all, beside a daemon", after(1), true, append([]string{"three"}, month...)},
		{"nothing for ever", config.Retention{}, false, nil},
		{"the log and closed parts alone", config.Retention{History: 30 * day, Logs: 30 * day}, false,
			[]string{"history/2026-01-01.jsonl", "daycare.jsonl.1"}},
		{"all", after(1), false, append([]string{"three", "blobs/" + young, ".tmp-handles-1"}, month...)},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := collector{at: workspace.OfData(root), ages: test.ages, now: now, held: test.held,
				log: filepath.Join(root, "logs/daycare.jsonl")}
			if err := g.look(); err != nil {
				t.Fatal(err)
			}
			var missing []string
			for _, name := range test.want {
				if !slices.ContainsFunc(g.found, func(one garbage) bool { return strings.HasSuffix(one.Path, name) }) {
					missing = append(missing, name)
				}
			}
			if len(missing) > 0 || len(g.found) != len(test.want) {
				t.Errorf("missing %v; diff: %s", missing, cmp.Diff(test.want, g.found))
			}
		})
	}
}
