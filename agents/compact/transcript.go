package compact

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"daycare/engine/message"
	"daycare/engine/record"
)

// What a transcript shows of one record at most, in characters: enough to know
// what happened. The whole is in history.
const (
	maxSaid   = 6000 // of a message or an answer
	maxCall   = 400  // of the arguments of a call
	maxResult = 900  // of an output
)

// imageTokens is about what vendors count for one picture.
const imageTokens = 1500

// Size is about how many tokens a record takes in a request.
func Size(e *record.Entry) int {
	chars, images := 0, 0
	switch r := e.Rec.(type) {
	case *record.User:
		chars = utf8.RuneCountInString(r.Text) + utf8.RuneCountInString(r.Preface) + 100
		images = pictures(r.Files)
	case *record.Assistant:
		chars = utf8.RuneCountInString(r.Text)
		for _, t := range r.Thinking {
			chars += utf8.RuneCountInString(t.Text) + len(t.Signature)
		}
		for _, c := range r.ToolCalls {
			chars += len(c.Name) + len(c.Arguments)
		}
	case *record.ToolResult:
		chars = utf8.RuneCountInString(r.Output.Text) + 40
		for _, b := range r.Output.Blocks {
			if b.Type == "image" || b.Type == "document" {
				images++
			}
		}
	case *record.Permission:
		chars = 200 + len(r.Request)
	}

	return chars/4 + 1 + images*imageTokens
}

func pictures(files []message.File) int {
	n := 0
	for _, f := range files {
		if strings.HasPrefix(f.MimeType, "image/") {
			n++
		}
	}

	return n
}

// transcript returns the records as text to summarise, in parts of at
// most part tokens. It is escaped, so that nothing in it can end it.
func transcript(entries []*record.Entry, part int) []string {
	var parts []string
	var b strings.Builder
	for _, e := range entries {
		text := line(e)
		if text == "" {
			continue
		}
		if b.Len() > 0 && (b.Len()+len(text))/4 > part {
			parts = append(parts, b.String())
			b.Reset()
		}
		b.WriteString(shorten(text, 4*part) + "\n")
	}

	if b.Len() > 0 {
		parts = append(parts, b.String())
	}

	return parts
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// line is one record of a transcript.
func line(e *record.Entry) string {
	at := e.At.UTC().Format("2006-01-02 15:04")
	switch r := e.Rec.(type) {
	case *record.User:
		who := "person"
		if r.Origin != "" {
			who = "message from " + r.Origin
		}
		return fmt.Sprintf("[%s %s] %s%s", at, who, escape.Replace(shorten(r.Text, maxSaid)), names(r.Files))
	case *record.Assistant:
		return said(at, r)
	case *record.ToolResult:
		files := r.Files
		for _, b := range r.Output.Blocks {
			if b.File != nil {
				files = append(files[:len(files):len(files)], *b.File)
			}
		}
		return fmt.Sprintf("[result of %s: %s] %s%s", r.Name, r.Status, escape.Replace(shorten(r.Output.Text, maxResult)), names(files))
	case *record.Permission:
		return fmt.Sprintf("[%s permission %s: %s] %s", at, r.Event, r.Tag, escape.Replace(shorten(r.Request, maxCall)))
	}

	return ""
}

func said(at string, r *record.Assistant) string {
	var lines []string
	if strings.TrimSpace(r.Text) != "" {
		lines = append(lines, fmt.Sprintf("[%s agent] %s", at, escape.Replace(shorten(r.Text, maxSaid))))
	}
	for _, c := range r.ToolCalls {
		lines = append(lines, fmt.Sprintf("[agent calls %s] %s", c.Name, escape.Replace(shorten(string(c.Arguments), maxCall))))
	}

	return strings.Join(lines, "\n")
}

func names(files []message.File) string {
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintf(&b, " [file %s at %s]", escape.Replace(f.Name), escape.Replace(f.Path))
	}

	return b.String()
}

// shorten keeps the beginning and the end of a text that is longer than limit
// bytes.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	head, tail := text[:limit*2/3], text[len(text)-limit/3:]
	return strings.ToValidUTF8(head, "") + fmt.Sprintf(" […%d bytes…] ", len(text)-len(head)-len(tail)) + strings.ToValidUTF8(tail, "")
}
