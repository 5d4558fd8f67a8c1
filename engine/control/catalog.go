package control

import (
	"context"

	"daycare/engine/event"
)

// Catalog lists what users can choose for their agents.
type Catalog interface {
	// Models lists the models that an agent can be switched to; the first is the default.
	Models(ctx context.Context) ([]ModelInfo, error)
	// Providers lists the model services in fallback order.
	Providers(ctx context.Context) ([]event.Service, error)
	// Skills lists the active skills.
	Skills(ctx context.Context) ([]SkillInfo, error)
	// Commands lists the commands that users wrote.
	Commands(ctx context.Context) ([]CommandInfo, error)
	// Expand returns the message of a command with the arguments typed after its name.
	// Errors: fault.NoCommand.
	Expand(ctx context.Context, name, arguments string) (text string, err error)
}

// CommandInfo is one command that a user wrote: a file with the text of a message.
type CommandInfo struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Arguments   string `json:"arguments,omitempty"` // a hint, such as FILE
	File        string `json:"file"`
}

// ModelInfo is one model that an agent can be switched to.
type ModelInfo struct {
	Choice   string   `json:"choice"` // the argument of Switch
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
		// Of the OpenAI format, where it is served: agents as models.
		Object string         `json:"object,omitempty"` // list
		Data   []ForeignModel `json:"data,omitempty"`
	}
	providersBody struct {
		Providers []event.Service `json:"providers"`
	}
	skillsBody struct {
		Skills []SkillInfo `json:"skills"`
	}
	commandsBody struct {
		Commands []CommandInfo `json:"commands"`
	}
	expandIn struct {
		Name string     `path:"name"`
		Body expandBody `body:"application/json"`
	}
	expandBody struct {
		Arguments string `json:"arguments"`
	}
	expandedBody struct {
		Text string `json:"text"`
	}
)

// catalogRoutes serve what users can choose from.
type catalogRoutes struct {
	catalog Catalog
	other   translated
}

func offerRows(a *api, f catalogRoutes) []row {
	return []row{on(a, skills, f.skills), on(a, models, f.models), on(a, providers, f.providers),
		on(a, commands, f.commands), on(a, expand, f.expand)}
}

func (f catalogRoutes) models(ctx context.Context, _ nothing) (modelsBody, error) {
	list, err := f.catalog.Models(ctx)
	if err != nil {
		return modelsBody{}, err
	}
	b := modelsBody{Models: some(list)}
	if t := f.other.active(); t != nil {
		b.Object = "list"
		b.Data, err = t.Models(ctx, f.other.line(ctx))
	}

	return b, err
}

func (f catalogRoutes) skills(ctx context.Context, _ nothing) (skillsBody, error) {
	list, err := f.catalog.Skills(ctx)
	return skillsBody{some(list)}, err
}

func (f catalogRoutes) providers(ctx context.Context, _ nothing) (providersBody, error) {
	list, err := f.catalog.Providers(ctx)
	return providersBody{some(list)}, err
}

// Providers lists the model services in fallback order.
func (c catalogCalls) Providers(ctx context.Context) ([]event.Service, error) {
	b, err := providers.call(ctx, c.wire, nothing{})
	return b.Providers, err
}

func (f catalogRoutes) commands(ctx context.Context, _ nothing) (commandsBody, error) {
	list, err := f.catalog.Commands(ctx)
	return commandsBody{some(list)}, err
}

func (f catalogRoutes) expand(ctx context.Context, in expandIn) (expandedBody, error) {
	text, err := f.catalog.Expand(ctx, in.Name, in.Body.Arguments)
	return expandedBody{text}, err
}

// Commands lists the commands that users wrote.
func (c catalogCalls) Commands(ctx context.Context) ([]CommandInfo, error) {
	b, err := commands.call(ctx, c.wire, nothing{})
	return b.Commands, err
}

// Expand returns the message of a command with the arguments typed after its name.
func (c catalogCalls) Expand(ctx context.Context, name, arguments string) (string, error) {
	b, err := expand.call(ctx, c.wire, expandIn{name, expandBody{arguments}})
	return b.Text, err
}

// Models lists the models that an agent can be switched to.
func (c catalogCalls) Models(ctx context.Context) ([]ModelInfo, error) {
	b, err := models.call(ctx, c.wire, nothing{})
	return b.Models, err
}

// Skills lists the active skills.
func (c catalogCalls) Skills(ctx context.Context) ([]SkillInfo, error) {
	b, err := skills.call(ctx, c.wire, nothing{})
	return b.Skills, err
}
