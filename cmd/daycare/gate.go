package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nrednav/cuid2"

	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/schedule"
	"daycare/tools"
)

// gate runs the command of a task's gate as the task's agent would: by the tool
// exec, with that agent's rights and the same questions to its owner. A command
// that needs an answer is asked for and not run.
func (r *runtimeParts) gate(ctx context.Context, agent, dir string, g schedule.Gate) (schedule.Output, error) {
	exec, spec, ok := r.tools.Get("exec")
	if !ok {
		return schedule.Output{Refused: "this build has no exec"}, nil
	}
	state, _, _, err := record.ReadState(filepath.Join(r.root, "agents", agent))
	if err != nil {
		return schedule.Output{}, fmt.Errorf("read rights of the agent: %w", err)
	}
	if missing := lacking(state.Permissions, g.Permissions, g.AllowedDomains); missing != "" {
		return schedule.Output{Refused: "the agent has no permission " + missing}, nil
	}
	args, err := json.Marshal(map[string]any{"command": g.Command, "timeoutMs": g.Timeout.Milliseconds(), "workdir": dir})
	if err != nil {
		return schedule.Output{}, fmt.Errorf("encode gate: %w", err)
	}
	call := tools.Call{ID: cuid2.Generate(), Name: spec.Name, Arguments: args, Agent: agent, Access: state.Permissions, Progress: func(string) {}}
	if asks, ok := exec.(tools.Asks); ok {
		need, err := asks.Needs(call)
		if err != nil {
			return schedule.Output{Refused: err.Error()}, nil
		}
		if need != nil && !granted(state.Permissions, need.SHA256(agent)) {
			allowed, err := r.useOnce(ctx, agent, need.SHA256(agent))
			if err != nil {
				return schedule.Output{}, err
			}
			if !allowed {
				return r.askForGate(agent, *need)
			}
		}
	}
	res, err := exec.Run(ctx, call)
	if err != nil || ctx.Err() != nil {
		return schedule.Output{}, orCause(err, ctx)
	}
	return gateOutput(res), nil
}

// lacking is the first right that a gate names and the agent has not.
func lacking(set permission.Set, tags, hosts []string) string {
	for _, host := range hosts {
		tags = append(tags[:len(tags):len(tags)], "@web:"+host)
	}
	for _, tag := range tags {
		if a, err := permission.Parse(tag); err != nil || !set.Allows(a) {
			return tag
		}
	}
	return ""
}

func granted(set permission.Set, sha string) bool {
	for _, g := range set.Grants {
		if g.SHA256 == sha {
			return true
		}
	}
	return false
}

// useOnce uses up what somebody allowed once, if anybody did: for the next run of
// the gate, and no other. It is written down before the command runs, so that a crash
// in between costs the approval and does not double it.
func (r *runtimeParts) useOnce(ctx context.Context, agent, sha string) (bool, error) {
	once, err := record.OnceOf(filepath.Join(r.root, "agents", agent))
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(once, func(g record.OnceGrant) bool { return g.SHA256 == sha })
	if i < 0 {
		return false, nil
	}
	receipt, err := r.system.Deliver(ctx, message.Incoming{Agent: agent, Kind: message.Permission, Dedupe: "gate:" + once[i].Token,
		Token: once[i].Token, Decision: string(permission.Used), By: "gate", SHA256: sha, Silent: true})
	if err != nil || receipt.Duplicate {
		return false, err
	}
	if _, err = r.system.Await(ctx, agent, receipt.Item); err != nil {
		return false, fmt.Errorf("use the approval: %w", err)
	}
	return true, nil
}

// askForGate asks the owner, without waiting. The answer counts from the next time
// on.
func (r *runtimeParts) askForGate(agent string, need permission.Request) (schedule.Output, error) {
	need.Reason, need.Gate = "the gate of a scheduled task", true
	meta, _ := r.index.Get(agent)
	owner := permission.Owner{Connector: meta.Descriptor.Connector, UserID: meta.Descriptor.UserID}
	p, _, err := r.asks.Ask(agent, owner, need)
	if err != nil {
		return schedule.Output{}, fmt.Errorf("ask for permission: %w", err)
	}
	return schedule.Output{Refused: "waits for approval " + p.Token + " (daycare permissions allow " + p.Token + ")"}, nil
}

func orCause(err error, ctx context.Context) error {
	if err == nil {
		err = ctx.Err()
	}
	return err
}

var exitNote = regexp.MustCompile(`\n?\[(?:no output, )?exit code (\d+)\]$`)

// gateOutput takes the exit code out of what exec says.
func gateOutput(res tools.Result) schedule.Output {
	m := exitNote.FindStringSubmatchIndex(res.Text)
	if m == nil {
		if res.Status == tools.Denied {
			return schedule.Output{Refused: res.Text}
		}
		return schedule.Output{Code: 1, Text: res.Text}
	}
	code, err := strconv.Atoi(res.Text[m[2]:m[3]])
	if err != nil {
		code = 1
	}
	return schedule.Output{Code: code, Text: strings.TrimRight(res.Text[:m[0]], "\n")}
}
