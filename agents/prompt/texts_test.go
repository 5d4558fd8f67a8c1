package prompt

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/agents/providers"
	"daycare/engine/message"
	"daycare/engine/record"
	"daycare/engine/unseen"
	"daycare/engine/workspace"
)

// media are the pictures and documents in messages, and how many bytes they have.
func media(list []*providers.Message) (n, size int) {
	for _, m := range list {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case providers.Image:
				n, size = n+1, size+len(p.Data)
			case providers.Document:
				n, size = n+1, size+len(p.Data)
			case providers.Result:
				for _, img := range p.Images {
					n, size = n+1, size+len(img.Data)
				}
				for _, doc := range p.Documents {
					n, size = n+1, size+len(doc.Data)
				}
			}
		}
	}
	return n, size
}

// The list of how-tos has an end, and so has what is said of each.
func TestTheListOfSkillsHasAnEnd(t *testing.T) {
	if sys := System(Definition{}); strings.Contains(sys, "# Skills") {
		t.Error("skills are spoken of where there are none")
	}
	for n, more := range map[int]string{1: "", 40: "", 42: "\n- and 2 more"} {
		d := Definition{}
		for i := range n {
			d.Skills = append(d.Skills, Skill{Name: fmt.Sprint("s", i), Description: strings.Repeat("ä", 300)})
		}
		d.Skills[0].Description += "ä"
		text := skills(d.Skills)
		if strings.Count(text, "\n- s") != min(n, 40) || !strings.HasSuffix(text, more) || strings.Contains(text, "more") != (more != "") ||
			strings.Count(text, "…") != 1 || strings.Contains(text, strings.Repeat("ä", 301)) {
			t.Errorf("of %d skills is said\n%.300s", n, text)
		}
	}
}

// An agent in the background knows what it is for.
func TestWhatABackgroundAgentIsFor(t *testing.T) {
	for want, d := range map[string]Definition{
		"a sub-agent for one task.":                 {Role: Subagent},
		"a sub-agent of agent x, for one task.":     {Role: Subagent, Parent: "x"},
		"a scheduled task wakes you.":               {Role: Cron},
		"a heartbeat wakes you to look":             {Role: Heartbeat},
		"a standing colleague of the other agents.": {Role: Permanent},
		"an agent of type odd.":                     {Role: "odd"},
	} {
		if sys := System(d); !strings.Contains(sys, "You are in the background: "+want) {
			t.Errorf("a %s does not read %q:\n%s", d.Role, want, sys)
		}
	}
	for role, foreground := range map[Role]bool{User: true, "": true, Cron: false} {
		if got := strings.Contains(System(Definition{Role: role}), "goes to the person in the chat"); got != foreground {
			t.Errorf("a %q speaks to a person: %v", role, got)
		}
	}
	if sys := System(Definition{Handle: "0/"}); !strings.HasPrefix(sys, "You are an agent (handle 0/).") {
		t.Errorf("without a name: %.60s", sys)
	}
}

// A long text is cut at the end of a line where one is near, never within a character.
func TestWhereALongTextIsCut(t *testing.T) {
	line := strings.Repeat("x", MaxFile/2)
	for name, tt := range map[string]struct {
		text string
		kept int // -1: all
	}{
		"as long as it may be":  {strings.Repeat("x", MaxFile), -1},
		"one byte more":         {strings.Repeat("x", MaxFile+1), MaxFile},
		"an end of line near":   {line + "xx\n" + line, MaxFile/2 + 2},
		"one that is too early": {line[1:] + "\n" + line + "x", MaxFile},
		"within a character":    {strings.Repeat("x", MaxFile-1) + "é", MaxFile - 1},
	} {
		want := tt.text
		if tt.kept >= 0 {
			want = fmt.Sprintf("%s\n[cut here: the first %d of at least %d bytes are shown]", tt.text[:tt.kept], tt.kept, len(tt.text))
		}
		if got := capped(tt.text); got != want {
			t.Errorf("%s: %d bytes are kept: %q", name, strings.IndexByte(got, '['), got[max(0, len(got)-80):])
		}
	}
}

// Which kinds of files are read as text, however they are written.
func TestWhichFilesAreText(t *testing.T) {
	for kind, want := range map[string]bool{"text/plain": true, "text/html; charset=utf-8": true, "application/json": true,
		"application/x-sh":    true,
		"application/ld+json": true, "application/atom+xml": true, "image/svg+xml": false, "application/zip": false, "image/png": false,
		"application/yaml": true, "": false} {
		if got := textual(kind); got != want {
			t.Errorf("%q is text: %v", kind, got)
		}
	}
}

// Of a text file as much is shown as there is room for, to the end of a line where one is
// near, and of several no more than a message may have.
func TestHowMuchOfATextFileIsShown(t *testing.T) {
	for name, tt := range map[string]struct {
		text  string
		limit int
		want  string
		note  string
	}{
		"all of it":            {"one\ntwo\n", 8, "one\ntwo", ""},
		"lines":                {"one\ntwo\nthree", 9, "one\ntwo", "its first 7 bytes follow"},
		"no line that is near": {"o\ntwothreefour", 9, "o\ntwothre", "its first 9 bytes follow"},
		"whole characters":     {"ääää", 5, "ää", "its first 4 bytes follow"},
		"no text":              {"a\x00b", 9, "", ""}, "not UTF-8": {"a\xff", 9, "", ""},
	} {
		b := NewBuilder(Sources{File: func(message.File) ([]byte, error) { return []byte(tt.text), nil }})
		if text, note := b.text(message.File{}, tt.limit); text != tt.want || note != tt.note {
			t.Errorf("%s: %q, %q, want %q, %q", name, text, note, tt.want, tt.note)
		}
	}
	b := NewBuilder(Sources{File: func(f message.File) ([]byte, error) { return bytes.Repeat([]byte("x"), int(f.Size)), nil }})
	for _, tt := range []struct {
		limit int
		size  int64
		want  string
	}{{1023, 1024, "not shown: the files before it are long"}, {1023, 1023, ""}, {1024, 9999, "its first 1024 bytes follow"},
		{9, maxFile + 1, "not shown: the files before it are long"},
		{9999, maxFile + 1, "too large to be shown"}} {
		if _, note := b.text(message.File{Size: tt.size}, tt.limit); note != tt.want {
			t.Errorf("of %d bytes with room for %d: %q, want %q", tt.size, tt.limit, note, tt.want)
		}
	}
	u := asks("Look.")
	for i := range 4 {
		u.Files = append(u.Files, file(fmt.Sprint(i, ".txt"), "text/plain", 30<<10))
	}
	text := build(t, b, talk(u)).Messages[0].Parts[0].(providers.Text).Text
	if n := strings.Count(text, "x"); n < maxTexts || n > maxTexts+20 ||
		!strings.Contains(text, "not shown: the files before it are long") {
		t.Errorf("of four long files %d bytes are shown", n)
	}
}

// Arguments are one JSON object, whatever the model wrote.
func TestArgumentsAreAnObject(t *testing.T) {
	for in, want := range map[string]string{"": "{}", " { \"a\" : 1 } ": `{"a":1}`, `""`: "{}",
		`"{oops"`: `{"not_an_object":"{oops"}`, "null": "{}",
		"[1, 2]": `{"not_an_object":"[1,2]"}`, "{oops": `{"not_an_object":"{oops"}`, "7": `{"not_an_object":"7"}`} {
		if got := string(arguments([]byte(in))); got != want {
			t.Errorf("%q becomes %s, want %s", in, got, want)
		}
	}
}

// What the model reads of a call says how it ended, once.
func TestWhatIsReadOfAResult(t *testing.T) {
	for _, tt := range []struct {
		status record.Status
		text   string
		want   string
		bad    bool
	}{
		{record.StatusOK, " ", emptyText, false}, {"", "x", "x", false}, {record.StatusError, " ", errorText, true},
		{record.StatusError, "no", "no", true},
		{record.StatusDenied, "", deniedText, true}, {record.StatusDenied, "permission is not there", "permission is not there", true},
		{record.StatusCanceled, "Cancelled.", canceledText, true}, {record.StatusInterrupted, "half of it",
			interruptedText + "\nhalf of it", true},
		{record.StatusTimeout, "timed out after 3 s", "timed out after 3 s", true},
		{"odd", "x", "The call ended with the status odd.\nx", true},
	} {
		if got, bad := resultText(tt.status, tt.text); got != tt.want || bad != tt.bad {
			t.Errorf("%s %q is read as %q (%v), want %q", tt.status, tt.text, got, bad, tt.want)
		}
	}
}

// All that is sent counts: thoughts with their signature, calls and tools.
func TestHowLongARequestIs(t *testing.T) {
	m := &providers.Message{Parts: []providers.Part{providers.Text{Text: "ää"}, providers.Reasoning{Text: "ääää", Signature: "12345678"},
		providers.Call{Name: "read", Arguments: []byte(`{"a":1}`)}, providers.Result{Text: "ä", Images: make([]providers.Image, 1),
			Documents: make([]providers.Document, 2)},
		providers.Image{}, providers.Document{}}}
	if got, want := messageChars(m), 2+12+11+1+5*imageChars; got != want {
		t.Errorf("a message has %d characters, want %d", got, want)
	}
	var e estimate
	if e.fixed("ääää", []providers.Tool{{Name: "read", Description: "ää", Schema: []byte("123456")}}); e.static != 16 {
		t.Errorf("prompt and tools have %d characters, want 16", e.static)
	}
	p := Parts{1, 2, 4, 8, 16, 32, 64, 128}
	if p.Total() != 255 {
		t.Errorf("all of it is %d", p.Total())
	}
	for tokens, want := range map[record.Tokens]int{{Input: 1, Output: 2, CacheRead: 4, CacheWrite: 8}: 15,
		{Input: 9, Estimated: true}: 0, {}: 0} {
		e := estimate{answered: 7}
		if e.report(tokens); e.reported != want {
			t.Errorf("reported by %+v is %d, want %d", tokens, e.reported, want)
		}
	}
}

// A change of a prompt file that its owner has not seen is told, and the text of before is used.
func TestAPromptFileThatNobodySawIsTold(t *testing.T) {
	ws := t.TempDir()
	if err := os.WriteFile(filepath.Join(ws, "AGENTS.md"), []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, found := Load(workspace.At(ws), func(path string, data []byte, info fs.FileInfo) ([]byte, bool, *unseen.Change) {
		if info == nil {
			return nil, false, nil
		}
		return []byte("before"), true, &unseen.Change{Path: path, Agent: "mole", At: time.Now()}
	})
	if f.Agents != "before" || len(found) != 1 || !strings.Contains(found[0].Reason, "mole") {
		t.Errorf("%+v, found %v", f, found)
	}
	f, found = Load(workspace.At(filepath.Join(ws, "AGENTS.md")), nil) // a file in the place of the workspace
	if f != (Files{}) || len(found) != 4 {
		t.Errorf("of what is no workspace is read %+v, found %v", f, found)
	}
}
