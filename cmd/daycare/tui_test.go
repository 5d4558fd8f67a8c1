package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A seat is a user in front of a real terminal: tmux, which knows what every
// cell of the screen shows.
type seat struct {
	t    *testing.T
	dir  string
	name string // of the tmux server
}

func newSeat(t *testing.T, dir string, width, height int) *seat {
	t.Helper()
	s := &seat{t: t, dir: dir, name: "daycare-test-" + rand.Text()}
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

// enters types a line and, once it stands there, Enter.
func (s *seat) enters(text string) {
	s.t.Helper()
	s.types(text)
	s.sees("› " + text)
	s.keys("Enter")
}

func (s *seat) screen() string { s.t.Helper(); return s.tmux("capture-pane", "-p") }

// patience is how long something may take to be seen: a machine that has much else
// to do is slow, a screen that never shows it is wrong.
const patience = 90 * time.Second

// looks waits until the screen is right; wrong says what it is not.
func (s *seat) looks(right func(screen string) (wrong string)) string {
	s.t.Helper()
	for began := time.Now(); ; wait(began, 20*time.Millisecond) {
		screen := s.screen()
		wrong := right(screen)
		if wrong == "" {
			return screen
		}
		if time.Since(began) > patience {
			s.t.Fatalf("%s:\n%s", wrong, screen)
		}
	}
}

// sees waits until the screen shows all of it, each part below the one before or in
// the same line, whatever the order of its parts.
func (s *seat) sees(parts ...string) string {
	s.t.Helper()
	return s.looks(func(screen string) string {
		for _, p := range parts {
			if !strings.Contains(screen, p) {
				return fmt.Sprintf("the screen never shows %q", p)
			}
		}
		return ""
	})
}

// reads waits until the screen shows the parts in this order, wherever its lines break.
func (s *seat) reads(parts ...string) {
	s.t.Helper()
	s.looks(func(screen string) string {
		screen = strings.Join(strings.Fields(screen), " ")
		for _, p := range parts {
			_, rest, found := strings.Cut(screen, p)
			if !found {
				return fmt.Sprintf("the screen never shows %q in this order: %q", p, parts)
			}
			screen = rest
		}

		return ""
	})
}

// loses waits until the screen shows none of it any more.
func (s *seat) loses(parts ...string) {
	s.t.Helper()
	s.looks(func(screen string) string {
		for _, p := range parts {
			if strings.Contains(screen, p) {
				return fmt.Sprintf("the screen still shows %q", p)
			}
		}
		return ""
	})
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
