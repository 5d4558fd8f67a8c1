package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/form"
	"daycare/engine/permission"
	"daycare/engine/workspace"
)

const (
	stateName = "state.json"
	maxState  = 16 << 20 // bytes
)

// State is state.json. Users own Permissions, Provider, Queue and Budget; the runtime owns
// CreatedAt and Ended; everything else is a cache that can be rebuilt from history.
type State struct {
	Permissions permission.Set `json:"permissions"`
	Provider    Model          `json:"provider"`
	Queue       string         `json:"queue,omitempty" allow:"|steer|followup|collect|interrupt"` // "": the connector's
	Budget      *Budget        `json:"budget,omitempty"`
	Session     Session        `json:"session"`
	Tokens      *Tokens        `json:"tokens"` // usage of the newest call
	Stats       Stats          `json:"stats"`
	Seq         int64          `json:"seq"` // number of the record up to which Session and Stats count
	CreatedAt   disk.Stamp     `json:"createdAt"`
	UpdatedAt   disk.Stamp     `json:"updatedAt"`
	Ended       *Ended         `json:"ended,omitempty"`
	// Announced are the permissions as last shown to users; what Permissions has in addition
	// was added by hand. The runtime owns it.
	Announced *permission.Set `json:"announced,omitempty"`
}

// A Model says which model an agent uses; empty members mean the configured default.
type Model struct {
	ID          string   `json:"id"` // of the provider in settings
	Model       string   `json:"model"`
	Temperature *float64 `json:"temperature,omitempty"`
	MaxTokens   int      `json:"maxTokens,omitempty"`
	Thinking    string   `json:"thinking,omitempty" allow:"|low|medium|high"`
}

// A Budget is what an agent may spend over its life; 0: no limit.
type Budget struct {
	USD    float64 `json:"usd,omitempty"`
	Tokens int64   `json:"tokens,omitempty"`
}

func (b *Budget) negative() bool { return b != nil && (b.USD < 0 || b.Tokens < 0) }

// Ended says when and why an agent ended.
type Ended struct {
	At     disk.Stamp `json:"at"`
	Reason string     `json:"reason"`
}

// ReadState reads state.json of the agent folder dir. If the file is missing, the state is zero and
// raw nil. A member that cannot be read keeps its zero value and is a finding of severity Error;
// unknown members are findings of severity Info. Paths are absolute.
func ReadState(dir string) (s State, raw []byte, found []finding.Finding, err error) {
	s, raw, found, err = readStored(dir)
	return s.resolved(workspace.Of(dir)), raw, found, err
}

// readStored is ReadState with paths as they are written.
func readStored(dir string) (s State, raw []byte, found []finding.Finding, err error) {
	path := filepath.Join(dir, stateName)
	raw, _, err = beneath.Own(path, maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil, nil, nil
	}
	if err != nil {
		return s, nil, nil, fmt.Errorf("read state: %w", err)
	}

	s, found = ParseState(path, raw)

	return s, raw, found, nil
}

// stateKind is how state.json is read.
var stateKind = form.Kind{ID: "state", Unknown: finding.Info, Odd: finding.Warning,
	Remedy: "Until you correct it, the last valid version stays active."}

// ParseState is ReadState for content that is not in its place yet; path is for the findings. Paths
// in the content stay as they are written.
func ParseState(path string, raw []byte) (s State, found []finding.Finding) {
	if form.Clean(raw, &s) && !s.Budget.negative() {
		return s, nil
	}
	s = State{}
	f := stateKind.JSON(path, raw)
	if f.Read(&s); s.Budget.negative() {
		s.Budget = nil
		f.Tell(finding.Error, "budget", "budget", "a budget must not be negative; 0 means no limit", "")
	}

	return s, f.Found
}

// EncodeState returns the content of a new state.json in a workspace.
func EncodeState(at workspace.Place, s State) ([]byte, error) {
	s = s.stored(at)
	if s.Stats == nil {
		s.Stats = Stats{}
	}
	data, err := marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode state: %w", err)
	}

	return indented(data), nil
}

// indented is a JSON text as users read it.
func indented(data []byte) []byte {
	var buf bytes.Buffer
	_ = json.Indent(&buf, data, "", "  ") // fails only for what is not JSON
	buf.WriteByte('\n')

	return buf.Bytes()
}

// UpdateState changes state.json. change gets the newest version and must only set what the runtime
// owns; everything else stays as it is written, including unknown members and their order. If a
// user saves the file meanwhile, change is called again with that version. A file that a user broke
// is not overwritten: the findings are returned as the error.
func UpdateState(vol *disk.Volume, dir string, change func(*State)) error {
	path := filepath.Join(dir, stateName)
	unlock, err := lockFolder(dir)
	if err != nil {
		return fmt.Errorf("update state: %w", err)
	}
	defer unlock()

	for try := 0; ; try++ {
		before, raw, found, err := readStored(dir)
		if err != nil {
			return err
		}
		if raw == nil && try < len(awayFor) {
			time.Sleep(awayFor[try])
			continue
		}
		if err := finding.Join(found); err != nil {
			return fmt.Errorf("update state: %w", err)
		}

		content, err := changed(workspace.Of(dir), before, raw, change)
		if err != nil || content == nil {
			return err
		}
		_, err = vol.Exchange("state", path, content, raw)
		if err == nil {
			keepUpdate(vol, dir, content)
		}
		if err == nil || !errors.Is(err, disk.ErrChanged) {
			return err
		}
	}
}

// awayFor are the pauses in which a file that is not there may come back: some
// editors move the old one away before they write the new one.
var awayFor = [...]time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond}

// lockFolder keeps other updates out: exchange-and-verify holds against users, who
// never look at what stands there for an instant; two updates at once would.
func lockFolder(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: no folder %s", ErrGone, dir)
	}
	if err != nil {
		return nil, err
	}

	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err != syscall.EINTR {
			break
		}
	}

	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}

	return func() { f.Close() }, nil
}

// ChangeState returns the content of a state.json of a workspace after change, without
// writing it. Like UpdateState it keeps members that change does not touch as they are written in
// raw.
func ChangeState(at workspace.Place, raw []byte, change func(*State)) ([]byte, error) {
	before, found := ParseState(stateName, raw)
	if err := finding.Join(found); err != nil {
		return nil, fmt.Errorf("change state: %w", err)
	}
	content, err := changed(at, before, raw, change)
	if content == nil {
		content = raw
	}

	return content, err
}

// changed is the content of raw, which holds before, after the change; nil: nothing changed. An absolute
// path in the workspace becomes relative.
func changed(at workspace.Place, before State, raw []byte, change func(*State)) ([]byte, error) {
	old := encoded(before)
	var after State                 // a deep copy, so that change cannot reach into before
	_ = json.Unmarshal(old, &after) // it was encoded from a State just now
	after = after.resolved(at)
	change(&after)
	updated, err := marshal(after.stored(at))
	if err != nil {
		return nil, fmt.Errorf("encode state: %w", err)
	}
	if raw == nil {
		return indented(updated), nil
	}
	if bytes.Equal(old, updated) {
		return nil, nil
	}

	return indented(merge(raw, old, updated)), nil
}
