package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"daycare/agents"
	"daycare/agents/prompt"
	"daycare/agents/providers"
	"daycare/cmd/daycare/models"
	"daycare/engine/address"
	"daycare/engine/beneath"
	"daycare/engine/record"
	ws "daycare/engine/workspace"
	"daycare/tools"
)

// Requests makes the requests of agents again, from their files, with nothing running.
type Requests struct{ d *Daemon }

// OpenRequests reads the files of a workspace. Broken settings are reported to warn.
func OpenRequests(ctx context.Context, at ws.Place, warn func(format string, args ...any)) (Requests, error) {
	d, err := openFiles(ctx, at, warn)
	return Requests{d}, err
}

// Models are the models of the settings.
func (r Requests) Models() *models.Chain { return r.d.models.Load() }

// Agents lists the agents whose files are there.
func (r Requests) Agents() []address.Meta { return r.d.index.All() }

// Dir is the folder of an agent.
func (r Requests) Dir(id string) string { return filepath.Join(r.d.at.Data, "agents", id) }

// Choice is the model that an agent uses now, with its temperature and the like.
func (r Requests) Choice(meta address.Meta) (record.Model, error) {
	state, _, _, err := record.ReadState(r.Dir(meta.ID))
	choice := state.Provider
	if choice.ID == "" && choice.Model == "" {
		own := factory{r.d}.settingsFor(meta.Descriptor).Routes.Own
		choice.ID, choice.Model = own.ID, own.Model
	}

	return choice, err
}

// maxSystem bounds what is read of a system prompt.
const maxSystem = 16 << 20

// System is the system prompt of an agent: the one whose sum is wanted, if it can be had, which is
// the newest one that it was given, or the one that it would be given now.
func (r Requests) System(meta address.Meta, sum string) (string, error) {
	last, _, err := beneath.Own(filepath.Join(r.Dir(meta.ID), "SYSTEM.md"), maxSystem)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read system prompt: %w", err)
	}
	if text := string(last); text != "" && (sum == "" || providers.SystemSum(text) == sum) {
		return text, nil
	}
	state, _, _, err := record.ReadState(r.Dir(meta.ID))
	now := r.d.secrets.Text(prompt.System(factory{r.d}.define(meta, state)))
	if providers.SystemSum(now) == sum {
		return now, nil
	}

	return cmp.Or(string(last), now), err
}

// NewSystem is the system prompt of an agent that is made in a new terminal.
func (r Requests) NewSystem() string {
	meta := address.Meta{Handle: "0/", Descriptor: address.Descriptor{Type: address.User}}
	return r.d.secrets.Text(prompt.System(factory{r.d}.define(meta, record.State{})))
}

// Builder makes the messages of an agent's requests. It keeps those that it made, for the next
// request of the same conversation.
func (r Requests) Builder(meta address.Meta) *prompt.Builder {
	return prompt.NewBuilder(prompt.Sources{File: r.d.files.Read, Dir: r.Dir(meta.ID)})
}

// tools are those of an agent as its state.json is now.
func (r Requests) tools(meta address.Meta) *tools.Set {
	state, err := r.d.gists.Of(r.d.vol, r.Dir(meta.ID))
	return r.d.toolset.of(meta, err == nil && r.d.plansFirst(state.Profile))
}

// Make makes the request of a context.
func (r Requests) Make(b *prompt.Builder, meta address.Meta, c *record.Context, system string,
	choice record.Model) (*providers.Request, error) {
	return agents.RequestOf(b, c, system, r.tools(meta), choice)
}

// Changes reports whether an agent has a tool that changes something.
func (r Requests) Changes(meta address.Meta, tool string) bool {
	_, spec, ok := r.tools(meta).Get(tool)
	return ok && spec.Replay != tools.ReadOnly
}
