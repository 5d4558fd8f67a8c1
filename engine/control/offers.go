package control

import (
	"context"
	"net/http"
)

// Offers is what people can choose from for their agents.
type Offers interface {
	// Models are those that an agent can be switched to, the one in force for agents
	// that chose none first.
	Models(ctx context.Context) ([]ModelInfo, error)
	// Skills are those in force.
	Skills(ctx context.Context) ([]SkillInfo, error)
}

// ModelInfo is one model that an agent can be switched to.
type ModelInfo struct {
	Choice   string   `json:"choice"` // what Switch takes
	Provider string   `json:"provider"`
	Model    string   `json:"model"`
	Window   int      `json:"window,omitempty"` // tokens of context; 0: not known
	Images   bool     `json:"images,omitempty"` // it sees pictures
	Input    *float64 `json:"input,omitempty"`  // US dollars per million tokens; null: not known
	Output   *float64 `json:"output,omitempty"`
	Default  bool     `json:"default,omitempty"` // of agents that chose none
}

// SkillInfo is one skill as `daycare skills ls` shows it.
type SkillInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Icon        string `json:"icon,omitempty"`
	Tools       string `json:"tools,omitempty"` // allowed-tools of the front matter
	File        string `json:"file"`
	SHA256      string `json:"sha256,omitempty"` // of its SKILL.md
}

type (
	modelsBody struct {
		Models []ModelInfo `json:"models"`
	}
	skillsBody struct {
		Skills []SkillInfo `json:"skills"`
	}
)

func (a *api) models(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	list, err := a.Offers.Models(r.Context())
	return http.StatusOK, modelsBody{some(list)}, err
}

func (a *api) skills(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	list, err := a.Offers.Skills(r.Context())
	return http.StatusOK, skillsBody{some(list)}, err
}

// Models lists the models that an agent can be switched to.
func (c *Client) Models(ctx context.Context) ([]ModelInfo, error) {
	var b modelsBody
	err := c.do(ctx, http.MethodGet, "/v1/models", nil, &b)
	return b.Models, err
}

// Skills lists the skills in force.
func (c *Client) Skills(ctx context.Context) ([]SkillInfo, error) {
	var b skillsBody
	err := c.do(ctx, http.MethodGet, "/v1/skills", nil, &b)
	return b.Skills, err
}
