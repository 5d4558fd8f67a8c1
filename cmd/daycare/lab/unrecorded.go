package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"

	"daycare/agents/providers"
	"daycare/agents/trial"
	"daycare/cmd/daycare/daemon"
	"daycare/cmd/daycare/term"
	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/workspace"
)

// What a replay does with a call that was never recorded.
const (
	askUser   = "ask"
	stopThere = "stop"
	dryRun    = "dry-run"
	makeIt    = "make"
)

var unrecordedModes = []string{askUser, stopThere, dryRun, makeIt}

// A hand gives calls that were never recorded a result: one of the modes says which.
type hand struct {
	app      *term.App
	in       *bufio.Reader // where a user answers
	at       workspace.Place
	requests daemon.Requests
	turn     turn
	mode     string
	benches  map[string]*workplace // by mode, made when the first call needs them
}

// errStopped: the call stays without a result, and the replay ends.
var errStopped = errors.New("it calls what was never recorded")

// result is the result of a call, and how it came about: "dry run", "made" or "typed". Errors: errStopped, which may say more.
func (h *hand) result(ctx context.Context, call record.ToolCall) (r *record.ToolResult, how string, err error) {
	mode := h.mode
	if mode == askUser {
		if mode, r = h.ask(call); r != nil {
			return r, "typed", nil
		}
	}
	if mode == stopThere {
		return nil, "", errStopped
	}
	how = "made"
	if mode == dryRun {
		how = "dry run"
	}
	if !slices.Contains(runnable, call.Name) {
		return h.elsewhere(call, mode, how)
	}
	bench := h.benches[mode]
	if bench == nil {
		if bench, err = h.newWorkplace(ctx, mode); err != nil {
			return nil, "", fmt.Errorf("%s %s: %w", mode, spelled(call), err)
		}
		h.benches[mode] = bench
	}
	r, err = bench.run(ctx, call)

	return r, how, err
}

// ask lets a user decide about a call.
func (h *hand) ask(call record.ToolCall) (mode string, typed *record.ToolResult) {
	h.app.Warn("the model calls %s, which was never recorded", spelled(call))
	for {
		h.app.Say("d: dry-run it   m: make it   t: type its result   s: stop [s] ")
		line, err := h.in.ReadString('\n')
		switch answer := strings.ToLower(strings.TrimSpace(line)); {
		case err != nil && answer == "", answer == "", answer == "s", answer == stopThere:
			return stopThere, nil
		case answer == "d", answer == dryRun:
			return dryRun, nil
		case answer == "m", answer == makeIt:
			return makeIt, nil
		case answer == "t", answer == "type":
			h.app.Say("its result, one line: ")
			line, _ := h.in.ReadString('\n') // an end of input is an empty result
			return "", &record.ToolResult{Status: record.StatusOK, Output: record.Output{Text: strings.TrimRight(line, "\r\n")}}
		}
	}
}

// runnable are the tools that need nothing but a folder, a sandbox and the web. All others are about
// the agents, chats and tasks of the workspace, of which a replay has none.
var runnable = []string{"read", "ls", "glob", "grep", "write", "edit", "apply_patch", "exec", "web_fetch", "web_search", "skill"}

// elsewhere is the result of a call whose effect would be outside of files, commands and the web.
func (h *hand) elsewhere(call record.ToolCall, mode, how string) (*record.ToolResult, string, error) {
	if mode == dryRun && h.requests.Changes(h.turn.meta, call.Name) {
		text := record.NotDone + " This is a dry run. Go on as if it had been done."
		return &record.ToolResult{Status: record.StatusOK, Output: record.Output{Text: text}}, how, nil
	}

	return nil, "", fmt.Errorf("%w, and a replay runs only files, commands and the web", errStopped)
}

// close takes away what the calls needed.
func (h *hand) close() (err error) {
	for _, b := range h.benches {
		err = errors.Join(err, b.close())
	}
	clear(h.benches)

	return err
}

// A workplace is where calls run: an agent with the permissions of the recorded one, in an engine of
// its own, whose model makes the calls that it is given.
type workplace struct {
	where  throwaway
	stop   func() error
	caller *oneCall
	talk   *session
}

// newWorkplace makes one. In a dry run its agent works on a copy of the agent's folder, as it is now.
func (h *hand) newWorkplace(ctx context.Context, mode string) (b *workplace, err error) {
	b = &workplace{caller: &oneCall{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
			b = nil
		}
	}()
	if b.where, err = newThrowaway(h.at, trying{provider: config.Provider{ID: script, Type: script}}); err != nil {
		return b, err
	}
	maker := func(workspace.Place, config.Provider, func() string) (providers.Provider, error) {
		return b.caller, nil
	}
	client, stop, err := daemon.InsideWith(ctx, daemon.Options{Place: b.where.at(), Provider: maker})
	if err != nil {
		return b, fmt.Errorf("start an engine for the call: %w", err)
	}
	b.stop = stop
	a, err := client.Create(ctx, control.NewAgent{Type: "permanent", Name: "replay"})
	if err != nil {
		return b, fmt.Errorf("make agent: %w", err)
	}
	b.talk = &session{client: client, agent: a.ID, test: trial.Test{Given: trial.Given{Answers: "deny"}}, where: b.where}
	if mode == makeIt { // which is the user's approval
		b.talk.test.Answers = "allow"
	}

	state, _, _, err := record.ReadState(h.requests.Dir(h.turn.meta.ID))
	if err != nil {
		return b, err
	}
	if err := permitted(ctx, client, a.ID, state.Permissions); err != nil {
		return b, err
	}
	if mode == dryRun {
		if err := client.Grant(ctx, a.ID, control.Granting{Profile: string(permission.DryRun)}); err != nil {
			return b, err
		}
	}

	return b, nil
}

// permitted writes permissions into the state of an agent.
func permitted(ctx context.Context, client *control.Client, id string, set permission.Set) error {
	data, hash, err := client.Folders().ReadFile(ctx, id, "state.json")
	if err != nil {
		return fmt.Errorf("read state of the agent: %w", err)
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &members); err != nil {
		return fmt.Errorf("read state of the agent: %w", err)
	}
	if members["permissions"], err = json.Marshal(set); err != nil {
		return err
	}
	if data, err = json.MarshalIndent(members, "", "  "); err != nil {
		return err
	}

	return client.Folders().WriteFile(ctx, id, "state.json", data, hash)
}

// run makes one call.
func (b *workplace) run(ctx context.Context, call record.ToolCall) (*record.ToolResult, error) {
	b.caller.next.Store(&call)
	b.talk.seen, b.talk.due = map[string]bool{}, map[string]string{}
	if _, err := b.talk.client.Stream(ctx, b.talk.agent, control.Message{Text: "go on"}, nil); err != nil {
		return nil, err
	}
	if err := b.talk.settle(ctx); err != nil {
		return nil, err
	}
	entries, err := b.talk.history(ctx, b.talk.agent)
	if err != nil {
		return nil, err
	}
	for _, e := range slices.Backward(entries) {
		if r, ok := e.Rec.(*record.ToolResult); ok {
			return r, nil
		}
	}

	return nil, fmt.Errorf("%w, and it could not be run", errStopped)
}

func (b *workplace) close() (err error) {
	if b.stop != nil {
		err = b.stop()
	}
	return errors.Join(err, b.where.remove())
}

// A oneCall is a model that makes the call that it is given, and then says that it is done.
type oneCall struct {
	next atomic.Pointer[record.ToolCall]
}

func (*oneCall) ID() string   { return script }
func (*oneCall) Wire() string { return script }

// Stream makes the call once.
func (c *oneCall) Stream(_ context.Context, _ *providers.Request) iter.Seq[providers.Event] {
	return func(yield func(providers.Event) bool) {
		call := c.next.Swap(nil)
		if call == nil {
			_ = yield(providers.ContentDelta{Text: done}) && yield(providers.Complete{Finish: providers.EndTurn, Model: script})
			return
		}
		id, args := "call", string(call.Arguments)
		_ = yield(providers.ToolUseStart{ID: id, Name: call.Name}) && yield(providers.ToolUseDelta{ID: id, Arguments: args}) &&
			yield(providers.ToolUseStop{ID: id, Arguments: args}) &&
			yield(providers.Complete{Finish: providers.ToolUse, Model: script})
	}
}
