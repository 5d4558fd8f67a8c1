package record

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"daycare/engine/message"
)

// Attached knows which attachments belong to which conversation: all that a user sent or a tool
// returned there, even if the session was reset since. It reads the histories, each time only what
// was added. Its methods may be called from any goroutine.
type Attached struct {
	mu     sync.Mutex
	agents map[string]attached // by folder
}

type attached struct {
	file  os.FileInfo // of history.jsonl when it was read
	seq   int64       // the newest record that was read
	names []string    // never changed once made
}

// NewAttached returns an Attached that has read nothing yet.
func NewAttached() *Attached { return &Attached{agents: map[string]attached{}} }

// Names returns the names in .daycare/files of all attachments in the history of the agent folder
// dir, newest first.
func (a *Attached) Names(dir string) ([]string, error) {
	info, err := os.Stat(filepath.Join(dir, historyName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	a.mu.Lock()
	known, ok := a.agents[dir]
	a.mu.Unlock()
	switch {
	case !ok || !os.SameFile(known.file, info) || info.Size() < known.file.Size():
		known = attached{} // rotated, or edited by hand: it is read again
	case info.Size() == known.file.Size() && info.ModTime().Equal(known.file.ModTime()) && time.Since(info.ModTime()) > time.Second:
		return known.names, nil
	}

	now := attached{file: info, seq: known.seq}
	err = backFiles(dir, func(l rawLine) bool {
		seq := seqOf(l.text)
		now.seq = max(now.seq, seq)
		if seq > 0 && seq <= known.seq {
			return false
		}

		for _, f := range filesOf(l.text) {
			if name := filepath.Base(f.Path); strings.HasPrefix(name, f.ID+"__") && !slices.Contains(known.names, name) {
				now.names = append(now.names, name)
			}
		}

		return true
	})
	if err != nil {
		return nil, err
	}

	now.names = append(now.names, known.names...)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.agents[dir] = now
	return now.names, nil
}

// filesOf returns the attachments of a line. A path in a text is not one.
func filesOf(line []byte) (files []message.File) {
	if !bytes.Contains(line, []byte(`"mimeType"`)) {
		return nil
	}
	e, err := Decode(line)
	if err != nil {
		return nil
	}

	switch rec := e.Rec.(type) {
	case *User:
		files = rec.Files
	case *ToolResult:
		files = slices.Clone(rec.Files)
		for _, b := range rec.Output.Blocks {
			if b.File != nil {
				files = append(files, *b.File)
			}
		}
	}

	return slices.DeleteFunc(files, func(f message.File) bool { return f.ID == "" })
}
