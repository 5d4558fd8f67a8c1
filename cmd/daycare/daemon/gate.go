package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"daycare/engine/cuid"
	"daycare/engine/inbox"
	"daycare/engine/lazyregexp"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/schedule"
	"daycare/tools"
	"daycare/tools/hooks"
	toolshell "daycare/tools/shell"
)

// A gate runs commands that decide whether a scheduled task begins.
type gate struct{ *Daemon }

// run runs the command of a task's gate as the task's agent would: by the tool
// exec, with that agent's rights and the same questions to its owner. The agent is on this machine (peers.Clocks.Gates). A command
// that needs an answer is asked for and not run.
func (r gate) run(ctx context.Context, agent, dir string, g schedule.Gate) (schedule.Output, error) {
	exec, spec, ok := r.tools.Get("exec")
	if !ok {
		return schedule.Output{Refused: "this build has no exec"}, nil
	}
	set, err := r.family.Grants(ctx, agent)
	if err != nil {
		return schedule.Output{}, err
	}
	var needs []permission.Request
	set = r.under(set)
	if !set.Changes() {
		if held, ok := exec.(tools.Held); !ok || !held.Held(tools.Call{}) {
			return schedule.Output{Refused: "the profile " + string(set.Profile) +
				" allows no changes, and no sandbox confines the command"}, nil
		}
	}
	tags, err := gateTags(g)
	if err != nil {
		return schedule.Output{Refused: err.Error()}, nil
	}
	for _, tag := range tags {
		need, err := permission.General(tag, "")
		if err != nil {
			return schedule.Output{Refused: err.Error()}, nil
		}
		if access, err := permission.Parse(tag); err != nil || set.Allows(access) {
			continue
		}
		needs = append(needs, need)
		if set, err = set.Grant(permission.Grant{Tag: need.Tag}); err != nil { // for this run, if they allow it
			return schedule.Output{}, err
		}
	}
	args, err := json.Marshal(map[string]any{"command": g.Command, "timeoutMs": g.Timeout.Milliseconds(),
		"workdir": dir, "allowedDomains": g.AllowedDomains})
	if err != nil {
		return schedule.Output{}, fmt.Errorf("encode gate: %w", err)
	}
	call := tools.Call{ID: cuid.New(), Name: spec.Name, Arguments: args, Agent: agent, Access: set, Progress: func(string) {}}
	if asks, ok := exec.(tools.Asks); ok {
		need, err := asks.Needs(call)
		if err != nil {
			return schedule.Output{Refused: err.Error()}, nil
		}
		if need != nil {
			needs = append(needs, *need)
		}
	}
	if refused, err := r.permit(ctx, agent, needs, g.ByHand); refused != "" || err != nil {
		return schedule.Output{Refused: refused}, err
	}
	res, err := exec.Run(ctx, call)
	if err != nil || ctx.Err() != nil {
		return schedule.Output{}, orCause(err, ctx)
	}

	return gateOutput(res), nil
}

// gateTags are the rights that a gate says it needs.
func gateTags(g schedule.Gate) ([]string, error) {
	tags := slices.Clone(g.Permissions)
	for _, host := range g.AllowedDomains {
		right, err := toolshell.DomainRight(host)
		if err != nil {
			return nil, err
		}
		tags = append(tags, right.Tag())
	}

	return tags, nil
}

// permit asks the owner for what is needed and not granted, without waiting; refused
// says what is waited for. What was allowed once is used up when nothing is missing.
func (r gate) permit(ctx context.Context, agent string, needs []permission.Request, again bool) (refused string,
	err error) {
	state, once, err := r.allowed(ctx, agent, needs)
	if err != nil {
		return "", err
	}
	var uses, waits []string
	for _, need := range needs {
		sha := need.SHA256(agent)
		if granted(state.Permissions, sha) {
			continue
		}
		if slices.ContainsFunc(once, func(g record.OnceGrant) bool { return g.SHA256 == sha }) {
			uses = append(uses, sha)
			continue
		}
		if by := r.saidNo(agent, sha); by != "" && !again {
			return fmt.Sprintf("%s denied %s; to be asked again, run the task by hand", by, need.Tag), nil
		}
		token, err := r.ask(ctx, agent, need)
		if err != nil {
			return "", err
		}
		waits = append(waits, token)
	}
	switch len(waits) {
	case 0:
	case 1:
		return "waits for approval " + waits[0] + " (daycare permissions allow " + waits[0] + ")", nil
	default:
		return fmt.Sprintf("waits for %d approvals (daycare permissions ls)", len(waits)), nil
	}
	for _, sha := range uses {
		if ok, err := r.useOnce(ctx, agent, sha); err != nil || !ok {
			return "the approval was used by another run", err
		}
	}

	return "", nil
}

// allowed is what an agent was allowed permanently and once. An answer to one of these
// requests that is in its inbox counts as well: it is waited for until the agent has
// recorded it.
func (r gate) allowed(ctx context.Context, agent string, needs []permission.Request) (state record.State,
	once []record.OnceGrant, err error) {
	if len(needs) == 0 {
		return state, nil, nil
	}
	dir := filepath.Join(r.at.Data, "agents", agent)
	items, err := inbox.ReadAll(dir)
	if err != nil {
		return state, nil, err
	}
	for _, it := range items {
		answers := func(need permission.Request) bool { return need.SHA256(agent) == it.SHA256 }
		if it.Kind != message.Permission || !slices.ContainsFunc(needs, answers) {
			continue
		}
		if _, err := r.system.Await(ctx, agent, it.ID); err != nil {
			return state, nil, fmt.Errorf("wait until the agent has recorded an answer: %w", err)
		}
	}
	if state, _, err = record.CurrentState(r.vol, dir); err != nil {
		return state, nil, fmt.Errorf("read permissions of the agent: %w", err)
	}
	once, err = record.OnceOf(dir)
	return state, once, err
}

// saidNo returns who denied a request when it was last answered; "": no one.
func (r gate) saidNo(agent, sha string) (by string) {
	log, err := permission.Log(r.at.Data)
	if err != nil {
		return "" // then it is asked
	}
	for _, p := range log {
		if p.Agent == agent && p.SHA256 == sha {
			if by = ""; p.Decision == permission.Deny {
				by = p.DecidedBy
			}
		}
	}

	return by
}

func granted(set permission.Set, sha string) bool {
	for _, g := range set.Grants {
		if g.SHA256 == sha {
			return true
		}
	}

	return false
}

// useOnce uses up an approval for one time, if there is one: for the next run of
// the gate, and no other. It is written down before the command runs, so that a crash
// in between costs the approval and does not double it.
func (r gate) useOnce(ctx context.Context, agent, sha string) (bool, error) {
	once, err := record.OnceOf(filepath.Join(r.at.Data, "agents", agent))
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

// ask asks the owner, without waiting. The answer applies from the next time
// on.
func (r gate) ask(ctx context.Context, agent string, need permission.Request) (token string, err error) {
	need.Reason, need.Gate = "the gate of a scheduled task", true
	meta, _ := r.index.Get(agent)
	owner := permission.Owner{Connector: meta.Descriptor.Connector, UserID: meta.Descriptor.UserID}
	p, fresh, err := r.asks.Ask(agent, owner, need)
	if err != nil {
		return "", fmt.Errorf("ask for permission: %w", err)
	}
	if fresh && (hooked{r.Daemon}).Any(hooks.Approval, "") {
		hooked{r.Daemon}.Run(ctx, hooks.Moment{Event: hooks.Approval, Agent: hooks.Agent{ID: agent, Handle: meta.Handle,
			Name: meta.Name}, Request: hooks.Request{Token: p.Token, Permission: need.Tag, Reason: need.Reason,
			Detail: need.Detail.String()}})
	}

	return p.Token, nil
}

func orCause(err error, ctx context.Context) error {
	if err == nil {
		err = ctx.Err()
	}
	return err
}

var exitNote = lazyregexp.New(`\n?\[(?:no output, )?exit code (\d+)\]$`)

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
