package agents

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"daycare/engine/permission"
	"daycare/engine/plain"
	"daycare/engine/record"
	"daycare/tools"
)

// harmless are tools that change nothing outside of the agent, beside those that say so
// themselves: what may be called under a profile that changes nothing. An agent that is
// started has the profile of who starts it.
var harmless = []string{"agents_list", "agent_status", "subagents", "sessions_list", "sessions_history", "message", "set_reaction",
	tools.RequestPermission, "submit_plan", "start_background_agent", "spawn"}

// refusedBy is what the model reads of a call that the agent's profile refuses; nil: it
// refuses nothing.
func refusedBy(p prepared) *tools.Result {
	set := p.call.Access
	if set.Profile == permission.DryRun {
		return rehearsed(p)
	}
	if set.Changes() || p.spec.Replay == tools.ReadOnly || slices.Contains(harmless, p.spec.Name) {
		return nil
	}
	if _, waits := p.tool.(tools.Waits); waits { // an agent of its own, of the same profile
		return nil
	}
	if h, ok := p.tool.(tools.Held); ok && h.Held(p.call) {
		return nil // it can change nothing: the set has no folder to write
	}

	text := "denied: this agent only reads (profile read-only); only the user can change that"
	if set.Profile == permission.Planning {
		text = "denied: nothing is changed before a plan is approved (profile plan). Read what you need, then call " +
			"submit_plan with what you will do"
	}

	return &tools.Result{Status: tools.Denied, Text: text}
}

// noticed are those of the harmless tools that users notice.
var noticed = []string{"message", "set_reaction"}

// rehearsed is what the model reads of a call that a dry run does not make; nil: it is made. A tool
// that writes files, and a command in a sandbox, can write in the copy alone.
func rehearsed(p prepared) *tools.Result {
	_, waits := p.tool.(tools.Waits)
	held, commands := p.tool.(tools.Held)
	harmless := slices.Contains(harmless, p.spec.Name) && !slices.Contains(noticed, p.spec.Name)
	switch {
	case p.spec.Replay == tools.ReadOnly, p.spec.Writes, harmless, waits, commands && held.Held(p.call):
		return nil
	case commands:
		return &tools.Result{Status: tools.Denied, Text: "denied: this is a dry run, and there is no sandbox here that would " +
			"keep a command in the copy of the folder, so none is run"}
	}

	return &tools.Result{Text: record.NotDone + " This is a dry run. Go on as if it had been done."}
}

// overreaches reports whether a dry run needs to write outside of its copy, which no approval
// allows.
func overreaches(set permission.Set, need permission.Access) bool {
	w, write := need.(permission.Write)
	return write && set.Profile == permission.DryRun && !permission.Beneath(set.WorkingDir, w.Path)
}

// needs is the approval that a call needs: what the tool says, and under the profile ask
// every change of a file.
func needs(p prepared) (*permission.Request, error) {
	if asks, ok := p.tool.(tools.Asks); ok {
		if need, err := asks.Needs(p.call); need != nil || err != nil {
			return need, err
		}
	}
	if p.call.Access.Profile != permission.AskFirst || !p.spec.Writes {
		return nil, nil
	}

	text, err := spelled(p.call)

	return &permission.Request{Tag: permission.Write{Path: cmp.Or(p.call.Access.WorkingDir, "/")}.Tag(),
		Reason: "change files with " + p.spec.Name, AskAlways: true,
		Workdir: p.call.Access.WorkingDir, Detail: permission.Detail{Command: text}}, err
}

// spelled is a call as users read it: a line for each argument, the lines of a long one
// marked so that none can pass for another argument.
func spelled(call tools.Call) (string, error) {
	var args map[string]json.RawMessage
	if err := json.Unmarshal(call.Arguments, &args); err != nil {
		return "", fmt.Errorf("the arguments do not fit: %w", err)
	}
	var b strings.Builder
	b.WriteString(call.Name)

	for _, name := range slices.Sorted(maps.Keys(args)) {
		var text string
		if json.Unmarshal(args[name], &text) != nil {
			text = string(plain.Indented(args[name]))
		}

		b.WriteString("\n" + name + ": ")
		if strings.Contains(text, "\n") {
			text = "\n  │ " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  │ ")
		}
		b.WriteString(text)
	}

	return b.String(), nil
}
