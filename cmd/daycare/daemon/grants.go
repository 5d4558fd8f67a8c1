package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"daycare/engine/changes"
	"daycare/engine/control"
	"daycare/engine/crash"
	"daycare/engine/cuid"
	"daycare/engine/disk"
	"daycare/engine/permission"
	toolshell "daycare/tools/shell"
)

// grants is the part of the API that is about families: rights and sub-agents.
type grants struct{ parts *Daemon }

// Grants is the rights of an agent.
func (k grants) Grants(ctx context.Context, id string) (permission.Set, error) {
	return k.parts.family.Grants(ctx, id)
}

// Revoke takes a right away.
func (k grants) Revoke(ctx context.Context, id, tag, by string) error {
	err := k.parts.family.Revoke(ctx, id, tag, by, authority{k.parts}.narrowed)
	if errors.Is(err, permission.ErrTag) {
		return &control.Invalid{Field: "permission", Reason: err.Error()}
	}

	return err
}

// under is a set with the profile that applies to it, as the settings are now.
func (r *conf) under(s permission.Set) permission.Set {
	return s.Under(permission.Profile(r.settings.Current().Permissions.Profile))
}

// plansFirst reports whether an agent of that profile plans before it changes anything.
func (r *conf) plansFirst(p permission.Profile) bool {
	return r.under(permission.Set{Profile: p}).Profile == permission.Planning
}

// Grant gives a right, bound to the content of the scripts that its words name, or
// another profile.
func (k grants) Grant(ctx context.Context, id string, g control.Granting, by string) error {
	if g.Profile != "" {
		return k.profile(ctx, id, g.Profile, by)
	}
	set, err := k.parts.family.Grants(ctx, id)
	if err != nil {
		return err
	}
	var scripts []permission.Script
	if rule, ok := strings.CutPrefix(g.Permission, "@exec:"); ok {
		scripts = toolshell.Scripts(strings.TrimSpace(rule), set.WorkingDir, set)
	}
	if err = k.parts.family.Give(ctx, id, g.Permission, by, scripts); errors.Is(err, permission.ErrTag) {
		return &control.Invalid{Field: "permission", Reason: err.Error()}
	}

	return err
}

// profile gives an agent another profile; "default" is that of the settings.
func (k grants) profile(ctx context.Context, id, name, by string) error {
	profile := permission.Profile(strings.TrimSuffix(name, "default"))
	if profile != "" && !slices.Contains(permission.Profiles, profile) {
		return &control.Invalid{Field: "profile",
			Reason: fmt.Sprintf("found %q, allowed: read-only, ask, auto, plan, dry-run, default", name)}
	}
	set, err := k.parts.family.Grants(ctx, id)
	if err != nil {
		return err
	}
	copied, inCopy := changes.Of(set.WorkingDir)
	was := set.Profile == permission.DryRun
	switch {
	case profile == permission.DryRun && !(was && inCopy):
		return k.rehearse(ctx, id, set, by)
	case profile != permission.DryRun && was:
		return k.endRehearsal(ctx, id, profile, cmp.Or(copied.Of, k.parts.at.Dir), by)
	}

	return k.parts.family.Profile(ctx, id, profile, "", by)
}

// rehearse has an agent work on a copy of its folder.
func (k grants) rehearse(ctx context.Context, id string, set permission.Set, by string) error {
	of := set.WorkingDir
	if set.Profile == permission.DryRun { // the copy is gone
		of = k.parts.at.Dir
	}
	made, err := changes.Make(ctx, k.parts.at, of, id, disk.StampOf(crash.Now()))
	if err != nil {
		return fmt.Errorf("begin dry run: %w", err)
	}
	if err := k.parts.folders.Give(permission.Write{Path: made.Tree()}); err != nil {
		return errors.Join(fmt.Errorf("begin dry run: %w", err), made.Remove())
	}
	if err := k.parts.family.Profile(ctx, id, permission.DryRun, made.Tree(), by); err != nil {
		return errors.Join(err, made.Remove())
	}

	return k.parts.family.Note(ctx, id, "system", "dry-run:"+made.Dir, "This is a dry run from now on. You work in a copy of "+
		of+": your working folder is "+made.Tree()+", and paths in "+of+" mean the files of the copy. Messages to others, and "+
		"whatever else has an effect outside of the copy, are recorded and not done. The user decides later what is applied.")
}

// endRehearsal has an agent work in its folder again. The copy stays until it is dropped.
func (k grants) endRehearsal(ctx context.Context, id string, profile permission.Profile, folder, by string) error {
	if err := k.parts.family.Profile(ctx, id, profile, folder, by); err != nil {
		return err
	}
	return k.parts.family.Note(ctx, id, "system", "dry-run-ended:"+cuid.New(), "The dry run has ended. Your working folder is "+
		folder+" again; of what you did in the copy, only what the user applied is there.")
}

// Why says what an agent would be allowed, and by which rule.
func (k grants) Why(ctx context.Context, id, what string) (control.Verdict, error) {
	set, err := k.parts.family.Grants(ctx, id)
	if err != nil {
		return control.Verdict{}, err
	}
	set = k.parts.under(set)
	command, isExec := strings.CutPrefix(what, "@exec:")
	if isExec || !strings.HasPrefix(what, "@") {
		tool, _, _ := k.parts.tools.Get("exec")
		v := tool.(*toolshell.Exec).Explain(command, set.WorkingDir, set)
		return control.Verdict{Decision: v.Decision, Rule: v.Rule, By: giver(set, v.Rule), Reason: v.Reason,
			Hooks: hooked{k.parts}.guarding("exec")}, nil
	}
	access, err := permission.Parse(what)
	if err != nil {
		return control.Verdict{}, &control.Invalid{Field: "what", Reason: err.Error()}
	}
	if !set.Allows(access) {
		if !set.Changes() {
			return control.Verdict{Decision: "refused", Rule: "profile " + string(set.Profile),
				Reason: "the profile allows no changes"}, nil
		}
		return control.Verdict{Decision: "asks", Reason: "no permission covers it; the agent can ask for it"}, nil
	}
	for _, right := range set.Rights() {
		if narrow := alone(right); narrow.Allows(access) {
			return control.Verdict{Decision: "allowed", Rule: right.Tag(), By: giver(set, right.Tag()),
				Reason: "this permission covers it"}, nil
		}
	}

	return control.Verdict{Decision: "allowed", Reason: "the permissions together cover it"}, nil
}

// alone is the set of one right.
func alone(right permission.Access) permission.Set {
	set, err := permission.Set{}.Grant(permission.Grant{Tag: right.Tag()})
	if err != nil {
		return permission.Set{} // an invalid working folder covers nothing
	}

	return set
}

// giver is who gave a right, where that is known.
func giver(set permission.Set, tag string) string {
	for _, g := range set.Grants {
		if g.Tag == tag && g.SHA256 == "" {
			return g.By
		}
	}

	return ""
}

// narrowed ends the processes of an agent that run by a right which it has no more, and
// tells the agent.
func (r authority) narrowed(agent string, left permission.Set) {
	ended := r.jobs.Narrow(agent, left)
	if len(ended) == 0 {
		return
	}
	text := "A permission was revoked, so these background processes were ended: " + strings.Join(ended, "; ")
	if err := r.family.Note(context.Background(), agent, "system", "narrowed:"+cuid.New(), text); err != nil {
		r.log.Warn("an agent was not notified of ended processes", "agent", agent, "err", err)
	}
}

// SubAgents are the active definitions.
func (k grants) SubAgents(context.Context) ([]control.SubAgentInfo, error) {
	list, _ := k.parts.toolset.registry.List()
	infos := make([]control.SubAgentInfo, len(list))
	for i, d := range list {
		infos[i] = control.SubAgentInfo{Name: d.Name, Description: d.Description, Icon: d.Icon, Tools: d.Tools,
			MaxIterations: d.MaxIterations, Model: d.Model, File: d.File}
	}

	return infos, nil
}
