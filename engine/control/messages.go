package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"daycare/engine/apitoken"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/lazyregexp"
	"daycare/engine/message"
)

// posts take messages, and stream the turns that they are worked on in.
type posts struct {
	api   *api
	talks talks
	files Files         // nil: messages carry no files
	feed  *event.Stream // nil: nothing can be watched
	// large are the slots for bodies over a MiB, which are held in memory while
	// they are read.
	large chan struct{}
}

func messageRows(a *api, p posts) []row {
	return []row{stream(a, postToAgent, p.toAgent), stream(a, postByDescriptor, p.byDescriptor), stream(a, followItem, p.resume),
		stream(a, attachment, p.attachment)}
}

// largeSlots is how many large bodies are read at once: with 34 MB each and the
// decoded content beside it, some 250 MB at worst.
const largeSlots = 4

func (p posts) toAgent(w http.ResponseWriter, r *http.Request, in agentBody[Message]) {
	p.post(w, r, in.ID)
}

func (p posts) byDescriptor(w http.ResponseWriter, r *http.Request, _ aBody[Message]) {
	p.post(w, r, "")
}

// post takes a message. It answers after the item is durable: with the receipt,
// or with a stream of the item's turn.
func (p posts) post(w http.ResponseWriter, r *http.Request, agent string) {
	in, wait, err := p.read(w, r, agent)
	if err == nil {
		err = p.api.ready(Route(postToAgent))
	}
	if err != nil {
		p.api.fail(w, r, err)
		return
	}
	if wait || strings.Contains(r.Header.Get("Accept"), eventStream) {
		p.streamTurn(w, r, in.Kind, func(told Told) (event.Outcome, error) { return p.follow(r.Context(), in, told) })
		return
	}

	receipt, err := p.talks.deliver(r.Context(), in)
	if err != nil {
		p.api.fail(w, r, err)
		return
	}

	p.api.send(w, r, Route(postToAgent).Status(), receipt)
}

func (p posts) read(w http.ResponseWriter, r *http.Request, agent string) (message.Incoming, bool, error) {
	free, err := p.slot(r)
	if err != nil {
		return message.Incoming{}, false, err
	}
	defer free()

	var m Message
	if err := decode(w, r, maxMessageBody, &m); err != nil {
		return message.Incoming{}, false, err
	}
	if m.Kind == message.Mark || m.Kind == message.Rewind { // a name
		m.Text = strings.TrimSpace(m.Text)
	}
	caller := callerOf(r.Context())
	if err := m.check(agent == "", caller); err != nil {
		return message.Incoming{}, false, err
	}
	if m.Kind == message.Mark {
		if err := checkpoint("text", m.Text); err != nil {
			return message.Incoming{}, false, err
		}
	}
	if m.Kind == message.Rewind && agent != "" && p.talks.folders != nil {
		if err := p.talks.folders.Rewindable(r.Context(), agent, m.Text); err != nil {
			return message.Incoming{}, false, err
		}
	}

	files, err := p.keep(m.Files)
	if err != nil {
		return message.Incoming{}, false, err
	}

	return m.incoming(agent, caller, files), m.Wait, nil
}

// slot waits for the right to read the body of a request; free it when it was read.
func (p posts) slot(r *http.Request) (free func(), err error) {
	if r.ContentLength >= 0 && r.ContentLength <= 1<<20 {
		return func() {}, nil
	}
	select {
	case p.large <- struct{}{}:
		return func() { <-p.large }, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
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
		return &Invalid{Field: "kind", Reason: fmt.Sprintf("found %q, allowed: message, "+
			"system_message, reset, compact, rewind, mark", m.Kind)}
	}

	if len(m.Text) > inbox.MaxItemBytes {
		return fmt.Errorf("%w: text has %d bytes, allowed: %d", inbox.ErrTooLarge, len(m.Text), inbox.MaxItemBytes)
	}
	if m.Kind != message.System {
		if m.Origin != "" {
			return &Invalid{Field: "origin", Reason: "needs kind system_message"}
		}
		if m.Silent {
			return &Invalid{Field: "silent", Reason: "needs kind system_message"}
		}
	}

	switch m.Queue {
	case "":
	case message.Steer, message.Followup:
		if m.Kind != "" && m.Kind != message.Text {
			return &Invalid{Field: "queue", Reason: "needs kind message"}
		}
	default:
		return &Invalid{Field: "queue", Reason: fmt.Sprintf("found %q, allowed: %s, %s", m.Queue, message.Steer, message.Followup)}
	}

	if m.ID != "" && !chosenID.MatchString(m.ID) {
		return &Invalid{Field: "id", Reason: fmt.Sprintf("found %.80q, allowed: 16 to 64 characters of a-z and 0-9", m.ID)}
	}
	if len(m.Dedupe) > maxDedupe {
		return &Invalid{Field: "dedupe", Reason: fmt.Sprintf("has %d bytes, allowed: %d", len(m.Dedupe), maxDedupe)}
	}
	if m.Route != nil && (m.Route.Connector == "" || m.Route.ChannelID == "") {
		return &Invalid{Field: "route", Reason: "needs connector and channelId"}
	}
	if err := m.forOthers(caller); err != nil {
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

// forOthers finds the first field by which a message would speak for someone else than its
// caller, or would be answered elsewhere: only admins may. A connector names the senders of its
// own messages, to an agent that the caller knows.
func (m *Message) forOthers(caller Caller) error {
	rights := caller.Rights
	if rights.Allow(apitoken.Admin) && !rights.Restricted() {
		return nil
	}
	own := m.Route == nil || m.Route.Connector == caller.Via
	if caller.Via != "" && m.Connector == caller.Via && own && m.Kind != message.System {
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

// chosenID is what an item may be called by its sender.
var chosenID = lazyregexp.New(`^[a-z0-9]{16,64}$`)

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
			return &Invalid{Field: field + ".id", Reason: "a token limited to some agents cannot name stored files",
				Hint: "send {name,data}"}
		case f.Data != nil && f.Name == "":
			return &Invalid{Field: field + ".data", Reason: "needs a name"}
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
func (p posts) keep(files []File) ([]message.File, error) {
	if len(files) == 0 {
		return nil, nil
	}
	if p.files == nil {
		return nil, fmt.Errorf("save files: %w", ErrNotRunning)
	}

	kept := make([]message.File, len(files))
	for i, f := range files {
		var err error
		switch {
		case f.ID != "":
			kept[i], err = p.files.Get(f.ID)
		case f.Path != "":
			kept[i], err = p.files.Adopt(f.Path)
		default:
			kept[i], err = p.files.Put(f.Name, bytes.NewReader(f.Data))
		}

		if err != nil {
			return nil, inField(fmt.Sprintf("files[%d]", i), err)
		}
	}

	return kept, nil
}

// pictures are the types of stored files that browsers show in place. None of them can have a script.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// attachment answers with the content of a stored file: a picture, to be shown, or anything else, to be saved. Which
// of them it is, is seen in the content: its name and its type are what someone said.
func (p posts) attachment(w http.ResponseWriter, r *http.Request, in storedIn) {
	f, content, err := p.stored(in.File)
	if err != nil {
		p.api.fail(w, r, err)
		return
	}

	kind, way := http.DetectContentType(content), "inline"
	if !slices.Contains(pictures, kind) {
		kind, way = "application/octet-stream", "attachment"
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", mime.FormatMediaType(way, map[string]string{"filename": f.Name}))
	h.Set("Content-Length", strconv.Itoa(len(content)))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	_, _ = w.Write(content) // an error means that the client went away
}

func (p posts) stored(id string) (f message.File, content []byte, err error) {
	if p.files == nil {
		return f, nil, ErrNoFile
	}
	if f, err = p.files.Get(id); err == nil {
		content, err = p.files.Read(f)
	}
	if errors.Is(err, fs.ErrNotExist) { // its reference is there, its content is not
		err = fmt.Errorf("%w: %s", ErrNoFile, id)
	}

	return f, content, err
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
		Agent: agent, Kind: m.Kind, ID: m.ID, Context: m.Context, Route: m.Route, Text: m.Text, Files: files,
		Silent: m.Silent, Queue: m.Queue, Untrusted: m.Untrusted && m.Kind != message.System,
		From: message.Address{Connector: m.Connector, ChannelID: m.ChannelID, UserID: m.UserID, ThreadID: m.ThreadID},
	}
	if m.Connector == "" {
		in.From = addressOf(caller)
	}
	if in.Kind == "" {
		in.Kind = message.Text
	}
	if in.Kind == message.Text && !caller.Rights.Allow(apitoken.Approve) {
		in.Source = guestSource(caller)
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
		in.Dedupe = addressOf(caller).Connector + ":" + m.Dedupe
	}

	return in
}

// guestSource is the source of what a caller says who cannot answer approval requests.
func guestSource(c Caller) string { return "a message of the API caller " + c.Name }

// apiConnector is the connector id of those who speak through the API itself.
const apiConnector = "api"

// webConnector is the connector id of browsers.
const webConnector = "web"

func addressOf(c Caller) message.Address {
	if c.Session != "" {
		return message.Address{Connector: webConnector, ChannelID: webConnector, UserID: c.Session}
	}
	return message.Address{Connector: apiConnector, ChannelID: apiConnector, UserID: c.Name}
}

func callerAddress(ctx context.Context) message.Address { return addressOf(callerOf(ctx)) }
