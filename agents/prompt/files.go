package prompt

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"daycare/agents/providers"
	"daycare/engine/message"
	"daycare/engine/record"
)

const (
	// maxFile is the largest file that is opened, as large as attachments can be.
	maxFile = 20 << 20
	// maxMedia bounds all pictures and documents of a conversation, in bytes. They
	// are sent with every call, and a request that vendors refuse for its size (32
	// MiB, a third of it base64) would be refused at every later call, too.
	maxMedia = 16 << 20
	// maxShown is how many of them are shown: old ones go before any text has to.
	maxShown = 20
	// maxText is how much of a text file is shown, maxTexts how much of all those
	// of one message, in bytes. The rest is a tool's to read.
	maxText  = 32 << 10
	maxTexts = 64 << 10
)

const pdf = "application/pdf"

// user renders a User record: its text with a line per file, the text files' content,
// and its pictures and documents.
func (b *Builder) user(e *record.Entry, u *record.User) saying {
	s := fromUser(e.At, u)
	left := maxTexts
	for _, f := range u.Files {
		switch {
		case pictures[f.MimeType]:
			img, note := b.image(f)
			s.files = append(s.files, fileLine(f, note))
			if img != nil {
				s.media = append(s.media, *img)
			}
		case f.MimeType == pdf:
			doc, note := b.document(f)
			s.files = append(s.files, fileLine(f, note))
			if doc != nil {
				s.media = append(s.media, *doc)
			}
		case textual(f.MimeType):
			text, note := b.text(f, min(left, maxText))
			left -= len(text)
			s.files = append(s.files, fileLine(f, note))
			if text != "" {
				s.files = append(s.files, "<file name=\""+escapeAttr.Replace(clean(f.Name))+"\">\n"+escape(text)+"\n</file>")
			}
		default:
			s.files = append(s.files, fileLine(f, ""))
		}
	}

	return s
}

// pictures are the kinds of pictures that every vendor takes.
var pictures = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

// textual reports whether files of a kind are text. What says it is and is not, is
// found out when it is read.
func textual(kind string) bool {
	kind, _, _ = strings.Cut(kind, ";")
	if strings.HasPrefix(kind, "text/") {
		return true
	}

	switch _, name, _ := strings.Cut(kind, "/"); strings.TrimPrefix(name, "x-") {
	case "json", "xml", "yaml", "toml", "javascript", "sh", "sql", "ndjson", "jsonl":
		return true
	}

	return strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") && kind != "image/svg+xml"
}

// text fetches a text file, cut to limit bytes.
func (b *Builder) text(f message.File, limit int) (_, note string) {
	if limit < 1<<10 && int64(limit) < f.Size {
		return "", "not shown: the files before it are long"
	}
	data, note := b.read(f)
	switch {
	case note != "" || len(data) == 0:
		return "", note
	case bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data):
		return "", "" // no text after all
	case len(data) <= limit:
		return strings.TrimSuffix(string(data), "\n"), ""
	}

	head := string(data[:limit])
	if end := strings.LastIndexByte(head, '\n'); end > limit/2 {
		head = head[:end]
	}
	head = strings.ToValidUTF8(head, "")

	return head, fmt.Sprintf("its first %d bytes follow", len(head))
}

// document loads a PDF. The provider of a model that does not accept PDFs reports that.
func (b *Builder) document(f message.File) (_ *providers.Document, note string) {
	data, note := b.read(f)
	switch {
	case note != "":
		return nil, note
	case !bytes.HasPrefix(data, []byte("%PDF-")):
		return nil, "not shown: it is not a PDF"
	case !b.room(len(data)):
		return nil, tooMany
	}

	return &providers.Document{Name: clean(f.Name), MimeType: pdf, Data: data}, ""
}

// read fetches a file, or says why it cannot.
func (b *Builder) read(f message.File) (_ []byte, note string) {
	if f.Size > maxFile {
		return nil, "too large to be shown"
	}
	if b.src.File == nil {
		return nil, "not shown"
	}

	data, err := b.src.File(f)
	switch {
	case err != nil || len(data) == 0:
		return nil, "cannot be read"
	case len(data) > maxFile: // the file grew since it was recorded
		return nil, "too large to be shown"
	}

	return data, ""
}

// result renders a ToolResult record. Diffs among its blocks are for users.
func (b *Builder) result(r *record.ToolResult) providers.Result {
	text := r.Output.Text
	switch {
	case r.Output.Blob != "" && text == "":
		text = b.blob(r.Output.Blob)
	case r.Output.Blob != "":
		text = b.locate(text, r.Output.Blob)
	}

	out := providers.Result{CallID: r.ToolCallID, Name: r.Name}
	var lines []string
	for _, f := range r.Files {
		lines = append(lines, fileLine(f, ""))
	}

	for _, block := range r.Output.Blocks {
		switch {
		case block.File == nil:
		case block.Type == "image":
			img, note := b.image(*block.File)
			lines = append(lines, fileLine(*block.File, note))
			if img != nil {
				out.Images = append(out.Images, *img)
			}
		case block.Type == "document":
			doc, note := b.document(*block.File)
			lines = append(lines, fileLine(*block.File, note))
			if doc == nil {
				lines = append(lines, block.Text)
				continue
			}
			doc.Text = block.Text
			out.Documents = append(out.Documents, *doc)
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
	text, err := record.ReadBlob(b.src.Dir, hash)
	if err != nil {
		return "[the output was kept in " + record.BlobPath(hash) + ", which cannot be read]"
	}

	return text
}

// locate gives the model the absolute path of a kept output that a shortened one names.
// Older versions recorded an absolute path, which may be that of another place where the
// workspace lay.
func (b *Builder) locate(text, hash string) string {
	const before = " in "
	file := record.BlobPath(hash)
	at := strings.Index(text, file)
	if at < 0 {
		return text
	}

	from := strings.LastIndex(text[:at], before)
	if from < 0 {
		return text
	}
	from += len(before)
	if dir := text[from:at]; dir != "" && !filepath.IsAbs(dir) || strings.Contains(dir, "\n") {
		return text
	}

	return text[:from] + filepath.Join(b.src.Dir, file) + text[at+len(file):]
}

// image fetches a picture for the model, or says why it is not shown. For what
// is no picture both are empty.
func (b *Builder) image(f message.File) (_ *providers.Image, note string) {
	if !pictures[f.MimeType] {
		return nil, ""
	}
	data, note := b.read(f)
	if note != "" {
		return nil, note
	}

	img, note := picture(data)
	if img == nil {
		return nil, note
	}
	if !b.room(len(img.Data)) {
		return nil, tooMany
	}

	return img, note
}
