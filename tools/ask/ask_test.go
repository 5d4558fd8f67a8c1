package ask

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"daycare/engine/permission"
	"daycare/tools"
	"daycare/tools/toolstest"
)

// sharing is a fake of Asker.
type sharing struct {
	shared string
	err    error
}

func (s *sharing) Share(_ context.Context, from, to, tag, key string) error {
	s.shared = strings.Join([]string{from, to, tag, key}, " ")
	return s.err
}

func access() permission.Set { return permission.Default("/proj") }

func TestTools(t *testing.T) {
	for _, tool := range New(&sharing{}) {
		good := `{"permission":"@read:/proj/a","reason":"to look"}`
		if tool.Spec().Name == "grant_permission" {
			good = `{"agentId":"0/1","permission":"@read:/proj/a"}`
		}
		t.Run(tool.Spec().Name, func(t *testing.T) { toolstest.Run(t, tool, toolstest.Options{Access: access(), Good: []string{good}}) })
	}
}

func TestARequestAsksForWhatItNames(t *testing.T) {
	for tag, want := range map[string]string{
		"@read:/etc/hosts": "@read:/etc/hosts", "@write:docs": "@write:/proj/docs", "@read:../x": "@read:/x",
		"@web": "@web", "@web:Example.com": "@web:example.com", "@exec:git push": "@exec:git push",
		"read /etc": "", "@read:": "", "@exec:": "", "@read:/a\nb": "",
	} {
		args, err := json.Marshal(map[string]string{"permission": tag, "reason": "r"})
		if err != nil {
			t.Fatal(err)
		}
		need, err := request{}.Needs(tools.Call{Arguments: args, Access: access()})
		if want == "" {
			if err == nil {
				t.Errorf("%q is taken: %+v", tag, need)
			}
			continue
		}
		if err != nil || need.Tag != want || need.Reason != "r" || need.Detail.String() == "" {
			t.Errorf("%q asks for %+v, %v, want %s", tag, need, err, want)
		}
		if !permission.IsGeneral("a", need.Tag, need.SHA256("a")) || permission.IsGeneral("b", need.Tag, need.SHA256("a")) {
			t.Errorf("%q: its hash must be that of the general request of one agent", tag)
		}
	}
}

func TestGrantTellsWhatWentWrong(t *testing.T) {
	s := &sharing{}
	call := tools.Call{ID: "c", Agent: "a", Access: access(), Arguments: json.RawMessage(`{"agentId":"0/1","permission":"@read:sub"}`)}
	if r, err := (grant{s}).Run(t.Context(), call); err != nil || r.Status != "" || s.shared != "a 0/1 @read:/proj/sub call:a/c" {
		t.Errorf("%+v, %v, shared %q", r, err, s.shared)
	}
	s.err = errors.New("you do not hold @read:/etc")
	if r, _ := (grant{s}).Run(t.Context(), call); r.Status != tools.Failed || !strings.Contains(r.Text, "do not hold") {
		t.Errorf("%+v", r)
	}
}

// A right that was taken away during the turn is not passed on, although the file still
// has it.
func TestGrantNeedsTheRightOfThisCall(t *testing.T) {
	s := &sharing{}
	call := tools.Call{ID: "c", Agent: "a", Access: access(), Arguments: json.RawMessage(`{"agentId":"0/1","permission":"@read:/srv"}`)}
	if r, err := (grant{s}).Run(t.Context(), call); err != nil || r.Status != tools.Failed || s.shared != "" {
		t.Errorf("%+v, %v, shared %q", r, err, s.shared)
	}
}

func raw(t *testing.T, args map[string]string) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// What is allowed once widens the rest of the turn by that right, and the model reads
// whether it keeps it.
func TestWhatAnAllowedRequestSays(t *testing.T) {
	for tag, want := range map[string]struct {
		widens string
		says   string
		fails  bool
	}{
		"@read:a":    {"@read:/proj/a", "You have @read:/proj/a already.", false},
		"@read:/srv": {"@read:/srv", "You have @read:/srv until the end of this turn.", false},
		"@write:/x":  {"@write:/x", "You have @write:/x until the end of this turn.", false},
		"read /etc":  {"read /etc", "request_permission: ", true},
	} {
		call := tools.Call{Arguments: raw(t, map[string]string{"permission": tag, "reason": "r"}), Access: access()}
		if got := (request{}).Widens(call); got != want.widens {
			t.Errorf("%q widens the turn by %q, want %q", tag, got, want.widens)
		}
		r, err := request{}.Run(t.Context(), call)
		if err != nil || !strings.HasPrefix(r.Text, want.says) || (r.Status == tools.Failed) != want.fails {
			t.Errorf("%q: %+v, %v; want %q", tag, r, err, want.says)
		}
	}
}

// Arguments that do not fit ask for nothing and give nothing.
func TestArgumentsThatDoNotFitGiveNothing(t *testing.T) {
	s := &sharing{}
	call := tools.Call{ID: "c", Agent: "a", Access: access()}
	for name, asks := range map[string]tools.Asks{"permission": request{}, "plan": plan{}} {
		call.Arguments = json.RawMessage(`{"` + name + `":7}`)
		if need, err := asks.Needs(call); err == nil || !strings.Contains(err.Error(), "the arguments do not fit") {
			t.Errorf("a %s that is a number asks for %+v, %v", name, need, err)
		}
	}
	call.Arguments = json.RawMessage(`{"permission":"@read:/proj/a","agentId":7}`)
	if got := (request{}).Widens(call); got != "" {
		t.Errorf("it widens the turn by %q", got)
	}
	for _, tool := range New(s) {
		if r, err := tool.Run(t.Context(), call); err != nil || r.Status != tools.Failed ||
			!strings.Contains(r.Text, "the arguments do not fit") {
			t.Errorf("%s: %+v, %v", tool.Spec().Name, r, err)
		}
	}
	if s.shared != "" {
		t.Errorf("shared %q", s.shared)
	}
}

// Paths are named as for other tools, from the working directory; anything else is left as
// it is.
func TestAPathIsNamedFromTheWorkingDirectory(t *testing.T) {
	for _, tt := range []struct{ tag, dir, want string }{
		{"@read:docs", "/proj", "@read:/proj/docs"}, {"@write:docs", "/proj", "@write:/proj/docs"},
		{"@read:/docs", "/proj", "@read:/docs"}, {"@write:", "/proj", "@write:"}, {"@read", "/proj", "@read"},
		{"@exec:make", "/proj", "@exec:make"}, {"@web:example.com", "/proj", "@web:example.com"}, {"@read:docs", "", "@read:docs"},
	} {
		if got := absolute(tt.tag, tt.dir); got != tt.want {
			t.Errorf("%q in %q is %q, want %q", tt.tag, tt.dir, got, tt.want)
		}
	}
}

// A plan is put to a user each time, as it was written, and lets the turn in which it is
// approved change things.
func TestAPlanIsAskedFor(t *testing.T) {
	tool := NewPlan()
	toolstest.Run(t, tool, toolstest.Options{Access: access(), Good: []string{`{"plan":"1. write a"}`}})
	call := tools.Call{Arguments: raw(t, map[string]string{"plan": "1. write a\n2. run b"}), Access: access()}
	need, err := tool.(tools.Asks).Needs(call)
	want := permission.Request{Tag: "@plan", Reason: "carry out this plan", AskAlways: true, Workdir: "/proj",
		Detail: permission.Detail{Command: "1. write a\n2. run b"}}
	if err != nil || need.Tag != want.Tag || need.Reason != want.Reason || !need.AskAlways || need.Workdir != want.Workdir ||
		need.Detail.String() != want.Detail.String() {
		t.Errorf("asked is %+v, %v, want %+v", need, err, want)
	}
	if got := tool.(tools.Widens).Widens(call); got != "@plan" {
		t.Errorf("it widens the turn by %q", got)
	}
}
