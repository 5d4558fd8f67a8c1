package mcp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"daycare/engine/beneath"
)

const (
	agentURI  = "daycare://agents/"
	memoryURI = "daycare://memory/"

	maxNote  = 1 << 20 // bytes
	maxNotes = 1000
)

// files are what can be read of an agent. Neither holds a secret or a right.
var files = []struct{ name, about, mime string }{
	{"SYSTEM.md", "the system prompt of %s as its model has it", "text/markdown"},
	{"descriptor.json", "who %s is: name, description, chat, folder", "application/json"},
}

func (d *Door) addResources() {
	d.server.AddResourceTemplate(&sdk.ResourceTemplate{Name: "agent-file", Title: "File of an agent",
		Description: "SYSTEM.md or descriptor.json of an agent, by its handle, name or id", URITemplate: agentURI + "{agent}/{file}"},
		d.readAgentFile)
	d.server.AddResourceTemplate(&sdk.ResourceTemplate{Name: "note", Title: "Note of the shared memory", MIMEType: "text/markdown",
		Description: "a Markdown file in .daycare/memory, if the settings offer it", URITemplate: memoryURI + "{+path}"}, d.readNote)
	d.server.AddReceivingMiddleware(d.listResources)
}

// listResources answers resources/list from what there is now, for whoever asks.
func (d *Door) listResources(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		if method != "resources/list" {
			return next(ctx, method, r)
		}
		p := peerOf(ctx)
		agents, err := d.offered(ctx, p)
		if err != nil {
			return nil, err
		}

		list := &sdk.ListResourcesResult{Resources: []*sdk.Resource{}}
		for _, a := range agents {
			for _, f := range files {
				list.Resources = append(list.Resources, &sdk.Resource{URI: agentURI + a.ID + "/" + f.name, Name: f.name,
					Title: a.Handle + " " + f.name, Description: fmt.Sprintf(f.about, a.Handle), MIMEType: f.mime})
			}
		}
		if d.notes(p) {
			list.Resources = append(list.Resources, d.listNotes()...)
		}
		return list, nil
	}
}

func (d *Door) readAgentFile(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	uri := r.Params.URI
	ref, name, ok := strings.Cut(strings.TrimPrefix(uri, agentURI), "/")
	ref, err := url.PathUnescape(ref)
	if !ok || err != nil {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	p := peerOf(ctx)
	for _, f := range files {
		if f.name != name {
			continue
		}
		agent, err := d.agent(ctx, p, ref)
		if err != nil {
			return nil, sdk.ResourceNotFoundError(uri)
		}
		text, _, err := p.API.Folders().ReadFile(ctx, agent.ID, name)
		if err != nil {
			return nil, say(err)
		}
		return contents(uri, f.mime, string(text)), nil
	}

	return nil, sdk.ResourceNotFoundError(uri)
}

// notes reports whether a peer can read the notes. They are of all agents together.
func (d *Door) notes(p Peer) bool {
	return !p.Some && len(d.o.Offer().Agents) > 0 && d.o.Offer().Memory
}

// listNotes are the first notes of the memory. Agents write there, so only what is a regular file
// is listed, and reading looks again.
func (d *Door) listNotes() (list []*sdk.Resource) {
	dir, err := beneath.Dir(d.o.Home, "memory")
	if err != nil {
		return nil // there is none
	}
	defer dir.Close()
	_ = fs.WalkDir(dir.FS(), ".", func(at string, e fs.DirEntry, err error) error {
		switch {
		case len(list) == maxNotes:
			return fs.SkipAll
		case err != nil || !e.Type().IsRegular() || !isNote(at):
			return nil
		}
		uri := url.URL{Path: at}
		list = append(list, &sdk.Resource{URI: memoryURI + uri.EscapedPath(), Name: at, Description: "a note of the agents' memory",
			MIMEType: "text/markdown"})
		return nil
	})

	return list
}

// isNote keeps what is read to the names of notes.
func isNote(at string) bool {
	return fs.ValidPath(at) && path.Ext(at) == ".md" && !strings.HasPrefix(path.Base(at), ".") && oneLine(at) == at
}

func (d *Door) readNote(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	uri := r.Params.URI
	at, err := url.PathUnescape(strings.TrimPrefix(uri, memoryURI))
	if err != nil || !isNote(at) || !d.notes(peerOf(ctx)) {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	dir, err := beneath.Dir(d.o.Home, "memory")
	if err != nil {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	defer dir.Close()
	text, _, err := beneath.Read(dir, at, maxNote)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	if err != nil {
		return nil, fmt.Errorf("read the note %s: %w", at, beneath.Reason(err))
	}

	return contents(uri, "text/markdown", string(text)), nil
}

func contents(uri, mime, text string) *sdk.ReadResourceResult {
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: mime, Text: strings.ToValidUTF8(text, "\ufffd")}}}
}
