package chaos

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// This file reads what daycare wrote without daycare's own readers, so that a
// defect in those hides nothing.

// A line is any line of an inbox or a history, as far as it is judged.
type line struct {
	Seq        int64           `json:"seq"`
	Type       string          `json:"type"`
	ID         string          `json:"id"`
	IDs        []string        `json:"ids"`
	Item       string          `json:"item"`
	Items      []string        `json:"items"`
	Text       string          `json:"text"`
	Turn       string          `json:"turn"`
	Reason     string          `json:"reason"`
	Out        json.RawMessage `json:"out"`
	Error      string          `json:"error"`
	Final      bool            `json:"final"`
	ToolCallID string          `json:"toolCallId"`
	Status     string          `json:"status"`
	Silent     bool            `json:"silent"`
	Files      []struct {
		Path string `json:"path"`
	} `json:"files"`
	Output struct {
		Blob string `json:"blob"`
	} `json:"output"`
	ToolCalls []struct {
		ID string `json:"id"`
	} `json:"toolCalls"`
}

// key is the first word of a text.
func (l line) key() string {
	key, _, _ := strings.Cut(strings.TrimSpace(l.Text), " ")
	return key
}

// names are the files that a line of the folder dir speaks of.
func (l line) names(dir string) (paths []string) {
	for _, f := range l.Files {
		paths = append(paths, f.Path)
	}
	if l.Output.Blob != "" {
		paths = append(paths, filepath.Join(dir, "blobs", l.Output.Blob))
	}
	return paths
}

// promise is the id of the answer that an assistant_message promises.
func (l line) promise() string {
	var out struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(l.Out, &out) != nil {
		return ""
	}
	return out.ID
}

// delivered is the id that a delivery names.
func (l line) delivered() string {
	var id string
	if json.Unmarshal(l.Out, &id) != nil {
		return ""
	}
	return id
}

// A folder is what the files of one agent say.
type folder struct {
	dir     string
	inbox   []line
	history []line
	broken  []string // whole lines that are no lines: file and text
	torn    int      // tails that were cut off and kept
	litter  []string // what should have been cleaned up
	known   map[string]line
}

// agentFiles reads all agents of a .daycare directory. known are lines that were read
// before, by their text: what many cases begin with need not be parsed in each.
func agentFiles(root string, known map[string]line) ([]*folder, error) {
	entries, err := os.ReadDir(filepath.Join(root, "agents"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []*folder
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		a, err := readFolder(filepath.Join(root, "agents", e.Name()), known)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

func readFolder(dir string, known map[string]line) (*folder, error) {
	a := &folder{dir: dir, known: known}
	var err error
	if a.inbox, err = a.read("inbox.jsonl", nil); err != nil {
		return nil, err
	}
	closed, err := filepath.Glob(filepath.Join(dir, "history", "*.jsonl"))
	if err != nil {
		return nil, err
	}
	slices.Sort(closed)
	seen := map[string]bool{} // a rotation copies the lines that it keeps
	for _, path := range append(closed, filepath.Join(dir, "history.jsonl")) {
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return nil, err
		}
		lines, err := a.read(rel, seen)
		if err != nil {
			return nil, err
		}
		a.history = append(a.history, lines...)
	}
	return a, a.look()
}

// read reads one file of lines. A last line without newline is a write that a
// death cut: it is none yet.
func (a *folder) read(name string, seen map[string]bool) ([]line, error) {
	data, err := os.ReadFile(filepath.Join(a.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []line
	for raw := range bytes.Lines(data) {
		whole, ok := bytes.CutSuffix(raw, []byte{'\n'})
		if !ok {
			break
		}
		if seen != nil && seen[string(whole)] {
			continue
		}
		if seen != nil {
			seen[string(whole)] = true
		}
		l, ok := a.known[string(whole)]
		if ok {
			all = append(all, l)
			continue
		}
		if err := json.Unmarshal(whole, &l); err != nil {
			a.broken = append(a.broken, fmt.Sprintf("%s: %.80q", name, whole))
			continue
		}
		all = append(all, l)
	}
	return all, nil
}

// linesOf reads the histories and inboxes of a .daycare directory into a table of
// lines by their text.
func linesOf(root string) (map[string]line, error) {
	paths, err := filepath.Glob(filepath.Join(root, "agents", "*", "*.jsonl"))
	if err != nil {
		return nil, err
	}
	known := map[string]line{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		for raw := range bytes.Lines(data) {
			var l line
			if whole, ok := bytes.CutSuffix(raw, []byte{'\n'}); ok && json.Unmarshal(whole, &l) == nil {
				known[string(whole)] = l
			}
		}
	}
	return known, nil
}

// look counts what deaths left beside the files.
func (a *folder) look() error {
	entries, err := os.ReadDir(a.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case strings.Contains(name, ".torn-"):
			a.torn++
		case strings.HasPrefix(name, ".tmp-"), strings.HasPrefix(name, ".swap-"):
			a.litter = append(a.litter, filepath.Join(a.dir, name))
		}
	}
	return nil
}

// greeted reports whether the agent got the message after the last death.
func (a *folder) greeted() bool {
	return slices.ContainsFunc(a.history, func(l line) bool { return strings.HasPrefix(l.key(), "again") })
}

// open are the items of the inbox that no line closes.
func (a *folder) open() map[string]line {
	open, closed := map[string]line{}, map[string]bool{}
	for _, l := range a.inbox {
		switch l.Type {
		case "done":
			for _, id := range l.IDs {
				closed[id] = true
			}
		case "dropped":
			closed[l.ID] = true
		case "front", "keys":
		default:
			open[l.ID] = l
		}
	}
	for id := range closed {
		delete(open, id)
	}
	return open
}

// withoutTurn is the history without the turn that an item lies in; false: that
// turn is not over yet, or nothing follows it.
func (a *folder) withoutTurn(item string) ([]byte, bool) {
	turn, after := "", false
	for _, l := range a.history {
		if l.Type == "turn_end" {
			after = after || turn != ""
			if slices.Contains(l.Items, item) {
				turn = l.Turn
			}
		}
	}
	if !after {
		return nil, false
	}
	data, err := os.ReadFile(filepath.Join(a.dir, "history.jsonl"))
	if err != nil {
		return nil, false
	}
	var kept []byte
	for raw := range bytes.Lines(data) {
		var l line
		if json.Unmarshal(raw, &l) == nil && (l.Turn == turn || l.Item == item) {
			continue
		}
		kept = append(kept, raw...)
	}
	return kept, true
}
