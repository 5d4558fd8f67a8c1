package chaos

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// This file reads what daycare wrote without daycare's own readers, so that a
// defect in those hides nothing.

// A line is any line of an inbox or a history, as far as it is judged.
type line struct {
	Seq  int64     `json:"seq"`
	At   time.Time `json:"at"`
	Type string    `json:"type"`
	lineItems
	lineMessage
	Turn      string     `json:"turn"`
	Reason    string     `json:"reason"`
	ToolCalls []toolCall `json:"toolCalls"`
	lineResult
	lineDelivery
	lineDecision

	before bool // the case begins with it
}

// lineItems are the inbox items that a line is about.
type lineItems struct {
	ID    string   `json:"id"`
	IDs   []string `json:"ids"`
	Item  string   `json:"item"`
	Items []string `json:"items"`
}

// lineMessage is a message: what was said, by whom, and where the answer goes.
type lineMessage struct {
	Text    string `json:"text"`
	Origin  string `json:"origin"`
	Context struct {
		Sender string `json:"sender"`
	} `json:"context"`
	Route  *route      `json:"route"`
	Files  []reference `json:"files"`
	Silent bool        `json:"silent"`
	Joins  bool        `json:"joins"` // it continues the message before it
}

// lineResult is the result of a tool call.
type lineResult struct {
	ToolCallID string `json:"toolCallId"`
	Name       string `json:"name"`
	Status     string `json:"status"`
	Output     output `json:"output"`
}

// lineDelivery is the delivery of an answer.
type lineDelivery struct {
	Out   json.RawMessage `json:"out"`
	Part  int             `json:"part"`
	Parts int             `json:"parts"`
	Error string          `json:"error"`
	Final bool            `json:"final"`
}

// lineDecision is a step of an approval request.
type lineDecision struct {
	Event    string `json:"event"`
	Token    string `json:"token"`
	Decision string `json:"decision"`
}

// A route says where an answer goes.
type route struct {
	Connector string `json:"connector"`
	Channel   string `json:"channelId"`
}

// A reference names a file of the workspace.
type reference struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

type output struct {
	Text string `json:"text"`
	Blob string `json:"blob"`
}

type toolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments struct {
		Command string `json:"command"`
		Path    string `json:"path"`
	} `json:"arguments"`
}

// key is the first word of a text.
func (l line) key() string {
	key, _, _ := strings.Cut(strings.TrimSpace(l.Text), " ")
	return key
}

// names are the files that a line of the folder dir speaks of.
func (l line) names(dir string) (paths []string) {
	for _, f := range l.Files {
		paths = append(paths, f.at(dir))
	}
	if l.Output.Blob != "" {
		paths = append(paths, filepath.Join(dir, "blobs", l.Output.Blob))
	}

	return paths
}

// at is where the file is that a line of an agent's folder names: by itself, or from the
// workspace, or from its .daycare directory.
func (r reference) at(dir string) string {
	if filepath.IsAbs(r.Path) {
		return r.Path
	}
	root := filepath.Dir(filepath.Dir(dir))
	if path := filepath.Join(root, r.Path); exists(path) {
		return path
	}

	return filepath.Join(filepath.Dir(root), r.Path)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// promise is the id of the answer that an assistant_message promises.
func (l line) promise() string {
	id, _ := l.promised()
	return id
}

// promised is also where it goes.
func (l line) promised() (id string, to route) {
	var out struct {
		ID string `json:"id"`
		To route  `json:"to"`
	}
	if json.Unmarshal(l.Out, &out) != nil {
		return "", route{}
	}

	return out.ID, out.To
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
	of      descriptor
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
	dirs, err := agentFolders(root)
	if err != nil {
		return nil, err
	}
	all := make([]*folder, len(dirs))
	for i, dir := range dirs {
		if all[i], err = readFolder(dir, known); err != nil {
			return nil, err
		}
	}

	return all, nil
}

// agentFolders lists the folders of agents, without those that are being made.
func agentFolders(root string) (dirs []string, err error) {
	entries, err := os.ReadDir(filepath.Join(root, "agents"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}

	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			dirs = append(dirs, filepath.Join(root, "agents", e.Name()))
		}
	}

	return dirs, err
}

func readFolder(dir string, known map[string]line) (*folder, error) {
	a := &folder{dir: dir, known: known}
	var err error
	if a.of, err = readDescriptor(dir); err != nil {
		return nil, err
	}
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

// A descriptor says whose agent it is.
type descriptor struct {
	Type      string `json:"type"`
	Connector string `json:"connector"`
	Channel   string `json:"channelId"`
}

// readDescriptor reads descriptor.json; a folder that is being made or removed has none.
func readDescriptor(dir string) (d descriptor, err error) {
	data, err := os.ReadFile(filepath.Join(dir, "descriptor.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &d)
	}

	return d, err
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
	for whole := range wholeLines(name, data) {
		if seen != nil && seen[string(whole)] {
			continue
		}
		if seen != nil {
			seen[string(whole)] = true
		}

		l, ok := a.known[string(whole)]
		if ok {
			l.before = true
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

// wholeLines are the lines of a file that end. Where a newline was the first byte of a block that a power cut took, a line of an
// inbox has zeros in its place: then the messages before and behind them are read nevertheless, as daycare does.
func wholeLines(name string, data []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for raw := range bytes.Lines(data) {
			whole, ok := bytes.CutSuffix(raw, []byte{'\n'})
			if !ok {
				return
			}
			pieces := [][]byte{whole}
			if name == "inbox.jsonl" && len(bytes.Trim(whole, "\x00")) > 0 {
				pieces = bytes.FieldsFunc(whole, func(r rune) bool { return r == 0 })
			}
			for _, piece := range pieces {
				if !yield(piece) {
					return
				}
			}
		}
	}
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

// withoutTurn is the history without the turn that an item is in; false: that
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
