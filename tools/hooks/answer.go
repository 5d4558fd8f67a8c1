package hooks

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// A Decision is what a hook says of what is about to happen.
type Decision string

const (
	None  Decision = ""
	Allow Decision = "allow"
	Ask   Decision = "ask"
	Deny  Decision = "deny"
)

// Exit codes of a program.
const (
	exitFine = 0
	exitDeny = 2 // standard error is the reason
)

// An answer is what one program said.
type answer struct {
	decision Decision
	reason   string
	stop     bool // end the turn; reason is for users
	context  string
	input    json.RawMessage
	notice   string // for users
}

// output is the JSON that a program may print.
type output struct {
	Continue          *bool    `json:"continue"`
	StopReason        string   `json:"stopReason"`
	SystemMessage     string   `json:"systemMessage"`
	Decision          string   `json:"decision"`
	Reason            string   `json:"reason"`
	AdditionalContext string   `json:"additionalContext"`
	Specific          specific `json:"hookSpecificOutput"`
}

// specific is the part of it that belongs to an event.
type specific struct {
	Decision          string          `json:"permissionDecision"`
	Reason            string          `json:"permissionDecisionReason"`
	AdditionalContext string          `json:"additionalContext"`
	UpdatedInput      json.RawMessage `json:"updatedInput"`
}

// decisions are the words for one, with those that programs have used longer.
var decisions = map[string]Decision{"": None, "allow": Allow, "approve": Allow, "ask": Ask, "deny": Deny, "block": Deny}

// read makes an answer of how a program ended. An error is a failure of the program.
func (e End) read(event Event) (a answer, err error) {
	said := strings.ToValidUTF8(strings.TrimSpace(string(e.Err)), "\uFFFD")
	switch {
	case e.TimedOut:
		return a, errors.New("it ran longer than its timeout")
	case e.Signal != "":
		return a, fmt.Errorf("it was ended by the signal %s", e.Signal)
	case e.Code == exitDeny:
		return answer{decision: Deny, reason: cmp.Or(said, "it gave no reason")}, nil
	case e.Code != exitFine:
		return a, fmt.Errorf("exit code %d: %s", e.Code, cmp.Or(beginning(said), "(no message)"))
	case e.Cut:
		return a, fmt.Errorf("it printed more than %d bytes", MaxOut)
	}
	text := bytes.TrimSpace(e.Out)
	if len(text) == 0 || text[0] != '{' {
		if event.informs() {
			a.context = shown(strings.ToValidUTF8(string(text), "\uFFFD"))
		}
		return a, nil
	}
	var o output
	if err := json.Unmarshal(text, &o); err != nil {
		return a, fmt.Errorf("it printed invalid JSON: %w", err)
	}

	return o.answer()
}

// answer is what the JSON means.
func (o output) answer() (a answer, err error) {
	word := cmp.Or(o.Specific.Decision, o.Decision)
	decision, known := decisions[word]
	if !known {
		return a, fmt.Errorf("its decision is %q, allowed: allow, ask, deny, block", word)
	}
	a = answer{decision: decision, reason: shown(cmp.Or(o.Specific.Reason, o.Reason)), notice: shown(o.SystemMessage),
		context: shown(cmp.Or(o.Specific.AdditionalContext, o.AdditionalContext)), input: o.Specific.UpdatedInput}
	if string(a.input) == "null" {
		a.input = nil
	}
	if o.Continue != nil && !*o.Continue {
		a.stop, a.reason = true, cmp.Or(shown(o.StopReason), a.reason, "it gave no reason")
	}
	if a.decision == Deny {
		a.reason = cmp.Or(a.reason, "it gave no reason")
	}

	return a, nil
}

// maxText is how many bytes of one text of a hook the model or a user reads.
const maxText = 10_000

// shown is a text of a hook, cut where it is too long.
func shown(text string) string {
	if len(text) <= maxText {
		return text
	}
	return fmt.Sprintf("%s\n[… %d bytes of the hook's text left out …]", strings.ToValidUTF8(text[:maxText], ""), len(text)-maxText)
}

// beginning is the first of a long text, for a line about it.
func beginning(text string) string {
	const most = 500
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}

	return text
}
