package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/engine/address"
	"daycare/engine/control"
)

// A start that knows from the index file what stood in the files of agents sees all that was done
// to them while nothing ran, and what killed the one before it: while the index file was written,
// before it had its name, and behind that.
func TestAStartSeesWhatWasDoneWhileNothingRan(t *testing.T) {
	t.Parallel()
	s := newStreet(t)
	s.start()
	index := filepath.Join(s.workspace, home, address.IndexFile)
	waitFor(t, "the index file", func() bool { _, err := os.Stat(index); return err == nil })
	s.kill()

	last := len(s.names) - 1
	for n, point := range []string{"", "kill@agents.index.write#1:50", "kill@agents.index.rename#1", "kill@agents.index.rename#1:100"} {
		if point != "" {
			if err := os.Remove(index); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			s.die(point)
		}
		delete(s.names, streetID(n+1))
		if err := os.RemoveAll(s.path(n+1, "")); err != nil {
			t.Fatal(err)
		}
		s.move(last+1+n, fmt.Sprint("new ", n))
		s.move(20+n, "AGENT 2"+fmt.Sprint(n)) // as long as before
		write(t, s.path(30+n, "inbox.jsonl"), `{"type":"message","id":"by-hand","text":"hello"}`+"\n")

		s.start()
		client, err := control.Dial(filepath.Join(s.workspace, home))
		if err != nil {
			t.Fatal(err)
		}
		all, err := client.Agents(t.Context())
		client.Close()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for _, a := range all {
			found[a.ID] = a.Name
		}
		if !maps.Equal(found, s.names) {
			t.Errorf("after %q:\n%v\nwant\n%v", point, found, s.names)
		}
		waitFor(t, "an answer to what stands in an inbox", func() bool {
			data, err := os.ReadFile(s.path(30+n, "history.jsonl"))
			return err == nil && strings.Contains(string(data), `"type":"assistant_message"`)
		})
		if left, err := filepath.Glob(filepath.Join(s.workspace, home, ".tmp-*")); err != nil || len(left) > 0 {
			t.Errorf("after %q there are %v, %v", point, left, err)
		}
		s.kill()
	}
}

// A street is a workspace with many agents that nobody has spoken with.
type street struct {
	*process
	state string
	names map[string]string // by id
}

func newStreet(t *testing.T) *street {
	s := &street{process: &process{t: t, workspace: t.TempDir(), env: []string{"HOME=" + t.TempDir()}}, names: map[string]string{}}
	write(t, filepath.Join(s.workspace, home, "settings.yaml"), "providers: [{id: offline, type: scripted}]\n")
	s.start()
	client, err := control.Dial(filepath.Join(s.workspace, home))
	if err != nil {
		t.Fatal(err)
	}
	made, err := client.Create(t.Context(), control.NewAgent{Name: "first"})
	client.Close()
	if err != nil {
		t.Fatal(err)
	}
	s.names[made.ID], s.state = "first", read(t, s.process, "state.json")
	s.kill()
	for i := range 40 {
		s.move(i, fmt.Sprint("agent ", i))
	}
	for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
	} // what was written just now is not kept in an index

	return s
}

func streetID(i int) string { return fmt.Sprintf("b%023d", i) }

func (s *street) path(i int, name string) string {
	return filepath.Join(s.workspace, home, "agents", streetID(i), name)
}

// move writes the files of an agent, which may be there.
func (s *street) move(i int, name string) {
	s.t.Helper()
	id := streetID(i)
	s.names[id] = name
	write(s.t, s.path(i, "descriptor.json"), fmt.Sprintf(`{"type":"permanent","id":"%s","name":"%s"}`, id, name))
	write(s.t, s.path(i, "state.json"), s.state)
	write(s.t, s.path(i, "inbox.jsonl"), "")
}

// die starts a daemon that dies at a failpoint.
func (s *street) die(point string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "daycare", "--workspace", s.workspace, "start")
	cmd.Env = slices.Concat(os.Environ(), s.env, []string{"DAYCARE_FAILPOINT=" + point})
	if out, err := cmd.CombinedOutput(); err == nil || ctx.Err() != nil {
		s.t.Fatalf("it did not die at %s: %v\n%s", point, err, out)
	}
}
