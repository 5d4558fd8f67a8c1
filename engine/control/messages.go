package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"daycare/engine/apitoken"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

func (a *api) postToAgent(w http.ResponseWriter, r *http.Request, in agentBody[Message]) {
	a.post(w, r, in.ID)
}

func (a *api) postByDescriptor(w http.ResponseWriter, r *http.Request, _ aBody[Message]) {
	a.post(w, r, "")
}

// post takes a message. It answers after the item is durable: with the receipt,
// or with a stream of the item's turn.
func (a *api) post(w http.ResponseWriter, r *http.Request, agent string) {
	in, wait, err := a.readMessage(w, r, agent)
	if err == nil {
		err = a.ready(Route(postToAgent))
	}
	if err != nil {
		a.fail(w, r, err)
		return
	}
	if wait || strings.Contains(r.Header.Get("Accept"), eventStream) {
		a.streamTurn(w, r, in)
		return
	}
	receipt, err := a.deliver(r.Context(), in)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	a.send(w, r, Route(postToAgent).Status(), receipt)
}

// deliver hands an item to the engine. A reset also stops the turn under way:
// before, so that the reset is what comes next; after, where only the engine
// knows which agent the message is for.
func (a *api) deliver(ctx context.Context, in message.Incoming) (message.Receipt, error) {
	if in.Kind == message.Reset && in.Agent != "" {
		if _, err := a.Agents.Stop(ctx, in.Agent); err != nil {
			return message.Receipt{}, err
		}
	}
	r, err := a.Agents.Deliver(ctx, in)
	if err == nil && in.Kind == message.Reset && in.Agent == "" && !r.Duplicate {
		_, err = a.Agents.Stop(ctx, r.Agent)
	}
	return r, err
}

func (a *api) readMessage(w http.ResponseWriter, r *http.Request, agent string) (message.Incoming, bool, error) {
	if r.ContentLength < 0 || r.ContentLength > 1<<20 {
		select {
		case a.large <- struct{}{}:
			defer func() { <-a.large }()
		case <-r.Context().Done():
			return message.Incoming{}, false, r.Context().Err()
		}
	}
	var m Message
	if err := decode(w, r, maxMessageBody, &m); err != nil {
		return message.Incoming{}, false, err
	}
	caller := callerOf(r.Context())
	if err := m.check(agent == "", caller); err != nil {
		return message.Incoming{}, false, err
	}
	if m.Kind == message.Rewind && agent != "" && a.Folders != nil {
		if err := a.Folders.Rewindable(r.Context(), agent, m.Text); err != nil {
			return message.Incoming{}, false, err
		}
	}
	files, err := a.keep(m.Files)
	if err != nil {
		return message.Incoming{}, false, err
	}
	return m.incoming(agent, caller, files), m.Wait, nil
}

// check finds the first field that cannot be used. byDescriptor: the message has
// to say whose agent it is for.
func (m *Message) check(byDescriptor bool, caller Caller) error {
	switch m.Kind {
	case "", message.Text, message.System:
		if strings.TrimSpace(m.Text) == "" && len(m.Files) == 0 {
			return &Invalid{Field: "text", Reason: "is empty", Hint: "a message needs a text or a file"}
		}
	case message.Reset, message.Compact, message.Rewind, message.Mark:
	default:
		return &Invalid{Field: "kind", Reason: fmt.Sprintf("found %q, allowed: message, system_message, reset, compact, rewind, mark", m.Kind)}
	}
	if len(m.Text) > inbox.MaxItemBytes {
		return fmt.Errorf("%w: text has %d bytes, allowed: %d", inbox.ErrTooLarge, len(m.Text), inbox.MaxItemBytes)
	}
	if m.Kind != message.System {
		if m.Origin != "" {
			return &Invalid{Field: "origin", Reason: "belongs to kind system_message"}
		}
		if m.Silent {
			return &Invalid{Field: "silent", Reason: "belongs to kind system_message"}
		}
	}
	switch m.Queue {
	case "":
	case message.Steer, message.Followup:
		if m.Kind != "" && m.Kind != message.Text {
			return &Invalid{Field: "queue", Reason: "belongs to kind message"}
		}
	default:
		return &Invalid{Field: "queue", Reason: fmt.Sprintf("found %q, allowed: %s, %s", m.Queue, message.Steer, message.Followup)}
	}
	if len(m.Dedupe) > maxDedupe {
		return &Invalid{Field: "dedupe", Reason: fmt.Sprintf("has %d bytes, allowed: %d", len(m.Dedupe), maxDedupe)}
	}
	if m.Route != nil && (m.Route.Connector == "" || m.Route.ChannelID == "") {
		return &Invalid{Field: "route", Reason: "needs connector and channelId"}
	}
	if err := m.forOthers(caller.Rights); err != nil {
		return err
	}
	if byDescriptor {
		if m.Connector == "" {
			return &Invalid{Field: "connector", Reason: "is empty",
				Hint: "name the connector, channelId and userId, or post to /v1/agents/{id}/messages"}
		}
		if m.ChannelID == "" {
			return &Invalid{Field: "channelId", Reason: "is empty"}
		}
	}
	return checkFiles(m.Files, caller)
}

// forOthers finds the first field by which a message would speak for somebody else than its
// caller, or would be answered elsewhere: only admins may.
func (m *Message) forOthers(rights apitoken.Rights) error {
	if rights.Allow(apitoken.Admin) && !rights.Restricted() {
		return nil
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"connector", m.Connector != ""}, {"userId", m.UserID != ""}, {"channelId", m.ChannelID != ""}, {"threadId", m.ThreadID != ""},
		{"route", m.Route != nil}, {"context.sender", m.Context.Sender != ""}, {"kind system_message", m.Kind == message.System},
	} {
		if f.set {
			return lacksScope(apitoken.Admin, f.name+" for all agents", rights)
		}
	}
	return nil
}

// maxDedupe bounds a dedupe key, in bytes; platforms' keys are far shorter.
const maxDedupe = 512

func checkFiles(files []File, caller Caller) error {
	var total int
	for i, f := range files {
		field := fmt.Sprintf("files[%d]", i)
		switch set := f.Path != "" || f.Name != ""; {
		case f.ID != "" && set, f.Path != "" && f.Name != "", f.ID == "" && !set:
			return &Invalid{Field: field, Reason: "is not one of {path}, {name,data} or {id}"}
		case f.Path != "" && !caller.Local:
			return &Invalid{Field: field + ".path", Reason: "only a caller on the unix socket may name paths", Hint: "send {name,data}"}
		case f.ID != "" && caller.Rights.Restricted():
			return &Invalid{Field: field + ".id", Reason: "a token for some agents only cannot name kept files", Hint: "send {name,data}"}
		case f.Data != nil && f.Name == "":
			return &Invalid{Field: field + ".data", Reason: "belongs to a name"}
		}
		total += len(f.Data)
	}
	if total > MaxFileBytes {
		return fmt.Errorf("%w: %d bytes, allowed: %d in one message", ErrFileTooLarge, total, MaxFileBytes)
	}
	return nil
}

// keep stores the files of a message before the message itself, so that an item
// never names a file that is not there.
func (a *api) keep(files []File) ([]message.File, error) {
	if len(files) == 0 {
		return nil, nil
	}
	if a.Files == nil {
		return nil, fmt.Errorf("keep files: %w", ErrNotRunning)
	}
	kept := make([]message.File, len(files))
	for i, f := range files {
		var err error
		switch {
		case f.ID != "":
			kept[i], err = a.Files.Get(f.ID)
		case f.Path != "":
			kept[i], err = a.Files.Adopt(f.Path)
		default:
			kept[i], err = a.Files.Put(f.Name, bytes.NewReader(f.Data))
		}
		if err != nil {
			return nil, inField(fmt.Sprintf("files[%d]", i), err)
		}
	}
	return kept, nil
}

// inField says in which field of the request a file was named.
func inField(field string, err error) error {
	var invalid *Invalid
	if errors.As(err, &invalid) {
		return &Invalid{Field: field + "." + invalid.Field, Reason: invalid.Reason, Hint: invalid.Hint}
	}
	return fmt.Errorf("%s: %w", field, err)
}

func (m *Message) incoming(agent string, caller Caller, files []message.File) message.Incoming {
	in := message.Incoming{
		Agent: agent, Kind: m.Kind, Context: m.Context, Route: m.Route, Text: m.Text, Files: files,
		Silent: m.Silent, Queue: m.Queue,
		From: message.Address{Connector: m.Connector, ChannelID: m.ChannelID, UserID: m.UserID, ThreadID: m.ThreadID},
	}
	if m.Connector == "" {
		in.From = addressOf(caller)
	}
	if in.Kind == "" {
		in.Kind = message.Text
	}
	if in.Kind == message.Text && !caller.Rights.Allow(apitoken.Approve) {
		in.Source = "a message of the API caller " + caller.Name // who cannot answer requests is a guest
	}
	if in.Kind == message.System {
		in.Origin = m.Origin
		if in.Origin == "" {
			in.Origin = "system"
		}
	}
	if m.Dedupe != "" {
		// The prefix keeps callers out of the keys that the runtime itself uses
		// (perm:, call:, report:, drop: and those of connectors).
		in.Dedupe = apiConnector + ":" + m.Dedupe
	}
	return in
}

// apiConnector is the connector id of those who speak through the API itself.
const apiConnector = "api"

func addressOf(c Caller) message.Address {
	return message.Address{Connector: apiConnector, ChannelID: apiConnector, UserID: c.Name}
}

func callerAddress(ctx context.Context) message.Address { return addressOf(callerOf(ctx)) }
