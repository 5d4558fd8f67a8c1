package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"

	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/tools"
)

// ToolName is the name of the tool.
const ToolName = "ask_remote_agent"

const (
	sendTime = 2 * time.Minute // for the answer to a request that starts a task
	soon     = 5 * time.Second // how long a call waits for the end of its task
	maxKey   = 200             // bytes of an id that a remote agent made
)

// A Remote is an agent of another program, as the settings have it.
type Remote struct {
	ID    string
	URL   string // its card is below
	About string // what it can do
	// Local: it is on this machine or in its network. Others are never reached there, wherever
	// their names lead.
	Local bool
}

// host is the host of its address, as rights name it.
func (r Remote) host() string {
	u, err := url.Parse(r.URL)
	if err != nil {
		return ""
	}

	return strings.ToLower(u.Hostname())
}

// right is what a call needs.
func (r Remote) right() permission.A2A { return permission.A2A{Host: r.host()} }

// Options of a Desk.
type Options struct {
	Remotes []Remote
	// Headers are what each request to a remote agent carries: its secrets, as they are now.
	Headers func(id string) (http.Header, error)
	// Post makes a system message durable. Errors: message.ErrUnknownAgent.
	Post func(ctx context.Context, in message.Incoming) (message.Receipt, error)
	// Load and Save keep the tasks that have not ended; fs.ErrNotExist: there are none yet.
	Load func() ([]byte, error)
	Save func(data []byte) error
	Log  *slog.Logger
	// Soon is how long a call waits for its task; 0: 5 s.
	Soon time.Duration
}

// A Desk gives tasks to remote agents and waits for what becomes of them.
type Desk struct {
	o     Options
	fresh chan pending // tasks that are to be watched from now on

	mu sync.Mutex // of a2a.json
}

// New makes a desk. Run has to run for tasks that take long.
func New(o Options) *Desk {
	if o.Soon == 0 {
		o.Soon = soon
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}

	return &Desk{o: o, fresh: make(chan pending, maxPending)}
}

// remote is the remote agent with an id.
func (d *Desk) remote(id string) (Remote, bool) {
	i := slices.IndexFunc(d.o.Remotes, func(r Remote) bool { return r.ID == id })
	if i < 0 {
		return Remote{}, false
	}

	return d.o.Remotes[i], true
}

// Tool is the tool for agents.
func (d *Desk) Tool() tools.Tool { return &tool{d} }

type tool struct{ desk *Desk }

type args struct {
	Agent   string `json:"agent"`
	Text    string `json:"text"`
	Context string `json:"context"`
	Task    string `json:"task"`
}

// Spec describes the tool. What a remote agent does is not known, so no call is made twice.
func (t *tool) Spec() tools.Spec {
	var ids, about []string
	for _, r := range t.desk.o.Remotes {
		ids = append(ids, r.ID)
		about = append(about, "- "+r.ID+": "+r.About)
	}
	schema, _ := json.Marshal(map[string]any{"type": "object", "required": []string{"agent", "text"}, "additionalProperties": false,
		"properties": map[string]any{ // of texts, which cannot fail
			"agent":   map[string]any{"enum": ids, "description": strings.Join(about, "\n")},
			"text":    map[string]any{"type": "string", "minLength": 1, "description": "the task, with all that it needs to know"},
			"context": map[string]any{"type": "string", "description": "of an earlier answer, to go on with that conversation"},
			"task":    map[string]any{"type": "string", "description": "a task that waits for your input"},
		}})
	return tools.Spec{Name: ToolName, Schema: schema, Replay: tools.Once, Writes: true,
		Description: "Give a task to an agent of another program and wait a moment. If it takes longer, the answer comes as a " +
			"message later."}
}

func decode(call tools.Call) (a args, err error) {
	if err := json.Unmarshal(call.Arguments, &a); err != nil {
		return a, fmt.Errorf("the arguments do not fit: %w", err)
	}
	return a, nil
}

// Needs is the approval for a call: all that the remote agent gets.
func (t *tool) Needs(call tools.Call) (*permission.Request, error) {
	a, err := decode(call)
	if err != nil {
		return nil, err
	}
	r, ok := t.desk.remote(a.Agent)
	if !ok {
		return nil, nil // Run says so
	}
	tag := r.right().Tag()
	text := fmt.Sprintf("%s at %s\n  │ %s", r.ID, r.host(), strings.ReplaceAll(a.Text, "\n", "\n  │ "))
	for _, more := range [][2]string{{"task", a.Task}, {"context", a.Context}} {
		if more[1] != "" {
			text += "\n" + more[0] + ": " + permission.VisibleLine(more[1])
		}
	}
	return &permission.Request{Tag: tag, Prefix: tag, Reason: "give a task to the remote agent " + r.ID,
		Detail: permission.Detail{Call: text}}, nil
}

// Run gives the task, and waits for its end as long as that is soon.
func (t *tool) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	a, err := decode(call)
	r, ok := t.desk.remote(a.Agent)
	switch {
	case ctx.Err() != nil:
		return tools.Result{Text: "Cancelled", Status: tools.Canceled}, nil
	case err != nil:
		return tools.Errorf("%s: %v", ToolName, err), nil
	case !ok:
		return tools.Errorf("%s: %q is not a remote agent of the settings", ToolName, a.Agent), nil
	case strings.TrimSpace(a.Text) == "":
		return tools.Errorf("%s: text is empty", ToolName), nil
	}
	c, err := t.desk.connect(ctx, r)
	if err != nil {
		res := tools.Errorf("not sent: %v", err)
		if _, theirs := errors.AsType[*agentcard.ErrStatusNotOK](err); theirs { // a status has words of the server
			res.Source = r.right().SourceOf()
		}
		return res, nil
	}

	m := sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart(a.Text))
	m.ID, m.ContextID, m.TaskID = call.ID, a.Context, sdk.TaskID(a.Task)
	limited, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	answer, err := c.SendMessage(limited, &sdk.SendMessageRequest{Message: m, Config: &sdk.SendMessageConfig{
		ReturnImmediately: true, AcceptedOutputModes: []string{"text/plain", "text/markdown", "application/json"}}})
	if err != nil {
		return refused(ctx, r, err, c.way.refused()), nil
	}

	return t.desk.settle(ctx, c, r, call, answer), nil
}

// unclear is what a model has to know of a call without an answer.
const unclear = "Whether it got the task is unknown: think before you send it again."

// refused is the result of a call that has no answer; no: the server said so with an HTTP status.
func refused(ctx context.Context, r Remote, err error, no bool) tools.Result {
	if ctx.Err() != nil {
		return tools.Result{Text: "Cancelled: whether the remote agent got the task is unknown", Status: tools.Canceled}
	}
	if errors.Is(err, errInside) || errors.Is(err, errElsewhere) {
		return tools.Errorf("not sent: %v", err)
	}
	told := permission.VisibleLine(head(reason(err).Error(), 500)) // it may quote what the remote agent said
	text := fmt.Sprintf("the remote agent %s refused the task: %s", r.ID, told)
	if _, said := errors.AsType[*sdk.Error](err); !said && !no {
		text = fmt.Sprintf("the remote agent %s gave no answer: %s\n%s", r.ID, told, unclear)
	}

	return tools.Result{Status: tools.Failed, Source: r.right().SourceOf(), Text: text}
}
