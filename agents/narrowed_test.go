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

// Two looks at a file have seen the same version only if it is the same file, of one size and one
// time.
func TestWhenAFileIsUnchanged(t *testing.T) {
	dir := t.TempDir()
	at := time.Unix(1_700_000_000, 0)
	save := func(name, text string, when time.Time) os.FileInfo {
		t.Helper()
		path := filepath.Join(dir, name)
		err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, when, when))
		info, serr := os.Stat(path)
		if err := errors.Join(err, serr); err != nil {
			t.Fatal(err)
		}

		return info
	}
	first := save("a", "x", at)
	for name, tt := range map[string]struct {
		now  os.FileInfo
		want bool
	}{
		"the same": {save("a", "y", at), true}, "later": {save("a", "y", at.Add(1)), false}, "longer": {save("a", "yy", at), false},
		"another": {save("b", "x", at), false}, "none": {nil, false},
	} {
		if unchanged(tt.now, first) != tt.want || unchanged(first, tt.now) != tt.want {
			t.Errorf("%s: unchanged is %v", name, !tt.want)
		}
	}

	if unchanged(nil, nil) {
		t.Error("nothing is the same version as nothing")
	}
}
