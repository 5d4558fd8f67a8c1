package chaos

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// This file finds out from the logs what an agent still has to do, without the fold of
// daycare, so that a defect in that is seen.

// open are the items of the inbox that no line closes.
func (a *folder) open() map[string]line {
	o := newOwed()
	for _, l := range a.inbox {
		o.item(l)
	}

	return o.items
}

// An owed is what is still to be done by the lines that it was shown.
type owed struct {
	items   map[string]line // open in the inbox
	closed  map[string]bool
	turn    string                  // in progress
	turnDue bool                    // after a decision
	outs    map[string]map[int]bool // answers promised: their parts that arrived
	settled map[string]bool         // answers that arrived, or were given up
}

func newOwed() *owed {
	return &owed{items: map[string]line{}, closed: map[string]bool{}, outs: map[string]map[int]bool{}, settled: map[string]bool{}}
}

// item takes in a line of the inbox.
func (o *owed) item(l line) {
	switch l.Type {
	case "done":
		for _, id := range l.IDs {
			o.closed[id] = true
			delete(o.items, id)
		}
	case "dropped":
		o.closed[l.ID] = true
		delete(o.items, l.ID)
	case "front", "keys":
	default:
		if !o.closed[l.ID] {
			o.items[l.ID] = l
		}
	}
}

// record takes in a line of the history.
func (o *owed) record(l line) {
	switch l.Type {
	case "turn_begin":
		o.turn, o.turnDue = l.Turn, false
	case "turn_end":
		o.turn, o.turnDue = "", false
	case "reset":
		o.turn, o.turnDue = "", false
	case "permission":
		answer := l.Event == "once" || l.Event == "always" || l.Event == "deny" || l.Event == "expired" || l.Event == "freed"
		o.turnDue = o.turnDue || answer && !l.Silent && o.turn == ""
	case "assistant_message":
		if id := l.promise(); id != "" && !o.settled[id] && o.outs[id] == nil {
			o.outs[id] = map[int]bool{}
		}
	case "delivery":
		o.delivery(l)
	}
}

func (o *owed) delivery(l line) {
	id := l.delivered()
	if l.Error != "" && !l.Final || o.settled[id] {
		return
	}
	parts := o.outs[id]
	if parts == nil {
		parts = map[int]bool{}
		o.outs[id] = parts
	}

	parts[l.Part] = true
	if l.Error != "" || len(parts) >= l.Parts {
		o.settled[id] = true
		delete(o.outs, id)
	}
}

// rest says what is left to do; "": nothing.
func (o *owed) rest() string {
	var all []string
	for _, id := range slices.Sorted(maps.Keys(o.items)) {
		all = append(all, "item "+id+" is open")
	}
	if o.turn != "" {
		all = append(all, "turn "+o.turn+" is under way")
	}
	if o.turnDue {
		all = append(all, "a turn is due after a decision")
	}

	for _, id := range slices.Sorted(maps.Keys(o.outs)) {
		all = append(all, "answer "+id+" is not delivered")
	}

	return strings.Join(all, ", ")
}

// A follower knows what the agents of a workspace still have to do, and reads no more
// than what was added to their logs since it last looked.
type follower struct {
	root   string
	known  map[string]line      // lines that were read before, by their text
	agents map[string]*followed // by folder
}

type followed struct {
	owed           *owed
	inbox, history tail
}

// A tail is how far a log was read.
type tail struct {
	inode uint64
	at    int64
	saved int64 // when it was written, in nanoseconds
}

func newFollower(root string, known map[string]line) *follower {
	return &follower{root: root, known: known, agents: map[string]*followed{}}
}

// rest says what is left to do, and how many bytes of logs were read in all; "": nothing.
func (f *follower) rest() (rest string, size int64, err error) {
	dirs, err := agentFolders(f.root)
	if err != nil {
		return "", 0, err
	}
	maps.DeleteFunc(f.agents, func(dir string, _ *followed) bool { return !slices.Contains(dirs, dir) })
	var all []string
	for _, dir := range dirs {
		one := f.agents[dir]
		if one == nil || !one.catchUp(dir, f.known) {
			if one, err = f.follow(dir); err != nil {
				return "", 0, err
			}
			f.agents[dir] = one
		}

		size += one.inbox.at + one.history.at
		if left := one.owed.rest(); left != "" {
			all = append(all, left)
		}
	}

	if len(dirs) == 0 {
		all = append(all, "no agent is there")
	}
	for _, dir := range []string{"drop", "drop/.taken"} {
		if names := filesIn(filepath.Join(f.root, dir)); len(names) > 0 {
			all = append(all, strings.Join(names, " and ")+" in "+dir)
		}
	}

	return strings.Join(all, ", "), size, nil
}

// filesIn lists the files of a folder that mean something to the daemon.
func filesIn(dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}

	for _, e := range entries {
		if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !strings.HasSuffix(e.Name(), "~") {
			names = append(names, e.Name())
		}
	}

	return names
}

// follow reads the logs of an agent from the beginning.
func (f *follower) follow(dir string) (*followed, error) {
	one := &followed{owed: newOwed()}
	closed, err := filepath.Glob(filepath.Join(dir, "history", "*.jsonl"))
	if err != nil {
		return nil, err
	}

	slices.Sort(closed)

	for _, path := range closed {
		if err := new(tail).read(path, f.known, one.owed.record); err != nil && !errors.Is(err, errOther) {
			return nil, err
		}
	}

	if !one.catchUp(dir, f.known) {
		return nil, errors.New("the logs of " + dir + " change all the time")
	}

	return one, nil
}

// catchUp reads what was added; false: the logs are others, or were edited.
func (one *followed) catchUp(dir string, known map[string]line) bool {
	return one.inbox.read(filepath.Join(dir, "inbox.jsonl"), known, one.owed.item) == nil &&
		one.history.read(filepath.Join(dir, "history.jsonl"), known, one.owed.record) == nil
}

// errOther: the file is another one than before.
var errOther = errors.New("another file")

// read shows the lines that were added to a log. A last line without its end is left for
// the next time. One that cannot be read is judged elsewhere.
func (t *tail) read(path string, known map[string]line, show func(line)) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && t.inode == 0 {
		return nil
	}
	if err != nil {
		return err
	}

	inode, saved := info.Sys().(*syscall.Stat_t).Ino, info.ModTime().UnixNano()
	switch {
	case t.inode != 0 && (inode != t.inode || info.Size() < t.at || info.Size() == t.at && saved != t.saved):
		return errOther
	case info.Size() == t.at:
		t.inode, t.saved = inode, saved
		return nil
	}

	data, err := readFrom(path, t.at)
	if err != nil {
		return err
	}
	t.inode, t.saved = inode, saved

	for raw := range bytes.Lines(data) {
		whole, ok := bytes.CutSuffix(raw, []byte{'\n'})
		if !ok {
			break
		}
		t.at += int64(len(raw))
		l, ok := known[string(whole)]
		if ok || json.Unmarshal(whole, &l) == nil {
			show(l)
		}
	}

	return nil
}

func readFrom(path string, at int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}

	data := make([]byte, max(0, info.Size()-at))
	n, err := f.ReadAt(data, at)
	if n == len(data) {
		err = nil
	}

	return data[:n], err
}
