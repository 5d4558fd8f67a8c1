package hooks

import (
	"context"
	"fmt"
	"regexp"
	"time"
)

// An Event is a moment of an agent's work, as the settings call it.
type Event string

const (
	SessionStart Event = "session_start"
	OnMessage    Event = "on_message"
	BeforePrompt Event = "before_prompt"
	BeforeTool   Event = "before_tool"
	AfterTool    Event = "after_tool"
	TurnEnd      Event = "turn_end"
	Approval     Event = "approval"
)

// Events are all of them, in the order in which they come in a turn.
var Events = []Event{SessionStart, OnMessage, BeforePrompt, BeforeTool, AfterTool, TurnEnd, Approval}

// closed reports whether a hook that fails refuses, unless the settings say otherwise: where
// hooks check what an agent reads and does.
func (e Event) closed() bool { return e == OnMessage || e == BeforeTool }

// informs reports whether what a hook prints, if that is not JSON, is context for the model.
func (e Event) informs() bool { return e == SessionStart || e == OnMessage || e == BeforePrompt }

// A Hook is one program.
type Hook struct {
	Event    Event
	Matcher  string // the regular expression of the settings; "" and "*": every tool
	Command  string
	Timeout  time.Duration
	OnError  string // allow, deny; "": as the event says
	Bare     bool   // no sandbox holds it
	Approves bool   // its "allow" answers the approval that a call needs

	matches *regexp.Regexp // nil: every tool
}

// failsClosed reports whether a failure of the program refuses.
func (h *Hook) failsClosed() bool {
	return h.OnError == "deny" || h.OnError == "" && h.Event.closed()
}

// IfItFails is what follows when the program fails: allow or deny.
func (h *Hook) IfItFails() string {
	if h.failsClosed() {
		return "deny"
	}
	return "allow"
}

// A Set is the hooks of the settings at one moment. It never changes. nil
// has none.
type Set struct{ hooks map[Event][]Hook }

// New makes a Set; nil for no hooks. expression is what a matcher stands for.
func New(list []Hook, expression func(matcher string) string) (*Set, error) {
	if len(list) == 0 {
		return nil, nil
	}
	s := &Set{hooks: map[Event][]Hook{}}
	for _, h := range list {
		if expr := expression(h.Matcher); expr != "" {
			var err error
			if h.matches, err = regexp.Compile(expr); err != nil {
				return nil, fmt.Errorf("matcher of the %s hook %s: %w", h.Event, h.Command, err)
			}
		}
		s.hooks[h.Event] = append(s.hooks[h.Event], h)
	}

	return s, nil
}

// Any reports whether a hook would run at an event; tool is "" where it is about none.
func (s *Set) Any(event Event, tool string) bool {
	if s == nil {
		return false
	}
	for i := range s.hooks[event] {
		if s.hooks[event][i].about(tool) {
			return true
		}
	}

	return false
}

// Matching lists the hooks that would run.
func (s *Set) Matching(event Event, tool string) (list []Hook) {
	if s == nil {
		return nil
	}
	for _, h := range s.hooks[event] {
		if h.about(tool) {
			list = append(list, h)
		}
	}

	return list
}

func (h *Hook) about(tool string) bool { return h.matches == nil || h.matches.MatchString(tool) }

// Bounds of what is read of a program, in bytes.
const (
	MaxOut = 64 << 10 // of standard output; more is no answer
	MaxErr = 8 << 10  // of standard error; the rest is dropped
)

// A Job is one program to run.
type Job struct {
	Hook  Hook
	Agent string // for which it runs
	Dir   string // where it starts
	Stdin []byte
}

// An End is how a program ended.
type End struct {
	Code     int
	Signal   string // name of the signal that ended it; "" for none
	TimedOut bool
	Out, Err []byte
	Cut      bool // it printed more than MaxOut
}

// A Runner runs a program until it ends, its time is up or ctx ends, and returns when nothing
// of it is left. An error says why it did not start.
type Runner func(ctx context.Context, j Job) (End, error)
