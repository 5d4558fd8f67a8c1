package record

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/permission"
	"daycare/engine/workspace"
)

func fullState() State {
	at := disk.StampOf(time.Date(2026, 11, 20, 17, 22, 0, 0, time.UTC))
	warm := 0.2
	return State{
		Permissions: permission.Set{WorkingDir: "/w", ReadDirs: []string{"/r"}, WriteDirs: []string{}, Web: true,
			Hosts: []string{"example.org"},
			Exec:  []string{"git"}, Grants: []permission.Grant{{Tag: "@exec:git", At: at, By: "telegram:5", Token: "p1"}}},
		Provider: Model{ID: "anthropic", Model: "m", Temperature: &warm, MaxTokens: 4096, Thinking: "low"},
		Queue:    "collect", Budget: &Budget{USD: 2, Tokens: 1000},
		Session: Session{ID: "s1", Title: "hello", StartedAt: at, UpdatedAt: at, Messages: 2, PromptTokens: 10,
			CompletionTokens: 2, Cost: 0.25, Summary: 9, First: 1},
		Tokens: &Tokens{Input: 10, Output: 2},
		Stats:  Stats{"anthropic": {"m": {Input: 10, Output: 2, Cost: 0.25, Calls: 1}}},
		Seq:    12, CreatedAt: at, UpdatedAt: at, Ended: &Ended{At: at, Reason: "killed"},
	}
}

func TestGoldenState(t *testing.T) {
	path := filepath.Join("testdata", "state.golden.json")
	got, err := EncodeState(workspace.At("/root"), fullState())
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the format of state.json changed (-file +now):\n%s", diff)
	}

	s, found := ParseState(path, want)
	if diff := cmp.Diff(fullState(), s, cmpopts.EquateEmpty()); diff != "" || len(found) > 0 {
		t.Errorf("read back: %v\n%s", found, diff)
	}
}

func TestReadStateFindings(t *testing.T) {
	tests := []struct {
		name, json string
		want       []string // ID place
	}{
		{"fine", `{"queue":"steer"}`, nil},
		{"syntax", "{\n  \"queue\": steer\n}", []string{"state-syntax state.json:2:12"}},
		{"cut", "{\n  \"queue\": \"st", []string{"state-syntax state.json:2:14"}},
		{"empty", "", []string{"state-syntax state.json:1:1"}},
		{"list", "[]", []string{"state-syntax state.json:1:1"}},
		{"two values", "{} {}", []string{"state-syntax state.json:1:4"}},
		{"wrong type", "{\n  \"queue\": 7,\n  \"seq\": \"x\"\n}",
			[]string{"state-wrong-type state.json:2:12", "state-wrong-type state.json:3:10"}},
		{"wrong inside", "{\"permissions\": {\n  \"web\": \"yes\"\n}}", []string{"state-wrong-type state.json:2:10"}},
		{"bad time", `{"createdAt":"yesterday"}`, []string{"state-wrong-type state.json:1:14"}},
		{"a time after the year 9999", `{"createdAt":"9999-12-31T23:59:59-05:00"}`, []string{"state-wrong-type state.json:1:14"}},
		{"unknown", "{\n  \"colour\": \"red\"}", []string{"state-unknown-key state.json:2:3"}},
		{"unknown inside", "{\"permissions\": {\n  \"webb\": true\n}}", []string{"state-unknown-key state.json:2:3"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, found := ParseState("state.json", []byte(tt.json))
			var got []string
			for _, f := range found {
				got = append(got, f.ID+" "+f.Place())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, found)
			}
		})
	}
}

func TestAWrongMemberCostsOnlyItself(t *testing.T) {
	s, found := ParseState("state.json", []byte(`{"permissions":{"web":true,"exec":7},"queue":"collect"}`))
	if s.Queue != "collect" || s.Permissions.Web || len(found) != 1 {
		t.Errorf("%+v, %v", s, found)
	}
}

// TestASessionThatHasNotBegunHasNoTimes: the file of a new agent does not say that its conversation began in the year 1.
func TestASessionThatHasNotBegunHasNoTimes(t *testing.T) {
	dir := t.TempDir()
	if err := UpdateState(disk.NewVolume(dir), dir, func(s *State) { s.Session.ID = "new" }); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, stateName))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(data, []byte(`"new"`)) || bytes.Contains(data, []byte("startedAt")) {
		t.Errorf("state.json is\n%s", data)
	}
}

func TestUpdateStateKeepsWhatItDoesNotChange(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, stateName)
	byHand := `{
  "note": "mine",
  "queue": "collect",
  "permissions": {"web": true, "why": "for the weather", "exec": ["git"]},
  "session": {"id": "old", "colour": "red", "cost": 1.50},
  "tokens": null
}`
	if err := os.WriteFile(path, []byte(byHand), 0o600); err != nil {
		t.Fatal(err)
	}
	vol := disk.NewVolume(dir)
	err := UpdateState(vol, dir, func(s *State) {
		s.Session.ID, s.Seq = "new", 4
		s.Stats = Stats{"p": {"m": {Calls: 1}}}
		s.Permissions.Grants = append(s.Permissions.Grants, permission.Grant{Tag: "@web", By: "me"})
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "note": "mine",
  "queue": "collect",
  "permissions": {
    "web": true,
    "why": "for the weather",
    "exec": [
      "git"
    ],
    "grants": [
      {
        "tag": "@web",
        "at": "0001-01-01T00:00:00.000Z",
        "by": "me"
      }
    ]
  },
  "session": {
    "id": "new",
    "colour": "red",
    "cost": 1.50
  },
  "tokens": null,
  "stats": {
    "p": {
      "m": {
        "input": 0,
        "output": 0,
        "cacheRead": 0,
        "cacheWrite": 0,
        "cost": 0,
        "calls": 1
      }
    }
  },
  "seq": 4
}
`
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	before, _ := os.Stat(path)
	if err := UpdateState(vol, dir, func(s *State) { s.Seq = 4 }); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.Stat(path); !os.SameFile(before, after) {
		t.Error("written although nothing changed")
	}
}

func TestUpdateStateDoesNotTouchABrokenFile(t *testing.T) {
	dir := t.TempDir()
	path, vol := filepath.Join(dir, stateName), disk.NewVolume(dir)
	for _, broken := range []string{`{"queue": "st`, `{"queue": 7}`} {
		if err := os.WriteFile(path, []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		err := UpdateState(vol, dir, func(s *State) { s.Seq = 1 })
		var f finding.Finding
		if !errors.As(err, &f) || f.Line != 1 {
			t.Errorf("error %v", err)
		}
		if got, _ := os.ReadFile(path); string(got) != broken {
			t.Errorf("the file is now %s", got)
		}
	}

	if err := UpdateState(vol, filepath.Join(dir, "gone"), func(*State) {}); !errors.Is(err, ErrGone) {
		t.Errorf("no folder: %v", err)
	}
}

// TestUpdatesAtOnce: the agent and the engine may both update.
func TestUpdatesAtOnce(t *testing.T) {
	dir := t.TempDir()
	vol := disk.NewVolume(dir)
	const n = 40
	var wg sync.WaitGroup
	for writer := range 3 {
		wg.Go(func() {
			for range n {
				if err := UpdateState(vol, dir, func(s *State) {
					s.Stats = Stats{}.plus(s.Stats)
					s.Stats.add("p", fmt.Sprint(writer), Tokens{}, 1)
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}

	wg.Wait()
	s, _, _, err := ReadState(dir)
	if err != nil {
		t.Fatal(err)
	}

	for writer := range 3 {
		if got := s.Stats["p"][fmt.Sprint(writer)].Calls; got != n {
			t.Errorf("writer %d: %d of %d updates", writer, got, n)
		}
	}
}

func (s Stats) plus(other Stats) Stats {
	s.Add(other)
	return s
}

// TestUpdateStateLosesNoSave: a user saves again and again, whatever the runtime
// wrote meanwhile. Each save is active until the next.
func TestUpdateStateLosesNoSave(t *testing.T) {
	dir := t.TempDir()
	path, vol := filepath.Join(dir, stateName), disk.NewVolume(dir)
	if err := UpdateState(vol, dir, func(s *State) { s.Queue = "q0" }); err != nil {
		t.Fatal(err)
	}
	done := make(chan bool)
	go func() {
		defer close(done)
		for i := 1; i <= 200; i++ {
			temp := filepath.Join(dir, "editor")
			if err := os.WriteFile(temp, fmt.Appendf(nil, `{"queue": "q%d"}`, i), 0o600); err != nil {
				t.Error(err)
			}
			if err := os.Rename(temp, path); err != nil {
				t.Error(err)
			}
		}
	}()

	newest := ""
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		if err := UpdateState(vol, dir, func(s *State) { s.Seq++; newest = s.Queue }); err != nil {
			t.Fatal(err)
		}
	}

	if s, _, _, _ := ReadState(dir); s.Queue != "q200" || newest != "q200" {
		t.Errorf("after the last save the file has %q, the last update saw %q", s.Queue, newest)
	}
}

func FuzzReadState(f *testing.F) {
	full, err := EncodeState(workspace.At("/root"), fullState())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(full)
	f.Add([]byte(`{"queue":7,"permissions":{"webb":1},"x":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, found := ParseState("state.json", data)
		if finding.Join(found) != nil {
			return
		}
		content, err := changed(workspace.At(""), s, data, func(s *State) { s.Seq++ })
		if err != nil {
			t.Fatalf("valid, but cannot be updated: %v", err)
		}

		again, found := ParseState("state.json", content)
		if finding.Join(found) != nil {
			t.Fatalf("broken by an update: %v\n%s", found, content)
		}
		if again.Seq != s.Seq+1 || again.Queue != s.Queue {
			t.Errorf("update lost: %+v", again)
		}
	})
}

// A state.json that lies elsewhere is written there; a link to nothing is left, and
// does not keep the update waiting.
func TestUpdateStateThroughLink(t *testing.T) {
	base := t.TempDir()
	root := filepath.Join(base, "work", ".daycare")
	dir, kept := filepath.Join(root, "agents", "a"), filepath.Join(base, "state.json")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.Symlink(kept, filepath.Join(dir, stateName))); err != nil {
		t.Fatal(err)
	}

	vol := disk.NewVolume(root)
	if err := UpdateState(vol, dir, func(s *State) { s.Seq = 1 }); !errors.Is(err, disk.ErrLink) {
		t.Errorf("a link to nothing: %v", err)
	}
	if err := os.WriteFile(kept, []byte(`{"queue":"collect"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := UpdateState(vol, dir, func(s *State) { s.Seq = 2 }); err != nil {
		t.Fatal(err)
	}

	s, _, _, err := ReadState(dir)
	if _, lerr := os.Readlink(filepath.Join(dir, stateName)); err != nil || lerr != nil || s.Seq != 2 || s.Queue != "collect" {
		t.Errorf("%+v, %v; the link: %v", s, err, lerr)
	}
}
