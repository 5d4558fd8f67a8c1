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

func (a *api) familyRoutes(mux *http.ServeMux) {
	if a.Grants != nil {
		mux.HandleFunc("GET /v1/agents/{id}/grants", a.agent(a.grants))
		mux.HandleFunc("DELETE /v1/agents/{id}/grants", a.agent(a.revoke))
	}
	if a.SubAgents != nil {
		mux.HandleFunc("GET /v1/subagents", a.handle(a.subAgents))
	}
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

// SubAgents lists the definitions of sub-agents in force.
func (c *Client) SubAgents(ctx context.Context) ([]SubAgentInfo, error) {
	var b subAgentsBody
	err := c.do(ctx, http.MethodGet, "/v1/subagents", nil, &b)
	return b.SubAgents, err
}
