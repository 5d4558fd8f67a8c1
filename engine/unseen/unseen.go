// Package unseen keeps a text that is part of the prompts of all agents as it was, when a
// command of one of them changed it and nobody has seen that.
//
// A change that is first seen while a command runs that could make it may be the command's: the
// text of before stays in use, and the change waits in .daycare/unseen until its owner saves the
// file again, or touches it, with no such command running. An edit at any other time is a
// person's and applies at once.
package unseen

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/workspace"
)

// Dir is the folder of a .daycare folder that keeps what waits.
const Dir = "unseen"

// A Change is one that waits.
type Change struct {
	Path    string    `json:"path"`  // relative to the workspace if it is there
	Agent   string    `json:"agent"` // whose command ran
	At      time.Time `json:"at"`    // when the file changed
	SHA256  string    `json:"sha256"`
	Removed bool      `json:"removed,omitempty"`
	Before  *string   `json:"before"` // the text in use; null: there was none
}

func (c *Change) Error() string {
	switch {
	case c.Removed:
		return fmt.Sprintf("it was removed while a command of agent %s ran, and you have not reviewed that; "+
			"agents use the old text", c.Agent)
	case c.Before == nil:
		return fmt.Sprintf("it appeared while a command of agent %s ran, and you have not reviewed it; agents ignore it", c.Agent)
	}

	return fmt.Sprintf("it changed while a command of agent %s ran, and you have not reviewed it; agents use the old text", c.Agent)
}

// Finding returns the change as it is reported to users; path is absolute.
func (c *Change) Finding(path string) finding.Finding {
	remedy := "Review it. To use it, save it again or run: touch " + path + ". To reject it, "
	switch {
	case c.Removed:
		remedy = "To bring it back, restore the text, which is in .daycare/" + Dir +
			". To remove it permanently, delete the copy there and restart daycare"
	case c.Before == nil:
		remedy += "delete it"
	default:
		remedy += "restore the old text, which is in .daycare/" + Dir
	}

	return finding.Finding{ID: "text-unseen", Severity: finding.Warning, File: path, Reason: c.Error(), Remedy: remedy}
}

// Texts are the files of one workspace. Its methods may be called from any goroutine.
type Texts struct {
	place workspace.Place
	vol   *disk.Volume // nil: nothing is written

	mu      sync.Mutex
	used    map[string]used    // by path: what was in use last
	waiting map[string]*Change // by path
	running map[*span]bool
}

type used struct {
	text  string
	there bool
}

// A span is one command that runs.
type span struct {
	agent string
	safe  []string // files and folders that it cannot change
}

// Open returns the texts of a workspace, with the changes that wait. A nil volume is for
// looking only.
func Open(vol *disk.Volume, at workspace.Place) (*Texts, error) {
	t := &Texts{place: at, vol: vol, used: map[string]used{}, waiting: map[string]*Change{}, running: map[*span]bool{}}
	dir, err := beneath.Dir(at.Data, Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", Dir, err)
	}
	defer dir.Close()
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", Dir, err)
	}

	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		var c Change
		data, _, err := beneath.Read(dir, e.Name(), 8<<20)
		if err == nil {
			err = json.Unmarshal(data, &c)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w\ndelete it: agents then use the new text", filepath.Join(Dir, e.Name()), err)
		}

		t.waiting[t.place.Resolve(c.Path)] = &c
	}

	return t, nil
}

// Began says that a command of an agent begins that can change all but the safe files and
// folders. Every text must have been looked at just before. ended is to be called when nothing of
// the command is left and every text was looked at once more.
func (t *Texts) Began(agent string, safe ...string) (ended func()) {
	s := &span{agent: agent, safe: safe}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running[s] = true
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.running, s)
	}
}

// Use returns the text to use of a file, and its pending change; nil: none. info
// is of the file that data was read from, nil if it is not there; there says the same of text.
func (t *Texts) Use(path string, data []byte, info fs.FileInfo) (text []byte, there bool, waits *Change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, known := t.used[path]
	now := used{string(data), info != nil}
	old := t.waiting[path]
	c := &Change{Path: path, SHA256: sum(data), Removed: info == nil, At: time.Now()}
	if info != nil {
		c.At = beneath.ChangedAt(info)
	}
	if old == nil && known && before.text == now.text && before.there == now.there {
		return data, now.there, nil
	}
	if old != nil && old.SHA256 == c.SHA256 && old.Removed == c.Removed && (c.Removed || old.At.Equal(c.At)) {
		return old.inUse()
	}
	if c.Agent = t.by(path); c.Agent == "" || !known && old == nil && !now.there {
		if old != nil {
			t.forget(path)
		}
		t.used[path] = now
		return data, now.there, nil
	}

	switch {
	case old != nil:
		c.Before = old.Before
	case known && before.there:
		c.Before = &before.text
	}

	t.keep(path, c)
	return c.inUse()
}

func (c *Change) inUse() ([]byte, bool, *Change) {
	if c.Before == nil {
		return nil, false, c
	}
	return []byte(*c.Before), true, c
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// by is the agent whose command may have changed a file just now; "": none.
func (t *Texts) by(path string) string {
	for s := range t.running {
		within := func(dir string) bool {
			rel, err := filepath.Rel(dir, path)
			return err == nil && filepath.IsLocal(rel)
		}
		if !slices.ContainsFunc(s.safe, within) {
			return s.agent
		}
	}

	return ""
}

func (t *Texts) name(path string) (dir, file string) {
	return filepath.Join(t.place.Data, Dir), sum([]byte(t.place.Store(path)))[:16] + ".json"
}

// keep writes a change down. That it cannot be written costs no more than that it is used after
// a restart.
func (t *Texts) keep(path string, c *Change) {
	t.waiting[path] = c
	if t.vol == nil {
		return
	}
	onDisk := *c
	onDisk.Path = t.place.Store(path)

	data, err := json.MarshalIndent(onDisk, "", "  ")
	if err != nil {
		return
	}
	dir, file := t.name(path)
	if t.vol.MkdirAll(dir) == nil {
		_ = t.vol.WriteFile("unseen", filepath.Join(dir, file), append(data, '\n'))
	}
}

func (t *Texts) forget(path string) {
	delete(t.waiting, path)
	if t.vol != nil {
		dir, file := t.name(path)
		_ = t.vol.Remove("unseen", filepath.Join(dir, file)) // it is then kept back once more after a restart
	}
}

// Waiting returns the changes that wait, by absolute path.
func (t *Texts) Waiting() map[string]*Change {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(map[string]*Change, len(t.waiting))
	for path, c := range t.waiting {
		all[path] = c
	}

	return all
}
