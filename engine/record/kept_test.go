package record

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/workspace"
)

// decidedIn is what CurrentState keeps of a state.
func decidedIn(s State) (d State) {
	d.decide(s)
	return d
}

func TestABrokenStateLeavesTheLastGoodOneInForce(t *testing.T) {
	for name, wreck := range map[string]func(good []byte) []byte{
		"cut":             func(good []byte) []byte { return good[:len(good)/2] },
		"empty":           func([]byte) []byte { return nil },
		"negative budget": func(good []byte) []byte { return []byte(strings.Replace(string(good), `"usd": 2`, `"usd": -2`, 1)) },
		"no object":       func([]byte) []byte { return []byte("[]\n") },
		"one bad member":  func(good []byte) []byte { return []byte(strings.Replace(string(good), `"usd": 2`, `"usd": "two"`, 1)) },
		"another is bad":  func(good []byte) []byte { return []byte(strings.Replace(string(good), `"collect"`, `7`, 1)) },
		"ended is broken": func(good []byte) []byte {
			return []byte(strings.Replace(string(good), `"reason": "killed"`, `"reason": 7`, 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			vol := disk.NewVolume(dir)
			good, err := EncodeState(workspace.At(dir), fullState())
			if err != nil {
				t.Fatal(err)
			}

			path := filepath.Join(dir, "state.json")
			if err := os.WriteFile(path, good, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, err := CurrentState(vol, dir); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, wreck(good), 0o600); err != nil {
				t.Fatal(err)
			}

			for range 2 { // the second time the broken one has been read before
				s, found, err := CurrentState(vol, dir)
				if err != nil || finding.Join(found) == nil {
					t.Errorf("found %v, %v; want the errors of the file", found, err)
				}
				if diff := cmp.Diff(decidedIn(fullState()), decidedIn(s), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("(-good +now):\n%s", diff)
				}
			}
		})
	}
}

// What the runtime changes in between must not be undone by a typing error.
func TestTheLastGoodStateHasTheNewestRights(t *testing.T) {
	dir := t.TempDir()
	vol := disk.NewVolume(dir)
	if err := UpdateState(vol, dir, func(s *State) { *s = fullState(); s.Ended = nil }); err != nil {
		t.Fatal(err)
	}
	if _, _, err := CurrentState(vol, dir); err != nil {
		t.Fatal(err)
	}
	if err := UpdateState(vol, dir, func(s *State) { s.Permissions.Grants, s.Permissions.Exec = nil, nil }); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "state.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}

	s, _, err := CurrentState(vol, dir)
	if err != nil || len(s.Permissions.Grants)+len(s.Permissions.Exec) > 0 || s.Budget == nil {
		t.Errorf("a revoked right is back, or the budget is gone: %+v, %v", s, err)
	}
}

func TestWithoutStateThereAreNoRightsAndTheBudgetStays(t *testing.T) {
	dir := t.TempDir()
	vol := disk.NewVolume(dir)
	if err := UpdateState(vol, dir, func(s *State) { *s = fullState() }); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "state.json")); err != nil {
		t.Fatal(err)
	}
	s, _, err := CurrentState(vol, dir)
	if err != nil || s.Budget == nil || s.Ended == nil || s.Permissions.WorkingDir != "" {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestABrokenStateWithoutAnEarlierOneIsAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "state.json"), []byte(`{"budget": {"usd": "two"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := CurrentState(disk.NewVolume(dir), dir); err == nil {
		t.Error("a budget that cannot be read passes for none")
	}
}

func TestAnAgentWithABrokenStateIsEnded(t *testing.T) {
	dir := t.TempDir()
	vol := disk.NewVolume(dir)
	if err := UpdateState(vol, dir, func(s *State) { *s = fullState(); s.Ended = nil }); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "state.json"), []byte(`{"mine`), 0o600); err != nil {
		t.Fatal(err)
	}

	kept, err := EndState(vol, dir, Ended{At: disk.StampOf(time.Now()), Reason: "killed"})
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(kept); err != nil || string(data) != `{"mine` {
		t.Errorf("the broken file is kept as %q: %q, %v", kept, data, err)
	}

	s, _, found, err := ReadState(dir)
	if err != nil || finding.Join(found) != nil || s.Ended == nil || s.Budget == nil || s.Budget.USD != 2 {
		t.Errorf("state %+v, %v, %v; want the last good one, ended", s, found, err)
	}
}

// A state that cannot be written as JSON is not written, whole or broken as it was.
func TestAStateThatIsNoJSONIsNotWritten(t *testing.T) {
	never := disk.Stamp{Time: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}
	for name, text := range map[string]string{"whole": "", "broken": `{"mine`} {
		dir := t.TempDir()
		vol := disk.NewVolume(dir)
		if err := UpdateState(vol, dir, func(s *State) { s.Queue = "steer" }); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, stateName)
		if text != "" {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}

		if kept, err := EndState(vol, dir, Ended{At: never, Reason: "killed"}); err == nil || kept != "" {
			t.Errorf("%s: ended, the old one is %q, %v", name, kept, err)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
			t.Errorf("%s: it has %q, %v", name, after, err)
		}
	}
}
