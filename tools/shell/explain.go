package shell

import (
	"daycare/engine/permission"
	"daycare/tools/shell/sandbox"
)

// A Verdict is what rights say of a command.
type Verdict struct {
	Decision string // allowed, asks, refused
	Rule     string // what decides
	Reason   string
}

// Explain says whether a command of an agent would run, and why. dir is where it would
// start.
func (e *Exec) Explain(command, dir string, set permission.Set) Verdict {
	mode := e.mode(set)
	runner, err := e.confine.find()
	if mode == Deny {
		return Verdict{"refused", "permissions.defaults.exec: deny", "commands are switched off in the settings"}
	}
	if err != nil {
		return Verdict{"refused", "tools.exec.sandbox", "the sandbox of the settings does not work here: " + err.Error()}
	}

	held := runner.Level != sandbox.None
	switch {
	case !held && !set.Changes():
		return Verdict{"refused", "profile " + string(set.Profile), "no sandbox holds the command, and the profile changes nothing"}
	case mode == Off:
		return Verdict{"allowed", "tools.exec.sandbox: off", "the owner switched the sandbox off: commands just run"}
	case !held:
		return Verdict{"asks", "no sandbox", "no sandbox works here (" + runner.Why + "), so every command asks; rules do not count"}
	case mode != Ask:
		return Verdict{"allowed", "sandbox " + string(runner.Level), "commands run in a sandbox without asking; a network asks"}
	}

	what := resolve(command, dir, set)
	if !granted(set, arguments{Command: command}, what) {
		return Verdict{"asks", permission.Exec{Prefix: asks(set, command, what)}.Tag(), "no rule covers the whole command"}
	}
	rule := ""
	for _, s := range what.segments {
		if by := coveredBy(set, s); by != "" && rule == "" {
			rule = permission.Exec{Prefix: by}.Tag()
		}
	}

	return Verdict{"allowed", rule, "each command in it begins with the words of a rule"}
}
