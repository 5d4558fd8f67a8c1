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
