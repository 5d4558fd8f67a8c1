package chat

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"unicode/utf8"

	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/plain"
)

// Options are what the desk takes of a connector.
type Options struct {
	Settings
	Prefix          string // what commands begin with beside "/", where "/" is the client's own
	IgnoreStrangers bool   // strangers are not answered: on this platform that would be a nuisance
}

// A Desk serves one connector. Its methods may be called from any goroutine.
type Desk struct {
	o    Options
	host Host
	log  *slog.Logger

	gate      *gate
	who       *people
	voice     voice
	files     *fetcher
	waiting   *waiting
	approvals *approvals
	commands  *commands
	drafts    *drafts
	watcher   *watcher
}

// New makes the desk of a connector.
func New(o Options, host Host, p Platform, log *slog.Logger) *Desk {
	d := &Desk{o: o, host: host, log: log, gate: newGate(o.Allow),
		files:   &fetcher{store: host.Files, log: log, failed: map[attached]int{}},
		waiting: newWaiting(o.ID, host.Waiting, log)}
	d.who = &people{o: o, host: host, platform: p, gate: d.gate, routes: map[string]message.Address{}}
	d.voice = voice{p, log, func() string { return d.who.talk().Language }}
	d.approvals = &approvals{o: o, host: host, log: log, who: d.who, voice: d.voice, cards: newCards(o.ID, host.Hints, log)}
	d.commands = &commands{o: o, host: host, log: log, who: d.who, voice: d.voice, approvals: d.approvals,
		pass: d.pass, deliver: d.deliver}
	d.drafts = &drafts{o: o, host: host, who: d.who, voice: d.voice}
	d.watcher = &watcher{host: host, who: d.who, voice: d.voice, approvals: d.approvals, drafts: d.drafts}
	return d
}

// Text is a fixed text in the language of the connector.
func (d *Desk) Text(text string) string { return d.voice.t(text) }

// Attaching is embedded by connectors that send long answers as files (engine.Attacher).
type Attaching struct{ Desk *Desk }

// Rest is what stands below the beginning of an answer that is sent as a file.
func (a Attaching) Rest() string {
	return a.Desk.voice.t("… The whole answer is in the attached file.")
}

// Take deals with one message. When it returns nil the platform may be told "received": the message is durable, or
// there is nothing more to do about it. On an error the caller must offer the message again, before those that
// follow it. A message that is refused because of its sender waits here, so that it does not delay other senders.
func (d *Desk) Take(ctx context.Context, deliver message.Deliver, p Post) error {
	p = p.readable()
	p.From.Connector = d.o.ID
	if p.Amends != "" && !d.who.written.complete(&p) {
		return nil
	}
	if !d.gate.allows(p.From.UserID) {
		d.stranger(ctx, p)
		return nil
	}
	if p.Reaction != (Reaction{}) && d.approvals.reacted(ctx, p) {
		return nil
	}
	p.Addressed = p.Addressed || p.Group && !p.Note && d.who.talk().Always
	if p.Amends != "" {
		return d.amend(ctx, deliver, p)
	}
	if p.Group && !p.Addressed {
		return nil
	}
	d.who.written.note(p)
	if p.Reaction != (Reaction{}) && d.who.talk().Reactions {
		p.Note = false // a short answer
	}
	if name, rest, ok := d.commands.read(p); ok {
		return d.commands.run(ctx, deliver, p, name, rest)
	}

	return d.pass(ctx, deliver, p)
}

// readable has nothing in a post that its readers cannot see.
func (p Post) readable() Post {
	p.Text, p.Quote, p.Sender = plain.Readable(p.Text), plain.Readable(p.Quote), plain.ReadableLine(p.Sender)
	p.Files = slices.Clone(p.Files)
	for i, f := range p.Files {
		p.Files[i].Name = plain.ReadableLine(f.Name)
	}

	return p
}

// pass hands a message on that is not a command.
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
	behind, err := d.waiting.behind(in)
	if err != nil {
		return err
	}
	if !behind {
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
		d.log.Info("message not accepted yet; it waits", "user", in.From.UserID, "err", err)
	case first:
		d.voice.say(ctx, p, "Too many of your messages are waiting, so I did not accept this one, and accept no more until I "+
			"have caught up. Send it again later.")
	}

	return nil
}

// hand hands a message to the engine and reports the result of one that cannot be accepted.
func (d *Desk) hand(ctx context.Context, deliver message.Deliver, in message.Incoming) error {
	p := Post{From: in.From, MessageID: in.Context.MessageID}
	receipt, err := deliver(ctx, in)
	switch {
	case errors.Is(err, inbox.ErrTooLarge):
		d.voice.say(ctx, p, "That message is too long for me: over 1 MiB of text. Send it as a file.")
		return nil
	case errors.Is(err, message.ErrUnknownAgent):
		d.log.Error("cannot deliver a message", "agent", in.Agent, "err", err)
		d.voice.say(ctx, p, "The agent that this chat is set up for does not exist. "+
			"Ask the person who runs me to check `agentId` in the settings.")
		return nil
	case err != nil:
		return err
	}
	if in.Agent != "" {
		d.who.wrote(receipt.Agent, p.From)
	}

	return nil
}

// incoming makes the message for the engine, its files fetched.
func (d *Desk) incoming(ctx context.Context, p Post) (message.Incoming, error) {
	in := d.who.incoming(p)
	in.Text, in.Context = p.Text, message.Context{MessageID: p.MessageID, ReplyTo: p.ReplyTo, Sender: p.Sender}
	if in.Agent != "" || in.For != nil || p.From.ThreadID != "" {
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
	for i, f := range p.Files {
		kept, err := d.files.keep(ctx, attached{p.Key, i}, f)
		var lost *notKept
		switch {
		case errors.As(err, &lost):
			in.Text = strings.TrimSpace(in.Text + "\n[the file " + f.Name + " is missing: " + lost.reason + "]")
		case err != nil:
			return in, err
		default:
			in.Files = append(in.Files, kept)
			if recorded(p, kept) {
				in.Text = strings.TrimSpace(in.Text + "\n" + d.hear(ctx, Voice{p.From, p.MessageID, kept}))
			}
		}
	}
	d.files.forget(p.Key)
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

// mark is what a user types before a command.
func (o Options) mark() string {
	if o.Prefix != "" {
		return o.Prefix
	}
	return "/"
}
