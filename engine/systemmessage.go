package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unicode/utf8"

	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
	"daycare/engine/workspace"
)

// maxSystemText is how long a message between agents may be, in characters. A longer one
// goes to a file, so that it does not fill the receiver's context unasked.
const maxSystemText = 8_000

// deliverSystem delivers a system message. A long one becomes a reference to a file on the machine that has the agent.
func (m *mailroom) deliverSystem(ctx context.Context, in message.Incoming) (message.Receipt, error) {
	if in.Kind == "" {
		in.Kind = message.System
	}
	in.Text = m.redact.Text(in.Text)
	in.Long = utf8.RuneCountInString(in.Text) > maxSystemText

	return m.Deliver(ctx, in)
}

// shortened is a long message as a reference to its file. The agent is owned here.
func (m *mailroom) shortened(agent string, it inbox.Item) (inbox.Item, error) {
	path, err := m.spill(agent, it)
	if err != nil {
		return it, fmt.Errorf("save long message: %w", err)
	}
	head := string([]rune(it.Text)[:min(utf8.RuneCountInString(it.Text), maxSystemText/8)])
	it.Text = fmt.Sprintf("The whole message is %d characters long. Read it in the file %s. It begins:\n\n%s …",
		utf8.RuneCountInString(it.Text), path, head)

	return it, nil
}

// spillDir is the folder of a workspace for long messages.
const spillDir = "messages"

// spill writes a long message into the workspace of its receiver. The file name is derived
// from the text, so that a repeated message is the same file.
func (m *mailroom) spill(agent string, it inbox.Item) (path string, err error) {
	state, _, err := record.CurrentState(m.vol, m.folder(agent))
	if err != nil {
		return "", err
	}
	work := state.Permissions.WorkingDir
	if work == "" {
		work = workspace.OfData(m.root).Dir
	}
	if work == "" {
		return "", fmt.Errorf("%s does not say which workspace it belongs to", m.root)
	}

	sum := sha256.Sum256([]byte(it.Text))
	name := it.Origin + "-" + hex.EncodeToString(sum[:6]) + ".md"
	dir, _, err := m.folders.Open(work)
	if err != nil {
		return "", err
	}
	defer dir.Close()

	return filepath.Join(work, spillDir, name), writeBeneath(dir, spillDir, name, it.Text)
}

// writeBeneath durably creates dir/name in a folder that agents can write to, before the
// message that names it is accepted. It follows no link that they placed there (to
// .daycare, for example), and replaces an existing file instead of writing through it.
func writeBeneath(root *os.Root, dir, name, text string) error {
	if err := disk.MkdirIn("told", root, dir, 0o700); err != nil {
		return err
	}
	inner, err := beneath.Enter(root, dir, nil)
	if err != nil {
		return err
	}
	defer inner.Close()

	return disk.ReplaceIn("told", inner, name, []byte(text), disk.InOptions{})
}

// parentConnector delivers an agent's answers to its parent: it is the connector behind
// message.ToAgent. A report is therefore a promise in the child's history, like any answer
// to a chat. It is posted once the end of the turn is durable, and again after a crash
// before its delivery was recorded. The dedupe key is the promise's id and drops the
// second one: nothing is lost and nothing arrives twice.
type parentConnector struct{ mailroom *mailroom }

// ID returns the reserved connector id of agents.
func (parentConnector) ID() string { return message.ToAgent }

// Run waits until ctx ends: there is nothing to receive.
func (parentConnector) Run(ctx context.Context, _ message.Deliver) error {
	<-ctx.Done()
	return nil
}

// Send delivers a report to the parent's inbox.
func (p parentConnector) Send(ctx context.Context, out message.Outgoing) (string, error) {
	if out.Report == nil {
		return "", &message.NotSent{Final: true, Err: errors.New("a report without a sender")}
	}
	child, ok := p.mailroom.index.Get(out.Report.From)
	if !ok {
		return "", &message.NotSent{Final: true, Err: fmt.Errorf("%w: %s", message.ErrUnknownAgent, out.Report.From)}
	}

	in := message.Incoming{Agent: out.To.ChannelID, Kind: message.System, Origin: child.ID, Dedupe: out.ID,
		Hops: out.Report.Hops, Text: reportText(child, out)}
	if sources, err := record.SourcesOf(p.mailroom.folder(child.ID)); err != nil {
		p.mailroom.log.Warn("cannot determine what a child has read", "agent", child.ID, "err", err)
		in.Source = "agent " + child.Name
	} else if len(sources) > 0 {
		in.Source = message.Relayed(child.Name, sourceTexts(sources))
	}
	if route := child.Descriptor.Route; route != (message.Address{}) {
		in.Route = &route
	}

	receipt, err := p.mailroom.deliverSystem(ctx, in)
	if errors.Is(err, message.ErrUnknownAgent) {
		err = &message.NotSent{Final: true, Err: err}
	}

	return receipt.Item, err
}
