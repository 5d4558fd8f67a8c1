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
	"daycare/engine/message"
	"daycare/engine/record"
)

// maxTold is how long a message between agents may be, in characters. A longer one
// goes to a file, so that it does not fill the receiver's context unasked.
const maxSystemText = 8_000

// deliverSystem delivers a system message; a long one as a reference to a file.
func (m *mailroom) deliverSystem(ctx context.Context, in message.Incoming) (message.Receipt, error) {
	if in.Kind == "" {
		in.Kind = message.System
	}
	in.Text = m.redact.Text(in.Text)
	if utf8.RuneCountInString(in.Text) > maxSystemText {
		path, err := m.spill(in)
		if err != nil {
			return message.Receipt{}, fmt.Errorf("save long message: %w", err)
		}
		head := string([]rune(in.Text)[:maxSystemText/8])
		in.Text = fmt.Sprintf("The whole message is %d characters long. Read it in the file %s. It begins:\n\n%s …",
			utf8.RuneCountInString(in.Text), path, head)
	}
	return m.Deliver(ctx, in)
}

// spillDir is the folder in a workspace that long messages go to.
const spillDir = "messages"

// spill writes a long message into the workspace of its receiver. The name follows
// from the text, so that a message told again is the same file.
func (m *mailroom) spill(in message.Incoming) (path string, err error) {
	state, _, err := record.CurrentState(m.vol, m.folder(in.Agent))
	if err != nil {
		return "", err
	}
	workspace := state.Permissions.WorkingDir
	if workspace == "" {
		workspace = filepath.Dir(m.root)
	}
	sum := sha256.Sum256([]byte(in.Text))
	name := in.Origin + "-" + hex.EncodeToString(sum[:6]) + ".md"
	dir, _, err := m.folders.Open(workspace)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	return filepath.Join(workspace, spillDir, name), writeBeneath(dir, spillDir, name, in.Text)
}

// writeBeneath makes dir/name in a folder that agents can write to, durably, before the
// message that names it is accepted. A link that they put in the way, to .daycare for
// instance, is not followed, and an existing file is replaced, never written through.
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

// parentConnector delivers what an agent answers its parent: the connector behind
// message.ToAgent. So a report is a promise in the child's history like any answer
// to a chat. It is posted only after the turn's end is durable, again after a crash
// before its delivery was recorded, and the dedupe key, which is the promise's id,
// drops the second one: nothing is lost and nothing comes twice.
type parentConnector struct{ mailroom *mailroom }

// ID is the reserved word in addresses.
func (parentConnector) ID() string { return message.ToAgent }

// Run has nothing to receive.
func (parentConnector) Run(ctx context.Context, _ message.Deliver) error {
	<-ctx.Done()
	return nil
}

// Send posts a report.
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
