package prompt

import (
	"strings"

	"daycare/agents/providers"
	"daycare/engine/message"
	"daycare/engine/record"
)

const (
	// maxImage is the largest picture that is shown; vendors refuse larger ones.
	maxImage = 5 << 20
	// maxImages bounds all pictures of a conversation. They are sent with every
	// call, and a request that vendors refuse for its size (32 MiB, a third of
	// it base64) would be refused at every later call, too.
	maxImages = 16 << 20
)

// shown are the kinds of pictures that every vendor takes.
var shown = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

// user renders a User record: its text with a line per file, and its pictures.
func (b *Builder) user(e *record.Entry, u *record.User) saying {
	s := fromUser(e.At, u)
	for _, f := range u.Files {
		img, note := b.image(f)
		s.files = append(s.files, fileLine(f, note))
		if img != nil {
			s.images = append(s.images, *img)
		}
	}
	return s
}

// result renders a ToolResult record. Diffs among its blocks are for people.
func (b *Builder) result(r *record.ToolResult) providers.Result {
	text := r.Output.Text
	if r.Output.Blob != "" && text == "" {
		text = b.blob(r.Output.Blob)
	}
	out := providers.Result{CallID: r.ToolCallID, Name: r.Name}
	var lines []string
	for _, f := range r.Files {
		lines = append(lines, fileLine(f, ""))
	}
	for _, block := range r.Output.Blocks {
		if block.Type != "image" || block.File == nil {
			continue
		}
		img, note := b.image(*block.File)
		lines = append(lines, fileLine(*block.File, note))
		if img != nil {
			out.Images = append(out.Images, *img)
		}
	}
	if text != "" {
		lines = append([]string{text}, lines...)
	}
	out.Text, out.IsError = resultText(r.Status, strings.Join(lines, "\n"))
	return out
}

// blob fetches an output that was too long for a line of history.
func (b *Builder) blob(hash string) string {
	if b.src.Blob != nil {
		if text, err := b.src.Blob(hash); err == nil {
			return text
		}
	}
	return "[the output was kept in blobs/" + hash + ", which cannot be read]"
}

// image fetches a picture for the model, or says why it is not shown. For what
// is no picture both are empty.
func (b *Builder) image(f message.File) (_ *providers.Image, note string) {
	if !shown[f.MimeType] {
		return nil, ""
	}
	if f.Size > maxImage {
		return nil, "too large to be shown"
	}
	if b.src.Image == nil {
		return nil, "not shown"
	}
	data, err := b.src.Image(f)
	switch {
	case err != nil || len(data) == 0:
		return nil, "cannot be read"
	case len(data) > maxImage: // the file grew since it was recorded
		return nil, "too large to be shown"
	case b.images+int64(len(data)) > maxImages:
		return nil, "not shown: too many pictures in this conversation"
	}
	b.images += int64(len(data))
	return &providers.Image{MimeType: f.MimeType, Data: data}, ""
}
