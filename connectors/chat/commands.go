package chat

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"daycare/engine/event"
	"daycare/engine/lazyregexp"
	"daycare/engine/message"
)

// A Command is one line of a platform's menu.
type Command struct{ Name, About string }

// Commands are the commands that every chat has, in the order of the list that
// /help shows.
var Commands = []Command{
	{"help", "list commands"},
	{"status", "show what I am doing"},
	{"stop", "stop the current turn"},
	{"reset", "start a new conversation"},
	{"compact", "compact this conversation to a summary"},
	{"mark", "set a checkpoint: /mark before"},
	{"rewind", "undo the newest turn, or go back to a checkpoint"},
	{"context", "show the length of this conversation"},
	{"model", "show the model, or change it: /model NAME"},
	{"agents", "list your agents"},
	{"permissions", "list pending approvals"},
}

// commandRule: a word, nothing else, after the slash, so that /etc/passwd is no
// command. A platform that adds @bot to commands has taken it off.
var commandRule = lazyregexp.New(`^([/!])([A-Za-z_][A-Za-z0-9_:-]{0,64})(?:[ \t]+([^\n]*))?$`)

// commands runs what users type as commands.
type commands struct {
	o         Options
	host      Host
	log       *slog.Logger
	who       *people
	voice     voice
	approvals *approvals
	// pass hands a message on that is not a command; deliver hands on what one makes.
	pass    func(ctx context.Context, deliver message.Deliver, p Post) error
	deliver func(ctx context.Context, deliver message.Deliver, p Post, in message.Incoming) error
}

// read reads a command out of a message.
func (cs *commands) read(p Post) (name, rest string, ok bool) {
	m := commandRule.FindStringSubmatch(strings.TrimSpace(p.Text))
	if m == nil || p.Note || len(p.Files) > 0 || m[1] != "/" && m[1] != cs.o.Prefix {
		return "", "", false
	}

	return strings.ToLower(m[2]), strings.TrimSpace(m[3]), true
}

// run runs a command. Those that change the agent are items of its inbox, durable
// like a message; what only looks is answered at once.
func (cs *commands) run(ctx context.Context, deliver message.Deliver, p Post, name, rest string) error {
	switch name {
	case "reset", "new", "compact":
		return cs.control(ctx, deliver, p, name)
	case "mark", "rewind":
		return cs.place(ctx, deliver, p, message.Kind(name), rest)
	case "stop":
		cs.voice.say(ctx, p, cs.stop(ctx, p))
	case "once", "allow", "always", "prefix", "deny":
		cs.voice.say(ctx, p, cs.approvals.decide(ctx, p.From, decisions[name], rest))
	case "permissions":
		cs.approvals.list(ctx, p)
	case "pair":
		cs.voice.say(ctx, p, cs.pair(ctx, p, rest))
	case "status":
		cs.voice.say(ctx, p, cs.about(ctx, p, cs.status))
	case "context":
		cs.voice.say(ctx, p, cs.about(ctx, p, cs.context))
	case "model":
		if rest != "" && cs.host.Switch != nil {
			cs.voice.say(ctx, p, cs.about(ctx, p, func(a event.Agent) string { return cs.switchModel(ctx, a, rest) }))
			break
		}
		cs.voice.say(ctx, p, cs.about(ctx, p, cs.model))
	case "agents":
		cs.voice.say(ctx, p, cs.agents(ctx, p))
	case "help", "start":
		cs.voice.say(ctx, p, cs.voice.t("Just write to me. I also understand these commands:")+"\n\n"+cs.list())
	default:
		return cs.own(ctx, deliver, p, name, rest)
	}

	return nil
}

// own runs a command that a user of the workspace wrote: what it says is handed on as the
// message. A name that no command of ours could have is a message as it is.
func (cs *commands) own(ctx context.Context, deliver message.Deliver, p Post, name, rest string) error {
	if cs.host.Own != nil {
		if text, ok := cs.host.Own.Expand(name, rest); ok {
			p.Text = text
			return cs.pass(ctx, deliver, p)
		}
	}
	if strings.ContainsAny(name, "-:0123456789") {
		return cs.pass(ctx, deliver, p)
	}

	cs.voice.say(ctx, p, cs.voice.t("Unknown command `%s%s`. I understand:", cs.o.mark(), name)+"\n\n"+cs.list())

	return nil
}

func (cs *commands) list() string {
	var b strings.Builder
	all := Commands
	if cs.host.Own != nil {
		all = slices.Concat(all, cs.host.Own.Commands())
	}

	for _, c := range all {
		fmt.Fprintf(&b, "- %s%s: %s\n", cs.o.mark(), c.Name, cs.voice.t(c.About))
	}

	return b.String()
}

// control posts what changes the agent; a reset also stops what is in progress.
func (cs *commands) control(ctx context.Context, deliver message.Deliver, p Post, name string) error {
	in := cs.who.incoming(p)
	in.Kind = message.Compact
	done := "I will compact this conversation."
	if name != "compact" {
		in.Kind, done = message.Reset, "This is a new conversation. My files and my memory stay."
	}
	if err := cs.deliver(ctx, deliver, p, in); err != nil {
		return err
	}
	if in.Kind == message.Reset {
		cs.stop(ctx, p)
	}

	cs.voice.say(ctx, p, done)
	return nil
}

// place names a place of the conversation, or goes back to one.
func (cs *commands) place(ctx context.Context, deliver message.Deliver, p Post, kind message.Kind, name string) error {
	done := cs.voice.t("Checkpoint set: %srewind %s goes back to it.", cs.o.mark(), name)
	switch {
	case kind == message.Mark && (name == "" || strings.Trim(name, "0123456789") == ""):
		cs.voice.say(ctx, p, cs.voice.t("A checkpoint needs a name that is not a number, for example %smark before.", cs.o.mark()))
		return nil
	case kind == message.Rewind && name == "":
		done = "I undo the newest turn. It stays in my history file."
	case kind == message.Rewind:
		done = cs.voice.t("I go back to %s, if it is in this conversation. Everything after it stays in my history file.", name)
	}

	in := cs.who.incoming(p)
	in.Kind, in.Text = kind, name
	if err := cs.deliver(ctx, deliver, p, in); err != nil {
		return err
	}
	cs.voice.say(ctx, p, done)

	return nil
}

func (cs *commands) stop(ctx context.Context, p Post) string {
	id, ok := cs.who.agent(p)
	if !ok || cs.host.Agents == nil {
		return "There is nothing to stop."
	}
	stopped, err := cs.host.Agents.Stop(ctx, id)
	switch {
	case err != nil:
		cs.log.Error("cannot stop turn", "agent", id, "err", err)
		return "I could not stop."
	case !stopped:
		return "There is nothing to stop."
	}

	return "Stopped. My inbox stays as it is."
}

// about answers a question about the agent of a chat.
func (cs *commands) about(ctx context.Context, p Post, tell func(event.Agent) string) string {
	id, ok := cs.who.agent(p)
	if !ok || cs.host.Agents == nil {
		return "We have not spoken yet."
	}
	a, err := cs.host.Agents.Agent(ctx, id)
	if err != nil {
		cs.log.Error("cannot read agent", "agent", id, "err", err)
		return "I cannot read that right now."
	}

	return tell(a)
}

func (cs *commands) status(a event.Agent) string {
	s := cs.voice.t("**%s** is %s", a.Handle, a.State)
	if a.Detail != "" {
		s += ": " + a.Detail
	}
	if a.Queued > 0 {
		s += "\n" + cs.voice.t("queued messages: %d", a.Queued)
	}

	return s + "\n" + cs.voice.t("model: `%s`\ncost so far: $%.4f", a.Model, a.Cost)
}

func (cs *commands) session(a event.Agent) (Session, bool) {
	if cs.host.Session == nil {
		return Session{}, false
	}
	s, err := cs.host.Session(a.ID)
	if err != nil {
		cs.log.Warn("cannot read session", "agent", a.ID, "err", err)
	}

	return s, err == nil
}

func (cs *commands) context(a event.Agent) string {
	s, ok := cs.session(a)
	if !ok || s.Messages == 0 {
		return "This conversation is empty."
	}
	text := cs.voice.t("%d messages since %s", s.Messages, s.Since.Local().Format("2006-01-02 15:04"))
	if s.Context > 0 {
		text += "\n" + cs.voice.t("the model was last sent %d tokens", s.Context)
	}

	return text + "\n" + cs.voice.t("total tokens: %d, cost: $%.4f\n%scompact shortens it, %sreset starts over", s.Tokens, s.Cost,
		cs.o.mark(), cs.o.mark())
}

func (cs *commands) model(a event.Agent) string {
	text := cs.voice.t("I use `%s`.", a.Model)
	if s, ok := cs.session(a); ok && len(s.Providers) > 0 {
		text += "\n\n" + cs.voice.t("In the order in which they are tried:") + "\n"
		for _, p := range s.Providers {
			text += "\n- " + p
		}
	}

	return text
}

// switchModel gives the agent another model.
func (cs *commands) switchModel(ctx context.Context, a event.Agent, to string) string {
	now, err := cs.host.Switch(ctx, a.ID, to)
	if err != nil {
		return cs.voice.t("I stay with `%s`: %s", a.Model, err)
	}

	return cs.voice.t("From the next turn on I use `%s`.", now)
}

// maxListed bounds lists: a chat is no place for hundreds of lines.
const maxListed = 30

// known are the agents that a user may know of: an owner of all, others of those that
// their own agent knows. An agent that many share says of none but itself.
func (cs *commands) known(ctx context.Context, p Post) ([]event.Agent, error) {
	if cs.who.owns(p.From.UserID) {
		return cs.host.Agents.Agents(ctx)
	}
	id, ok := cs.who.agent(p)
	if !ok {
		return nil, nil
	}
	if cs.o.AgentID == "" {
		return cs.host.Agents.Known(ctx, id)
	}

	a, err := cs.host.Agents.Agent(ctx, id)

	return []event.Agent{a}, err
}

func (cs *commands) agents(ctx context.Context, p Post) string {
	if cs.host.Agents == nil {
		return "I cannot read that right now."
	}
	all, err := cs.known(ctx, p)
	if err != nil {
		cs.log.Error("cannot list agents", "err", err)
		return "I cannot read that right now."
	}

	var b strings.Builder
	for i, a := range all {
		if i == maxListed {
			b.WriteString("\n" + cs.voice.t("and %d more", len(all)-maxListed))
			break
		}
		fmt.Fprintf(&b, "- `%s` %s, %s", a.Handle, a.Type, a.State)
		if a.Name != "" {
			fmt.Fprintf(&b, ", %s", a.Name)
		}
		b.WriteString("\n")
	}

	if b.Len() == 0 {
		return "There are no agents yet."
	}

	return b.String()
}
