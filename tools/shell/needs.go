package shell

import (
	"cmp"
	"errors"
	"slices"

	"daycare/engine/permission"
	"daycare/tools"
	"daycare/tools/shell/sandbox"
)

// What a call of exec needs beyond the rights of its agent.

// Needs returns the approval that the call needs: to run the command at all, to start it in its folder, and to
// reach its hosts. Without a sandbox, rules granted in permission.Set.Exec do not count: the words of a command do
// not show what it does, so every call asks.
func (e *Exec) Needs(call tools.Call) (*permission.Request, error) {
	need, beyond, err := e.needs(call)
	if beyond != "" {
		e.asked.Put(call.ID, beyond)
	}

	return need, err
}

// needs is Needs, and the folder that it is for, if that is beyond the agent's own.
func (e *Exec) needs(call tools.Call) (_ *permission.Request, beyond string, _ error) {
	mode := e.mode(call.Access)
	if mode == Deny {
		return nil, "", nil
	}
	runner, err := e.confine.find()
	if err != nil {
		return nil, "", nil // Run refuses where the wanted sandbox does not work
	}

	a, err := decode(call)
	if err != nil {
		return nil, "", err
	}
	if call.Access.Profile == permission.DryRun && len(a.Domains) > 0 {
		return nil, "", errors.New("exec: this is a dry run, in which commands reach no network; run it without allowedDomains")
	}
	dir, outside, err := e.workdir(call, a.Workdir)
	what := resolve(a.Command, cmp.Or(dir, call.Access.WorkingDir), call.Access)
	need := permission.Request{Reason: does(a.Command), Detail: permission.Detail{Command: a.rendered()},
		Workdir: dir, Sandbox: string(runner.Level), Programs: what.programs(), Scripts: what.pins()}
	var tags []string
	if rule := e.rule(call.Access, a, runner, what); rule != nil {
		// A rule that covers the first words does not cover the rest.
		tags, need.AskAlways = append(tags, rule.Tag()), runner.Level == sandbox.None || call.Access.Allows(rule)
		if prefix := what.prefix(a); prefix != nil && runner.Level != sandbox.None && !outside {
			need.Prefix = prefix.Tag()
		}
	}
	if outside {
		beyond, tags = dir, append(tags, permission.Read{Path: dir}.Tag())
		need.Reason, need.AskAlways = beyondReason(dir), true
	}
	if hosts := missing(call.Access, a.Domains); len(hosts) > 0 && mode != Off {
		if len(tags) == 0 {
			need.Reason += " that reaches the network"
		}
		tags = append(tags, hosts...)
	}
	if len(tags) == 0 {
		return nil, "", nil
	}
	if need.Tag = tags[0]; len(tags) > 1 {
		need.Also = tags[1:]
	}

	return &need, beyond, err
}

// mode is how commands run for a set: as the settings say, and as its profile narrows it.
func (e *Exec) mode(set permission.Set) Mode {
	mode := e.options.Mode
	if e.options.Live != nil {
		mode = e.options.Live()
	}

	switch {
	case mode == Deny:
	case set.Profile == permission.AskFirst:
		return Ask
	case set.Profile != "" && mode != Off:
		return Sandbox
	}

	return mode
}

// Held reports whether a sandbox would hold the command.
func (e *Exec) Held(tools.Call) bool {
	runner, err := e.confine.find()
	return err == nil && runner.Level != sandbox.None
}

// rule is what a user is asked for before the command may run at all; nil: nothing.
func (e *Exec) rule(set permission.Set, a arguments, runner *sandbox.Runner, what resolved) permission.Access {
	mode := e.mode(set)
	if mode == Off || runner.Level != sandbox.None && (mode != Ask || granted(set, a, what)) {
		return nil
	}

	return permission.Exec{Prefix: asks(set, a.Command, what)}
}

// missing are the tags of the rights to hosts that the set does not hold.
func missing(set permission.Set, domains []string) (tags []string) {
	for _, d := range domains {
		if right, err := DomainRight(d); err == nil && !set.Allows(right) && !slices.Contains(tags, right.Tag()) {
			tags = append(tags, right.Tag())
		}
	}

	return tags
}
