package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"daycare/engine/address"
	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
)

// Deliver makes an incoming message a durable item of its agent: the one it names,
// or the one that its address maps to, made on first contact. When it returns nil
// the item survives any crash.
func (s *System) Deliver(ctx context.Context, in message.Incoming) (message.Receipt, error) {
	if in.Kind == "" {
		in.Kind = message.Text
	}
	if (in.Kind == message.Text || in.Kind == message.System) && strings.TrimSpace(in.Text) == "" && len(in.Files) == 0 {
		return message.Receipt{}, ErrEmpty
	}
	if len(in.Text) > inbox.MaxItemBytes {
		return message.Receipt{}, inbox.ErrTooLarge
	}
	id, err := s.agentOf(in)
	if err != nil {
		return message.Receipt{}, err
	}
	if crash.Bug("wrongagent") {
		id = crash.Swap("agent", id).(string)
	}
	if in.Source == "" && in.Kind == message.Text && s.foreign != nil {
		in.Source = s.foreign(in.From, in.Context.Sender)
	}
	if in.Source == "" && in.Untrusted {
		in.Source = strings.TrimSuffix("a message of the service "+in.From.Connector+"/"+in.From.ChannelID, "/")
	}
	return s.post(ctx, id, item(in))
}

// ErrEmpty: a message without text and files.
var ErrEmpty = fmt.Errorf("message is empty")

func item(in message.Incoming) inbox.Item {
	return inbox.Item{
		Kind: in.Kind, ID: in.ID, Dedupe: in.Dedupe, Context: in.Context, Route: in.Route,
		Text: in.Text, Files: in.Files, Queue: in.Queue, Origin: in.Origin, Silent: in.Silent, Hops: in.Hops,
		Untrusted: in.Untrusted, Source: in.Source, Token: in.Token, Decision: in.Decision, By: in.By, Tag: in.Tag,
		SHA256: in.SHA256, Scripts: in.Scripts,
	}
}

// agentOf is the id of the agent that an incoming message is for.
func (s *System) agentOf(in message.Incoming) (string, error) {
	if in.Agent != "" {
		return s.index.Resolve(in.Agent)
	}
	if in.From.Connector == "" || in.From.ChannelID == "" {
		return "", fmt.Errorf("%w: neither an agent nor an address was given", message.ErrUnknownAgent)
	}
	d := address.Descriptor{Type: address.User, Connector: in.From.Connector,
		UserID: in.From.UserID, ChannelID: in.From.ChannelID}
	if id, ok := s.index.Lookup(d); ok {
		return id, nil
	}
	meta, err := s.create(d)
	return meta.ID, err
}

// create makes an agent, or finds the one that another first message just made.
func (s *System) create(d address.Descriptor) (address.Meta, error) {
	if s.vol.Full() {
		return address.Meta{}, disk.ErrFull
	}
	state, err := s.newState(d)
	if err != nil {
		return address.Meta{}, err
	}
	_, known := s.index.Get(d.ID)
	meta, err := s.index.Create(d, state)
	if err != nil {
		return meta, fmt.Errorf("create agent: %w", err)
	}
	if known {
		return meta, nil // a call that a crash cut short is made again
	}
	s.events.Emit(event.Event{Type: event.AgentCreated, Agent: meta.ID})
	return meta, nil
}

// createNext makes the agent of the next free serial number.
func (s *System) createNext(d address.Descriptor) (address.Meta, error) {
	if s.vol.Full() {
		return address.Meta{}, disk.ErrFull
	}
	state, err := s.newState(d)
	if err != nil {
		return address.Meta{}, err
	}
	return s.createFresh(d, state, func(string) error { return nil })
}

// post appends an item to an agent's inbox and wakes the agent.
func (s *System) post(ctx context.Context, id string, it inbox.Item) (message.Receipt, error) {
	e, box, err := s.acquire(id)
	if err != nil {
		return message.Receipt{}, err
	}
	defer e.release()
	it.Text = s.redact.Text(it.Text) // history would have it so, and the inbox is a file as well
	receipt, err := box.Accept(ctx, it)
	if err != nil {
		return receipt, err
	}
	receipt.Agent = id
	if receipt.Duplicate {
		s.log.Info("message dropped: seen before", "agent", id, "item", receipt.Item)
		return receipt, nil
	}
	s.recent.wrote(e.meta, it.Kind, crash.Now())
	s.events.Emit(event.Event{Type: event.ItemQueued, Agent: id,
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

// Await returns how an item ended, waiting until it has. It reads the outcome from
// history, never from events.
func (s *System) Await(ctx context.Context, agent, item string) (event.Outcome, error) {
	e, box, err := s.acquire(agent)
	if err != nil {
		return event.Outcome{}, err
	}
	err = box.Wait(ctx, item)
	e.release()
	if err != nil {
		return event.Outcome{}, err
	}
	o, ok, err := s.closing(ctx, agent, item)
	if err != nil {
		return event.Outcome{}, err
	}
	if !ok {
		return event.Outcome{Agent: agent, Item: item, Reason: "dropped"}, nil
	}
	return event.Outcome{Untrusted: sourceTexts(o.Sources), Agent: agent, Item: item, Turn: o.Turn, Reason: o.Reason,
		Text: o.Text, Error: o.Error, Cost: o.Cost,
		Work: event.Work{Rounds: o.Rounds, ToolCalls: o.ToolCalls, Said: o.Said,
			Input: o.Tokens.Input + o.Tokens.CacheRead + o.Tokens.CacheWrite, Output: o.Tokens.Output}}, nil
}

func sourceTexts(all []record.Source) (list []string) {
	for _, s := range all {
		list = append(list, s.Source)
	}
	return list
}

// closing looks for the record that closes an item which is done. One that is not
// there was dropped, unless a person saves the history at this moment: then the file
// may be short for an instant.
func (s *System) closing(ctx context.Context, agent, item string) (o record.Outcome, ok bool, err error) {
	path := filepath.Join(s.folder(agent), "history.jsonl")
	for range 20 {
		o, ok, err = record.Closing(s.folder(agent), item)
		info, serr := os.Stat(path)
		if ok || serr != nil || time.Since(info.ModTime()) > unrest {
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
