package acp

import (
	"encoding/base64"
	"fmt"
	"mime"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	acp "github.com/coder/acp-go-sdk"

	"daycare/engine/control"
	"daycare/engine/plain"
)

// maxInline bounds an embedded text that is part of the message, in bytes; a longer one is attached.
const maxInline = 64 << 10

// A draft is a prompt on its way to becoming a message.
type draft struct {
	root  string
	text  strings.Builder
	files []control.File
	bytes int // of the files
}

// compose makes a message of what an editor sends.
func compose(root string, blocks []acp.ContentBlock) (control.Message, error) {
	d := draft{root: root}
	for i, b := range blocks {
		if err := d.add(b); err != nil {
			return control.Message{}, problem(-32602, "prompt[%d]: %v", i, err)
		}
	}
	text := strings.TrimSpace(d.text.String())
	if text == "" && len(d.files) == 0 {
		return control.Message{}, problem(-32602, "the prompt is empty: it needs a text, a resource or an image")
	}

	return control.Message{Text: text, Files: d.files}, nil
}

func (d *draft) add(b acp.ContentBlock) error {
	switch {
	case b.Text != nil:
		d.text.WriteString(b.Text.Text)
	case b.Image != nil:
		return d.attach("image", b.Image.MimeType, b.Image.Data)
	case b.ResourceLink != nil:
		d.text.WriteString(d.place(b.ResourceLink.Uri))
	case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
		return d.embed(*b.Resource.Resource.TextResourceContents)
	case b.Resource != nil && b.Resource.Resource.BlobResourceContents != nil:
		r := b.Resource.Resource.BlobResourceContents
		kind := ""
		if r.MimeType != nil {
			kind = *r.MimeType
		}
		return d.attach(baseName(r.Uri), kind, r.Blob)
	case b.Audio != nil:
		return fmt.Errorf("audio is not supported; allowed: text, image, resource, resource_link")
	default:
		return fmt.Errorf("an unknown kind of content; allowed: text, image, resource, resource_link")
	}

	return nil
}

// place is what a link leads to, as agents name it: the path of a file, or the address.
func (d *draft) place(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Path == "" {
		return uri
	}
	name := u.Path
	if rel, err := filepath.Rel(d.root, u.Path); err == nil && filepath.IsLocal(rel) {
		name = rel
	}
	if u.Fragment != "" { // #L10-20
		name += "#" + u.Fragment
	}

	return name
}

// embed puts a text into the message, as what it is: a part of a file, and not words of the user.
func (d *draft) embed(r acp.TextResourceContents) error {
	if len(r.Text) > maxInline {
		name := baseName(r.Uri)
		if path.Ext(name) == "" {
			name += ".txt"
		}
		fmt.Fprintf(&d.text, "%s (attached)", d.place(r.Uri))
		return d.keep(name, []byte(r.Text))
	}

	fmt.Fprintf(&d.text, "\n\nFrom %s:\n%s\n\n", d.place(r.Uri), plain.Fenced(r.Text))

	return nil
}

func baseName(uri string) string {
	if u, err := url.Parse(uri); err == nil {
		uri = u.Path
	}
	if name := path.Base(uri); name != "." && name != "/" {
		return name
	}

	return "file"
}

// attach keeps base64 as a file.
func (d *draft) attach(name, kind, data string) error {
	content, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return fmt.Errorf("the data is not base64: %w", err)
	}
	if path.Ext(name) == "" {
		name += extension(kind)
	}

	return d.keep(name, content)
}

func (d *draft) keep(name string, content []byte) error {
	if d.bytes += len(content); d.bytes > control.MaxFileBytes {
		return fmt.Errorf("the files have over %d bytes together", control.MaxFileBytes)
	}
	d.files = append(d.files, control.File{Name: name, Data: content})

	return nil
}

// extension is that of a MIME type, "" if it has none.
func extension(kind string) string {
	switch kind {
	case "image/png":
		return ".png"
	case "image/jpeg":
		return ".jpg"
	case "image/gif":
		return ".gif"
	case "image/webp":
		return ".webp"
	}
	if all, err := mime.ExtensionsByType(kind); err == nil && len(all) > 0 {
		return all[0]
	}

	return ""
}
