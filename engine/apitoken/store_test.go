package apitoken

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"daycare/engine/disk"
	"daycare/engine/finding"
)

// What a token can be called, and may do, is checked before anything is written.
func TestWhatIsRefusedWhenATokenIsMade(t *testing.T) {
	root := t.TempDir()
	good := Rights{Scopes: []Scope{Read}}
	for name, tt := range map[string]struct {
		name   string
		rights Rights
		words  string
	}{
		"no name":        {"", good, "name"},
		"a long name":    {strings.Repeat("n", 65), good, "at most 64"},
		"a dot first":    {".x", good, "name"},
		"a space":        {"a b", good, "name"},
		"no scopes":      {"x", Rights{}, "scopes: missing"},
		"unknown scope":  {"x", Rights{Scopes: []Scope{Read, "root"}}, `found "root"`},
		"no agents":      {"x", Rights{Scopes: []Scope{Read}, Agents: []string{}}, "agents: empty"},
		"a nameless one": {"x", Rights{Scopes: []Scope{Read}, Agents: []string{"a", ""}}, `found ""`},
	} {
		secret, _, err := Create(root, tt.name, tt.rights, nil)
		if err == nil || !strings.Contains(err.Error(), tt.words) || secret != "" {
			t.Errorf("%s: %q, %v; want an error that says %q", name, secret, err, tt.words)
		}
	}

	if _, err := os.Stat(filepath.Join(root, Name)); !os.IsNotExist(err) {
		t.Errorf("something was written: %v", err)
	}
	for _, name := range []string{"a", strings.Repeat("n", 64), "a.b-c_D9"} {
		create(t, root, name, good, nil)
	}

	before, _ := os.ReadFile(filepath.Join(root, Name))
	if secret, _, err := Create(root, "a", good, nil); !errors.Is(err, ErrTaken) || secret != "" {
		t.Errorf("a name twice: %v", err)
	}
	if err := Revoke(root, "none"); !errors.Is(err, ErrUnknown) {
		t.Errorf("a token that is not there: %v", err)
	}
	if after, _ := os.ReadFile(filepath.Join(root, Name)); string(before) != string(after) {
		t.Error("what was refused changed the file")
	}
	if err := Revoke(root, "a"); err != nil {
		t.Fatal(err)
	}
	if tokens, err := List(root); err != nil || len(tokens) != 2 {
		t.Errorf("%d tokens are left, %v; want 2", len(tokens), err)
	}
}

// Rights about some agents are about nothing else; rights about none restricted are about all.
func TestWhichAgentsRightsAreAbout(t *testing.T) {
	some, all := Rights{Agents: []string{"a"}}, Rights{}
	for agent, want := range map[string]bool{"a": true, "b": false, "": false} {
		if some.Know(agent) != want || !all.Know(agent) {
			t.Errorf("%q: %v and %v", agent, some.Know(agent), all.Know(agent))
		}
	}
	if !some.Restricted() || all.Restricted() || (Rights{Agents: []string{}}).Know("a") {
		t.Error("who is restricted")
	}
	if got := Names([]Scope{Read, Admin}); got != "read, admin" {
		t.Errorf("scopes are listed as %q", got)
	}
}

// A token expires at its time, not a moment later.
func TestWhenATokenExpires(t *testing.T) {
	at := time.Unix(1000, 0)
	for d, want := range map[time.Duration]bool{-1: false, 0: true, 1: true} {
		if got := (Token{Expires: &at}).Expired(at.Add(d)); got != want {
			t.Errorf("%v after its time it has expired: %v", d, got)
		}
	}
	if (Token{}).Expired(at) {
		t.Error("a token without an end expires")
	}
}

// A token that is revoked or changed ends what was begun with it; the others continue.
func TestOnlyWhatChangedEnds(t *testing.T) {
	root := t.TempDir()
	soon := time.Now().Add(time.Hour)
	secrets := map[string]string{}
	for _, name := range []string{"stays", "goes"} {
		secrets[name] = create(t, root, name, Rights{Scopes: []Scope{Chat}, Agents: []string{"a"}}, &soon)
	}

	s, _ := open(t, root)
	holders := map[string]Holder{}
	for name, secret := range secrets {
		h, ok := s.Find(secret)
		if !ok || h.Name != name || h.String() != "token:"+name || h.Expires == nil || !h.Expires.Equal(soon) {
			t.Fatalf("%s: %+v, %v", name, h, ok)
		}
		holders[name] = h
	}

	if err := Revoke(root, "goes"); err != nil {
		t.Fatal(err)
	}
	s.Refresh()

	for name, want := range map[string]bool{"stays": false, "goes": true} {
		over := false
		select {
		case <-holders[name].Done:
			over = true
		default:
		}
		if over != want {
			t.Errorf("what %s has open is over: %v, want %v", name, over, want)
		}
		if _, ok := s.Find(secrets[name]); ok == want {
			t.Errorf("%s is found: %v", name, ok)
		}
	}
}

// A file that nobody changed is read once, once it is old enough that a second save would
// show; what is wrong with one is told with its place.
func TestTheFileIsReadWhenItChanged(t *testing.T) {
	root := t.TempDir()
	reports := 0
	var last []finding.Finding
	s := Open(root, disk.NewVolume(root), func(file string, found []finding.Finding) {
		if reports++; file != filepath.Join(root, Name) {
			t.Errorf("reported of %s", file)
		}
		last = found
	})
	for range 3 { // it is missing, which is not a change
		s.Refresh()
	}

	if reports != 1 || last != nil {
		t.Errorf("a missing file was read %d times: %v", reports, last)
	}
	put(t, root, "{}")
	s.Refresh()
	s.Refresh()
	if reports != 3 {
		t.Errorf("a file that was saved just now was read %d times, want each time", reports-1)
	}

	s.young = false // as after some seconds
	for range 3 {
		s.Refresh()
	}
	if reports != 3 {
		t.Errorf("a file that nobody changed was read %d times more", reports-3)
	}

	put(t, root, "{\n  \"x\": {\"hash\": 5, \"scopes\": [\"read\"]}\n}")
	s.Refresh()
	if reports != 4 || len(last) != 1 || last[0].Line != 2 || last[0].Column != 17 || last[0].Severity != finding.Error {
		t.Errorf("after a save it was read %d times: %+v", reports-3, last)
	}
	if err := os.Remove(filepath.Join(root, Name)); err != nil {
		t.Fatal(err)
	}
	if s.Refresh(); reports != 5 {
		t.Errorf("a file that is gone was read %d times", reports-4)
	}

	found, err := Check("path", []byte("[]"))
	if err != nil || len(found) != 1 || found[0].File != "path" || found[0].Line != 1 {
		t.Errorf("checked: %+v, %v", found, err)
	}
}

// What is not a file that can be read gives nothing and says so.
func TestAFileOfAnotherKind(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, Name), 0o700); err != nil {
		t.Fatal(err)
	}
	tokens, err := List(root)
	if len(tokens) != 0 || err == nil || !strings.Contains(err.Error(), "Remove it to revoke all tokens") {
		t.Errorf("%v, %v", tokens, err)
	}
}

// Of each token it is kept when it was used last, written once a minute; a token that is gone
// is not kept.
func TestUsesAreWrittenOnceAMinute(t *testing.T) {
	root := t.TempDir()
	s := Open(root, disk.NewVolume(root), func(string, []finding.Finding) {})
	s.active["a"], s.active["b"] = &entry{}, &entry{}
	begin := time.Unix(1_700_000_000, 0).UTC()
	for _, tt := range []struct {
		name  string
		after time.Duration
		want  map[string]time.Duration // as the file says
	}{
		{"a", 0, map[string]time.Duration{"a": 0}},
		{"a", 59 * time.Second, map[string]time.Duration{"a": 0}},
		{"b", 59 * time.Second, map[string]time.Duration{"a": 59 * time.Second, "b": 59 * time.Second}},
		{"a", 119 * time.Second, map[string]time.Duration{"a": 119 * time.Second, "b": 59 * time.Second}},
	} {
		s.use(tt.name, begin.Add(tt.after))
		used := Used(root)
		for name, after := range tt.want {
			if !used[name].Equal(begin.Add(after)) || len(used) != len(tt.want) {
				t.Errorf("%s used after %v: the file says %v, want %v", tt.name, tt.after, used, tt.want)
			}
		}
	}

	delete(s.active, "b")
	s.use("a", begin.Add(time.Hour))
	if used := Used(root); len(used) != 1 {
		t.Errorf("a token that is gone is kept: %v", used)
	}

	// Where it cannot be written the next use tries again.
	path := filepath.Join(root, UsedName)
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	s.use("a", begin.Add(2*time.Hour))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}

	s.use("a", begin.Add(2*time.Hour+time.Second))
	if used := Used(root); !used["a"].Equal(begin.Add(2*time.Hour + time.Second)) {
		t.Errorf("the use is not written: %v", used)
	}
}

// What waits for a token ends when it is revoked, and not before.
func TestWithinEndsWithTheToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := make(chan struct{})
		never := time.Now().Add(24 * time.Hour)
		for _, expires := range []*time.Time{nil, &never} {
			ctx, cancel := Holder{Done: done, Expires: expires}.Within(t.Context())
			time.Sleep(time.Hour)
			if err := ctx.Err(); err != nil {
				t.Errorf("it ended by itself: %v", err)
			}
			cancel()
			cancel()
		}

		ctx, cancel := Holder{Done: done}.Within(t.Context())
		defer cancel()
		close(done)
		<-ctx.Done()
	})
}
