package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Edits by hand beside agents at work, as editors save: by a new file that takes the place
// of the old one, or into the file itself.

// editsOn edits one file after the other.
func editsOn(end time.Time) step {
	return func(ctx context.Context, u *user) error {
		for n := 0; ; n++ {
			if !sleepUntil(ctx, soakEdit, end) {
				return context.Cause(ctx)
			}
			edit := []func(*user, int) error{editHistory, editSettings, editNotes, editTask}[n%4]
			if err := edit(u, n); err != nil {
				return err
			}
			u.note("edited", n)
		}
	}
}

// editHistory adds a word to an old message of some agent.
func editHistory(u *user, n int) error {
	dirs, err := agentFolders(u.root)
	if err != nil || len(dirs) == 0 {
		return err
	}
	path := filepath.Join(dirs[rand.IntN(len(dirs))], "history.jsonl")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}

	key, from, to := u.oldMessage(data, n)
	if key == "" {
		return nil
	}
	u.reworded(key, to)

	return save(path, bytes.Replace(data, []byte(`"text":"`+from+`"`), []byte(`"text":"`+to+`"`), 1))
}

// oldMessage is one that others followed, with its text as it stands and as it is to be.
func (u *user) oldMessage(history []byte, n int) (key, from, to string) {
	lines := strings.Split(string(history), "\n")
	for _, l := range lines[:len(lines)/2] {
		_, text, ok := strings.Cut(l, `"type":"user_message"`)
		if !ok {
			continue
		}
		_, text, _ = strings.Cut(text, `"text":"`)
		text, _, _ = strings.Cut(text, `"`)
		key, _, _ := strings.Cut(text, " ")
		u.mu.Lock()
		s := u.byKey[key]
		plain := s != nil && len(s.texts) == 1
		u.mu.Unlock()
		if plain && !strings.ContainsAny(text, `\`) {
			return key, text, fmt.Sprintf("%s, as a person put it in edit %d", text, n)
		}
	}

	return "", "", ""
}

// editSettings changes a comment.
func editSettings(u *user, n int) error {
	u.settings.Lock()
	defer u.settings.Unlock()
	path := filepath.Join(u.root, "settings.yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}

	text, _, _ := strings.Cut(string(data), "# edit ")

	return save(path, fmt.Appendf(nil, "%s# edit %d\n", text, n))
}

// editNotes changes what all agents are told.
func editNotes(u *user, n int) error {
	return save(filepath.Join(filepath.Dir(u.root), "AGENTS.md"), fmt.Appendf(nil, "Be brief. This is version %d.\n", n))
}

// editTask changes a task that is far from due.
func editTask(u *user, n int) error {
	dir := filepath.Join(u.root, "cron", "yearly")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return save(filepath.Join(dir, "TASK.md"),
		fmt.Appendf(nil, "---\nat: %d-01-01T00:00\ntimezone: UTC\n---\nyearly %d\n", time.Now().Year()+2, n))
}

// save is how an editor saves.
func save(path string, content []byte) error {
	temp := path + ".edit~"
	return errors.Join(os.WriteFile(temp, content, 0o600), os.Rename(temp, path))
}
