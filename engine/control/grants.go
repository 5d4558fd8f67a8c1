package control

import (
	"context"
	"net/http"
	"net/url"

	"daycare/engine/permission"
)

// Grants is what agents were allowed.
type Grants interface {
	// Grants is the rights of an agent, with who gave them.
	Grants(ctx context.Context, id string) (permission.Set, error)
	// Revoke takes the right of a tag away; by says who. Errors: *Invalid.
	Revoke(ctx context.Context, id, tag, by string) error
	// Grant gives a right, or another profile; by says who. Errors: *Invalid.
	Grant(ctx context.Context, id string, g Granting, by string) error
	// Why says what an agent would be allowed, and by which rule. Errors: *Invalid.
	Why(ctx context.Context, id, what string) (Verdict, error)
}

// A Granting is the body of POST /v1/agents/{id}/grants: one of the two.
type Granting struct {
	Permission string `json:"permission,omitempty"` // a tag: @exec:git push
	// Profile is read-only, ask, auto or plan; default is that of the settings.
	Profile string `json:"profile,omitempty"`
}

// A Verdict is what rights say of a tag or a command.
type Verdict struct {
	Decision string `json:"decision"`       // allowed, asks, refused
	Rule     string `json:"rule,omitempty"` // the right, profile or setting that decides
	By       string `json:"by,omitempty"`   // who gave it
	Reason   string `json:"reason"`
}

// SubAgents are the definitions of sub-agents in force.
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

func (a *api) grants(_ http.ResponseWriter, r *http.Request, id string) (int, any, error) {
	set, err := a.Grants.Grants(r.Context(), id)
	set.ReadDirs, set.WriteDirs, set.Exec = some(set.ReadDirs), some(set.WriteDirs), some(set.Exec)
	return http.StatusOK, set, err
}

func (a *api) revoke(_ http.ResponseWriter, r *http.Request, id string) (int, any, error) {
	tag := r.URL.Query().Get("permission")
	if tag == "" {
		return 0, nil, &malformed{Invalid{Field: "permission", Reason: "is missing", Hint: "add ?permission=TAG"}}
	}
	return http.StatusOK, empty{}, a.Grants.Revoke(r.Context(), id, tag, callerOf(r.Context()).Name)
}

func (a *api) grant(w http.ResponseWriter, r *http.Request) {
	var g Granting
	err := decode(w, r, maxBody, &g)
	a.agent(func(_ http.ResponseWriter, r *http.Request, id string) (int, any, error) {
		if err != nil {
			return 0, nil, err
		}
		if (g.Permission == "") == (g.Profile == "") {
			return 0, nil, &Invalid{Field: "permission", Reason: "name a permission or a profile", Hint: `{"permission":"@exec:git push"}`}
		}
		return http.StatusOK, empty{}, a.Grants.Grant(r.Context(), id, g, callerOf(r.Context()).Name)
	})(w, r)
}

func (a *api) why(_ http.ResponseWriter, r *http.Request, id string) (int, any, error) {
	what := r.URL.Query().Get("what")
	if what == "" {
		return 0, nil, &malformed{Invalid{Field: "what", Reason: "is missing", Hint: "add ?what=TAG or a command"}}
	}
	v, err := a.Grants.Why(r.Context(), id, what)
	return http.StatusOK, v, err
}

func (a *api) subAgents(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	list, err := a.SubAgents.SubAgents(r.Context())
	return http.StatusOK, subAgentsBody{some(list)}, err
}

// Grants is the rights of an agent, with who gave them.
func (c *Client) Grants(ctx context.Context, ref string) (s permission.Set, err error) {
	err = c.do(ctx, http.MethodGet, agentPath(ref, "grants"), nil, &s)
	return s, err
}

// Revoke takes a right away from an agent.
func (c *Client) Revoke(ctx context.Context, ref, tag string) error {
	return c.do(ctx, http.MethodDelete, agentPath(ref, "grants")+"?"+url.Values{"permission": {tag}}.Encode(), nil, nil)
}

// Grant gives an agent a right or another profile.
func (c *Client) Grant(ctx context.Context, ref string, g Granting) error {
	return c.do(ctx, http.MethodPost, agentPath(ref, "grants"), g, nil)
}

// Why says what an agent would be allowed, and by which rule.
func (c *Client) Why(ctx context.Context, ref, what string) (v Verdict, err error) {
	err = c.do(ctx, http.MethodGet, agentPath(ref, "why")+"?"+url.Values{"what": {what}}.Encode(), nil, &v)
	return v, err
}

// SubAgents lists the definitions of sub-agents in force.
func (c *Client) SubAgents(ctx context.Context) ([]SubAgentInfo, error) {
	var b subAgentsBody
	err := c.do(ctx, http.MethodGet, "/v1/subagents", nil, &b)
	return b.SubAgents, err
}
