package control

import (
	"context"
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

// offers serve what people can choose from.
type offers struct{ offers Offers }

func (f offers) models(ctx context.Context, _ nothing) (modelsBody, error) {
	list, err := f.offers.Models(ctx)
	return modelsBody{some(list)}, err
}

func (f offers) skills(ctx context.Context, _ nothing) (skillsBody, error) {
	list, err := f.offers.Skills(ctx)
	return skillsBody{some(list)}, err
}

// Models lists the models that an agent can be switched to.
func (c *Client) Models(ctx context.Context) ([]ModelInfo, error) {
	b, err := models.call(ctx, c, nothing{})
	return b.Models, err
}

// Skills lists the skills in force.
func (c *Client) Skills(ctx context.Context) ([]SkillInfo, error) {
	b, err := skills.call(ctx, c, nothing{})
	return b.Skills, err
}
