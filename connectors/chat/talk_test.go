package chat

import (
	"context"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"daycare/engine/message"
)

// inGroup is something that is said in a group without a mention.
func inGroup(user, text string) Post {
	return Post{Key: "g/" + user + text, MessageID: "m-" + text, Group: true, Sender: user, Text: text,
		From: message.Address{Connector: "chat", ChannelID: "g", UserID: user, ThreadID: "t1"}}
}

func take(t *testing.T, w *world, d *Desk, p Post) (taken []message.Incoming) {
	t.Helper()
	before := len(w.taken)
	if err := d.Take(t.Context(), w.deliver, p); err != nil {
		t.Fatal(err)
	}
	return w.taken[before:]
}

// In a group each user has an agent, or all share one, or each thread has one; what is not for
// the agent is taken only where the settings say so, and of strangers never.
func TestGroups(t *testing.T) {
	w, talk := newWorld(), Talk{}
	d := w.desk(Options{}, talker{w})
	d.host.Talk = func(string) Talk { return talk }
	d.who.host = d.host
	if got := take(t, w, d, inGroup("ada", "hello")); len(got) > 0 {
		t.Errorf("without a mention %+v was taken", got)
	}
	talk.Always = true
	if got := take(t, w, d, inGroup("eve", "hello")); len(got) > 0 {
		t.Errorf("of a stranger %+v was taken", got)
	}
	for per, want := range map[string]*message.Address{"": nil, "user": nil, "chat": {Connector: "chat", ChannelID: "g"},
		"thread": {Connector: "chat", ChannelID: "g", ThreadID: "t1"}} {
		talk.AgentPer = per
		got := take(t, w, d, inGroup("ada", "hello"))
		if len(got) != 1 || (got[0].For == nil) != (want == nil) || want != nil && *got[0].For != *want || got[0].Route == nil ||
			got[0].Route.UserID != "ada" {
			t.Errorf("agents per %q: %+v, want it for %+v and answered in the thread", per, got, want)
		}
		private := post("hello")
		if got := take(t, w, d, private); len(got) != 1 || got[0].For != nil {
			t.Errorf("agents per %q: in private %+v", per, got)
		}
	}
	note := inGroup("ada", "reacted")
	note.Note = true
	if got := take(t, w, d, note); len(got) > 0 {
		t.Errorf("a note that is not for us was taken: %+v", got)
	}
}

// A person whom the settings know on several connectors has one agent, in private alone, and is
// answered where they wrote.
func TestLinkedPeople(t *testing.T) {
	w := newWorld()
	d := w.desk(Options{Settings: Settings{Allow: []string{"ada", "bob"}}}, talker{w})
	d.host.Linked = func(user message.Address) (string, bool) {
		return "0/", user.Connector == "chat" && user.UserID == "ada"
	}
	d.who.host = d.host
	got := take(t, w, d, post("hello"))
	if len(got) != 1 || got[0].Agent != "0/" || got[0].Route == nil || got[0].Route.ChannelID != ada.ChannelID {
		t.Errorf("the linked user's message is %+v", got)
	}
	if to, ok := d.who.home("agent1"); !ok || to.UserID != "ada" {
		t.Errorf("the agent is reached at %+v", to)
	}
	group := inGroup("ada", "here")
	group.Addressed = true
	if got := take(t, w, d, group); len(got) != 1 || got[0].Agent != "" {
		t.Errorf("in a group the message is %+v, want it for the agent of the group", got)
	}
	if got := take(t, w, d, from("bob", "1", "hi")); len(got) != 1 || got[0].Agent != "" {
		t.Errorf("another user's message is %+v", got)
	}
}

func opens(content string) func(context.Context) (io.ReadCloser, error) {
	return func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }
}

// A recording without words is a voice message: what is said in it is read, or why not.
func TestVoiceMessages(t *testing.T) {
	w := newWorld()
	d := w.desk(Options{}, talker{w})
	var heard []Voice
	said, failure := "buy milk", error(nil)
	d.host.Hear = func(_ context.Context, v Voice) (string, error) {
		heard = append(heard, v)
		return said, failure
	}
	voice := func(key, name, text string) string {
		p := post(text)
		p.Key, p.Files = key, []File{{Name: name, Open: opens("sound")}}
		got := take(t, w, d, p)
		if len(got) != 1 || len(got[0].Files) != 1 {
			t.Fatalf("taken %+v, want a message with its file", got)
		}
		return got[0].Text
	}
	if got := voice("1", "voice.ogg", ""); got != "[voice message, transcribed] buy milk" {
		t.Errorf("a voice message reads %q", got)
	}
	if len(heard) != 1 || heard[0].MessageID != "m1" || heard[0].File.Name != "voice.ogg" || heard[0].From.UserID != "ada" {
		t.Errorf("asked for %+v", heard)
	}
	said = ""
	if got := voice("2", "v.m4a", ""); got != "[nothing is said in the voice message]" {
		t.Errorf("silence reads %q", got)
	}
	failure = errors.New("401 Unauthorized")
	if got := voice("3", "v.opus", ""); !strings.Contains(got, "could not be transcribed: 401") {
		t.Errorf("a failure reads %q", got)
	}
	failure = ErrDeaf
	if got := voice("4", "v.opus", ""); got != "" {
		t.Errorf("without a service it reads %q", got)
	}
	n := len(heard)
	if got := voice("5", "song.mp3", "my new song"); got != "my new song" || len(heard) != n {
		t.Errorf("sound with words reads %q", got)
	}
	if voice("6", "report.pdf", ""); len(heard) != n {
		t.Error("a document was listened to")
	}
}

// verb is what fmt fills in.
var verb = regexp.MustCompile("%[.0-9]*[a-z]")

// Each fixed text is there in each language, with the same verbs.
func TestTexts(t *testing.T) {
	all := map[string]map[string]string{}
	if err := json.Unmarshal(table, &all); err != nil {
		t.Fatal(err)
	}
	for text, in := range all {
		if got := slices.Sorted(maps.Keys(in)); !slices.Equal(got, []string{"de", "es", "zh"}) {
			t.Errorf("%q is in %v", text, got)
		}
		for language, translated := range in {
			if want := verb.FindAllString(text, -1); !slices.Equal(verb.FindAllString(translated, -1), want) || translated == text {
				t.Errorf("%s: %q has other verbs than %q, or is the same", language, translated, text)
			}
			if Translated(language, text) != translated {
				t.Errorf("%s: %q is not used", language, text)
			}
		}
		if Translated("en", text) != text || Translated("", text) != text || Translated("fr", text) != text {
			t.Errorf("%q is not itself in English", text)
		}
	}
	for _, text := range spoken(t) {
		if all[text] == nil {
			t.Errorf("the table lacks %q", text)
		}
	}
	for _, c := range Commands {
		if all[c.About] == nil {
			t.Errorf("the table lacks %q", c.About)
		}
	}
}

// spoken are the texts that this package says: those that t is called with, and sentences that
// functions return.
func spoken(t *testing.T) (all []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	set := gotoken.NewFileSet()
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && len(n.Args) > 0 {
					at := map[string]int{"t": 0, "say": 2, "sayTo": 3}
					if i, ok := at[f.Sel.Name]; ok && i < len(n.Args) {
						all = append(all, literal(n.Args[i])...)
					}
				}
			case *ast.ReturnStmt:
				for _, r := range n.Results {
					if text := literal(r); len(text) == 1 && strings.HasSuffix(text[0], ".") && strings.Contains(text[0], " ") {
						all = append(all, text...)
					}
				}
			}
			return true
		})
	}
	if len(all) < 50 {
		t.Fatalf("found %d texts in the source, want all of them", len(all))
	}

	return all
}

// literal is the value of a string that is written out, alone or as a sum.
func literal(e ast.Expr) []string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if s, err := strconv.Unquote(e.Value); err == nil && e.Kind == gotoken.STRING && s != "" {
			return []string{s}
		}
	case *ast.BinaryExpr:
		one, two := literal(e.X), literal(e.Y)
		if len(one) == 1 && len(two) == 1 {
			return []string{one[0] + two[0]}
		}
	}
	return nil
}

// What users are told is in the language of the connector.
func TestLanguage(t *testing.T) {
	w := newWorld()
	d := w.desk(Options{}, talker{w})
	d.host.Talk = func(string) Talk { return Talk{Language: "de"} }
	d.who.host = d.host
	if got := d.says(t, w, post("/permissions")); got != "c1: Keine offenen Freigaben." {
		t.Errorf("told %q", got)
	}
	if got := d.says(t, w, post("/help")); !strings.Contains(got, "- /stop: den laufenden Durchgang abbrechen") {
		t.Errorf("the help is %q", got)
	}
}
