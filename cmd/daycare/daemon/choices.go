package daemon

import (
	"cmp"
	"context"
	"errors"
	"time"

	"daycare/agents/providers/catalogue"
	"daycare/connectors/chat"
	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/slash"
)

// choices is the part of the API that says what there is to choose from.
type choices struct{ parts *Daemon }

// Models are the providers of the settings with the model that each is set to, and
// behind them what else a vendor's own service has.
func (o choices) Models(context.Context) ([]control.ModelInfo, error) {
	m := o.parts.models.Load()
	list := make([]control.ModelInfo, 0, len(m.Settings))
	set := map[string]bool{}
	for i, p := range m.Settings {
		known, _ := m.Catalogue.Find(p.ID, p.Model)
		one := offered(p, known)
		one.Choice, one.Model, one.Default = p.ID, cmp.Or(p.Model, known.ID), i == 0
		list, set[p.ID+"/"+known.ID] = append(list, one), true
	}

	for _, p := range m.Settings {
		if p.BaseURL != "" || p.Type == "scripted" {
			continue // nobody knows what else it has
		}
		for _, known := range m.Catalogue.All() {
			one := offered(p, known)
			one.Choice, one.Model = p.ID+"/"+known.ID, known.ID
			if known.Vendor == p.Type && !set[one.Choice] {
				list, set[one.Choice] = append(list, one), true
			}
		}
	}

	return list, nil
}

func offered(p config.Provider, m catalogue.Model) control.ModelInfo {
	price := m.PriceAt(time.Now(), 0)
	return control.ModelInfo{Provider: p.ID, Window: m.Window, Images: m.Images, Input: price.Input, Output: price.Output}
}

// Providers are the model services in the order in which they are asked.
func (o choices) Providers(context.Context) ([]event.Service, error) {
	return o.parts.models.Load().Services(o.parts.lock != nil), nil
}

// Skills returns the active skills.
func (o choices) Skills(context.Context) ([]control.SkillInfo, error) {
	list := o.parts.skills.List()
	infos := make([]control.SkillInfo, len(list))
	for i, s := range list {
		infos[i] = control.SkillInfo{Name: s.Name, Description: s.Description, Icon: s.Metadata["icon"],
			Tools: s.AllowedTools, File: s.File, SHA256: s.SHA256}
	}

	return infos, nil
}

// Commands are those of the workspace, and the prompts of MCP servers.
func (o choices) Commands(context.Context) ([]control.CommandInfo, error) { return o.commands(), nil }

func (o choices) commands() []control.CommandInfo {
	list, _ := slash.List(o.parts.at) // what is wrong with one is doctor's to say
	infos := make([]control.CommandInfo, len(list))
	for i, c := range list {
		infos[i] = control.CommandInfo{Name: c.Name, Description: c.Description, Arguments: c.Arguments, File: c.File}
	}

	for _, c := range o.parts.mcp.Commands() {
		infos = append(infos, control.CommandInfo{Name: c.Name, Description: c.About, Arguments: c.Arguments})
	}

	return infos
}

// Expand is the message that a command makes: one of the workspace, or a prompt of an MCP server.
func (o choices) Expand(_ context.Context, name, arguments string) (string, error) {
	return o.expand(name, arguments)
}

func (o choices) expand(name, arguments string) (string, error) {
	text, err := slash.Expand(o.parts.at, name, arguments)
	if errors.Is(err, slash.ErrUnknown) {
		if text, ok := o.parts.mcp.Expand(name, arguments); ok {
			return text, nil
		}
	}

	return text, err
}

// ownCommands are the commands of a workspace as chats see them.
type ownCommands struct{ choices }

// Commands lists them, with what each is for.
func (o ownCommands) Commands() (list []chat.Command) {
	for _, c := range o.commands() {
		list = append(list, chat.Command{Name: c.Name, About: cmp.Or(c.Description, "a message of this workspace")})
	}
	return list
}

// Expand is the message that a command makes.
func (o ownCommands) Expand(name, arguments string) (text string, ok bool) {
	text, err := o.expand(name, arguments)
	return text, err == nil
}
