package agents

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/agents/prompt"
	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/redact"
)

// What was edited of the prompt is told by its name, to those who watch and to the model;
// without an edit the session keeps its prompt.
func TestWhatWasEditedOfThePrompt(t *testing.T) {
	was := prompt.Definition{Name: "n", Role: prompt.Subagent,
		Files:  prompt.Files{Soul: "s", User: "u", Rules: "r", Agents: "a"},
		Skills: []prompt.Skill{{Name: "one", Description: "d"}, {Name: "two", Description: "d"}}}
	for name, tt := range map[string]struct {
		edit func(d *prompt.Definition)
		want string // as the model is told of it
		told []string
	}{
		"nothing":    {func(*prompt.Definition) {}, "", nil},
		"a newline":  {func(d *prompt.Definition) { d.Files.Soul += "\n" }, "", nil},
		"soul":       {func(d *prompt.Definition) { d.Files.Soul = "x" }, "SOUL.md", []string{"SOUL.md"}},
		"person":     {func(d *prompt.Definition) { d.Files.User = "x" }, "USER.md", []string{"USER.md"}},
		"rules":      {func(d *prompt.Definition) { d.Files.Rules = "x" }, ".daycare/AGENTS.md", []string{".daycare/AGENTS.md"}},
		"project":    {func(d *prompt.Definition) { d.Files.Agents = "x" }, "AGENTS.md", []string{"AGENTS.md"}},
		"descriptor": {func(d *prompt.Definition) { d.Prompt = "x" }, "descriptor.json", nil},
		"a skill":    {func(d *prompt.Definition) { d.Skills[0].Description = "x" }, "one/SKILL.md", []string{"one/SKILL.md"}},
		"a new skill": {func(d *prompt.Definition) { d.Skills = append(d.Skills, prompt.Skill{Name: "three"}) }, "three/SKILL.md",
			[]string{"three/SKILL.md"}},
		"a skill less": {func(d *prompt.Definition) { d.Skills = d.Skills[:1] }, "two/SKILL.md", []string{"two/SKILL.md"}},
		"two things":   {func(d *prompt.Definition) { d.Files.Soul, d.Prompt = "x", "x" }, "SOUL.md", []string{"SOUL.md"}},
	} {
		b := newBench(t, callHold)
		now := was
		now.Skills = slices.Clone(was.Skills)
		tt.edit(&now)
		b.opts.Definition = func(address.Meta, record.State) prompt.Definition { return now }
		b.cutAfter(&record.User{Item: "i", Text: "hello"})
		a, err := open(t.Context(), b.opts.options())
		if err != nil {
			t.Fatal(err)
		}

		told := b.watched()
		a.requests.session, a.requests.definition = "session", was
		if err := a.requests.lookAtPrompt(&a.files.self); err != nil {
			t.Fatal(err)
		}
		within(t, "what was edited is told", func() bool { return len(told.of(event.FileEdited)) == len(tt.told) })

		for i, e := range told.of(event.FileEdited) {
			if f := e.Body.(event.File); f.File != tt.told[i] {
				t.Errorf("%s: told is %+v", name, f)
			}
		}
		if kept := a.requests.session != ""; kept != (tt.want == "") {
			t.Errorf("%s: the prompt is kept: %v", name, kept)
		}

		want := `"text":"` + tt.want + ` edited by hand: the system prompt changes from here on"`
		if n := b.count("note"); n != min(len(tt.want), 1) || n == 1 && !strings.Contains(b.history(), want) {
			t.Errorf("%s: history does not say %s:\n%s", name, want, b.history())
		}
		if err := a.close(); err != nil {
			t.Error(err)
		}
	}
}

// What users changed in state.json is told by its name.
func TestWhatWasChangedInState(t *testing.T) {
	for want, change := range map[string]func(s *record.State){
		"":         func(s *record.State) { s.Permissions.Web = true }, // rights are announced
		"provider": func(s *record.State) { s.Provider.Model = "x" },
		"queue":    func(s *record.State) { s.Queue = "collect" },
	} {
		var before, now record.State
		change(&now)
		if got := strings.Join(owned(before, now), " "); got != want {
			t.Errorf("changed is %q, want %q", got, want)
		}
	}
}

// No record keeps a secret in any of its texts, and one without a secret stays as it was.
func TestNoTextOfARecordKeepsASecret(t *testing.T) {
	const secret = "hunter2hunter2"
	records := func(text string) []record.Record {
		return []record.Record{
			&record.User{Text: text}, &record.User{Preface: text}, &record.Assistant{Text: text},
			&record.Assistant{ToolCalls: []record.ToolCall{{Arguments: []byte(`{"a":"` + text + `"}`)}}},
			&record.Assistant{Thinking: []record.Thinking{{Text: text, Signature: "signed"}}},
			&record.ToolResult{Output: record.Output{Text: text}},
			&record.ToolResult{Output: record.Output{Blocks: []record.Block{{Type: "text", Text: text}}}},
			&record.Summary{Text: text}, &record.Note{Text: text}, &record.Permission{Request: text}, &record.Reset{Message: text},
			&record.TurnEnd{Error: text}, &record.Delivery{Error: text},
		}
	}
	line := func(rec record.Record) string { return string(record.Encode(&record.Entry{Seq: 1, Rec: rec})) }
	j := &journal{redact: redact.New(secret)}
	for i, rec := range records(secret) {
		plain := records("harmless")[i]
		if !strings.Contains(line(rec), secret) {
			t.Fatalf("%T does not show its text", rec)
		}
		if j.hide(rec); strings.Contains(line(rec), secret) || !strings.Contains(line(rec), redact.Mark) ||
			strings.Contains(line(rec), "signed") {
			t.Errorf("%T keeps %s", rec, line(rec))
		}
		before := line(plain)
		if j.hide(plain); line(plain) != before {
			t.Errorf("%T was %s and became %s", plain, before, line(plain))
		}
	}
}

// A copy of rights shares nothing with them.
func TestACopyOfRightsIsItsOwn(t *testing.T) {
	set := permission.Set{WorkingDir: "/caf\xe9", ReadDirs: []string{"/a"}, WriteDirs: []string{}, Exec: []string{"ls"}}
	c := copyOf(set)
	if diff := cmp.Diff(set, *c); diff != "" {
		t.Errorf("the copy differs (-want +got):\n%s", diff)
	}
	if c.ReadDirs[0] = "/b"; set.ReadDirs[0] != "/a" {
		t.Error("a change of the copy changes the rights")
	}

	set = permission.Set{Grants: []permission.Grant{{Scripts: make([]permission.Script, 1)}}}
	lists := reflect.ValueOf(&set).Elem()
	for i := range lists.NumField() {
		if list := lists.Field(i); list.Kind() == reflect.Slice && list.Len() == 0 {
			list.Set(reflect.MakeSlice(list.Type(), 1, 1))
		}
	}
	c = copyOf(set)
	for i := range lists.NumField() {
		ours, theirs := lists.Field(i), reflect.ValueOf(c).Elem().Field(i)
		if ours.Kind() == reflect.Slice && (theirs.Len() != 1 || ours.Pointer() == theirs.Pointer()) {
			t.Errorf("%s: the copy shares its list", lists.Type().Field(i).Name)
		}
	}
	if &c.Grants[0].Scripts[0] == &set.Grants[0].Scripts[0] {
		t.Error("the copy shares the scripts of a grant")
	}
}
