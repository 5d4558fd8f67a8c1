package talk

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"daycare/cmd/daycare/show"
	"daycare/engine/control"
	"daycare/engine/fault"
	"daycare/engine/message"
)

// talkHelp is what /help prints: the commands that can be typed in a talk.
const talkHelp = `/stop         cancel the current turn
/reset        start a new conversation
/compact      compact the conversation to a summary
/mark NAME    set a checkpoint
/rewind [TO]  undo the newest turn, or go back to a checkpoint
/model [NAME] show or change the model
/rename NAME  give this agent another name
/NAME [TEXT]  a command of this workspace, see: daycare commands ls
/help         show this help
/quit         exit (also Ctrl-D)
Everything else is sent to the agent, even while it is busy.`

// line takes a line that was typed: an answer to a question, a command, or a
// message. ok is false at the end of the input.
func (t *talk) line(ctx context.Context, line string, ok bool) (over bool, err error) {
	t.flight.prompted = false
	if !ok {
		return t.endOfInput(ctx)
	}
	t.view.typing = false // Enter ended the line
	t.flight.stopping = false
	if t.asks.open() {
		if err := t.answer(ctx, line); err != nil || t.asks.open() {
			return err != nil, err
		}
		return t.settle(ctx)
	}

	line = strings.TrimSpace(line)
	switch {
	case t.once: // only questions are answered by typing
	case line == "":
		t.prompt()
	case isCommand(line):
		return t.command(ctx, line)
	default:
		t.say(ctx, line)
	}

	return false, nil
}

func (t *talk) endOfInput(ctx context.Context) (over bool, err error) {
	t.typed = nil
	if t.asks.open() {
		t.asks.unanswered()
		t.c.Say("\n")
	}
	if t.once {
		return t.settle(ctx)
	}

	t.c.Say("\n")

	return true, t.asks.leave(t.flight.open)
}

// isCommand: a slash and one word without another slash, so that a path can begin
// a message.
func isCommand(line string) bool {
	word, _, _ := strings.Cut(line, " ")
	return len(word) > 1 && word[0] == '/' && !strings.Contains(word[1:], "/") && !strings.Contains(word, ".")
}

// expanded is the message that a command of the workspace makes. Any other text stays as it
// is, also one that only looks like a command.
func expanded(ctx context.Context, client *control.Client, text string) (string, error) {
	if !isCommand(text) {
		return text, nil
	}
	name, arguments, _ := strings.Cut(text[1:], " ")
	said, err := client.Expand(ctx, name, arguments)
	if errors.Is(err, fault.NoCommand) || errors.Is(err, fault.NoRoute) { // or a daemon of before
		return text, nil
	}

	return said, err
}

func (t *talk) command(ctx context.Context, line string) (over bool, err error) {
	name, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch {
	case rest == "" && (name == "/quit" || name == "/exit"):
		return true, t.asks.leave(t.flight.open)
	case rest == "" && name == "/help":
		t.c.Say("%s\n", talkHelp)
	case rest == "" && name == "/stop":
		err = t.stopTurn(ctx)
	case rest == "" && name == "/reset":
		err = t.reset(ctx)
	case rest == "" && name == "/compact":
		err = t.order(ctx, (*control.Client).Compact, "the conversation will be compacted")
	case rest != "" && name == "/mark":
		err = t.order(ctx, func(c *control.Client, ctx context.Context, id string) (message.Receipt, error) {
			return c.Folders().Mark(ctx, id, rest)
		}, "checkpoint set; go back to it with: /rewind "+rest)
	case name == "/rewind":
		err = t.order(ctx, func(c *control.Client, ctx context.Context, id string) (message.Receipt, error) {
			return c.Folders().Rewind(ctx, id, rest)
		}, "rewound; the rewound part stays in the file")
	case name == "/model":
		err = t.model(ctx, rest)
	case rest != "" && name == "/rename":
		err = t.rename(ctx, rest)
	default:
		var text string
		if text, err = expanded(ctx, t.client, line); err == nil && text != line {
			t.say(ctx, text)
			return false, nil
		}
		if err == nil {
			t.c.Warn("unknown command %s; /help lists the commands", line)
		}
	}

	if err != nil {
		t.c.Report(err) // the conversation continues
	}
	t.prompt()
	return false, nil
}

var errNothingSaid = errors.New("no message has been sent yet")

// order posts what the agent does between two turns.
func (p *peer) order(ctx context.Context, post func(*control.Client, context.Context, string) (message.Receipt, error), said string) error {
	if p.agent == "" {
		return errNothingSaid
	}
	if _, err := post(p.client, ctx, p.agent); err != nil {
		return err
	}
	p.view.note("%s", said)

	return nil
}

// model says which model answers, or has another one answer from the next turn on.
func (p *peer) model(ctx context.Context, name string) error {
	if p.agent == "" {
		return errNothingSaid
	}
	choice, err := p.client.Folders().Switch(ctx, p.agent, name)
	if err == nil {
		p.view.note("%s", show.Choice("the agent", choice, name != ""))
	}

	return err
}

func (p *peer) rename(ctx context.Context, name string) error {
	if p.agent == "" {
		return errNothingSaid
	}
	a, err := p.client.Agent(ctx, p.agent)
	if err != nil {
		return err
	}
	if err := p.client.Folders().Rename(ctx, a, name); err != nil {
		return fmt.Errorf("rename %s: %w", a.Handle, err)
	}
	p.view.note("%s is %s now", a.Handle, name)

	return nil
}

func (p *peer) stopTurn(ctx context.Context) error {
	if p.agent == "" {
		return errNothingSaid
	}
	stopped, err := p.client.Stop(ctx, p.agent, "")
	if err != nil {
		return fmt.Errorf("stop turn: %w", err)
	}
	if !stopped {
		p.view.note("there is no turn to stop")
	}

	return nil
}

// reset asks for it by descriptor before the first message: the terminal's own
// agent may have a conversation of earlier.
func (p *peer) reset(ctx context.Context) error {
	var r message.Receipt
	var err error
	if p.agent != "" {
		r, err = p.client.Reset(ctx, p.agent)
	} else {
		r, err = p.client.Send(ctx, "", Own(control.Message{Kind: message.Reset}))
	}
	if err != nil {
		return fmt.Errorf("reset: %w", err)
	}

	p.agent = r.Agent
	if !p.watching {
		p.view.note("new conversation")
	}

	return nil
}
