package control

import (
	"context"

	"daycare/engine/permission"
)

// Grants is what the API needs for the permissions of agents.
type Grants interface {
	// Grants returns the permissions of an agent, with who granted them.
	Grants(ctx context.Context, id string) (permission.Set, error)
	// Revoke takes away the permission of a tag; by says who. Errors: *Invalid.
	Revoke(ctx context.Context, id, tag, by string) error
	// Grant gives a permission or another profile; by says who. Errors: *Invalid.
	Grant(ctx context.Context, id string, g Granting, by string) error
	// Why returns what an agent would be allowed, and by which rule. Errors: *Invalid.
	Why(ctx context.Context, id, what string) (Verdict, error)
}

// A Granting is the body of POST /v1/agents/{id}/grants: a permission or a profile.
type Granting struct {
	Permission string `json:"permission,omitempty"` // a tag: @exec:git push
	// Profile is read-only, ask, auto, plan or dry-run; default: the one in the settings.
	Profile string `json:"profile,omitempty"`
}

// A Verdict is what permissions say about a tag or a command.
type Verdict struct {
	Decision string `json:"decision"`       // allowed, asks, refused
	Rule     string `json:"rule,omitempty"` // the permission, profile or setting that decides
	By       string `json:"by,omitempty"`   // who gave it
	Reason   string `json:"reason"`
	// Hooks are the programs that run before and can still deny or ask.
	Hooks []string `json:"hooks,omitempty"`
}

// SubAgents is what the API needs for the active definitions of sub-agents.
type SubAgents interface {
	SubAgents(ctx context.Context) ([]SubAgentInfo, error)
}

// SubAgentInfo is one definition as `daycare subagents ls` shows it.
type SubAgentInfo struct {
	Name          string   `json:"name"`
	Description   string   `json:"description"`
	Icon          string   `json:"icon,omitempty"`
	Tools         []string `json:"tools"`
	MaxIterations int      `json:"maxIterations"`
	Model         string   `json:"model,omitempty"`
	File          string   `json:"file,omitempty"` // "": built in
}

type subAgentsBody struct {
	SubAgents []SubAgentInfo `json:"subagents"`
}

// grantRoutes serve the rights of agents.
type grantRoutes struct{ grants Grants }

func grantRows(a *api, g grantRoutes) []row {
	return []row{on(a, grants, g.list), on(a, grant, g.grant), on(a, revoke, g.revoke), on(a, why, g.why)}
}

func (g grantRoutes) list(ctx context.Context, in anAgent) (permission.Set, error) {
	set, err := g.grants.Grants(ctx, in.ID)
	set.ReadDirs, set.WriteDirs, set.Exec = some(set.ReadDirs), some(set.WriteDirs), some(set.Exec)
	return set, err
}

func (g grantRoutes) revoke(ctx context.Context, in revokeIn) (empty, error) {
	return empty{}, g.grants.Revoke(ctx, in.ID, in.Permission, callerOf(ctx).Name)
}

func (g grantRoutes) grant(ctx context.Context, in agentBody[Granting]) (empty, error) {
	if (in.Body.Permission == "") == (in.Body.Profile == "") {
		return empty{}, &Invalid{Field: "permission", Reason: "name a permission or a profile", Hint: `{"permission":"@exec:git push"}`}
	}
	return empty{}, g.grants.Grant(ctx, in.ID, in.Body, callerOf(ctx).Name)
}

func (g grantRoutes) why(ctx context.Context, in whyIn) (Verdict, error) {
	return g.grants.Why(ctx, in.ID, in.What)
}

// listSubAgents makes the handler of the sub-agents.
func listSubAgents(s SubAgents) func(context.Context, nothing) (subAgentsBody, error) {
	return func(ctx context.Context, _ nothing) (subAgentsBody, error) {
		list, err := s.SubAgents(ctx)
		return subAgentsBody{some(list)}, err
	}
}

// Grants returns the permissions of an agent, with who granted them.
func (c permissionCalls) Grants(ctx context.Context, ref string) (permission.Set, error) {
	return grants.call(ctx, c.wire, anAgent{ref})
}

// Revoke takes a permission away from an agent.
func (c permissionCalls) Revoke(ctx context.Context, ref, tag string) error {
	_, err := revoke.call(ctx, c.wire, revokeIn{ref, tag})
	return err
}

// Grant gives an agent a permission or another profile.
func (c permissionCalls) Grant(ctx context.Context, ref string, g Granting) error {
	_, err := grant.call(ctx, c.wire, agentBody[Granting]{ref, g})
	return err
}

// Why returns what an agent would be allowed, and by which rule.
func (c permissionCalls) Why(ctx context.Context, ref, what string) (Verdict, error) {
	return why.call(ctx, c.wire, whyIn{ref, what})
}

// SubAgents lists the active definitions of sub-agents.
func (c permissionCalls) SubAgents(ctx context.Context) ([]SubAgentInfo, error) {
	b, err := subAgents.call(ctx, c.wire, nothing{})
	return b.SubAgents, err
}
