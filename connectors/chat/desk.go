package chat

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"daycare/engine/inbox"
	"daycare/engine/message"
)

// Options are what the desk takes of a connector's settings.
type Options struct {
	ID      string
	Allow   []string // user ids; empty is nobody
	AgentID string   // all messages go to this agent; "": one agent a chat
	Prefix  string   // what commands begin with beside "/", where "/" is the client's own
	NoTell  bool     // strangers are not answered: on this platform that would be a nuisance
}

// A Desk serves one connector. Its methods may be called from any goroutine.
type Desk struct {
	o        Options
	host     Host
	platform Platform
	log      *slog.Logger

	gate    *gate
	cards   *cards
	waiting *waiting

	mu     sync.Mutex
	routes map[string]message.Address // agent -> where it was last written to, for agents that many chats share
	failed map[string]int             // key -> how often its files could not be fetched
}

// New makes the desk of a connector.
func New(o Options, host Host, p Platform, log *slog.Logger) *Desk {
	return &Desk{o: o, host: host, platform: p, log: log, gate: newGate(o.Allow),
		cards: newCards(o.ID, host.Hints, log), waiting: newWaiting(o.ID, host.Waiting, log),
		routes: map[string]message.Address{}, failed: map[string]int{}}
}

// Take deals with one message. When it returns nil the platform may be told
// "received": the message is durable, or there is nothing more to do about it. An
// error asks for the message to be offered again, before those that follow it; what is
// refused because of its sender waits here, so that it holds up nobody else.
func (d *Desk) Take(ctx context.Context, deliver message.Deliver, p Post) error {
	p.From.Connector = d.o.ID
	if !d.gate.allows(p.From.UserID) {
		d.stranger(ctx, p)
		return nil
	}
	if p.Group && !p.Addressed {
		return nil
	}
	if name, rest, ok := d.command(p); ok {
		return d.run(ctx, deliver, p, name, rest)
	}
	return d.pass(ctx, deliver, p)
}

// pass hands a message on that is no command.
func (d *Desk) pass(ctx context.Context, deliver message.Deliver, p Post) error {
	in, err := d.incoming(ctx, p)
	if err != nil {
		return err
	}
	if strings.TrimSpace(in.Text) == "" && len(in.Files) == 0 {
		return nil // a sticker of a kind that nobody can read, or an empty line
	}
	return d.deliver(ctx, deliver, p, in)
}

// deliver hands a message on, or makes it wait if it is refused because of its sender.
func (d *Desk) deliver(ctx context.Context, deliver message.Deliver, p Post, in message.Incoming) error {
	var err error
	if !d.waiting.behind(in) {
		err = d.hand(ctx, deliver, in)
		if err == nil || d.host.Waiting == nil || !ofSender(ctx, err) {
			return err
		}
	}
	kept, first, saveErr := d.waiting.add(in)
	switch {
	case saveErr != nil:
		return errors.Join(err, saveErr)
	case kept:
		d.log.Info("a message was not accepted and waits", "user", in.From.UserID, "err", err)
	case first:
		d.say(ctx, p, "Too much of what you wrote waits already, so I did not take that, and take nothing more until I "+
			"have caught up. Send it again later.")
	}
	return nil
}

// hand hands a message to the engine and says what became of one that cannot be taken.
func (d *Desk) hand(ctx context.Context, deliver message.Deliver, in message.Incoming) error {
	p := Post{From: in.From, MessageID: in.Context.MessageID}
	receipt, err := deliver(ctx, in)
	switch {
	case errors.Is(err, inbox.ErrTooLarge):
		d.say(ctx, p, "That message is too long for me: over 1 MiB of text. Send it as a file.")
		return nil
	case errors.Is(err, message.ErrUnknownAgent):
		d.log.Error("a message has nowhere to go", "agent", d.o.AgentID, "err", err)
		d.say(ctx, p, "The agent that I should pass this on to is not there. Whoever runs me has to look at `agentId` in the settings.")
		return nil
	case err != nil:
		return err
	}
	if d.o.AgentID != "" {
		d.mu.Lock()
		d.routes[receipt.Agent] = p.From
		d.mu.Unlock()
	}
	return nil
}

// incoming makes the message for the engine, its files fetched.
func (d *Desk) incoming(ctx context.Context, p Post) (message.Incoming, error) {
	in := message.Incoming{
		From: p.From, Agent: d.o.AgentID, Dedupe: d.o.ID + ":" + p.Key, Text: p.Text,
		Context: message.Context{MessageID: p.MessageID, ReplyTo: p.ReplyTo, Sender: p.Sender},
	}
	if d.o.AgentID != "" || p.From.ThreadID != "" {
		// The agent's own address does not say this thread, or is another chat.
		from := p.From
		in.Route = &from
	}
	if p.Note {
		in.Kind, in.Silent, in.Origin = message.System, true, "system"
		return in, nil
	}
	if q := strings.TrimSpace(p.Quote); q != "" {
		in.Text = quoted(q) + "\n\n" + in.Text
	}
	for _, f := range p.Files {
		kept, err := d.keep(ctx, p, f)
		var lost *notKept
		switch {
		case errors.As(err, &lost):
			in.Text = strings.TrimSpace(in.Text + "\n[the file " + f.Name + " is missing: " + lost.reason + "]")
		case err != nil:
			return in, err
		default:
			in.Files = append(in.Files, kept)
		}
	}
	return in, nil
}

const maxQuote = 500 // characters of a quoted message

// quoted is a text as a Markdown quotation, shortened.
func quoted(text string) string {
	if utf8.RuneCountInString(text) > maxQuote {
		text = string([]rune(text)[:maxQuote]) + "…"
	}
	return "> " + strings.ReplaceAll(text, "\n", "\n> ")
}

// agent is the agent that a person talks to.
func (d *Desk) agent(from message.Address) (string, bool) {
	if d.o.AgentID != "" {
		d.mu.Lock()
		defer d.mu.Unlock()
		for id := range d.routes {
			return id, true // there is one: all messages go to it
		}
		return d.o.AgentID, true
	}
	if d.host.Directory == nil {
		return "", false
	}
	return d.host.Directory.Find(from)
}

// home is the chat of this connector in which an agent's person is reached.
func (d *Desk) home(agent string) (message.Address, bool) {
	d.mu.Lock()
	to, ok := d.routes[agent]
	d.mu.Unlock()
	if !ok && d.host.Directory != nil {
		to, ok = d.host.Directory.Home(agent)
	}
	return to, ok && to.Connector == d.o.ID
}

const sayTime = 20 * time.Second

// say answers a message with a text that is nobody's promise.
func (d *Desk) say(ctx context.Context, p Post, text string) {
	d.sayTo(ctx, p.From, p.MessageID, text)
}

func (d *Desk) sayTo(ctx context.Context, to message.Address, replyTo, text string) {
	ctx, cancel := context.WithTimeout(ctx, sayTime)
	defer cancel()
	if err := d.platform.Say(ctx, to, replyTo, text); err != nil {
		d.log.Warn("a notice was not delivered", "channel", to.ChannelID, "err", err)
	}
}
