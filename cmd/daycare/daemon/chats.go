package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"daycare/connectors/chat"
	"daycare/connectors/speech"
	"daycare/engine"
	"daycare/engine/address"
	"daycare/engine/beneath"
	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/cuid"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/schedule"
	toolshell "daycare/tools/shell"
)

// chats is the engine as chat connectors see it. Connectors are made before the
// system that they belong to, so it looks for the system when it is asked.
type chats struct{ r *Daemon }

// chatHost is what every chat connector is given.
func (r *Daemon) chatHost() chat.Host {
	c := chats{r}
	return chat.Host{Directory: c, Agents: c, Asks: c, Events: r.events, Files: r.files, Hints: hints{r},
		Waiting: unlost{hints{r}}, Session: c.session, Owners: authority{c.r}.owners, Switch: c.switchModel, Own: ownCommands{choices{r}},
		Household: chat.Household{Admission: admission{r}, Talk: c.talk, Linked: c.linked, Hear: c.hear,
			Once: r.machines.Once()}}
}

// talk is how users and agents talk over a connector.
func (c chats) talk(connector string) chat.Talk {
	k, _ := c.r.settings.Current().Connector(connector)
	return chat.Talk{Always: k.Groups == "always", AgentPer: k.AgentPer, Language: k.Language,
		Reactions: k.Reactions == "answer", Stream: k.Stream}
}

// linked is the agent of a person who uses several connectors.
func (c chats) linked(user message.Address) (string, bool) {
	return c.r.settings.Current().Links.Of(user.Connector, user.UserID)
}

// Amend edits or drops a queued message.
func (c chats) Amend(ctx context.Context, a message.Amendment) (bool, error) {
	return c.r.system.Amend(ctx, a)
}

// Find is the agent that an address maps to, if it was made already.
func (c chats) Find(from message.Address) (string, bool) {
	return c.r.index.Lookup(address.Of(from))
}

// Home returns the chat of the user who answers for an agent: its own chat, the chat of its nearest ancestor that
// has one, or else the chat of the agent that an owner wrote to last.
func (c chats) Home(agent string) (message.Address, bool) {
	meta, ok := c.r.family.Overseer(agent)
	if !ok {
		return message.Address{}, false
	}

	return meta.Descriptor.Address(), true
}

// Agent is one agent by its id.
func (c chats) Agent(ctx context.Context, id string) (event.Agent, error) {
	return c.r.system.Agent(ctx, id)
}

// Agents lists all agents.
func (c chats) Agents(ctx context.Context) ([]event.Agent, error) { return c.r.system.Agents(ctx) }

// Known are the agents that an agent may know of.
func (c chats) Known(ctx context.Context, asker string) ([]event.Agent, error) {
	return c.r.family.List(ctx, asker)
}

// Item is an item that an agent accepted, and how it ended.
func (c chats) Item(ctx context.Context, agent, item string) (event.Posted, error) {
	return c.r.system.Item(ctx, agent, item)
}

// Stop cancels the turn that an agent is in.
func (c chats) Stop(ctx context.Context, id string) (bool, error) {
	return c.r.system.Stop(ctx, id, "")
}

// List is the permission requests that wait.
func (c chats) List() []permission.Pending { return c.r.asks.List() }

// Decide answers a permission request, or says who did before.
func (c chats) Decide(ctx context.Context, token string, d permission.Decision, by string) (*permission.Pending, error) {
	return c.r.system.Decide(ctx, token, d, by)
}

// switchModel gives an agent another model.
func (c chats) switchModel(ctx context.Context, agent, to string) (string, error) {
	now, err := folders{&backend{System: c.r.system, parts: c.r}}.Switch(ctx, agent, to)
	var bad *control.Invalid
	if errors.As(err, &bad) {
		return "", errors.New(strings.TrimSuffix(bad.Reason+". "+bad.Hint, ". "))
	}

	return now.Provider + "/" + now.Model, err
}

// session counts the conversation of an agent.
func (c chats) session(agent string) (chat.Session, error) {
	state, _, _, err := record.ReadState(filepath.Join(c.r.at.Data, "agents", agent))
	if err != nil {
		return chat.Session{}, fmt.Errorf("read state of %s: %w", agent, err)
	}
	n := state.Session
	s := chat.Session{Title: n.Title, Since: n.StartedAt.Time, Messages: n.Messages,
		Tokens: n.PromptTokens + n.CompletionTokens, Cost: n.Cost}
	if t := state.Tokens; t != nil {
		s.Context = t.Input + t.CacheRead + t.CacheWrite
	}

	for _, p := range c.r.models.Load().Settings {
		s.Providers = append(s.Providers, p.ID+": "+p.Model)
	}

	return s, nil
}

// hints are the files in .daycare/connectors/<id>/: what a connector remembers and may
// lose. They are written without a barrier.
type hints struct{ r *Daemon }

func (h hints) path(connector, name string) string {
	return filepath.Join(h.r.at.Data, "connectors", connector, name)
}

// Load reads a file.
func (h hints) Load(connector, name string) ([]byte, error) {
	return beneath.Whole(h.path(connector, name))
}

// unlost are files beside the hints that must not be lost: messages that a platform was
// told are received.
type unlost struct{ hints }

// Load reads a file, which is durable then: a place that a power cut could still take away would have
// messages skipped.
func (u unlost) Load(connector, name string) ([]byte, error) {
	if err := u.r.vol.Settle(filepath.Dir(u.path(connector, name))); err != nil {
		return nil, err
	}
	return u.hints.Load(connector, name)
}

// Save replaces a file durably.
func (u unlost) Save(connector, name string, data []byte) error {
	path := u.path(connector, name)
	if err := u.r.vol.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}

	return u.r.vol.WriteFile("waiting", path, data)
}

// Ledger opens a file that lines are added to. Its caller closes it.
func (u unlost) Ledger(connector, name string) (*disk.Log, error) {
	path := u.path(connector, name)
	if err := u.r.vol.MkdirAll(filepath.Dir(path)); err != nil {
		return nil, err
	}
	log, _, err := u.r.vol.OpenLog(path, disk.LogOptions{Name: "ledger", Valid: json.Valid})

	return log, err
}

// Save replaces a file.
func (h hints) Save(connector, name string, data []byte) error {
	path := h.path(connector, name)
	if err := h.r.vol.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}

	return h.r.vol.WriteDraft("hints", path, data)
}

// outlet is how answers leave: spoken, as files, and not at night.
type outlet struct{ *Daemon }

func (r outlet) all() engine.Outlet {
	return engine.Outlet{Grace: shutdownGrace, Keep: r.keep, Speak: r.speak, Quiet: r.quiet}
}

// keep stores a text under the id of the answer that it is.
func (r outlet) keep(id, name string, content []byte) (message.File, error) {
	return r.files.Keep(id, name, bytes.NewReader(content))
}

// quiet is until when a chat is not to be disturbed.
func (r outlet) quietUntil(to message.Address, now time.Time) time.Time {
	k, ok := r.settings.Current().Connector(to.Connector)
	if !ok || k.Quiet == "" {
		return time.Time{}
	}
	hours, err := schedule.ParseHours(k.Quiet)
	if err != nil { // the settings were checked when they were read
		return time.Time{}
	}
	zone := time.Local
	if z, err := time.LoadLocation(r.settings.Current().Cron.Timezone); err == nil && r.settings.Current().Cron.Timezone != "" {
		zone = z
	}

	return hours.End(now.In(zone))
}

func (r outlet) quiet(to message.Address) time.Time { return r.quietUntil(to, time.Now()) }

// maxSpoken is the longest answer that is spoken, in characters: what is longer nobody listens to.
const maxSpoken = 3000

// speak returns an answer as sound, where its connector wants that.
func (r outlet) speak(ctx context.Context, out message.Outgoing) (message.File, bool) {
	c := r.settings.Current()
	k, _ := c.Connector(out.To.Connector)
	said := k.Speak == "always" || k.Speak == "voice" && r.voiced.has(hints{r.Daemon}, out.To, out.ReplyTo)
	if !said || !c.Speech.Speak.On() || len([]rune(out.Text)) > maxSpoken || strings.TrimSpace(out.Text) == "" {
		return message.File{}, false
	}
	id := spokenID(out.ID)
	if f, err := r.files.Get(id); err == nil {
		return f, true
	}

	sound, err := r.sound(ctx, c, out.Text)
	if err == nil {
		var f message.File
		if f, err = r.files.Keep(id, "answer.ogg", bytes.NewReader(sound)); err == nil {
			return f, true
		}
	}
	r.log.Warn("answer not spoken; it is sent as text only", "out", out.ID, "err", err)

	return message.File{}, false
}

// spokenID is the id of the file with an answer as sound.
func spokenID(out string) string { return out[:max(0, len(out)-1)] + "s" }

func (r outlet) sound(ctx context.Context, c *config.Config, text string) ([]byte, error) {
	s := c.Speech.Speak
	if s.Command != "" {
		return r.program(ctx, s.Voicing, text, "DAYCARE_VOICE="+s.Voice)
	}

	return service(c, s.Voicing).Speak(ctx, text, s.Voice)
}

func service(c *config.Config, v config.Voicing) speech.Service {
	return speech.Service{URL: v.URL, Model: v.Model, Key: v.Secret(c).Reveal(), Timeout: v.Timeout}
}

// hear writes a voice message down.
func (c chats) hear(ctx context.Context, v chat.Voice) (string, error) {
	r, now := outlet{c.r}, c.r.settings.Current()
	if err := r.voiced.add(unlost{hints{c.r}}, v.From, v.MessageID); err != nil {
		r.log.Warn("after a restart the answer to a voice message will not be spoken", "message", v.MessageID, "err", err)
	}
	t := now.Speech.Transcribe
	if !t.On() {
		return "", chat.ErrDeaf
	}
	sound, err := r.files.Read(v.File)
	if err != nil {
		return "", fmt.Errorf("read voice message: %w", err)
	}
	if t.Command == "" {
		return service(now, t.Voicing).Transcribe(ctx, v.File.Name, sound, t.Language)
	}
	text, err := r.program(ctx, t.Voicing, string(sound), "DAYCARE_FILE="+v.File.Name, "DAYCARE_LANGUAGE="+t.Language)

	return strings.ToValidUTF8(strings.TrimSpace(string(text)), "\uFFFD"), err
}

// maxSound bounds what a program of speech may print, in bytes.
const maxSound = 20 << 20

// program runs a program of the settings, in the sandbox of hooks.
func (r outlet) program(ctx context.Context, v config.Voicing, stdin string, env ...string) ([]byte, error) {
	tool, _, ok := r.tools.Get("exec")
	exec, isExec := tool.(*toolshell.Exec)
	if !ok || !isExec {
		return nil, errors.New("this build runs no commands")
	}
	out, errs := beginning{most: maxSound}, beginning{most: 4 << 10}
	end, err := toolshell.Program{Command: v.Command, Stdin: stdin, Dir: r.at.Dir, Timeout: v.Timeout, Mark: cuid.New(),
		Agent: hookHome, As: hookHome, Access: permission.Default(r.at.Dir), Bare: v.Sandbox != nil && !*v.Sandbox,
		Env: append(env, "DAYCARE_WORKSPACE="+r.at.Dir, "DAYCARE_DATA="+r.at.Data), Out: &out, Err: &errs}.Run(ctx, exec)
	switch {
	case errors.Is(err, toolshell.ErrNoSandbox):
		return nil, fmt.Errorf("%w; to run it without, set sandbox: false for this command", err)
	case err != nil:
		return nil, err
	case end.TimedOut:
		return nil, fmt.Errorf("the command took longer than %v", v.Timeout)
	case end.Code != 0 || end.Signal != "":
		return nil, fmt.Errorf("the command ended with %d %s: %s", end.Code, end.Signal, strings.TrimSpace(string(errs.kept)))
	case out.cut:
		return nil, errors.New("the command printed more than 20 MB")
	}

	return out.kept, nil
}

// voiced remembers the newest messages that were spoken, so that their answers can be, too. They are
// kept over a restart: an answer may be given by the next process.
type voiced struct {
	mu  sync.Mutex
	all map[string][]spokenMessage // by connector
}

type spokenMessage struct {
	Channel string `json:"channel"`
	ID      string `json:"id"`
}

const (
	maxVoiced  = 200 // of a connector
	voicedFile = "voiced.json"
)

// of returns those of a connector. What cannot be read counts as nothing: an answer is text then. mu is held.
func (v *voiced) of(k chat.Keeper, connector string) []spokenMessage {
	all, ok := v.all[connector]
	if ok {
		return all
	}
	if data, err := k.Load(connector, voicedFile); err == nil {
		_ = json.Unmarshal(data, &all)
	}
	if v.all == nil {
		v.all = map[string][]spokenMessage{}
	}
	v.all[connector] = all

	return all
}

func (v *voiced) add(k chat.Keeper, from message.Address, id string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	one := spokenMessage{from.ChannelID, id}
	all := v.of(k, from.Connector)
	if id == "" || slices.Contains(all, one) {
		return nil
	}
	all = append(all[max(0, len(all)-maxVoiced+1):], one)
	v.all[from.Connector] = all
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}

	return k.Save(from.Connector, voicedFile, append(data, '\n'))
}

func (v *voiced) has(k chat.Keeper, to message.Address, id string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Contains(v.of(k, to.Connector), spokenMessage{to.ChannelID, id})
}
