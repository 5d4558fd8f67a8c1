package shell

import (
	"fmt"
	"slices"

	"daycare/engine/permission"
	"daycare/tools"
	"daycare/tools/shell/sandbox"
)

// covered is what a process needs of its agent's rights for as long as it runs: the rule
// or the approval that it was started by, its hosts, and its folders. What was allowed
// once stays allowed.
func (e *Exec) covered(call tools.Call, a arguments, runner *sandbox.Runner, what resolved) func(now permission.Set) bool {
	set := call.Access
	byRule := e.mode(set) == Ask && runner.Level != sandbox.None && granted(set, a, what)
	sha := ""
	if need, _, err := e.needs(call); err == nil && need != nil {
		sha = need.SHA256(call.Agent)
	}

	byGrant := sha != "" && approved(set, sha)
	var uses []permission.Access
	for _, d := range a.Domains {
		if right, err := DomainRight(d); err == nil && set.Allows(right) {
			uses = append(uses, right)
		}
	}

	for _, path := range set.ReadRoots() {
		uses = append(uses, permission.Read{Path: path})
	}
	for _, path := range set.WriteRoots() {
		uses = append(uses, permission.Write{Path: path})
	}

	return func(now permission.Set) bool {
		if byRule && !granted(now, a, what) || byGrant && !approved(now, sha) {
			return false
		}
		return !slices.ContainsFunc(uses, func(right permission.Access) bool { return !now.Allows(right) })
	}
}

// approved reports whether a set holds an approval of one exact request.
func approved(set permission.Set, sha string) bool {
	return slices.ContainsFunc(set.Grants, func(g permission.Grant) bool { return g.SHA256 == sha })
}

// Narrow ends the background processes of an agent that run by a right which is not in
// the set any more, and says which: a right that is taken back ends what it started.
func (js *Jobs) Narrow(agent string, now permission.Set) (ended []string) {
	var list []*job
	js.mu.Lock()
	for _, j := range js.live[agent] {
		if j.covered != nil && j.run != nil && !j.covered(now) {
			list = append(list, j)
			ended = append(ended, fmt.Sprintf("process %s: %s", j.info.ID, oneLine(j.info.Command)))
		}
	}

	js.mu.Unlock()
	for _, j := range list {
		j.run.terminate()
	}
	slices.Sort(ended)

	return ended
}
