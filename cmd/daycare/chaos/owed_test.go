package chaos

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What an agent still has to do is found out from its logs, also when they grow, are rotated
// or edited between two looks.
func TestFollower(t *testing.T) {
	const (
		item      = `{"type":"message","id":"i1"}`
		done      = `{"type":"done","ids":["i1"]}`
		dropped   = `{"type":"dropped","id":"i1"}`
		begun     = `{"type":"turn_begin","turn":"t1"}`
		promised  = `{"type":"assistant_message","turn":"t1","out":{"id":"o1","to":{"connector":"hooks"}}}`
		ended     = `{"type":"turn_end","turn":"t1"}`
		delivered = `{"type":"delivery","out":"o1","part":0,"parts":1}`
		half      = `{"type":"delivery","out":"o1","part":0,"parts":2}`
		rest      = `{"type":"delivery","out":"o1","part":1,"parts":2}`
		failed    = `{"type":"delivery","out":"o1","parts":1,"error":"x"}`
		givenUp   = `{"type":"delivery","out":"o1","parts":2,"error":"x","final":true}`
		allowed   = `{"type":"permission","event":"once"}`
		asked     = `{"type":"permission","event":"asked"}`
	)
	for name, tt := range map[string]struct {
		inbox, history []string
		want           string
	}{
		"nothing":           {history: []string{begun, promised, ended, delivered}},
		"item":              {inbox: []string{item}, want: "item i1 is open"},
		"item done":         {inbox: []string{item, done}},
		"item dropped":      {inbox: []string{item, dropped}},
		"done before it":    {inbox: []string{done, item}},
		"turn":              {history: []string{begun}, want: "turn t1 is under way"},
		"answer":            {history: []string{begun, promised, ended}, want: "answer o1 is not delivered"},
		"half of an answer": {history: []string{begun, promised, ended, half}, want: "answer o1 is not delivered"},
		"both halves":       {history: []string{begun, promised, ended, half, rest}},
		"failed":            {history: []string{begun, promised, ended, failed}, want: "answer o1 is not delivered"},
		"given up":          {history: []string{begun, promised, ended, givenUp}},
		"said again":        {history: []string{begun, promised, ended, delivered, promised}},
		"request":           {history: []string{begun, asked, ended}},
		"decision":          {history: []string{begun, ended, allowed}, want: "a turn is due"},
		"decision acted on": {history: []string{allowed, begun, ended}},
		"half a line":       {history: []string{begun, ended, `{"type":"turn_beg`}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			dir := filepath.Join(root, "agents", "a1")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			f := newFollower(root, nil)
			for n := range max(len(tt.inbox), len(tt.history)) + 1 { // a line more each time
				grow(t, filepath.Join(dir, "inbox.jsonl"), tt.inbox, n)
				grow(t, filepath.Join(dir, "history.jsonl"), tt.history, n)
				if _, _, err := f.rest(); err != nil {
					t.Fatal(err)
				}
			}
			for _, one := range []*follower{f, newFollower(root, nil)} {
				got, _, err := one.rest()
				if err != nil || tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
					t.Errorf("left to do: %q (%v), want %q", got, err, tt.want)
				}
			}
			write(t, filepath.Join(dir, "new"), begun+"\n")
			if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "history.jsonl")); err != nil {
				t.Fatal(err)
			}
			if got, _, err := f.rest(); err != nil || !strings.Contains(got, "turn t1 is under way") {
				t.Errorf("after another file took its place: %q (%v)", got, err)
			}
		})
	}
}

// grow writes the first n lines; one that begins like a torn one has no end.
func grow(t *testing.T, path string, lines []string, n int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n < 1 || n > len(lines) {
		return
	}

	l := lines[n-1]
	if strings.HasSuffix(l, "}") {
		l += "\n"
	}
	if _, err := f.WriteString(l); err != nil {
		t.Fatal(err)
	}
}
