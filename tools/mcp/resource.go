package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"daycare/engine/permission"
	"daycare/tools"
)

const (
	// resourceTool is the name of the tool that lists and reads what servers have.
	resourceTool = "mcp_resource"
	// resourceRight is what stands for the name of a tool in the permission: @mcp:SERVER/resources/read.
	resourceRight = "resources/read"
	// maxResources bounds a list.
	maxResources = 200
	// maxAbout bounds what a server says of one resource in a list, in characters.
	maxAbout = 200
)

// A reader is that tool.
type reader struct{ pool *Pool }

// Spec describes the tool. Whatever a server says, what it does to be read is not known.
func (r *reader) Spec() tools.Spec {
	return tools.Spec{Name: resourceTool, Replay: tools.Once, Writes: true,
		Description: "Read a resource of an MCP server; without uri: list its resources.",
		Schema: json.RawMessage(`{"type":"object","properties":{"server":{"type":"string"},"uri":{"type":"string"}},` +
			`"required":["server"],"additionalProperties":false}`)}
}

type readingArgs struct {
	Server string `json:"server"`
	URI    string `json:"uri"`
}

// read is what a call is about; the tool it returns is none of the server's, but has its rights.
func (r *reader) read(call tools.Call) (args readingArgs, as *tool, err error) {
	if err := json.Unmarshal(call.Arguments, &args); err != nil {
		return args, nil, fmt.Errorf("the arguments do not fit: %w", err)
	}
	s, err := r.pool.named(args.Server)
	if err != nil {
		return args, nil, err
	}

	return args, &tool{pool: r.pool, server: s.conf, def: Definition{Name: resourceRight}}, nil
}

// Needs is the permission of the server for resources.
func (r *reader) Needs(call tools.Call) (*permission.Request, error) {
	args, as, err := r.read(call)
	if err != nil {
		return nil, err
	}
	tag := as.right().Tag()
	text := as.right().Server + ": list its resources"
	if args.URI != "" {
		text = as.right().Server + ": read " + permission.VisibleLine(args.URI)
	}
	return &permission.Request{Tag: tag, Prefix: tag, Reason: "read resources of the MCP server " + args.Server,
		Detail: permission.Detail{Call: text}}, nil
}

// Run lists or reads. The runtime has asked for approval.
func (r *reader) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	args, as, err := r.read(call)
	if err != nil {
		return tools.Errorf("%v", err), nil
	}
	var res tools.Result
	said := r.pool.read(ctx, args.Server, func(ctx context.Context, got *session) (err error) {
		switch {
		case got.InitializeResult().Capabilities.Resources == nil:
			return errNoResources
		case args.URI == "":
			res, err = listResources(ctx, got)
		default:
			res, err = as.readResource(ctx, got, args.URI)
		}
		return err
	})
	if said != nil {
		return *said, nil
	}
	res.Source = as.right().SourceOf()
	return res, nil
}

// errNoResources is that a server has none.
var errNoResources = errors.New("it has no resources")

// named finds a server that an agent named.
func (p *Pool) named(id string) (*server, error) {
	if s := p.find(id); s != nil {
		return s, nil
	}

	var ids []string
	for _, s := range p.all() {
		ids = append(ids, s.conf.ID)
	}

	return nil, fmt.Errorf("there is no MCP server %q; there are: %s", id, strings.Join(ids, ", "))
}

// read has get read something of the server id, within the time that a call may take. If that
// fails, said is the result for the agent.
func (p *Pool) read(ctx context.Context, id string, get func(context.Context, *session) error) (said *tools.Result) {
	s, err := p.named(id)
	if err != nil {
		res := tools.Errorf("%v", err)
		return &res
	}
	got, done, err := s.use(ctx)
	if err != nil {
		res := s.conf.words(tools.Errorf("not read: %v", err), err)
		return &res
	}
	defer done()

	limited, cancel := context.WithTimeout(ctx, s.conf.Timeout)
	defer cancel()
	err = get(limited, got)
	switch {
	case ctx.Err() != nil:
		return &tools.Result{Text: "Cancelled", Status: tools.Canceled}
	case limited.Err() != nil:
		s.pool.begin(func() { s.drop(got) })
		return &tools.Result{Status: tools.TimedOut, Text: fmt.Sprintf("no answer within %s", s.conf.Timeout)}
	case err != nil:
		why := err.Error()
		if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
			why = cleaned(refused.Message, maxDescription)
		}
		res := s.conf.words(tools.Errorf("the MCP server %s did not give it: %s", id, why), err)
		return &res
	}
	s.works()

	return nil
}

// listResources lists what a server has, and the patterns of what it can make.
func listResources(ctx context.Context, got *session) (tools.Result, error) {
	var lines []string
	add := func(uri, name, about, kind string) {
		text := permission.VisibleLine(uri) + "  " + permission.VisibleLine(cleaned(name, maxAbout))
		if kind != "" {
			text += " (" + permission.VisibleLine(kind) + ")"
		}
		if about != "" {
			text += ": " + permission.VisibleLine(cleaned(about, maxAbout))
		}
		lines = append(lines, text)
	}
	for r, err := range got.Resources(ctx, nil) {
		if err != nil {
			return tools.Result{}, err
		}
		if len(lines) == maxResources {
			lines = append(lines, fmt.Sprintf("[only the first %d are shown]", maxResources))
			break
		}
		add(r.URI, r.Name, r.Description, r.MIMEType)
	}
	n := 0
	for r, err := range got.ResourceTemplates(ctx, nil) {
		if err != nil || n == maxResources { // not every server has them
			break
		}
		n++
		add(r.URITemplate, r.Name, r.Description, r.MIMEType)
	}
	if len(lines) == 0 {
		lines = append(lines, "(no resources)")
	}

	return tools.Result{Text: strings.Join(lines, "\n")}, nil
}

// readResource reads one. Text stays text, pictures are shown, everything else is kept as a file.
func (t *tool) readResource(ctx context.Context, got *session, uri string) (tools.Result, error) {
	from, err := got.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
	if err != nil {
		return tools.Result{}, err
	}
	a := answer{tool: t}
	for _, c := range from.Contents {
		a.add(&sdk.EmbeddedResource{Resource: c})
	}
	if len(a.text) == 0 {
		a.text = append(a.text, "(it is empty)")
	}
	a.res.Text = strings.Join(a.text, "\n")
	return a.res, nil
}
