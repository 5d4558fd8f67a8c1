package control

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"daycare/engine/apitoken"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/message"
)

// A Translator serves clients of another API, OpenAI's, at its paths in the table. It accesses
// agents only through a Line, so rights, durability and streams are those of this API.
type Translator interface {
	// Models lists the agents that the caller of the line can talk to.
	Models(ctx context.Context, line Line) ([]ForeignModel, error)
	Model(ctx context.Context, line Line, name string) (ForeignModel, error)
	Chat(w http.ResponseWriter, r *http.Request, line Line)
	Responses(w http.ResponseWriter, r *http.Request, line Line)
}

// A ForeignModel is an agent as a model of OpenAI's API.
type ForeignModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"` // model
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	Name    string `json:"name,omitempty"` // for users
}

// translated are the routes of a Translator.
type translated struct {
	api   *api
	posts posts
	asks  Permissions
	now   func() Translator
}

func translatedRows(a *api, t translated) []row {
	return []row{stream(a, foreignModel, t.model), stream(a, chatCompletions, t.ask(Route(chatCompletions), Translator.Chat)),
		stream(a, createResponse, t.ask(Route(createResponse), Translator.Responses))}
}

// active is the Translator that is configured now; nil: none.
func (t translated) active() Translator {
	if t.now == nil {
		return nil
	}
	return t.now()
}

func (t translated) line(ctx context.Context) Line { return Line{callerOf(ctx), t} }

// must is the Translator, or the error of a route that is off.
func (t translated) must(o Route) (Translator, error) {
	if err := t.api.ready(o); err != nil {
		return nil, err
	}
	if now := t.active(); now != nil {
		return now, nil
	}

	return nil, refuse(fault.NoRoute, "add a connector of type openai to the settings", "%s: the OpenAI format is off", o.Pattern())
}

func (t translated) model(w http.ResponseWriter, r *http.Request, in foreignModelIn) {
	to, err := t.must(Route(foreignModel))
	var m ForeignModel
	if err == nil {
		m, err = to.Model(r.Context(), t.line(r.Context()), in.Model)
	}
	if err != nil {
		t.api.fail(w, r, err)
		return
	}

	t.api.send(w, r, http.StatusOK, m)
}

// ask makes the handler of a message to an agent.
func (t translated) ask(o Route, how func(Translator, http.ResponseWriter, *http.Request, Line)) func(http.ResponseWriter,
	*http.Request, foreignIn) {
	return func(w http.ResponseWriter, r *http.Request, _ foreignIn) {
		to, err := t.must(o)
		if err != nil {
			t.api.fail(w, r, err)
			return
		}
		how(to, w, r, t.line(r.Context()))
	}
}

// A Line is how a Translator accesses agents on behalf of one caller. Agents that the caller has no
// access to do not exist for it.
type Line struct {
	caller Caller
	routes translated
}

// Caller is the name of the caller as it is recorded with decisions: "token:phone".
func (l Line) Caller() string { return l.caller.Name }

// Restricted reports whether the caller's token is limited to some agents: then no new agent can be
// created for it.
func (l Line) Restricted() bool { return l.caller.Rights.Restricted() }

// Agents returns all agents that the caller can access.
func (l Line) Agents(ctx context.Context) ([]event.Agent, error) {
	list, err := l.routes.api.agents.Agents(ctx)
	return slices.DeleteFunc(slices.Clone(list), func(a event.Agent) bool { return !l.caller.Rights.Know(a.ID) }), err
}

// Resolve turns a ref into an id. Errors: message.ErrUnknownAgent, *Ambiguous.
func (l Line) Resolve(ctx context.Context, ref string) (string, error) {
	return l.routes.api.resolve(WithCaller(ctx, l.caller), ref)
}

// History is a page of an agent's history, as Agents.History returns it.
func (l Line) History(ctx context.Context, id string, before int64, limit int) (event.Page, error) {
	return l.routes.api.agents.History(ctx, id, before, limit)
}

// Asks returns the approval requests of an agent.
func (l Line) Asks(ctx context.Context, agent string) ([]event.Ask, error) {
	all, err := l.routes.asks.Asks(ctx)
	return slices.DeleteFunc(slices.Clone(all), func(a event.Ask) bool { return a.AgentID != agent }), err
}

// Body reads the body of a request. Only a few large ones are read at the same time.
func (l Line) Body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	free, err := l.routes.posts.slot(r)
	if err != nil {
		return nil, err
	}
	defer free()
	var data []byte
	err = InTime(w, func() (err error) {
		data, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessageBody))
		return err
	})
	if err != nil {
		return nil, explain(err)
	}

	return data, nil
}

// Keep stores files that came with a message.
func (l Line) Keep(files []File) ([]message.File, error) {
	if err := checkFiles(files, l.caller); err != nil {
		return nil, err
	}
	return l.routes.posts.keep(files)
}

// Lead has a request about an agent served on the machine that has the agent. body is what was read of the request.
func (l Line) Lead(w http.ResponseWriter, r *http.Request, agent string, body []byte, serve func()) error {
	lead := l.routes.api.lead
	if lead == nil || agent == "" {
		serve()
		return nil
	}
	again := r.Clone(r.Context())
	again.Body = io.NopCloser(bytes.NewReader(body))

	return lead(w, again, agent, serve)
}

// Follow posts a message and reports the turn that works on it until it has ended.
func (l Line) Follow(ctx context.Context, in message.Incoming, told Told) (event.Outcome, error) {
	if in.Source == "" && !l.caller.Rights.Allow(apitoken.Approve) {
		in.Source = guestSource(l.caller)
	}
	return l.routes.posts.follow(ctx, in, told)
}

// Fail sends an error in the format of OpenAI's API.
func (l Line) Fail(w http.ResponseWriter, r *http.Request, err error) { l.routes.api.fail(w, r, err) }

// isForeign reports whether a path is of OpenAI's API.
func isForeign(path string) bool {
	return path == chatCompletions.Path || path == createResponse.Path || strings.HasPrefix(path, models.Path+"/")
}

// A ForeignError is an error in the format of OpenAI's API, with the members of this API in
// addition.
type ForeignError struct {
	*APIError
	Type  string  `json:"type"`
	Param *string `json:"param"`
}

// Foreign converts an error to the format of OpenAI's API. There the status of an invalid value is
// 400, and the message has to contain the remedy: clients show nothing else.
func Foreign(err error) ForeignError {
	e := *Describe(err)
	f := ForeignError{APIError: &e, Type: "invalid_request_error"}
	if e.Field != "" {
		field := e.Field
		f.Param = &field
	}
	switch fault.ByCode(e.Code) {
	case fault.Invalid:
		e.Status = http.StatusBadRequest
	case fault.Unauthorized:
		e.Code = "invalid_api_key"
	case fault.UnknownAgent:
		e.Code = "model_not_found"
	}

	switch {
	case e.Status == http.StatusTooManyRequests:
		f.Type = "rate_limit_error"
	case e.Status >= http.StatusInternalServerError:
		f.Type = "server_error"
	}
	if e.Hint != "" {
		e.Message = fmt.Sprintf("%s (%s)", e.Message, e.Hint)
	}
	e.Message = cmp.Or(e.Message, e.Code)

	return f
}

func writeForeign(w http.ResponseWriter, e *APIError) {
	f := Foreign(e)
	if e.Code == fault.Cut.Code { // it was accepted: trying again would be a second message
		w.Header().Set("X-Should-Retry", "false")
	}
	w.WriteHeader(f.Status)
	_ = json.NewEncoder(w).Encode(map[string]ForeignError{"error": f})
}
