package agents

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// What runs by a right ends when the right does, whoever takes it back: a user in a chat, by
// another profile, or with an editor.
func TestWhatRunsByARightThatIsTakenBackEnds(t *testing.T) {
	order := func(d permission.Decision, tag string) func(b *bench) {
		return func(b *bench) {
			r, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Permission, Token: "t", Decision: string(d), Tag: tag, By: "ada"})
			if err != nil {
				t.Fatal(err)
			}
			b.wait(r.Item)
		}
	}
	for name, take := range map[string]func(b *bench){
		"revoked":  order(permission.Revoked, "@read:/srv"),
		"profiled": order(permission.Profiled, string(permission.ReadOnly)),
		"by hand": func(b *bench) {
			path := filepath.Join(b.dir, "state.json")
			text, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, []byte(strings.Replace(string(text), `"/srv"`, ``, 1)), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			b.outcome(b.say("look"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, rightsScript, general{}, look{})
			var mu sync.Mutex
			var told []permission.Set
			b.opts.Narrowed = func(now permission.Set) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, now)
			}
			give := func(s *record.State) {
				s.Permissions.ReadDirs, s.Permissions.WriteDirs = []string{"/srv"}, []string{"/out"}
			}
			if err := record.UpdateState(b.vol, b.dir, give); err != nil {
				t.Fatal(err)
			}

			b.run()
			b.outcome(b.say("look"))
			if len(told) != 0 {
				t.Errorf("before: %+v", told)
			}
			take(b)
			b.halt()
			if len(told) == 0 {
				t.Fatal("nobody is told")
			}

			now := told[len(told)-1]
			if now.Allows(permission.Read{Path: "/srv"}) && name != "profiled" ||
				now.Allows(permission.Write{Path: "/out"}) != (name != "profiled") {
				t.Errorf("told is %+v", now)
			}
		})
	}
}

// An edit of state.json applies to the next turn, also one that leaves its size and its time as they were, as a copy that keeps
// times does.
func TestAnEditOfTheSameSizeAndTimeIsRead(t *testing.T) {
	b := newBench(t, hear)
	state := `{"permissions":{"workingDir":"/w"},"provider":{"id":"","model":"m1"}}`
	b.writeState(state)
	path := filepath.Join(b.dir, "state.json")
	saved := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, saved, saved); err != nil {
		t.Fatal(err)
	}
	b.run()
	b.wait(b.say("one"))
	time.Sleep(200 * time.Millisecond) // what was saved within 0.1 s is read again in any case
	b.wait(b.say("two"))

	err := os.WriteFile(path, []byte(strings.Replace(state, "m1", "m2", 1)), 0o600)
	if err := errors.Join(err, os.Chtimes(path, saved, saved)); err != nil {
		t.Fatal(err)
	}
	b.wait(b.say("three"))
	if m := b.model.asked[len(b.model.asked)-1].Model; m != "m2" {
		t.Errorf("the model in use is %q, want the edited one", m)
	}
}
