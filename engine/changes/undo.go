package changes

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/record"
)

// A Written is a file that a tool of an agent wrote or removed. It is on disk before the file
// changes; the contents are among the blobs.
type Written struct {
	At     disk.Stamp `json:"at"`
	Turn   string     `json:"turn"`
	Call   string     `json:"call"`   // the tool call
	Folder string     `json:"folder"` // absolute, without symbolic links
	Path   string     `json:"path"`   // in it, with slashes
	Before State      `json:"before"`
	After  State      `json:"after"`
}

// File is the absolute path of the file.
func (w Written) File() string { return filepath.Join(w.Folder, filepath.FromSlash(w.Path)) }

// makes reports whether the file was made or removed.
func (w Written) makes() bool { return w.Before.SHA256 == "" || w.After.SHA256 == "" }

// writtenName is the list of what an agent's tools wrote.
const writtenName = "written.jsonl"

// Undo is the store of what an agent's tools wrote: undo/ in the agent's folder.
func Undo(vol *disk.Volume, agentDir string) Store {
	return Store{vol, filepath.Join(agentDir, "undo")}
}

// List is the path of the list of what an agent's tools wrote.
func (s Store) List() string { return filepath.Join(s.Dir, writtenName) }

// Note keeps what a file held and what it is going to hold, durably.
func (s Store) Note(w Written, before, after []byte) (err error) {
	if err := s.Volume.MkdirAll(s.Dir); err != nil {
		return err
	}
	var contents []string
	if w.Before.SHA256 != "" {
		contents = append(contents, string(before))
	}
	if w.After.SHA256 != "" {
		contents = append(contents, string(after))
	}
	if _, err := record.PutBlobs(s.Volume, s.Dir, contents...); err != nil {
		return err
	}
	line, _ := json.Marshal(w) // strings and numbers
	log, _, err := s.Volume.OpenLog(s.List(), disk.LogOptions{Name: "written", Valid: json.Valid})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if _, err := log.Append(append(line, '\n')); err != nil {
		return err
	}

	return log.Barrier()
}

// maxWritten bounds the list that is read, in bytes.
const maxWritten = 256 << 20

// Written lists what the tools of an agent wrote, oldest first.
func (s Store) Written() (list []Written, err error) {
	path := s.List()
	data, _, err := beneath.Own(path, maxWritten)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what the agent wrote: %w", err)
	}
	n := 0
	for line := range bytes.Lines(data) {
		n++
		var w Written
		if err := json.Unmarshal(line, &w); err != nil && bytes.HasSuffix(line, []byte("\n")) {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		} else if err == nil { // a last line that a crash left half written: the file did not change
			list = append(list, w)
		}
	}

	return list, nil
}

// A Take is a file that can be taken back to what it was before some turns.
type Take struct {
	Step
	Turns []string // that wrote it and are taken back
	Now   State
	// Standing says how the file stands: Ready, Before, Between, Since, Again or Gone.
	Standing Standing
}

// A Standing is whether a file can be taken back.
type Standing string

const (
	Ready   Standing = "ready"   // it is as the agent left it
	Before  Standing = "before"  // it is as it was before: there is nothing to do
	Between Standing = "between" // someone else changed it between two writes of the agent, which would be lost
	Since   Standing = "since"   // someone else changed it since
	Again   Standing = "again"   // the agent wrote it again, in a turn that is not taken back
	Gone    Standing = "gone"    // its earlier content was not kept
)

// Mergeable reports that a file that someone else changed since holds text now and did before, so that both can be kept.
func (t Take) Mergeable() bool {
	return t.Standing == Since && t.Now.Other == "" && !t.Now.Missing() && !t.To.Missing() && !t.From.Missing()
}

// Needed are the names of the blobs that writes since a time need, for them to be shown and taken back.
func Needed(list []Written, since time.Time) map[string]bool {
	names := map[string]bool{}
	for _, w := range list {
		if w.At.After(since) {
			names[w.Before.SHA256], names[w.After.SHA256] = true, true
		}
	}

	return names
}

// Back computes what can be taken back if all that an undone call wrote is.
func (s Store) Back(list []Written, undone func(Written) bool) ([]Take, error) {
	files := map[string][]Written{}
	var order []string
	for _, w := range list {
		if files[w.File()] == nil {
			order = append(order, w.File())
		}
		files[w.File()] = append(files[w.File()], w)
	}
	slices.Sort(order)

	var takes []Take
	for _, name := range order {
		one, ok, err := s.back(files[name], undone)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if ok {
			takes = append(takes, one)
		}
	}

	return takes, nil
}

// back is what can be taken back of one file: the newest run of writes that are undone.
func (s Store) back(writes []Written, undone func(Written) bool) (t Take, ok bool, err error) {
	to := len(writes)
	for to > 0 && !undone(writes[to-1]) {
		to--
	}
	from := to
	for from > 0 && undone(writes[from-1]) {
		from--
	}
	if from == to {
		return t, false, nil
	}
	run := writes[from:to]
	if t.Now, err = lookIn(run[0].Folder, run[0].Path); err != nil {
		return t, false, err
	}
	last := len(run) - 1
	for i, w := range run {
		if !slices.Contains(t.Turns, w.Turn) {
			t.Turns = append(t.Turns, w.Turn)
		}
		if same(t.Now, w.After) {
			last = i // the newest write that it stands as: those after it may have been taken back already
		}
	}
	t.Step = Step{Folder: run[0].Folder, Path: run[0].Path, From: run[last].After, To: run[0].Before}
	if same(t.Now, t.From) {
		t.From = t.Now // with the mode that the umask left
	}
	if t.Now.SHA256 != "" && !slices.ContainsFunc(run[:last+1], Written.makes) {
		t.To.Mode = t.Now.Mode // tools change no modes: another one is someone else's
	}
	between := false
	for i := 1; i <= last; i++ {
		// A write that a crash kept from happening, or that was taken back, left what was there before.
		between = between || !same(run[i].Before, run[i-1].After) && !same(run[i].Before, run[i-1].Before)
	}

	switch {
	case same(t.Now, t.To):
		t.Standing = Before
	case t.To.Other != "" || !s.has(t.To):
		t.Standing = Gone
	case to < len(writes):
		t.Standing = Again
	case t.Now != t.From:
		t.Standing = Since
	case between:
		t.Standing = Between
	default:
		t.Standing = Ready
	}

	return t, true, nil
}

// same compares what files hold.
func same(a, b State) bool { return a.SHA256 == b.SHA256 && a.Other == b.Other }

// lookIn returns what is at a path of a folder.
func lookIn(folder, path string) (State, error) {
	dir, err := beneath.Root(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	if err != nil {
		return State{}, err
	}
	defer dir.Close()
	s, _, err := Look(dir, path)
	if err != nil {
		return State{Other: beneath.Reason(err).Error()}, nil
	}

	return s, nil
}

// TakeBack takes files back as one step: after a kill, the next TakeBack or Resume does the rest. A
// file that is not as it was looked at is left alone. With merge, a text that someone else changed
// since keeps that change, if it does not touch the same lines. Errors: ErrBusy.
func (s Store) TakeBack(takes []Take, merge bool) (results []Result, err error) {
	if err := s.Volume.MkdirAll(s.Dir); err != nil {
		return nil, err
	}
	err = s.Locked(func([]Result) error { return nil }, func() error {
		var steps []Step
		for _, t := range takes {
			step, why, err := s.step(t, merge)
			if err != nil {
				return err
			}
			if why != "" {
				results = append(results, Result{t.Step, Refused, why})
				continue
			}
			steps = append(steps, step)
		}
		carried, err := s.Carry(steps)
		results = append(results, carried...)
		if err != nil {
			return err
		}

		return s.Finish()
	})
	slices.SortFunc(results, func(a, b Result) int { return cmp.Compare(a.Path, b.Path) })

	return results, err
}

// step is what takes a file back; why is why that is not done.
func (s Store) step(t Take, merge bool) (step Step, why string, err error) {
	switch t.Standing {
	case Ready, Between:
		why, err := s.lost(t.To)
		return t.Step, why, err
	case Before:
		return step, "it is as it was before", nil
	case Gone:
		return step, "its earlier content was not kept: " + cmp.Or(t.To.Other, "it is older than retention.undo, or was deleted"), nil
	case Again:
		return step, "the agent wrote it again since", nil
	}
	if !merge {
		return step, "it changed since", nil
	}
	if !t.Mergeable() {
		return step, "it has changed since and cannot be merged", nil
	}
	left, leftErr := s.Get(t.From)
	before, beforeErr := s.Get(t.To)
	if err := errors.Join(leftErr, beforeErr); err != nil {
		return step, "", err
	}
	dir, err := beneath.Root(t.Folder)
	if err != nil {
		return step, "", err
	}
	defer dir.Close()
	now, err := content(dir, t.Path, t.Now)
	if err != nil {
		return step, "", err
	}
	both, err := Merge(string(left), string(before), string(now))
	if err != nil {
		return step, "it has changed since and cannot be merged: " + err.Error(), nil
	}
	step = Step{Folder: t.Folder, Path: t.Path, From: t.Now, To: StateOf([]byte(both), t.Now.Mode)}

	return step, "", s.Put([]byte(both))
}

// lost says why the content of a state cannot be had any more; "" if it can.
func (s Store) lost(of State) (why string, err error) {
	if of.SHA256 == "" {
		return "", nil
	}
	_, err = s.Get(of)
	if err != nil && !disk.Transient(err) {
		return "its earlier content cannot be read: " + err.Error(), nil
	}

	return "", err
}

// ReadFile returns the state of an open file that is kept before it is overwritten, and its content.
// One that is too large is not kept.
func ReadFile(f io.Reader, mode fs.FileMode, size int64) (State, []byte, error) {
	var data []byte
	if size <= maxFile {
		var err error
		if data, err = io.ReadAll(io.LimitReader(f, maxFile+1)); err != nil {
			return State{}, nil, err
		}
	}
	if size > maxFile || len(data) > maxFile { // it may have grown since it was looked at
		return State{Other: beneath.ErrTooLarge.Error()}, nil, nil
	}

	return StateOf(data, mode), data, nil
}
