package terminal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// What is kept on disk, in the folder of hints: where a user was, what was typed
// and not sent, what was read. Losing it loses no message; it is neither synced nor
// guarded against a second terminal, whose save then counts.
const (
	viewFile  = "view.json"
	typedFile = "typed.jsonl"
	keptTyped = 500     // lines of typed.jsonl that are offered again
	keptBytes = 4 << 20 // of their text: pastes are long
)

// A memory writes hints. An error is not told: nothing depends on it.
type memory struct {
	dir   string // "": nothing is kept
	saved []byte
}

// hints are view.json.
type hints struct {
	Shown  string               `json:"shown"` // agent; "" and Home false: the user's own
	Home   bool                 `json:"home"`
	Own    string               `json:"own,omitempty"`
	Ring   []string             `json:"ring,omitempty"`
	Drafts map[string]string    `json:"drafts,omitempty"`
	Seen   map[string]time.Time `json:"seen,omitempty"`
}

func (m *memory) load() (h hints, known bool) {
	data, err := os.ReadFile(filepath.Join(m.dir, viewFile))
	if m.dir == "" || err != nil || json.Unmarshal(data, &h) != nil {
		return hints{}, false
	}

	return h, true
}

// save publishes the hints if they changed.
func (m *memory) save(h hints) {
	if m.dir == "" {
		return
	}
	data, err := json.MarshalIndent(h, "", "  ")
	if err != nil || bytes.Equal(data, m.saved) || os.MkdirAll(m.dir, 0o700) != nil {
		return
	}
	path := filepath.Join(m.dir, viewFile)
	if os.WriteFile(path+".new", append(data, '\n'), 0o600) == nil && os.Rename(path+".new", path) == nil {
		m.saved = data
	}
}

// typed are the lines that were sent before, oldest first.
func (m *memory) typed() []string {
	f, err := os.Open(filepath.Join(m.dir, typedFile))
	if m.dir == "" || err != nil {
		return nil
	}
	defer f.Close()
	var lines []string
	in := bufio.NewReader(f)
	for err == nil {
		var line []byte
		line, err = in.ReadBytes('\n') // a paste makes a line long
		var text string
		if json.Unmarshal(line, &text) == nil && text != "" {
			lines = append(lines, text)
		}
	}
	if n := len(lines) - newestOf(lines); n > 0 {
		lines = lines[n:]
		m.shorten(lines)
	}

	return lines
}

// newestOf is how many of the lines are offered again: the newest, as many as are kept and
// at least one.
func newestOf(lines []string) (n int) {
	size := 0
	for _, l := range slices.Backward(lines) {
		if size += len(l); n == keptTyped || n > 0 && size > keptBytes {
			break
		}
		n++
	}

	return n
}

// shorten rewrites the file with fewer lines.
func (m *memory) shorten(lines []string) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, l := range lines {
		if enc.Encode(l) != nil {
			return
		}
	}
	path := filepath.Join(m.dir, typedFile)
	if os.WriteFile(path+".new", b.Bytes(), 0o600) == nil {
		_ = os.Rename(path+".new", path)
	}
}

// addTyped appends one line.
func (m *memory) addTyped(text string) {
	if m.dir == "" || os.MkdirAll(m.dir, 0o700) != nil {
		return
	}
	line, err := json.Marshal(text)
	if err != nil {
		return
	}
	f, err := os.OpenFile(filepath.Join(m.dir, typedFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.Write(append(line, '\n'))
}

// hintsOf are where the user is now.
func hintsOf(m *Model) hints {
	m.talk.keepDraft()
	h := hints{Shown: m.talk.agents.shown, Home: m.page == homePage, Own: m.talk.agents.own, Ring: slices.Clone(m.ring.visited),
		Drafts: map[string]string{}, Seen: m.world.seen}
	for id, c := range m.talk.agents.all {
		if c.draft != "" {
			h.Drafts[id] = c.draft
		}
	}

	return h
}

// restore goes back to where the user was.
func (h hints) restore(m *Model) {
	m.talk.agents.own, m.ring.visited = h.Own, h.Ring
	for id, text := range h.Drafts {
		m.talk.agents.get(id).draft = text
	}
	if h.Seen != nil {
		m.world.seen = h.Seen
	}
	m.talk.agents.shown = h.Shown
	m.page = talkPage
	if h.Home {
		m.page = homePage
	}
	m.returning = true
}
