package apitoken

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"daycare/engine/disk"
	"daycare/engine/finding"
)

// open opens the tokens of a folder and returns what is reported of its file.
func open(t *testing.T, root string) (*Store, func() []finding.Finding) {
	t.Helper()
	var mu sync.Mutex
	var last []finding.Finding
	s := Open(root, disk.NewVolume(root), func(_ string, found []finding.Finding) {
		mu.Lock()
		defer mu.Unlock()
		last = found
	})

	return s, func() []finding.Finding {
		mu.Lock()
		defer mu.Unlock()
		return last
	}
}

func create(t *testing.T, root, name string, r Rights, expires *time.Time) string {
	t.Helper()
	secret, _, err := Create(root, name, r, expires)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// put replaces the file in one step, as an editor does.
func put(t *testing.T, root, content string) {
	t.Helper()
	temp := filepath.Join(root, "new")
	if err := errors.Join(os.WriteFile(temp, []byte(content), 0o600), os.Rename(temp, filepath.Join(root, Name))); err != nil {
		t.Fatal(err)
	}
}

func TestTheFileHoldsHashesOnly(t *testing.T) {
	root := t.TempDir()
	secret := create(t, root, "phone", Rights{Scopes: []Scope{Chat}}, nil)
	data, err := os.ReadFile(filepath.Join(root, Name))
	if err != nil {
		t.Fatal(err)
	}

	random := strings.TrimPrefix(secret, prefix)
	if len(random) != 43 || strings.Contains(string(data), random) || !strings.Contains(string(data), hash(secret)) {
		t.Errorf("token %d characters, file %s", len(random), data)
	}
	if info, err := os.Stat(filepath.Join(root, Name)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}

	s, _ := open(t, root)
	if h, ok := s.Find(secret); !ok || h.Name != "phone" || !h.Rights.Allow(Chat) || h.Rights.Allow(Admin) {
		t.Errorf("found %+v, %v", h, ok)
	}

	for _, wrong := range []string{"", secret + "x", secret[:len(secret)-1], hash(secret), strings.ToUpper(secret), "phone"} {
		if h, ok := s.Find(wrong); ok {
			t.Errorf("%q is taken for the token of %s", wrong, h.Name)
		}
	}
}

func TestScopesIncludeEachOther(t *testing.T) {
	for have, want := range map[Scope][]Scope{Read: {Read}, Chat: {Read, Chat}, Approve: {Read, Approve}, Admin: Scopes} {
		for _, need := range Scopes {
			if got := (Rights{Scopes: []Scope{have}}).Allow(need); got != slices.Contains(want, need) {
				t.Errorf("%s allows %s: %v", have, need, got)
			}
		}
	}
	if (Rights{}).Allow(Read) {
		t.Error("no scopes allow read")
	}
}

func TestAHandEditedFileCountsAtOnce(t *testing.T) {
	root := t.TempDir()
	s, reported := open(t, root)
	secret := create(t, root, "phone", Rights{Scopes: []Scope{Chat}, Agents: []string{"a"}}, nil)
	h, ok := s.Find(secret)
	if !ok || h.Rights.Know("b") || !h.Rights.Know("a") {
		t.Fatalf("found %+v, %v", h, ok)
	}

	put(t, root, fmt.Sprintf(`{"phone": {"hash": %q, "scopes": ["read"], "created": "2026-01-01T00:00:00.000Z"}}`, hash(secret)))
	s.Refresh()
	select {
	case <-h.Done:
	default:
		t.Error("what was begun with other rights goes on")
	}

	if h, ok = s.Find(secret); !ok || h.Rights.Allow(Chat) || !h.Rights.Know("b") {
		t.Errorf("found %+v, %v", h, ok)
	}
	for what, remove := range map[string]func(){
		"an empty object": func() { put(t, root, "{}") },
		"a missing file":  func() { os.Remove(filepath.Join(root, Name)) },
	} {
		again := create(t, root, "again", Rights{Scopes: []Scope{Read}}, nil)
		if _, ok := s.Find(again); !ok {
			t.Errorf("%s: a token that is there is refused", what)
		}
		remove()
		if _, ok := s.Find(again); ok || reported() != nil {
			t.Errorf("%s: a token that was taken out is found; reported %v", what, reported())
		}
	}

	if _, ok := s.Find(secret); ok {
		t.Error("a token that was taken out is found")
	}
}

func TestABrokenFileLeavesTheLastGoodTokens(t *testing.T) {
	const good = `"hash": "sha256:0000000000000000000000000000000000000000000000000000000000000000", "created": "2026-01-01T00:00:00.000Z"`
	root := t.TempDir()
	s, reported := open(t, root)
	secret := create(t, root, "phone", Rights{Scopes: []Scope{Chat}}, nil)
	s.Refresh()
	cases := map[string]string{
		"empty":              ``,
		"cut":                `{"x": {`,
		"a list":             `[]`,
		"null":               `null`,
		"no scopes":          `{"x": {` + good + `}}`,
		"unknown scope":      `{"x": {` + good + `, "scopes": ["root"]}}`,
		"no hash":            `{"x": {"scopes": ["read"]}}`,
		"a token, no hash":   `{"x": {"hash": "daycare_secret", "scopes": ["read"]}}`,
		"agents misspelled":  `{"x": {` + good + `, "scopes": ["read"], "agent": ["a"]}}`,
		"no agents":          `{"x": {` + good + `, "scopes": ["read"], "agents": []}}`,
		"expires in words":   `{"x": {` + good + `, "scopes": ["read"], "expires": "soon"}}`,
		"a name with breaks": `{"x\n": {` + good + `, "scopes": ["read"]}}`,
		"one hash twice":     `{"x": {` + good + `, "scopes": ["read"]}, "y": {` + good + `, "scopes": ["admin"]}}`,
	}
	for name, content := range cases {
		t.Run(name, func(t *testing.T) {
			put(t, root, content)
			if _, ok := s.Find(secret); !ok {
				t.Error("the last good token is refused")
			}
			if finding.Join(reported()) == nil {
				t.Error("nothing is reported")
			}
			if fresh, _ := open(t, root); len(fresh.active) != 0 {
				t.Errorf("a daemon that starts with it has %d tokens", len(fresh.active))
			}
			if _, _, err := Create(root, "other", Rights{Scopes: []Scope{Read}}, nil); err == nil {
				t.Error("a broken file is overwritten")
			}
		})
	}

	t.Logf("%d broken files", len(cases))
}

func TestALinkIntoTheWorkspaceIsNoFileOfTokens(t *testing.T) {
	root := filepath.Join(t.TempDir(), ".daycare")
	planted := filepath.Join(filepath.Dir(root), "planted.json")
	secret := "daycare_of_an_agent"
	text, _ := json.Marshal(map[string]Token{"x": {Hash: hash(secret), Scopes: []Scope{Admin}}})
	if err := errors.Join(os.Mkdir(root, 0o700), os.WriteFile(planted, text, 0o600),
		os.Symlink(planted, filepath.Join(root, Name))); err != nil {
		t.Fatal(err)
	}
	s, reported := open(t, root)
	if _, ok := s.Find(secret); ok || finding.Join(reported()) == nil {
		t.Errorf("found: %v, reported %v", ok, reported())
	}
}

// The login of a browser is a token of its own kind: each secret opens its own kind alone. One that has expired is no
// login, and leaves the file when the next token is made, which a token of another kind does not.
func TestSessions(t *testing.T) {
	root := t.TempDir()
	s, _ := open(t, root)
	if s.HasSessions() {
		t.Error("a browser is logged in, and none was")
	}
	token := create(t, root, "phone", Everything, nil)
	secret, name, made, err := CreateSession(root, "firefox")
	other, otherName, _, oerr := CreateSession(root, "firefox")
	if err = errors.Join(err, oerr); err != nil || !strings.HasPrefix(name, "web-firefox-") || name == otherName || secret == other {
		t.Fatalf("%q %q, %v", name, otherName, err)
	}
	if left := time.Until(*made.Expires); !made.IsSession() || left < sessionLife-time.Minute || left > sessionLife {
		t.Errorf("a session of %s: %+v", left, made)
	}
	h, ok := s.FindSession(secret)
	if _, asToken := s.Find(secret); !ok || asToken || h.Name != name || h.String() != "web:"+name || !s.HasSessions() {
		t.Errorf("found %v as a session, %v as a token: %s", ok, asToken, h)
	}
	h, ok = s.Find(token)
	if _, asSession := s.FindSession(token); !ok || asSession || h.String() != "token:phone" {
		t.Errorf("found %v as a token, %v as a session: %s", ok, asSession, h)
	}

	tokens, err := List(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, expires := range []string{name, otherName, "phone"} {
		over := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
		t := tokens[expires]
		t.Expires = &over
		tokens[expires] = t
	}
	content, err := json.Marshal(tokens)
	if err != nil {
		t.Fatal(err)
	}
	put(t, root, string(content))
	if s.HasSessions() {
		t.Error("a browser is logged in whose session has expired")
	}
	_, late, _, err := CreateSession(root, "safari")
	if err != nil || !s.HasSessions() {
		t.Errorf("a new session: %v, %v", s.HasSessions(), err)
	}
	tokens, err = List(root)
	if _, kept := tokens[late]; err != nil || len(tokens) != 2 || !kept || tokens["phone"].IsSession() {
		t.Errorf("left are %v, %v, want the new session and the phone", slices.Sorted(maps.Keys(tokens)), err)
	}
	create(t, root, "desk", Everything, nil)
	if tokens, err = List(root); err != nil || len(tokens) != 3 {
		t.Errorf("left are %v, %v, want the live session, too", slices.Sorted(maps.Keys(tokens)), err)
	}
	if text, err := os.ReadFile(filepath.Join(root, Name)); err != nil || !strings.Contains(string(text), "\n  \"desk\": {\n    \"hash\"") {
		t.Errorf("the file is not as users read it: %s, %v", text, err)
	}
}

func TestExpiryEndsATokenAndWhatItHasOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := t.TempDir()
		past, soon := time.Now().Add(-time.Second), time.Now().Add(300*time.Millisecond)
		old, short := create(t, root, "old", Rights{Scopes: []Scope{Read}}, &past), create(t, root, "short",
			Rights{Scopes: []Scope{Read}}, &soon)
		s, _ := open(t, root)
		if _, ok := s.Find(old); ok {
			t.Error("an expired token is found")
		}

		h, ok := s.Find(short)
		if !ok {
			t.Fatal("a token that has not expired is refused")
		}
		ctx, cancel := h.Within(t.Context())
		defer cancel()

		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
			t.Error("what it has open goes on after it expired")
		}
		if _, ok := s.Find(short); ok {
			t.Error("it is found after it expired")
		}
	})
}

// Two processes that change tokens at once lose nothing and bring nothing back.
func TestChangesAtOnce(t *testing.T) {
	root := t.TempDir()
	const many = 20
	for i := range many {
		create(t, root, fmt.Sprintf("old%d", i), Rights{Scopes: []Scope{Read}}, nil)
	}
	s, _ := open(t, root)
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			if err := Revoke(root, fmt.Sprintf("old%d", i)); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			secret, _, err := Create(root, fmt.Sprintf("new%d", i), Rights{Scopes: []Scope{Read}}, nil)
			if err != nil {
				t.Error(err)
			}
			if h, ok := s.Find(secret); !ok || h.Name != fmt.Sprintf("new%d", i) {
				t.Errorf("new%d is not found at once: %+v", i, h)
			}
		})
	}

	wg.Wait()
	tokens, err := List(root)
	if err != nil || len(tokens) != many {
		t.Errorf("%d tokens are left, %v; want %d", len(tokens), err, many)
	}

	for name := range tokens {
		if strings.HasPrefix(name, "old") {
			t.Errorf("%s was revoked and is back", name)
		}
	}
}

func TestLastUse(t *testing.T) {
	root := t.TempDir()
	secret := create(t, root, "phone", Rights{Scopes: []Scope{Read}}, nil)
	create(t, root, "unused", Rights{Scopes: []Scope{Read}}, nil)
	s, _ := open(t, root)
	before := time.Now()
	for range 3 {
		s.Find(secret)
	}

	used := Used(root)
	if at := used["phone"]; at.Before(before.Add(-time.Second)) || len(used) != 1 {
		t.Errorf("used: %v", used)
	}
	if err := os.WriteFile(filepath.Join(root, UsedName), []byte("null"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, _ := open(t, root); s.used == nil {
		t.Error("a broken record of uses stops the next one")
	}
}

// A request that ends takes what waits for its token with it.
func TestWithinEndsWithTheRequest(t *testing.T) {
	ctx, cancel := Holder{Done: make(chan struct{})}.Within(context.Background())
	cancel()
	<-ctx.Done()
}
