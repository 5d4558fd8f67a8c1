package changes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/record"
)

// A Step changes one file.
type Step struct {
	Folder string `json:"folder"` // absolute; no agent can change what leads to it
	Path   string `json:"path"`   // in it, with slashes
	From   State  `json:"from"`   // what must be there
	To     State  `json:"to"`     // what is there afterwards; its content is among the blobs
}

// File is the absolute path of the file.
func (s Step) File() string { return filepath.Join(s.Folder, filepath.FromSlash(s.Path)) }

// A Result is what became of a step.
type Result struct {
	Step
	Outcome Outcome
	Why     string // of one that is not carried out
}

// An Outcome is how a step ended.
type Outcome string

const (
	Done    Outcome = "done"
	Already Outcome = "already" // the file was as it becomes
	Refused Outcome = "refused" // it has changed since, or is not a file that is written
)

// Meanwhile is why a step is refused whose file is not as it was any more.
const Meanwhile = "it has changed since"

// journalName is the list of steps in progress.
const journalName = "apply.json"

// A Store keeps contents and the list of steps in progress in a folder of daycare's own.
type Store struct {
	Volume *disk.Volume
	Dir    string
}

// Put keeps a content durably.
func (s Store) Put(content []byte) error {
	_, err := record.PutBlob(s.Volume, s.Dir, string(content))
	return err
}

// Get returns the content of a state.
func (s Store) Get(of State) ([]byte, error) {
	text, err := record.ReadBlob(s.Dir, of.SHA256)
	if err != nil {
		return nil, err
	}
	if StateOf([]byte(text), of.Mode) != of {
		return nil, fmt.Errorf("the kept content %s is damaged", of.SHA256[:12])
	}

	return []byte(text), nil
}

// has reports whether the content of a state is kept, or nothing is needed for it.
func (s Store) has(of State) bool {
	return of.SHA256 == "" || disk.Exists(filepath.Join(s.Dir, record.BlobPath(of.SHA256)))
}

// Carry carries out steps whose contents were Put. What stands in the way of one leaves the
// others; an error means that it stopped, and Resume goes on.
func (s Store) Carry(steps []Step) ([]Result, error) {
	if Pending(s.Dir) {
		return nil, errors.New("an earlier list of steps is in progress")
	}
	for _, step := range steps {
		if err := s.keep(step); err != nil {
			return nil, fmt.Errorf("keep %s: %w", step.Path, err)
		}
	}
	data, _ := json.MarshalIndent(steps, "", "  ") // strings and numbers
	if err := s.Volume.WriteFile("changes", filepath.Join(s.Dir, journalName), append(data, '\n')); err != nil {
		return nil, fmt.Errorf("write the list of steps: %w", err)
	}

	return s.Resume()
}

// Pending reports whether steps are in progress, or a kill cut them.
func Pending(dir string) bool { return disk.Exists(filepath.Join(dir, journalName)) }

// Resume carries out the rest of a list that a kill cut; nothing without one. The list stays until
// Finish: it may be resumed any number of times.
func (s Store) Resume() ([]Result, error) {
	data, _, err := beneath.Own(filepath.Join(s.Dir, journalName), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the list of steps: %w", err)
	}
	var steps []Step
	if err := json.Unmarshal(data, &steps); err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Join(s.Dir, journalName), err)
	}

	results := make([]Result, len(steps))
	for i, step := range steps {
		if results[i], err = s.carry(step); err != nil {
			return nil, fmt.Errorf("change %s: %w", step.Path, err)
		}
	}

	return results, nil
}

// Finish forgets the list: all that depends on its results is durable.
func (s Store) Finish() error {
	if err := s.Volume.Remove("changes", filepath.Join(s.Dir, journalName)); err != nil {
		return err
	}
	return s.Volume.SyncDir("changes.dirsync", s.Dir)
}

// keep keeps what a step overwrites, as it is now. Its new content must be kept already.
func (s Store) keep(step Step) error {
	if step.To.SHA256 != "" {
		if _, err := s.Get(step.To); err != nil {
			return err
		}
	}
	dir, err := beneath.Root(step.Folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	now, content, err := Look(dir, step.Path)
	if err != nil || now.SHA256 == "" {
		return err
	}

	return s.Put(content)
}

// carry carries out one step, unless that was done before.
func (s Store) carry(step Step) (Result, error) {
	refused := func(why string) (Result, error) { return Result{step, Refused, why}, nil }
	if step.To.Other != "" || !filepath.IsLocal(filepath.FromSlash(step.Path)) {
		return refused("it is not a regular file")
	}
	root, err := beneath.Root(step.Folder)
	if err != nil {
		return Result{}, err
	}
	defer root.Close()
	now, _, err := Look(root, step.Path)
	switch {
	case err != nil:
		return refused(beneath.Reason(err).Error())
	case now == step.To:
		return Result{step, Already, ""}, nil
	case now.Other != "":
		return refused(now.Other)
	case now != step.From:
		return refused(Meanwhile)
	}

	dir, err := enter(root, filepath.Dir(filepath.FromSlash(step.Path)), !step.To.Missing())
	if err != nil {
		return refused("its folder: " + beneath.Reason(err).Error())
	}
	if dir != root {
		defer dir.Close()
	}
	name := filepath.Base(filepath.FromSlash(step.Path))
	unchanged := func() error {
		if again, _, err := Look(dir, name); err != nil || again != step.From {
			return errors.Join(errChanged, err)
		}
		return nil
	}
	if step.To.Missing() {
		err = remove(dir, name, unchanged)
	} else {
		err = s.write(dir, name, step.To, unchanged)
	}
	switch {
	case errors.Is(err, errChanged):
		return refused(Meanwhile)
	case errors.Is(err, fs.ErrPermission):
		return refused(beneath.Reason(err).Error()) // it may stay so for ever, and the rest is not to wait for it
	}

	return Result{step, Done, ""}, err
}

var errChanged = errors.New("the file has changed in the meantime")

func (s Store) write(dir *os.Root, name string, to State, unchanged func() error) error {
	content, err := s.Get(to)
	if err != nil {
		return err
	}

	return disk.ReplaceIn("changes.file", dir, name, content, disk.InOptions{Mode: to.Mode, Exact: true, Check: unchanged})
}

func remove(dir *os.Root, name string, unchanged func() error) error {
	if err := unchanged(); err != nil {
		return err
	}
	if err := dir.Remove(name); err != nil {
		return err
	}

	return disk.SyncIn("changes.file", dir, ".")
}

// enter opens a folder beneath an open one, by no link, and makes what is missing of it.
func enter(root *os.Root, rel string, create bool) (*os.Root, error) {
	if rel == "." {
		return root, nil
	}
	at := root
	for name := range strings.SplitSeq(rel, string(filepath.Separator)) {
		var err error
		if create {
			err = disk.MkdirIn("changes.file", at, name, 0o755)
		}
		var next *os.Root
		if err == nil {
			next, err = beneath.Enter(at, name, nil)
		}
		if at != root {
			at.Close()
		}
		if err != nil {
			return nil, err
		}
		at = next
	}

	return at, nil
}

// Refusals are the results that were not carried out.
func Refusals(results []Result) []Result {
	return slices.DeleteFunc(slices.Clone(results), func(r Result) bool { return r.Outcome != Refused })
}
