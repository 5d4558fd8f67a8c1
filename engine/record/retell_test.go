package record

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A conversation that another program kept is what the model sees, and nothing in it is owed or was paid here.
func TestRetoldConversationIsSeenAndOwesNothing(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	cut := Retell("s1", "They spoke of tea.", []Said{
		{At: now.Add(-time.Hour), Text: "And coffee?"},
		{Text: "Coffee too.", Agent: true},
		{At: now.Add(-time.Minute), Text: "Thanks"},
	}, now)
	dir := t.TempDir()
	path := filepath.Join(dir, "history.jsonl")
	if err := os.WriteFile(path, cut.Content, 0o600); err != nil {
		t.Fatal(err)
	}
	if found := CheckHistory(path, cut.Content); len(found) > 0 {
		t.Errorf("the history has mistakes: %v", found)
	}
	if found, err := Check(dir, now); err != nil || len(found) > 0 {
		t.Errorf("the folder has mistakes: %v %v", found, err)
	}

	c, err := ContextOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, e := range c.Entries {
		switch r := e.Rec.(type) {
		case *User:
			texts = append(texts, "user: "+r.Text)
		case *Assistant:
			texts = append(texts, "agent: "+r.Text)
		}
	}

	if len(texts) != 3 || texts[0] != "user: And coffee?" || texts[1] != "agent: Coffee too." || texts[2] != "user: Thanks" {
		t.Errorf("the model sees %q", texts)
	}
	if c.Summary == nil || c.Summary.Rec.(*Summary).Text != "They spoke of tea." {
		t.Errorf("the summary is %+v", c.Summary)
	}
	if ok, err := Settled(dir); err != nil || !ok {
		t.Errorf("settled: %v %v", ok, err)
	}

	p, err := OpenPast(dir)
	if err != nil {
		t.Fatal(err)
	}
	if begin := p.Begins(); begin == nil || begin.Session != "s1" || begin.V != Version || !p.entries[0].At.Equal(now.Add(-time.Hour)) {
		t.Errorf("its session begins with %+v at %v", begin, p.entries[0].At)
	}

	if first := c.Entries[0].At; !first.Equal(now.Add(-time.Hour)) {
		t.Errorf("it begins at %v", first)
	}
	for _, said := range [][]Said{nil, {{Text: "hi"}}} {
		if empty := Retell("s1", "a summary", said, now); !strings.Contains(string(empty.Content), "2026-11-20T12:00:00") {
			t.Errorf("a conversation without a time begins\n%s", empty.Content)
		}
	}

	s, err := SessionOf(dir)
	if err != nil || s.Messages != 3 || s.Title != "And coffee?" || s.Cost != 0 || s.Summary != cut.Session.Summary {
		t.Errorf("session %+v %v", s, err)
	}
}
