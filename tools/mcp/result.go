package mcp

import (
	"encoding/json"
	"fmt"
	"mime"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"daycare/engine/plain"
	"daycare/tools"
)

// pictures are the types that models are shown.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// maxFiles bounds the files of one answer.
const maxFiles = 20

// An answer collects what a tool answered.
type answer struct {
	tool *tool
	text []string
	res  tools.Result
	n    int // files
}

// result is an answer as the model reads it. Text stays text, pictures are shown, everything
// else is kept as a file. A text that is too long is cut by the runtime, which keeps the whole.
func (t *tool) result(from *sdk.CallToolResult) tools.Result {
	a := answer{tool: t}
	for _, c := range from.Content {
		a.add(c)
	}
	if len(from.Content) == 0 && from.StructuredContent != nil {
		if data, err := json.Marshal(from.StructuredContent); err == nil {
			a.text = append(a.text, string(plain.Indented(data)))
		}
	}
	if len(a.text) == 0 {
		a.text = append(a.text, "(the answer is empty)")
	}
	a.res.Text = strings.Join(a.text, "\n")
	if from.IsError {
		a.res.Status = tools.Failed
	}

	return a.res
}

func (a *answer) add(c sdk.Content) {
	switch c := c.(type) {
	case *sdk.TextContent:
		a.text = append(a.text, c.Text)
	case *sdk.ImageContent:
		a.file("image", c.MIMEType, c.Data)
	case *sdk.AudioContent:
		a.file("audio", c.MIMEType, c.Data)
	case *sdk.ResourceLink:
		a.text = append(a.text, strings.TrimSpace(fmt.Sprintf("[resource %s: %s %s]", c.URI, c.Name, c.Description)))
	case *sdk.EmbeddedResource:
		if c.Resource == nil {
			return
		}
		if c.Resource.Blob == nil {
			a.text = append(a.text, fmt.Sprintf("[resource %s]\n%s", c.Resource.URI, c.Resource.Text))
			return
		}
		a.text = append(a.text, fmt.Sprintf("[resource %s]", c.Resource.URI))
		a.file("resource", c.Resource.MIMEType, c.Resource.Blob)
	default:
		a.text = append(a.text, fmt.Sprintf("[content of an unknown type: %T]", c))
	}
}

// file keeps a file of the answer.
func (a *answer) file(what, kind string, data []byte) {
	if a.n++; a.n > maxFiles {
		if a.n == maxFiles+1 {
			a.text = append(a.text, fmt.Sprintf("[more than %d files: the rest is left out]", maxFiles))
		}
		return
	}
	f, err := a.tool.pool.options.Keep(fmt.Sprintf("%s-%s-%d%s", a.tool.server.ID, what, a.n, extension(kind)), kind, data)
	if err != nil {
		a.text = append(a.text, fmt.Sprintf("[%s of %d bytes could not be kept: %v]", what, len(data), err))
		return
	}
	if slices.Contains(pictures, kind) {
		a.res.Blocks = append(a.res.Blocks, tools.Block{Type: "image", File: &f})
		a.text = append(a.text, fmt.Sprintf("[%s %s, %d bytes]", what, f.Name, len(data)))
		return
	}
	a.res.Files = append(a.res.Files, f)
	a.text = append(a.text, fmt.Sprintf("[%s %s, %s, %d bytes: kept as %s]", what, f.Name, typeName(kind), len(data), f.Path))
}

func typeName(kind string) string {
	if kind == "" {
		return "of an unknown type"
	}
	return kind
}

// extension is a usual end of the names of files of a type; "" if none is known.
func extension(kind string) string {
	kind, _, err := mime.ParseMediaType(kind)
	if err != nil {
		return ""
	}
	usual := map[string]string{"image/jpeg": ".jpg", "audio/mpeg": ".mp3", "audio/wav": ".wav", "text/plain": ".txt",
		"application/octet-stream": ".bin"}
	if ext, ok := usual[kind]; ok {
		return ext
	}
	if list, err := mime.ExtensionsByType(kind); err == nil && len(list) > 0 {
		return list[0]
	}

	return ""
}
