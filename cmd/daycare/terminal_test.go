//go:build !race

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// tuiWorkspace is a workspace whose model is served at url.
func tuiWorkspace(t *testing.T, url string) string {
	t.Helper()
	dir := t.TempDir()
	settings := "providers:\n  - { id: demo, type: openai, baseURL: \"" + url + "\", model: demo }\n" +
		"models: [ { id: demo, window: 4000 } ]\n" +
		"permissions: { defaults: { exec: ask } }\n"
	path := filepath.Join(dir, ".daycare", "settings.yaml")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { stopLeftover(dir) })
	return dir
}

// TestTerminal is an evening with the full-screen UI in a real terminal. The processes of the UI and of the daemon do the work.
// With the race detector TestOneApprovalOnEverySurface has the UI in a terminal, and the tests of connectors/terminal all
// that the UI can do.
func TestTerminal(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("SKIPPED: there is no tmux here, so nobody has looked at the UI in a real terminal")
	}
	if testing.Short() {
		t.Skip("it runs a daemon and a terminal")
	}
	model := newSpeaker(t)
	s := newSeat(t, tuiWorkspace(t, model.url), 100, 30)
	s.types("exec sh -c 'daycare; exec sh'")
	s.keys("Enter")
	s.sees("Write to your agent below and press Enter.")

	// The first words make the user's own agent; three more are spawned.
	s.enters("hello there")
	s.sees("You said: hello there", "to 0/ main")
	for i := 1; i <= 3; i++ {
		s.enters(fmt.Sprintf("/spawn stream number %d", i))
		s.sees(fmt.Sprintf("to %d/ stream number %d", i, i), "alpha beta")
	}

	// Switching while all stream: each shows its own, and keeps its draft.
	s.types("draft for three")
	s.sees("› draft for three", "● 3")
	s.keys("C-Left")
	s.sees("to 2/ stream number 2", "alpha beta", "● 3")
	s.loses("draft for three")
	s.types("draft for two")
	s.sees("› draft for two")
	s.keys("C-Left")
	s.sees("to 1/ stream number 1", "alpha beta", "● 3")
	s.loses("draft for")
	s.keys("C-Right")
	s.sees("to 2/", "› draft for two", "● 3")

	// Mail from a user and from an agent to another one; it waits until the stream
	// is over, and is read in its order.
	s.keys("C-c")
	s.loses("draft for two")
	s.enters("/send 1/ mail for you")
	s.sees("sent to 1/ stream number 1")
	s.enters("/send 0/ tell 1/ mail of an agent")
	s.sees("sent to 0/ main", "✉ 1")
	s.keys("C-Left")
	s.reads("alpha beta", "⧗ 2 waiting", "mail of an agent", "to 1/ stream number 1")
	model.finish("stream number 1")
	s.reads("stream number 1", "alpha beta", "End of the stream.", "› mail for you", "✉ from 0/ main", "mail of an agent",
		"You said: mail of an agent", "to 1/ stream number 1")

	// An agent with a child is killed; the view goes to the one visited before.
	s.daycare("agents", "new", "--name", "helper", "--type", "subagent", "--parent", "1/", "--prompt", "stream for your parent")
	s.sees("Running 1 agent (0 done, 1 running)", "1/0 helper")
	s.enters("/kill")
	s.sees("End 1/ stream number 1?")
	s.keys("y")
	s.reads("› hello there", "You said: hello there", "to 0/ main")
	s.loses("·1/", "●1/", "✉1/", "✝1/", "● 3")

	// An agent that is not shown asks; the answer is given from here.
	model.finish("stream number 3")
	s.sees("● 1")
	s.enters("/send 3/ run it")
	s.sees("? 1 to answer")
	s.keys("C-y")
	s.sees("3/ stream number 3 asks for @exec", "echo made-by-approval", "[o] Once", "[d] Deny")
	s.keys("o")
	s.sees("to 0/ main")
	s.loses("to answer")
	s.keys("C-Left")
	s.reads("alpha beta", "End of the stream.", "› run it", "I have asked.", "It printed: made-by-approval",
		"to 3/ stream number 3", "› draft for three")

	// A small window, and back.
	s.tmux("resize-window", "-x", "60", "-y", "20")
	s.sees("to 3/ stream number 3", "› draft for three", "It printed: made-by-approval")
	s.keys("C-g")
	s.sees("AGENT", "DOING, OR SAID LAST", "0/ main", "3/ stream")
	s.keys("Enter")
	s.tmux("resize-window", "-x", "120", "-y", "40")
	s.sees("to 3/ stream number 3", "› draft for three", "It printed: made-by-approval")

	// The daemon goes while an agent streams, and comes back; the agent continues.
	s.daycare("stop")
	s.sees("disconnected", "daycare does not answer", "It printed: made-by-approval")
	s.keys("C-r")
	s.sees("daycare was started", "› draft for three")
	s.loses("disconnected")
	s.keys("C-c")
	s.loses("draft for three")
	s.enters("are you back?")
	s.sees("You said: are you back?")
	s.keys("C-Left")
	s.sees("to 2/ stream number 2", "alpha beta", "● 1")
	model.finish("stream number 2")
	s.reads("› stream number 2", "daycare stopped in the middle of this turn", "interrupted; retrying",
		"alpha beta", "End of the stream.", "to 2/ stream number 2")
	s.keys("C-Right")
	s.sees("to 3/ stream number 3")

	// Leaving and coming back: the same agent, the same draft, the same order.
	s.types("not finished yet")
	s.sees("› not finished yet")
	s.keys("C-p")
	s.sees("find:")
	s.types("main")
	s.sees("find: main")
	s.keys("Enter")
	s.sees("to 0/ main")
	s.keys("C-c", "C-c")
	s.sees("Come back with: daycare")
	s.types("clear; daycare")
	s.keys("Enter")
	s.reads("› hello there", "You said: hello there", "to 0/ main")
	s.keys("C-Left")
	s.reads("End of the stream.", "› run it", "I have asked.", "It printed: made-by-approval", "› are you back?",
		"You said: are you back?", "to 3/ stream number 3", "› not finished yet")
	s.keys("C-c", "C-c", "C-c")
	s.sees("Come back with: daycare")
	s.daycare("stop")
}
