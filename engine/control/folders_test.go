package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/message"
)

// A fork is from a record, or from the newest turn: before the first one there is nothing to fork.
func TestWhereAForkBegins(t *testing.T) {
	b := (&fake{}).backend()
	b.Folders = &shelf{}
	h := Handler(b, Options{})
	for at, want := range map[string]int{"-1": 422, "0": 201, "1": 201, "10": 404} {
		status, _, body := raw(t, h, "POST", "/v1/agents/alpha/fork", `{"at":`+at+`}`)
		if status != want || status == 422 && !strings.Contains(body, `"field":"at"`) {
			t.Errorf("at %s: %d %s, want %d", at, status, body, want)
		}
	}
}

// shelf is a Folders with one file.
type shelf struct{ content string }

func (s *shelf) hash() string { return "h-" + s.content }

func (s *shelf) Fork(_ context.Context, id string, at int64, name string) (event.Agent, error) {
	if at > 9 {
		return event.Agent{}, ErrNoRecord
	}
	return event.Agent{ID: id + "fork", Name: name}, nil
}
func (s *shelf) Rewindable(_ context.Context, _, to string) error {
	if to == "nowhere" {
		return ErrNoRecord
	}
	return nil
}
func (s *shelf) Undoable(_ context.Context, _ string, place *string) ([]event.Rewound, error) {
	if place == nil {
		return nil, nil
	}
	return []event.Rewound{{Path: "a.txt", Standing: "ready", Turns: []string{"t" + *place}}}, nil
}
func (s *shelf) TakeBack(_ context.Context, _ string, paths []string, merge bool) ([]event.TakenBack, error) {
	return []event.TakenBack{{Path: strings.Join(paths, " "), Outcome: "done", Why: fmt.Sprint(merge)}}, nil
}
func (s *shelf) Trash(context.Context) ([]event.Trashed, error) { return nil, nil }
func (s *shelf) Restore(_ context.Context, ref string) (event.Agent, error) {
	return event.Agent{}, ErrNoTrash
}
func (s *shelf) Export(_ context.Context, id string, to io.Writer) error {
	if s.content == "" {
		return ErrNotEditable
	}
	_, err := io.WriteString(to, id+s.content)
	return err
}
func (s *shelf) Import(_ context.Context, tar io.Reader, name string) (event.Agent, error) {
	data, err := io.ReadAll(tar)
	return event.Agent{ID: string(data), Name: name}, err
}
func (s *shelf) ReadFile(_ context.Context, _, name string) ([]byte, string, error) {
	if name != "state.json" {
		return nil, "", ErrNotEditable
	}
	return []byte(s.content), s.hash(), nil
}
func (s *shelf) WriteFile(_ context.Context, _, _ string, content []byte, hash string) (string, error) {
	if string(content) == "bad" {
		return "", &Unfit{[]finding.Finding{{ID: "state-syntax", Severity: finding.Error, File: "state.json", Line: 3,
			Column: 7, Reason: "no"}}}
	}
	if hash != s.hash() {
		return "", &Conflict{s.content, s.hash()}
	}
	s.content = string(content)

	return s.hash(), nil
}

func (s *shelf) Switch(_ context.Context, id, model string) (Choice, error) {
	if model == "gpt-9" {
		return Choice{}, &Invalid{Field: "model", Reason: `unknown model "gpt-9"`, Hint: "near to it: gpt-6"}
	}
	return Choice{Provider: id, Model: model, Chosen: true}, nil
}

func TestSwitchOfModel(t *testing.T) {
	b := (&fake{}).backend()
	b.Folders = &shelf{}
	c := NewClient(Local(Handler(b, Options{})))
	if got, err := c.Folders().Switch(t.Context(), "0/", "gpt-6"); err != nil || got.Model != "gpt-6" || !got.Chosen {
		t.Errorf("switched to %+v, %v", got, err)
	}
	var bad *Invalid
	if _, err := c.Folders().Switch(t.Context(), "0/", "gpt-9"); !errors.As(err, &bad) || bad.Field != "model" ||
		bad.Hint != "near to it: gpt-6" {
		t.Errorf("to an unknown model: %v, want Invalid with the names near to it", err)
	}
}

func TestFilesOfAgents(t *testing.T) {
	f := &fake{}
	b := f.backend()
	kept := &shelf{content: "one"}
	b.Folders = kept
	h := Handler(b, Options{})
	c := NewClient(Local(h))
	content, hash, err := c.Folders().ReadFile(t.Context(), "0/", "state.json")
	if err != nil || string(content) != "one" || hash != "h-one" {
		t.Fatalf("read %q %q, %v", content, hash, err)
	}
	if err := c.Folders().WriteFile(t.Context(), "0/", "state.json", []byte("two"), hash); err != nil {
		t.Fatal(err)
	}

	var conflict *Conflict
	if err := c.Folders().WriteFile(t.Context(), "0/", "state.json", []byte("three"), hash); !errors.As(err, &conflict) ||
		conflict.Content != "two" {
		t.Errorf("an edit of an old version: %v, want a Conflict with what stands there", err)
	}
	var unfit *Unfit
	if err := c.Folders().WriteFile(t.Context(), "0/", "state.json", []byte("bad"),
		"h-two"); !errors.As(err, &unfit) || unfit.Findings[0].Line != 3 || unfit.Findings[0].Column != 7 {
		t.Errorf("a bad edit: %v, want Unfit with line and column", err)
	}
	if _, _, err := c.Folders().ReadFile(t.Context(), "0/", "SYSTEM.md"); !errors.Is(err, ErrNotEditable) {
		t.Errorf("another file: %v, want ErrNoHandFile", err)
	}
	if status, _, body := raw(t, h, http.MethodPut, "/v1/agents/0%2F/files/state.json",
		"x"); status != http.StatusBadRequest || !strings.Contains(body, "If-Match") {
		t.Errorf("without If-Match: %d %s", status, body)
	}
	large, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://daycare/v1/agents/0%2F/files/state.json",
		strings.NewReader(strings.Repeat("x", maxMessageBody+1)))
	if err != nil {
		t.Fatal(err)
	}
	large.Header.Set("If-Match", `"h-two"`)
	resp, err := (&http.Client{Transport: Local(h)}).Do(large)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge || kept.content != "two" {
		t.Errorf("too much of it: %d, saved are %d bytes", resp.StatusCode, len(kept.content))
	}
}

func TestFoldersOfAgents(t *testing.T) {
	f := &fake{}
	b := f.backend()
	b.Folders = &shelf{}
	c := NewClient(Local(Handler(b, Options{})))
	if a, err := c.Folders().Fork(t.Context(), "0/", 3, "x"); err != nil || a.ID != alpha+"fork" || a.Name != "x" {
		t.Errorf("fork: %+v, %v", a, err)
	}
	if _, err := c.Folders().Fork(t.Context(), "0/", 10, ""); !errors.Is(err, ErrNoRecord) {
		t.Errorf("fork of nothing: %v, want ErrNoRecord", err)
	}
	if _, err := c.Folders().Restore(t.Context(), "7/"); !errors.Is(err, ErrNoTrash) {
		t.Errorf("restore: %v, want ErrNoTrash", err)
	}
	if list, err := c.Folders().Trash(t.Context()); err != nil || list == nil {
		t.Errorf("trash: %v, %v; want an empty list", list, err)
	}
	if a, err := c.Folders().Import(t.Context(), strings.NewReader("tar"), "y z"); err != nil || a.ID != "tar" || a.Name != "y z" {
		t.Errorf("import: %+v, %v", a, err)
	}
	for content, want := range map[string]bool{"": false, "cut" + strings.Repeat("\x00", tarEndSize-1): false,
		"whole" + strings.Repeat("\x00", tarEndSize): true} {
		b.Folders.(*shelf).content = content
		var out strings.Builder
		if err := c.Folders().Export(t.Context(), "0/", &out); (err == nil) != want || want && out.String() != alpha+content {
			t.Errorf("export: %q, %v", out.String(), err)
		}
	}
	if _, err := c.Folders().Rewind(t.Context(), "0/", "42"); err != nil {
		t.Error(err)
	}
	if _, err := c.Folders().Mark(t.Context(), "0/", "here"); err != nil {
		t.Error(err)
	}
	if _, err := c.Folders().Rewind(t.Context(), "0/", " nowhere "); !errors.Is(err, ErrNoRecord) {
		t.Errorf("rewind to a place that is not there: %v, want ErrNoRecord", err)
	}
	if _, err := c.Send(t.Context(), "0/", Message{Kind: message.Rewind, Text: "nowhere"}); !errors.Is(err, ErrNoRecord) {
		t.Errorf("the same as a message: %v, want ErrNoRecord", err)
	}

	for _, bad := range []struct{ method, path, body, why string }{
		{"GET", "/v1/agents/alpha/undo?to=x", "", "needs rewind=true"},
		{"POST", "/v1/agents/alpha/fork", `{"at":"first"}`, "at: found a JSON string, allowed: a number"},
	} {
		status, _, text := raw(t, Handler(b, Options{}), bad.method, bad.path, bad.body)
		if status/100 != 4 || !strings.Contains(text, bad.why) {
			t.Errorf("%s %s: %d %s, want %s", bad.method, bad.path, status, text, bad.why)
		}
	}
	if list, err := c.Folders().Undoable(t.Context(), "0/", nil); err != nil || list == nil || len(list) > 0 {
		t.Errorf("files of rewound turns: %v, %v; want an empty list", list, err)
	}
	for _, to := range []string{"", "42"} {
		list, err := c.Folders().Undoable(t.Context(), "0/", &to)
		if err != nil || len(list) != 1 || list[0].Turns[0] != "t"+to {
			t.Errorf("files that a rewind to %q would add: %+v, %v", to, list, err)
		}
	}
	if list, err := c.Folders().TakeBack(t.Context(), "0/", []string{"a", "b"}, true); err != nil || list[0].Path != "a b" ||
		list[0].Why != "true" {
		t.Errorf("take back: %+v, %v", list, err)
	}

	in := f.delivered()
	if len(in) != 2 || in[0].Kind != message.Rewind || in[0].Text != "42" || in[1].Kind != message.Mark || in[1].Text != "here" {
		t.Errorf("delivered %+v, want the two orders", in)
	}

	for _, name := range []string{"", " ", "42"} {
		var invalid *Invalid
		if _, err := c.Folders().Mark(t.Context(), "0/", name); !errors.As(err, &invalid) {
			t.Errorf("mark %q: %v, want Invalid", name, err)
		}
	}
}

// An agent that has its name from elsewhere, or cannot be without one, keeps it.
func TestNamesThatStay(t *testing.T) {
	c, _ := serve(t, &fake{})
	for kind, name := range map[string]string{"cron": "other", "heartbeat": "other", "permanent": "", "subagent": ""} {
		err := c.Folders().Rename(t.Context(), event.Agent{ID: alpha, Type: kind}, name)
		if bad, ok := errors.AsType[*Invalid](err); !ok || bad.Field != "name" {
			t.Errorf("a %s agent called %q: %v", kind, name, err)
		}
	}
}
