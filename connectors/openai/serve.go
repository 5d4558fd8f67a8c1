package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/message"
)

// writeTime ends a stream whose reader takes nothing at all.
const writeTime = 60 * time.Second

// Chat answers POST /v1/chat/completions.
func (c *Connector) Chat(w http.ResponseWriter, r *http.Request, line control.Line) {
	c.serve(w, r, line, readChat, func(a *answer) layout { return &chatForm{answer: a} })
}

// Responses answers POST /v1/responses.
func (c *Connector) Responses(w http.ResponseWriter, r *http.Request, line control.Line) {
	c.serve(w, r, line, readResponses, func(a *answer) layout { return &responseForm{answer: a} })
}

// A layout is how an answer is written: as a whole, or as a stream of events.
type layout interface {
	begin() error // of the stream
	say(text string) error
	end(o event.Outcome) error
	fail(e control.ForeignError) error
	whole(o event.Outcome) any
}

// serve reads a request, and has it answered on the machine that its agent is on.
func (c *Connector) serve(w http.ResponseWriter, r *http.Request, line control.Line,
	read func([]byte, http.Header) (request, error), shape func(*answer) layout) {
	body, err := line.Body(w, r)
	var req request
	if err == nil {
		req, err = read(body, r.Header)
	}
	var agent string
	if err == nil {
		agent, err = c.target(r.Context(), line, req)
	}
	if err == nil {
		err = line.Lead(w, r, c.known(agent, line, req), body, func() { c.answer(w, r, line, agent, req, shape) })
	}
	if err != nil {
		line.Fail(w, r, err)
	}
}

// known is the agent that a request is for, "": it has to be made.
func (c *Connector) known(target string, line control.Line, req request) string {
	if target == "" && c.directory != nil {
		target, _ = c.directory.Find(c.address(line, req))
	}
	return target
}

// answer posts the message of a request and answers with its turn. A client that goes away ends
// only the telling: the turn continues, and its answer is in history.
func (c *Connector) answer(w http.ResponseWriter, r *http.Request, line control.Line, agent string, req request,
	shape func(*answer) layout) {
	in, err := c.incoming(r.Context(), line, agent, req)
	if err != nil {
		line.Fail(w, r, err)
		return
	}

	a := &answer{w: w, rc: http.NewResponseController(w), request: req, at: time.Now()}
	a.form = shape(a)
	o, err := line.Follow(r.Context(), in, control.Told{Accepted: a.accepted, Event: a.happened, Flush: a.flush, Alive: a.alive})
	if err == nil {
		o, err = a.settle(r.Context(), line, o)
	}

	switch {
	case r.Context().Err() != nil: // nobody reads it
	case err != nil && !a.begun:
		if a.receipt.Item != "" { // it was accepted: trying again would be a second message
			w.Header().Set("X-Should-Retry", "false")
		}
		line.Fail(w, r, err)
	case err != nil:
		_ = a.form.fail(control.Foreign(err))
		_ = a.flush()
	case req.stream:
		if a.finish(o) == nil {
			_ = a.form.end(o)
		}
		_ = a.flush()
	default:
		a.send(a.form.whole(o))
	}
}

// incoming makes a message of a request for an agent, or for that of its address (""). Files are stored before the message names them.
func (c *Connector) incoming(ctx context.Context, line control.Line, agent string, req request) (in message.Incoming, err error) {
	in = message.Incoming{Agent: agent, Kind: message.Text, Queue: message.Followup, From: c.address(line, req)}
	in.Route = &message.Address{Connector: c.id, ChannelID: in.From.ChannelID, UserID: in.From.UserID}
	if req.key != "" {
		in.Dedupe = c.id + ":" + line.Caller() + "/" + req.key
	}

	earlier, now, err := req.split()
	if err != nil {
		return in, err
	}
	agent = c.known(agent, line, req)
	var s seen
	if agent != "" && (len(earlier) > 0 || req.instructions != "") {
		if s, err = lookBack(ctx, line, agent); err != nil {
			return in, err
		}
	}
	var files []control.File
	in.Text, files = req.compose(earlier, now, s)
	in.Context.MessageID = req.messageID()
	in.Files, err = line.Keep(files)

	return in, err
}

// target is the agent that a request is for; "": that of its address.
func (c *Connector) target(ctx context.Context, line control.Line, req request) (string, error) {
	previous := ""
	if req.previous != "" {
		id, _, ok := strings.Cut(strings.TrimPrefix(req.previous, responseBegin), "_")
		agent, err := line.Resolve(ctx, id)
		if !ok || id == "" || err != nil {
			return "", bad("previous_response_id", "there is no response %.80q", req.previous)
		}
		previous = agent
	}
	if req.model != c.id {
		id, err := c.resolve(ctx, line, req.model)
		if err == nil && previous != "" && previous != id {
			err = bad("previous_response_id", "it is of another agent than the model %q", req.model)
		}
		return id, err
	}

	switch {
	case previous != "":
		return previous, nil
	case c.agent != "":
		return c.resolve(ctx, line, c.agent)
	case line.Restricted():
		return "", fmt.Errorf("%w: %q; this token is limited to some agents, so name one", message.ErrUnknownAgent, req.model)
	}

	return "", nil
}

// address is where a request comes from: each caller has conversations of its own.
func (c *Connector) address(line control.Line, req request) message.Address {
	channel := req.conversation
	if channel == "" {
		channel = "default"
	}

	return message.Address{Connector: c.id, ChannelID: channel, UserID: line.Caller()}
}

// How far back an exchange is looked for: pages of records.
const (
	pages    = 5
	pageSize = 100
)

// lookBack finds the newest exchange over this connector in an agent's history.
func lookBack(ctx context.Context, line control.Line, agent string) (s seen, err error) {
	before := int64(0)
	for range pages {
		page, err := line.History(ctx, agent, before, pageSize)
		if err != nil || s.look(page.Records) || page.Before == nil {
			return s, err
		}
		before = *page.Before
	}

	return s, nil
}

// An answer is what a client gets of a turn.
type answer struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	request request
	receipt message.Receipt
	at      time.Time
	form    layout
	begun   bool
	sent    strings.Builder // all that was streamed
	current []byte          // the model's answer in progress, as far as it was streamed
}

func (a *answer) accepted(r message.Receipt) error {
	a.receipt = r
	h := a.w.Header()
	h.Set("X-Daycare-Agent", r.Agent)
	h.Set("X-Daycare-Item", r.Item)
	h.Set("Cache-Control", "no-store")
	if len(a.request.ignored) > 0 {
		h.Set("X-Daycare-Ignored", headerText(strings.Join(a.request.ignored, ", ")))
	}
	if !a.request.stream {
		return nil
	}

	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // nginx would hold events back
	a.w.WriteHeader(http.StatusOK)
	a.begun = true

	return errors.Join(a.form.begin(), a.flush())
}

// headerText is a text that a header can have: names of members are a client's.
func headerText(s string) string {
	const most = 500
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)

	return s[:min(len(s), most)]
}

// happened streams the text of the turn. Each call of the model gives an answer, whose pieces
// begin at 0: what is said beside tool calls is a paragraph of its own.
func (a *answer) happened(e event.Event) error {
	if !a.request.stream {
		return nil
	}
	switch body := e.Body.(type) {
	case event.Delta:
		if e.Type != event.MessageDelta {
			return nil
		}
		if body.Offset == 0 {
			a.current = a.current[:0]
		}
		if body.Offset > len(a.current) || body.Offset+len(body.Text) <= len(a.current) {
			return nil // after a gap: the end of the turn has the text
		}
		text := body.Text[len(a.current)-body.Offset:]
		if len(a.current) == 0 {
			text = a.apart() + text
		}
		a.current = append(a.current, body.Text[len(a.current)-body.Offset:]...)
		return a.say(text)
	case event.Attempt:
		if body.Discard {
			a.current = a.current[:0]
		}
	}

	return nil
}

// apart is what separates a new paragraph from what was streamed.
func (a *answer) apart() string {
	if a.sent.Len() == 0 {
		return ""
	}
	return "\n\n"
}

func (a *answer) say(text string) error {
	if text == "" {
		return nil
	}
	a.sent.WriteString(text)
	return a.form.say(text)
}

// finish streams what of the final text was not.
func (a *answer) finish(o event.Outcome) error {
	switch rest, ok := strings.CutPrefix(o.Text, string(a.current)); {
	case ok && len(a.current) > 0:
		return a.say(rest)
	case strings.HasSuffix(a.sent.String(), o.Text):
		return nil
	}

	return a.say(a.apart() + o.Text)
}

// settle makes an outcome the text that a client reads, or the error.
func (a *answer) settle(ctx context.Context, line control.Line, o event.Outcome) (event.Outcome, error) {
	switch o.Reason {
	case "done":
	case "waiting", "budget":
		asks, err := line.Asks(ctx, o.Agent)
		if err != nil {
			return o, err
		}
		o.Text = strings.TrimPrefix(o.Text+"\n\n"+note(asks), "\n\n")
	case "limit", "loop":
		if o.Text == "" {
			o.Text = o.Work.Said
		}
	case "canceled":
		o.Text = strings.TrimPrefix(o.Text+"\n\n[daycare: the turn was stopped]", "\n\n")
	case "error", "poison":
		return o, &control.APIError{Status: http.StatusInternalServerError, Code: "turn_failed",
			Message: "the turn failed: " + strings.TrimSpace(o.Text+" "+o.Error)}
	default: // dropped, reset, …: there was no turn
		return o, &control.APIError{Status: http.StatusConflict, Code: "no_turn",
			Message: fmt.Sprintf("the message was removed from the inbox before a turn began (%s)", o.Reason)}
	}

	return o, nil
}

// note says to a client that the agent waits, and where the answer to that can be given.
func note(asks []event.Ask) string {
	var b strings.Builder
	b.WriteString("[daycare: the agent waits for an approval")
	for i, ask := range asks {
		sep := ", "
		if i == 0 {
			sep = " of "
		}
		fmt.Fprintf(&b, "%s%s (token %s)", sep, ask.Tag, ask.Token)
	}
	b.WriteString(". Answer it in the terminal (daycare), in an owner's chat, or with: daycare permissions. " +
		"The agent then continues; your next message follows from there.]")

	return b.String()
}

// finishReason is that of Chat Completions.
func finishReason(o event.Outcome) string {
	if o.Finish == "max_tokens" || o.Reason == "limit" || o.Reason == "loop" {
		return "length"
	}
	return "stop"
}

// own is what daycare says beside the members of OpenAI's API.
type own struct {
	Agent   string   `json:"agent"`
	Item    string   `json:"item"`
	Turn    string   `json:"turn,omitempty"`
	Reason  string   `json:"reason"`
	Cost    float64  `json:"cost"`
	Ignored []string `json:"ignored,omitempty"` // members of the request that nothing was done with
}

func (a *answer) own(o event.Outcome) own {
	return own{o.Agent, o.Item, o.Turn, o.Reason, o.Cost, a.request.ignored}
}

func (a *answer) send(v any) {
	data, err := json.Marshal(v)
	if err != nil {
		return // of strings and numbers
	}
	a.w.Header().Set("Content-Type", "application/json")
	_ = a.rc.SetWriteDeadline(time.Now().Add(writeTime))
	_, _ = a.w.Write(append(data, '\n')) // the client is gone; nobody is left to tell
}

// event writes one event of a stream; name may be "".
func (a *answer) event(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode event %s: %w", name, err)
	}

	return a.write(name, string(data))
}

func (a *answer) write(name, data string) error {
	if name != "" {
		name = "event: " + name + "\n"
	}
	_ = a.rc.SetWriteDeadline(time.Now().Add(writeTime))
	_, err := a.w.Write([]byte(name + "data: " + data + "\n\n"))

	return err
}

func (a *answer) flush() error {
	if !a.begun {
		return nil
	}
	return a.rc.Flush()
}

func (a *answer) alive() error {
	if !a.begun {
		return nil
	}
	_ = a.rc.SetWriteDeadline(time.Now().Add(writeTime))
	_, err := a.w.Write([]byte(": daycare\n\n"))

	return errors.Join(err, a.flush())
}
