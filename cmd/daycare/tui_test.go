package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tuiScript is the model of the session below: it streams slowly, asks for a
// command, and repeats what it is told.
const tuiScript = `model: demo
rules:
  - contains: stream
    round: 1
    reply:
      - text: "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon phi chi psi omega. alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon phi chi psi omega. End of the stream."
        chunk: 4
        every: 100ms
  - contains: run it
    round: 1
    reply:
      - calls:
          - { name: exec, arguments: { command: "echo made-by-approval" } }
  - tool_result: "*"
    reply: [ { text: "I have asked." } ]
  - after: permission
    reply: [ { text: "Thank you for the answer." } ]
  - reply: [ { text: "You said: {{.Text}}" } ]
`

// A seat is a person in front of a real terminal: tmux, which knows what every
// cell of the screen shows.
type seat struct {
	t    *testing.T
	dir  string
	name string // of the tmux server
}

func newSeat(t *testing.T, dir string, width, height int) *seat {
	t.Helper()
	s := &seat{t: t, dir: dir, name: fmt.Sprintf("daycare-test-%d", os.Getpid())}
	s.tmux("-f", os.DevNull, "new-session", "-d", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), "-c", dir, "sh")
	t.Cleanup(func() { exec.Command("tmux", "-L", s.name, "kill-server").Run() })
	return s
}

func (s *seat) tmux(args ...string) string {
	s.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-L", s.name}, args...)...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "PS1=shell> ")
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// types types text; keys presses named keys.
func (s *seat) types(text string) { s.t.Helper(); s.tmux("send-keys", "-l", text) }
func (s *seat) keys(names ...string) {
	s.t.Helper()
	s.tmux(append([]string{"send-keys"}, names...)...)
}

// enters types a line and Enter, as fast as a person: completion gets its time.
func (s *seat) enters(text string) {
	s.t.Helper()
	s.types(text)
	time.Sleep(100 * time.Millisecond)
	s.keys("Enter")
}

func (s *seat) screen() string { s.t.Helper(); return s.tmux("capture-pane", "-p") }

// sees waits until the screen shows all of it.
func (s *seat) sees(parts ...string) string {
	s.t.Helper()
	var screen string
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		screen = s.screen()
		missing := ""
		for _, p := range parts {
			if !strings.Contains(screen, p) {
				missing = p
				break
			}
		}
		if missing == "" {
			return screen
		}
	}
	s.t.Fatalf("the screen never shows all of %q:\n%s", parts, screen)
	return ""
}

// loses waits until the screen shows it no more.
func (s *seat) loses(part string) {
	s.t.Helper()
	for deadline := time.Now().Add(15 * time.Second); strings.Contains(s.screen(), part); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("the screen still shows %q:\n%s", part, s.screen())
		}
	}
}

func (s *seat) misses(parts ...string) {
	s.t.Helper()
	screen := s.screen()
	for _, p := range parts {
		if strings.Contains(screen, p) {
			s.t.Fatalf("the screen shows %q:\n%s", p, screen)
		}
	}
}

// daycare runs a command in another window.
func (s *seat) daycare(args ...string) string {
	s.t.Helper()
	cmd := exec.Command("daycare", args...)
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("daycare %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func tuiWorkspace(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	script := filepath.Join(dir, "script.yaml")
	settings := "providers:\n  - { id: demo, type: scripted, options: { script: " + script + " } }\n" +
		"permissions: { defaults: { exec: ask } }\n"
	for path, text := range map[string]string{script: tuiScript, filepath.Join(dir, ".daycare", "settings.yaml"): settings} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { stopLeftover(dir) })
	return dir
}

// TestTerminal is an evening with the full-screen UI in a real terminal.
func TestTerminal(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("SKIPPED: there is no tmux here, so nobody has looked at the UI in a real terminal")
	}
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	s := newSeat(t, tuiWorkspace(t), 100, 30)
	s.types("exec sh -c 'daycare; exec sh'")
	s.keys("Enter")
	s.sees("Write to your agent below and press Enter.")

	// The first words make the person's own agent; three more are spawned.
	s.enters("hello there")
	s.sees("You said: hello there", "to 0/ main")
	for i := 1; i <= 3; i++ {
		s.enters(fmt.Sprintf("/spawn stream number %d", i))
		s.sees(fmt.Sprintf("to %d/ stream number %d", i, i), "alpha beta")
	}

	// Switching while all stream: each shows its own, and keeps its draft.
	s.types("draft for three")
	s.keys("C-Left")
	s.sees("to 2/ stream number 2", "alpha beta")
	s.misses("draft for three")
	s.types("draft for two")
	s.keys("C-Left")
	s.sees("to 1/ stream number 1", "alpha beta", "● 3")
	s.keys("C-Right")
	s.sees("to 2/", "› draft for two")
	s.keys("C-c")

	// Mail to another agent; it reads it when its stream is over.
	s.enters("/send 1/ mail for you")
	s.sees("sent to 1/ stream number 1")
	s.keys("C-Left")
	s.sees("to 1/ stream number 1", "mail for you", "End of the stream.", "You said: mail for you")

	// An agent with a child is killed; the view goes to the one visited before.
	s.daycare("agents", "new", "--name", "helper", "--type", "subagent", "--parent", "1/", "--prompt", "stream for your parent")
	s.sees("Running 1 agent (0 done, 1 running)", "1/0 helper")
	s.enters("/kill")
	s.sees("End 1/ stream number 1?")
	s.keys("y")
	s.sees("to 0/ main", "You said: hello there")
	s.misses("·1/", "●1/", "✉1/", "✝1/")

	// An agent that is not shown asks; the answer is given from here.
	s.enters("/send 3/ run it")
	s.sees("? 1 to answer")
	s.keys("C-y")
	s.sees("3/ stream number 3 asks for @exec", "echo made-by-approval", "[o] Once", "[d] Deny")
	s.keys("o")
	s.sees("to 0/ main")
	s.keys("C-Left")
	s.sees("to 3/ stream number 3", "› draft for three", "Thank you for the answer.")

	// A small window, and back.
	s.tmux("resize-window", "-x", "80", "-y", "24")
	s.sees("to 3/ stream number 3", "› draft for three", "Thank you for the answer.")
	s.keys("C-g")
	s.sees("AGENT", "DOING, OR SAID LAST", "0/ main", "3/ stream")
	s.keys("Enter")
	s.tmux("resize-window", "-x", "120", "-y", "40")
	s.sees("to 3/ stream number 3", "› draft for three", "Thank you for the answer.")

	// The daemon goes and comes back.
	s.daycare("stop")
	s.sees("disconnected", "daycare does not answer", "Thank you for the answer.")
	s.keys("C-r")
	s.sees("daycare was started", "› draft for three")
	s.loses("disconnected")
	s.keys("C-c")
	s.enters("are you back?")
	s.sees("You said: are you back?")

	// Leaving and coming back: the same agent, the same draft, the same order.
	s.types("not finished yet")
	time.Sleep(200 * time.Millisecond)
	s.keys("C-p")
	s.sees("find:")
	s.types("main")
	s.keys("Enter")
	s.sees("to 0/ main")
	s.keys("C-c", "C-c")
	s.sees("Come back with: daycare")
	s.types("daycare")
	s.keys("Enter")
	s.sees("to 0/ main", "You said: hello there")
	s.keys("C-Left")
	s.sees("to 3/ stream number 3", "› not finished yet", "You said: are you back?")
	s.keys("C-c", "C-c", "C-c")
	s.sees("Come back with: daycare")
	s.daycare("stop")
}
