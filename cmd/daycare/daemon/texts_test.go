package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"daycare/agents/prompt"
	"daycare/engine/watch"
	ws "daycare/engine/workspace"
)

// An edit of a text counts at the next look, however it is made, while looks follow each other as
// fast as turns do.
func TestAnEditOfATextCountsAtOnce(t *testing.T) {
	put := func(path, text string) error {
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
	}
	skill := func(text string) string { return "---\nname: mine\ndescription: " + text + "\n---\nDo it.\n" }
	for name, edit := range map[string]struct {
		before, do func(dir string) error
		same       bool // links: each look reads
	}{
		"in place": {nil, func(dir string) error { return put(filepath.Join(dir, "AGENTS.md"), "new") }, false},
		"renamed": {nil, func(dir string) error {
			return errors.Join(put(filepath.Join(dir, ".x"), "new"), os.Rename(filepath.Join(dir, ".x"), filepath.Join(dir, "AGENTS.md")))
		}, false},
		"removed": {nil, func(dir string) error { return os.Remove(filepath.Join(dir, "AGENTS.md")) }, false},
		"made":    {nil, func(dir string) error { return put(filepath.Join(dir, ws.Home, "SOUL.md"), "new") }, false},
		"a skill": {nil, func(dir string) error {
			return put(filepath.Join(dir, ".agents", "skills", "mine", "SKILL.md"), skill("new"))
		}, false},
		"a skill of before": {func(dir string) error {
			return put(filepath.Join(dir, ws.Home, "skills", "mine", "SKILL.md"), skill("old"))
		}, func(dir string) error {
			return put(filepath.Join(dir, ws.Home, "skills", "mine", "SKILL.md"), skill("new"))
		}, false},
		"its folder renamed": {func(dir string) error {
			return put(filepath.Join(dir, "ready", "skills", "mine", "SKILL.md"), skill("new"))
		}, func(dir string) error {
			return os.Rename(filepath.Join(dir, "ready"), filepath.Join(dir, ".agents"))
		}, false},
		"the target of a link": {func(dir string) error {
			return errors.Join(put(os.Getenv("HOME")+"/mine.md", "old"),
				os.Symlink(os.Getenv("HOME")+"/mine.md", filepath.Join(dir, ws.Home, "SOUL.md")))
		}, func(string) error { return put(os.Getenv("HOME")+"/mine.md", "new") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HOME", t.TempDir())
			r := openEmpty(t)
			if err := put(filepath.Join(r.at.Dir, "AGENTS.md"), "old"); err != nil {
				t.Fatal(err)
			}
			if edit.before != nil {
				if err := edit.before(r.at.Dir); err != nil {
					t.Fatal(err)
				}
			}
			look := func() prompt.Definition {
				files, skills := factory{r}.sharedTexts()
				return prompt.Definition{Files: files, Skills: skills}
			}
			begun := time.Now()
			was := look()
			for range 5 {
				if !look().Equal(was) {
					t.Fatal("nothing was edited, and it is different")
				}
			}
			kept := r.shared.Load()
			look()
			if again := r.shared.Load(); runtime.GOOS == "linux" && !edit.same && kept != again && time.Since(begun) < watch.MaxStill/2 {
				t.Error("it was read again without need")
			} else if edit.same && kept == again {
				t.Error("a text behind a link is not read again")
			}

			if err := edit.do(r.at.Dir); err != nil {
				t.Fatal(err)
			}
			if look().Equal(was) {
				t.Error("the edit does not count")
			}
		})
	}
}
