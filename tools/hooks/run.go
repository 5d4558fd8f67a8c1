package hooks

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// A Verdict is what the hooks of one moment said together.
type Verdict struct {
	Decision Decision
	Reason   string          // of Ask and Deny: for the model; with Stop: for users
	Approved string          // the command of the hook whose Allow answers an approval; "" for none
	Stop     bool            // the turn ends
	Context  string          // for the model
	Input    json.RawMessage // nil: as it was
	Notices  []string        // for users
	Ran      []Ran
}

// A Ran is one program that ran.
type Ran struct {
	Hook     Hook
	End      End
	Decision Decision
	Stop     bool
	Error    string // why it failed; "" if it did not
	Took     time.Duration
	note     string
}

// Run runs the hooks of a moment, one after the other. If ctx ends, the verdict denies.
func (s *Set) Run(ctx context.Context, m Moment, run Runner) (v Verdict) {
	for _, h := range s.Matching(m.Event, m.Tool) {
		stdin, err := m.encode()
		began := time.Now()
		r := Ran{Hook: h}
		if err == nil && ctx.Err() == nil {
			r.End, err = run(ctx, Job{Hook: h, Agent: m.Agent.ID, Dir: m.Agent.Dir, Stdin: stdin})
		}
		r.Took = time.Since(began)
		if ctx.Err() != nil {
			r.Error, r.note = "stopped before it ended", "was stopped before it ended"
			v.Ran = append(v.Ran, r)
			v.Decision, v.Reason = Deny, "stopped while a hook ran"
			return v
		}
		var a answer
		if err == nil {
			a, err = r.End.read(m.Event)
		}
		if err != nil {
			a = r.failed(err)
		}
		r.Decision, r.Stop = a.decision, a.stop
		r.note = r.tells(a)
		v.Ran = append(v.Ran, r)
		v.add(h, a)
		if a.input != nil {
			m.Input = a.input
		}
		if v.Stop || v.Decision == Deny {
			break
		}
	}

	return v
}

// failed is what a failure means.
func (r *Ran) failed(err error) answer {
	r.Error = err.Error()
	if !r.Hook.failsClosed() {
		return answer{notice: fmt.Sprintf("the %s hook %s failed: %s", r.Hook.Event, short(r.Hook.Command), r.Error)}
	}
	return answer{decision: Deny, reason: fmt.Sprintf("the %s hook %s failed, so this is denied: %s", r.Hook.Event,
		short(r.Hook.Command), r.Error)}
}

// add takes the answer of one more hook in.
func (v *Verdict) add(h Hook, a answer) {
	if a.stop {
		v.Stop, v.Reason = true, a.reason
	}
	switch {
	case a.decision == Deny:
		v.Decision = Deny
		if !a.stop {
			v.Reason = a.reason
		}
	case a.decision == Ask:
		v.Decision, v.Reason = Ask, a.reason
	case a.decision == Allow && v.Decision == None:
		v.Decision = Allow
	}
	if a.input != nil { // what was approved was another input
		v.Input, v.Approved = a.input, ""
	}
	if a.decision == Allow && h.Approves {
		v.Approved = h.Command
	}
	if v.Decision == Ask || v.Decision == Deny {
		v.Approved = ""
	}
	if a.context != "" {
		v.Context = strings.TrimPrefix(v.Context+"\n"+a.context, "\n")
	}
	if a.notice != "" {
		v.Notices = append(v.Notices, a.notice)
	}
}

// tells is what a run did, for users.
func (r *Ran) tells(a answer) string {
	var did []string
	switch {
	case r.Error != "":
		did = append(did, "failed: "+r.Error)
	case a.stop:
		did = append(did, "ended the turn: "+a.reason)
	}
	switch a.decision {
	case Deny:
		did = append(did, "denied: "+a.reason)
	case Ask:
		did = append(did, "asks: "+a.reason)
	case Allow:
		did = append(did, "allowed")
	}
	if a.input != nil {
		did = append(did, "changed the input to "+beginning(string(a.input)))
	}
	if a.context != "" {
		did = append(did, fmt.Sprintf("added %d bytes of context", len(a.context)))
	}
	if a.notice != "" && r.Error == "" {
		did = append(did, "says: "+beginning(a.notice))
	}
	if len(did) == 0 {
		did = []string{"had no objection"}
	}

	return strings.Join(did, "; ")
}

// Note is a line for history on what the hooks did; "" if none ran.
func (v Verdict) Note(m Moment) string {
	var lines []string
	about := ""
	if m.Tool != "" {
		about = " for " + m.Tool
	}
	for _, r := range v.Ran {
		lines = append(lines, fmt.Sprintf("%s hook%s: %s %s (%d ms)", m.Event, about, short(r.Hook.Command), r.note,
			r.Took.Milliseconds()))
	}

	return strings.Join(lines, "\n")
}

// short is a command in one line.
func short(command string) string {
	line, _, more := strings.Cut(strings.TrimSpace(command), "\n")
	if more || len(line) > 120 {
		line = strings.ToValidUTF8(line[:min(len(line), 120)], "") + "…"
	}

	return line
}
