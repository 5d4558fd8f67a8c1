package terminal

import (
	"errors"
	"time"

	"daycare/engine/control"
)

// flashFor is how long a notice of what was done is shown; one of what went wrong, twice as long.
const flashFor = 5 * time.Second

// A notice is what the status line says for a moment.
type notice struct {
	flash   string
	bad     bool // flash is what went wrong
	flashed time.Time
}

// say shows the user a text, for a moment.
func (s *screen) say(text string) { s.notice = notice{text, false, s.now} }

// warn shows the user what is wrong, for a moment.
func (s *screen) warn(text string) { s.notice = notice{text, true, s.now} }

// fail shows the user what went wrong, and what to do.
func (s *screen) fail(what string, err error) {
	text := err.Error()
	var api *control.APIError
	if errors.As(err, &api) && api.Hint != "" {
		text += " (" + api.Hint + ")"
	}
	if errors.Is(err, control.ErrNotRunning) {
		text = "daycare is not running (Ctrl+R starts it)"
	}
	if what != "" {
		text = what + ": " + text
	}
	s.warn(text)
}

// fade removes a notice that was shown long enough.
func (s *screen) fade() {
	keep := flashFor
	if s.bad {
		keep *= 2
	}
	if s.now.Sub(s.flashed) > keep {
		s.flash = ""
	}
}
