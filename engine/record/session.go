package record

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"daycare/engine/disk"
)

// A Session is the conversation from one start or reset to the next, with its totals.
type Session struct {
	ID               string     `json:"id"`
	Parent           string     `json:"parent,omitempty"` // id of the agent that it was forked from, or that started this one
	Title            string     `json:"title"`            // its first message, shortened
	StartedAt        disk.Stamp `json:"startedAt,omitzero"`
	UpdatedAt        disk.Stamp `json:"updatedAt,omitzero"`
	Messages         int        `json:"messages"` // user and assistant messages
	PromptTokens     int64      `json:"promptTokens"`
	CompletionTokens int64      `json:"completionTokens"`
	Cost             float64    `json:"cost"`              // US dollars
	Summary          int64      `json:"summary,omitempty"` // seq of its newest summary
	First            int64      `json:"first,omitempty"`   // seq of the record that began it
}

// maxTitle is how long a session's title may be, in characters.
const maxTitle = 60

// tally keeps the session's counts, made on first use and extended by appends.
type tally struct {
	s      Session
	loaded bool
	ended  []EndedSession // not yet in sessions.jsonl
}

// apply counts an appended entry.
func (t *tally) apply(e *Entry) {
	switch r := e.Rec.(type) {
	case *Start:
		t.begin(r.Session, e)
		if r.ForkedFrom != nil {
			t.s.Parent = r.ForkedFrom.Agent
		}
	case *Reset:
		t.begin(r.Session, e)
	default:
		if t.loaded {
			t.s.count(e)
		}
	}
}

func (t *tally) begin(session string, e *Entry) {
	t.s, t.loaded = Session{ID: session, First: e.Seq, StartedAt: disk.StampOf(e.At), UpdatedAt: disk.StampOf(e.At)}, true
}

func (s *Session) count(e *Entry) {
	if e.At.After(s.UpdatedAt.Time) {
		s.UpdatedAt = disk.StampOf(e.At)
	}
	switch r := e.Rec.(type) {
	case *User:
		s.Messages++
		if s.Title == "" && r.Origin == "" {
			s.Title = title(r.Text)
		}
	case *Assistant:
		if r.Finish != FinishInterrupted && (r.Finish != FinishCanceled || visible(e)) {
			s.Messages++
		}
		s.spend(r.Provider, r.Tokens, r.Cost)
	case *Summary:
		s.Summary = e.Seq
		s.spend(r.Provider, r.Tokens, r.Cost)
	}
}

// spend counts a call of a model. What a fork took along names no provider: it was
// paid for by the other agent.
func (s *Session) spend(provider string, t Tokens, cost float64) {
	if provider == "" {
		return
	}
	s.PromptTokens += t.Input + t.CacheRead + t.CacheWrite
	s.CompletionTokens += t.Output
	s.Cost += cost
}

// title is a text as one line of at most maxTitle characters.
func title(text string) string {
	line := strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(line) <= maxTitle {
		return line
	}

	return strings.TrimSpace(string([]rune(line)[:maxTitle-1])) + "…"
}

// Session counts the current session. The first call reads what came after the counts in
// state.json, or the whole session if there are none.
func (h *History) Session() (Session, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.session()
}

// session is Session for who holds h.mu.
func (h *folded) session() (Session, error) {
	if !h.tally.loaded {
		if err := h.countSession(); err != nil {
			return Session{}, fmt.Errorf("count session: %w", err)
		}
	}

	return h.tally.s, nil
}

func (h *folded) countSession() error {
	t := &h.tally
	cached, _, _, err := ReadState(h.dir)
	if err != nil || cached.Session.ID != h.fold.o.Session || cached.Seq > h.fold.o.LastSeq {
		cached = State{}
	}

	s, err := countAfter(cached, func(fn func(*Entry) bool) error {
		return h.backAll(func(l rawLine) bool {
			e := h.report.decode(l)
			return e == nil || fn(e)
		})
	})
	if err != nil {
		return err
	}
	if s.ID == "" {
		s.ID = h.fold.o.Session
	}

	t.s, t.loaded = s, true
	return nil
}

// SessionOf counts the current session of the folder dir, whether the agent runs or not. Unreadable
// lines are skipped.
func SessionOf(dir string) (Session, error) {
	cached, _, _, _ := ReadState(dir) // where it cannot be read, all is counted
	s, err := countAfter(cached, func(fn func(*Entry) bool) error {
		return backFiles(dir, func(l rawLine) bool {
			e, err := Decode(bytes.TrimSpace(l.text))
			return err != nil || fn(e)
		})
	})
	if err != nil {
		return Session{}, fmt.Errorf("count session: %w", err)
	}

	return s, nil
}

// countAfter counts what came after the counts in a state, and without those the
// whole session. back calls fn with the entries, the newest first, until it
// returns false.
func countAfter(cached State, back func(fn func(*Entry) bool) error) (Session, error) {
	var tail []*Entry
	err := back(func(e *Entry) bool {
		if cached.Seq > 0 && e.Seq > 0 && e.Seq <= cached.Seq {
			return false
		}
		start, begins := e.Rec.(*Start)
		if begins && start.Continues != "" {
			return true
		}
		tail = append(tail, e)
		_, reset := e.Rec.(*Reset)

		return !begins && !reset
	})
	if err != nil {
		return Session{}, err
	}

	t := tally{loaded: true}
	if cached.Seq > 0 {
		t.s = cached.Session
	}
	for i := len(tail) - 1; i >= 0; i-- {
		t.apply(tail[i])
	}

	return t.s, nil
}

// A Usage sums up the calls of one model.
type Usage struct {
	Input      int64   `json:"input"`
	Output     int64   `json:"output"`
	CacheRead  int64   `json:"cacheRead"`
	CacheWrite int64   `json:"cacheWrite"`
	Cost       float64 `json:"cost"` // US dollars
	Calls      int     `json:"calls"`
}

// Stats is usage by provider and model.
type Stats map[string]map[string]Usage

func (s Stats) add(provider, model string, t Tokens, cost float64) {
	if provider == "" {
		return
	}
	if s[provider] == nil {
		s[provider] = map[string]Usage{}
	}

	u := s[provider][model]
	u.Input, u.Output = u.Input+t.Input, u.Output+t.Output
	u.CacheRead, u.CacheWrite = u.CacheRead+t.CacheRead, u.CacheWrite+t.CacheWrite
	u.Cost, u.Calls = u.Cost+cost, u.Calls+1
	s[provider][model] = u
}

// Add adds other to s.
func (s Stats) Add(other Stats) {
	for provider, models := range other {
		if s[provider] == nil {
			s[provider] = map[string]Usage{}
		}
		for model, u := range models {
			sum := s[provider][model]
			sum.Input, sum.Output = sum.Input+u.Input, sum.Output+u.Output
			sum.CacheRead, sum.CacheWrite = sum.CacheRead+u.CacheRead, sum.CacheWrite+u.CacheWrite
			sum.Cost, sum.Calls = sum.Cost+u.Cost, sum.Calls+u.Calls
			s[provider][model] = sum
		}
	}
}

// Totals sums the usage of the records after since, and returns the usage of the last request among
// them; nil if there was none. It reads no further back.
func (h *History) Totals(since int64) (Stats, *Tokens, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	stats := Stats{}
	var last *Tokens
	err := h.backAll(func(l rawLine) bool {
		if seq := seqOf(l.text); seq > 0 && seq <= since {
			return false
		}
		head, ok := readHead(l.text)
		if ok && head.typ != TypeAssistant && head.typ != TypeSummary {
			return true
		}
		if e := h.report.decode(l); e != nil && (e.Seq == 0 || e.Seq > since) {
			stats.entry(e)
			if as, ok := e.Rec.(*Assistant); ok && last == nil && as.Provider != "" {
				last = &as.Tokens
			}
		}

		return true
	})

	return stats, last, err
}

func (s Stats) entry(e *Entry) {
	switch r := e.Rec.(type) {
	case *Assistant:
		s.add(r.Provider, r.Model, r.Tokens, r.Cost)
	case *Summary:
		s.add(r.Provider, r.Model, r.Tokens, r.Cost)
	}
}
