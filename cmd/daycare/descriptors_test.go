//go:build !race

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/engine/address"
	"daycare/engine/control"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
	"daycare/engine/workspace"
)

// addOwing makes agents by their files, each with one message that waits.
func (h *chatHouse) addOwing(many int) (ids []string) {
	h.t.Helper()
	for i := range many {
		d := address.Descriptor{Type: address.User, Connector: "terminal", UserID: "ada", ChannelID: fmt.Sprint("c", i)}
		descriptor, err := address.Encode(d)
		if err != nil {
			h.t.Fatal(err)
		}
		state, err := record.EncodeState(workspace.At(h.dir), record.State{})
		if err != nil {
			h.t.Fatal(err)
		}

		item, err := json.Marshal(inbox.Item{Seq: 1, At: time.Now().UTC(), Kind: message.Text, ID: fmt.Sprintf("item%020d", i),
			Text: fmt.Sprint("hello ", i), Route: &room})
		if err != nil {
			h.t.Fatal(err)
		}
		id := fmt.Sprintf("agent%019d", i)
		dir := filepath.Join(h.dir, home, "agents", id)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			h.t.Fatal(err)
		}

		for name, data := range map[string][]byte{address.File: descriptor, "state.json": state, inbox.FileName: append(item, '\n')} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				h.t.Fatal(err)
			}
		}
		ids = append(ids, id)
	}

	return ids
}

// startWith is start with so many file descriptors at most.
func (h *chatHouse) startWith(descriptors int) (log *strings.Builder) {
	h.t.Helper()
	log = &strings.Builder{}
	h.cmd = exec.Command("sh", "-c", fmt.Sprintf("ulimit -n %d && exec daycare --workspace %q start", descriptors, h.dir))
	h.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GORACE=" + os.Getenv("GORACE"), "HOME=" + h.t.TempDir(),
		"ASK_SECRET=of no importance"}
	h.cmd.Stdout, h.cmd.Stderr = log, log
	if err := h.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}

	return log
}

// TestAllAgentsAreAnsweredWithFewDescriptors: more agents have work than there are file
// descriptors. DAYCARE_LONG=1 takes 600 agents at 256 and 5,000 at 1,024.
func TestAllAgentsAreAnsweredWithFewDescriptors(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	t.Parallel()
	sizes := map[int]int{256: 300}
	if os.Getenv("DAYCARE_LONG") != "" {
		sizes = map[int]int{256: 600, 1024: 5000}
	}

	for descriptors, many := range sizes {
		t.Run(fmt.Sprintf("%d agents at %d", many, descriptors), func(t *testing.T) {
			h := newChatHouse(t, "rules:\n  - { reply: [ { text: \"Hello.\" } ] }\n", "log: { level: warn }")
			ids := h.addOwing(many)
			began := time.Now()
			log := h.startWith(descriptors)
			peak := 0
			for end := began.Add(10 * time.Minute); len(h.answers()) < many; time.Sleep(10 * time.Millisecond) {
				if open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", h.cmd.Process.Pid)); err == nil {
					peak = max(peak, len(open))
				}
				if time.Now().After(end) {
					break
				}
			}

			took := time.Since(began)
			if n := len(h.answers()); n != many {
				t.Errorf("%d of %d agents were answered", n, many)
			}
			client, err := control.Dial(filepath.Join(h.dir, home))
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			h.calm(client)
			usage := usageOf(h.cmd.Process.Pid)
			h.kill()

			for _, id := range ids {
				turns := 0
				for _, e := range h.history(id) {
					if _, ok := e.Rec.(*record.TurnEnd); ok {
						turns++
					}
				}
				if turns != 1 {
					t.Errorf("agent %s has made %d turns of one message", id, turns)
				}
			}

			if n := strings.Count(log.String(), "cannot wake"); n > 1 {
				t.Errorf("%d lines say that agents cannot wake, want at most one:\n%.2000s", n, log)
			}
			t.Logf("%d agents with %d descriptors: all answered after %s, at most %d open; %s", many, descriptors,
				took.Round(time.Millisecond), peak, usage)
		})
	}
}
