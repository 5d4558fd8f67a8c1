package control

import (
	"context"
	"encoding/json"
)

// Hooks is what the API needs for the programs that the settings run at moments of agents' work.
type Hooks interface {
	// Hooks lists the active hooks in the order in which they run.
	Hooks(ctx context.Context) ([]HookInfo, error)
	// TestHooks runs the hooks of a moment with a sample. Errors: *Invalid.
	TestHooks(ctx context.Context, s HookSample) (HookTest, error)
}

// HookInfo is one hook of the settings.
type HookInfo struct {
	Event     string `json:"event"`
	Matcher   string `json:"matcher,omitempty"` // "" for every tool
	Command   string `json:"command"`
	TimeoutMS int64  `json:"timeoutMs"`
	OnError   string `json:"onError"` // allow or deny
	Sandbox   bool   `json:"sandbox"`
	Approve   bool   `json:"approve,omitempty"`
}

// A HookSample is the input of a test of hooks.
type HookSample struct {
	Event string          `json:"event"`
	Tool  string          `json:"tool,omitempty"`
	Input json.RawMessage `json:"input,omitempty"` // of the tool
	Text  string          `json:"text,omitempty"`  // of the message, the result or the answer
}

// A HookTest is the combined result of hooks for a sample.
type HookTest struct {
	Decision string          `json:"decision"` // allow, ask, deny, stop; "" for none
	Reason   string          `json:"reason,omitempty"`
	Context  string          `json:"context,omitempty"` // for the model
	Input    json.RawMessage `json:"input,omitempty"`   // as the hooks changed it
	Runs     []HookRun       `json:"runs"`
}

// A HookRun is the result of one hook.
type HookRun struct {
	Command  string `json:"command"`
	Code     int    `json:"code"`
	Signal   string `json:"signal,omitempty"`
	Output   string `json:"output,omitempty"`
	Errors   string `json:"errors,omitempty"` // standard error
	Decision string `json:"decision"`
	Failed   string `json:"failed,omitempty"` // why the hook itself failed
	MS       int64  `json:"ms"`
}

type hooksBody struct {
	Hooks []HookInfo `json:"hooks"`
}

// hookRoutes serve the hooks.
type hookRoutes struct{ hooks Hooks }

func (h hookRoutes) list(ctx context.Context, _ nothing) (hooksBody, error) {
	list, err := h.hooks.Hooks(ctx)
	return hooksBody{some(list)}, err
}

func (h hookRoutes) test(ctx context.Context, in aBody[HookSample]) (HookTest, error) {
	t, err := h.hooks.TestHooks(ctx, in.Body)
	t.Runs = some(t.Runs)
	return t, err
}

// HookClient has the operations on hooks.
type HookClient struct{ Client *Client }

// List lists the active hooks.
func (h HookClient) List(ctx context.Context) ([]HookInfo, error) {
	b, err := hooks.call(ctx, h.Client.wire, nothing{})
	return b.Hooks, err
}

// Test runs the hooks of a moment with a sample.
func (h HookClient) Test(ctx context.Context, s HookSample) (HookTest, error) {
	return testHooks.call(ctx, h.Client.wire, aBody[HookSample]{s})
}
