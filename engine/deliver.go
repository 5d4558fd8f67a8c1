package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"daycare/engine/address"
	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/redact"
)

// A mailroom makes messages durable items of their agents.
type mailroom struct {
	place
	actors    *actors
	recent    *recent
	registrar *registrar
	foreign   func(message.Address, string) string // nil: everybody speaks for the owner
	redact    *redact.Redactor
	folders   *permission.Folders
}

// Deliver makes an incoming message a durable item of its agent: the one it names,
// or the one that its address maps to, made on first contact. When it returns nil
// the item survives any crash.
func (m *mailroom) Deliver(ctx context.Context, in message.Incoming) (message.Receipt, error) {
	if in.Kind == "" {
		in.Kind = message.Text
	}
	if (in.Kind == message.Text || in.Kind == message.System) && strings.TrimSpace(in.Text) == "" && len(in.Files) == 0 {
		return message.Receipt{}, ErrEmpty
	}
	if len(in.Text) > inbox.MaxItemBytes && !in.Long {
		return message.Receipt{}, inbox.ErrTooLarge
	}

	id, err := m.agentOf(in)
	if err != nil {
		return message.Receipt{}, err
	}
	if crash.Bug("wrongagent") {
		id = crash.Swap("agent", id).(string)
	}
	if in.Source == "" && in.Kind == message.Text && m.foreign != nil {
		in.Source = m.foreign(in.From, in.Context.Sender)
	}
	if in.Source == "" && in.Untrusted {
		in.Source = strings.TrimSuffix("a message of the service "+in.From.Connector+"/"+in.From.ChannelID, "/")
	}

	return m.post(ctx, id, item(in))
}

// ErrEmpty: a message without text and files.
var ErrEmpty = fmt.Errorf("message is empty")

func item(in message.Incoming) inbox.Item {
	return inbox.Item{
		Kind: in.Kind, ID: in.ID, Dedupe: in.Dedupe, Context: in.Context, Route: in.Route,
		Text: in.Text, Files: in.Files, Queue: in.Queue, Origin: in.Origin, Silent: in.Silent, Hops: in.Hops,
		Untrusted: in.Untrusted, Source: in.Source, Token: in.Token, Decision: in.Decision, By: in.By, Tag: in.Tag,
		SHA256: in.SHA256, Scripts: in.Scripts, Long: in.Long,
	}
}

// agentOf is the id of the agent that an incoming message is for.
func (m *mailroom) agentOf(in message.Incoming) (string, error) {
	if in.Agent != "" {
		return m.index.Resolve(in.Agent)
	}
	if in.From.Connector == "" || in.From.ChannelID == "" {
		return "", fmt.Errorf("%w: neither an agent nor an address was given", message.ErrUnknownAgent)
	}

	d := ownerOf(in.From, in.For)
	if id, ok := m.index.Lookup(d); ok {
		return id, nil
	}

	meta, err := m.registrar.create(d)
	return meta.ID, err
}

// ownerOf describes the agent that an address maps to, or the one that it is said to be for.
func ownerOf(from message.Address, of *message.Address) address.Descriptor {
	if of != nil {
		return address.Of(*of)
	}
	from.ThreadID = "" // a thread has no agent of its own unless it is said
	return address.Of(from)
}

// postHere appends an item to an agent's inbox and wakes the agent.
func (m *mailroom) postHere(ctx context.Context, id string, it inbox.Item) (message.Receipt, error) {
	e, box, err := m.actors.acquire(id)
	if err != nil {
		return message.Receipt{}, err
	}
	defer e.release()
	if it.Long {
		if it, err = m.shortened(id, it); err != nil {
			return message.Receipt{}, err
		}
	}
	receipt, err := box.Accept(ctx, it)
	if errors.Is(err, disk.ErrFenced) {
		m.actors.letGo(e)
	}
	if err != nil {
		return receipt, closing{e}.because(err)
	}

	receipt.Agent = id
	if receipt.Duplicate {
		m.log.Info("duplicate message dropped", "agent", id, "item", receipt.Item)
		return receipt, nil
	}

	m.recent.wrote(e.meta, it.Kind, crash.Now())
	m.events.Emit(event.Event{Type: event.ItemQueued, Agent: id,
		Body: event.Item{Item: receipt.Item, Kind: string(it.Kind), Text: beginning(it.Text)}})

	return receipt, nil
}

// beginning is as much of a text as an event shows.
func beginning(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}

	return strings.ToValidUTF8(s[:most], "") + "…"
}

// awaitHere is Await of an agent of this machine. The outcome is what the agent has recorded in
// history, never that of events: of its newest turn as it was written, else as the file has it.
func (m *mailroom) awaitHere(ctx context.Context, agent, item string) (event.Outcome, error) {
	e, box, err := m.actors.acquire(agent)
	if err != nil {
		return event.Outcome{}, err
	}
	err = box.Wait(ctx, item)
	newest := e.ending.Load()
	err = closing{e}.because(err)
	e.release()
	if err != nil {
		return event.Outcome{}, err
	}
	if newest != nil && slices.Contains(newest.items, item) {
		return outcome(agent, item, newest.Outcome), nil
	}

	o, ok, err := m.closing(ctx, agent, item, record.Ending)
	if err != nil {
		return event.Outcome{}, err
	}
	if !ok {
		return droppedItem(agent, item), nil
	}

	return outcome(agent, item, o), nil
}

func droppedItem(agent, item string) event.Outcome {
	return event.Outcome{Agent: agent, Item: item, Reason: "dropped"}
}

func outcome(agent, item string, o record.Outcome) event.Outcome {
	return event.Outcome{Untrusted: sourceTexts(o.Sources), Agent: agent, Item: item, Turn: o.Turn, Reason: o.Reason,
		Text: o.Text, Error: o.Error, Cost: o.Cost, Finish: string(o.Finish),
		Work: event.Work{Rounds: o.Rounds, ToolCalls: o.ToolCalls, Said: o.Said,
			Input: o.Tokens.Input + o.Tokens.CacheRead + o.Tokens.CacheWrite, CacheRead: o.Tokens.CacheRead,
			Output: o.Tokens.Output, Reasoning: o.Tokens.Reasoning}}
}

// Item is an item that an agent accepted: as its inbox has it while it is open, then as history
// has it. Errors: inbox.ErrUnknown, also of one that was removed from the inbox.
func (m *mailroom) Item(ctx context.Context, agent, item string) (event.Posted, error) {
	e, box, err := m.actors.acquire(agent)
	if err != nil {
		return event.Posted{}, err
	}
	it, err := box.Read(item)
	heads := box.Open()
	e.release()
	i := slices.IndexFunc(heads, func(h inbox.Head) bool { return h.ID == item })
	if err == nil && i >= 0 {
		p := event.Posted{Agent: agent, Item: item, Type: string(it.Kind), State: "waiting", At: it.At, Text: it.Text,
			MessageID: it.Context.MessageID, Route: route(it.Route)}
		if heads[i].Taken {
			p.State = "taken"
		}
		return p, nil
	}
	if err != nil && !errors.Is(err, inbox.ErrUnknown) {
		return event.Posted{}, err
	}

	o, ok, err := m.closing(ctx, agent, item, record.Closing)
	if err == nil && !ok {
		err = fmt.Errorf("%w: %q", inbox.ErrUnknown, item)
	}
	if err != nil {
		return event.Posted{}, err
	}
	end := outcome(agent, item, o)
	p := event.Posted{Agent: agent, Item: item, State: "done", Type: o.Reason, At: o.At, EndedAt: &o.At, Outcome: &end}
	if u := o.Asked; u != nil {
		p.Type, p.At, p.Text, p.Route = string(message.Text), o.AskedAt, u.Text, route(u.Route)
		if u.Origin != "" {
			p.Type = string(message.System)
		}
		if u.Context != nil {
			p.MessageID = u.Context.MessageID
		}
	}

	return p, nil
}

func route(to *message.Address) *event.Route {
	if to == nil {
		return nil
	}
	return &event.Route{Connector: to.Connector, ChannelID: to.ChannelID, UserID: to.UserID, ThreadID: to.ThreadID}
}

func sourceTexts(all []record.Source) (list []string) {
	for _, s := range all {
		list = append(list, s.Source)
	}
	return list
}

// closing looks, with record.Closing or record.Ending, for the record that closes an item which is done. One that is not
// there was dropped, unless a user saves the history at this moment: then the file
// may be short for an instant.
func (m *mailroom) closing(ctx context.Context, agent, item string,
	look func(dir, item string) (record.Outcome, bool, error)) (o record.Outcome, ok bool, err error) {
	dir := m.folder(agent)
	for range 20 {
		o, ok, err = look(dir, item)
		if ok || err != nil {
			break
		}
		info, serr := os.Stat(filepath.Join(dir, "history.jsonl"))
		if serr != nil || time.Since(info.ModTime()) > unrest {
			break
		}

		select {
		case <-ctx.Done():
			return o, false, ctx.Err()
		case <-time.After(unrest / 10):
		}
	}

	return o, ok, err
}

// unrest is how long after a change a history may still be in the middle of a save.
const unrest = 2 * time.Second
