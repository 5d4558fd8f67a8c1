package inbox

import (
	"strconv"
	"time"
	"unicode/utf8"

	"daycare/engine/disk"
	"daycare/engine/message"
)

// Lines are encoded by hand: an accept is one write and one barrier, and the
// line should cost less than either. encode_test.go holds it against
// encoding/json, field by field, so a field added to Item cannot be forgotten.

// Types of lines that are not items.
const (
	lineDone    = "done"    // ids[] are closed; open says how many are left
	lineDropped = "dropped" // id was taken out by a user
	lineFront   = "front"   // id was moved before all others by a user
	lineKeys    = "keys"    // dedupe keys carried over a rotation
)

// A line being encoded begins at start of buf; comma says whether a member
// precedes the next one.
type encoder struct {
	buf   []byte
	start int
	comma bool
}

// begin opens a line with the members that every line has.
func begin(buf []byte, seq int64, at time.Time, kind string) encoder {
	e := encoder{buf: buf, start: len(buf)}
	e.open()
	e.integer("seq", seq)
	e.key("at")
	e.buf = append(e.buf, '"')
	e.buf = at.UTC().AppendFormat(e.buf, disk.LineTime)
	e.buf = append(e.buf, '"')
	e.text("type", kind)

	return e
}

func (e *encoder) open()  { e.buf, e.comma = append(e.buf, '{'), false }
func (e *encoder) close() { e.buf, e.comma = append(e.buf, '}'), true }

func (e *encoder) key(name string) {
	if e.comma {
		e.buf = append(e.buf, ',')
	}
	e.comma = true
	e.buf = append(e.buf, '"')
	e.buf = append(e.buf, name...)
	e.buf = append(e.buf, '"', ':')
}

// text writes a member; an empty one is left out.
func (e *encoder) text(name, s string) {
	if s != "" {
		e.key(name)
		e.buf = appendString(e.buf, s)
	}
}

func (e *encoder) integer(name string, n int64) {
	e.key(name)
	e.buf = strconv.AppendInt(e.buf, n, 10)
}

func (e *encoder) flag(name string, set bool) {
	if set {
		e.key(name)
		e.buf = append(e.buf, "true"...)
	}
}

func (e *encoder) list(name string, all []string) {
	e.key(name)
	e.buf = append(e.buf, '[')
	for i, s := range all {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		e.buf = appendString(e.buf, s)
	}
	e.buf = append(e.buf, ']')
}

// seal ends the line with the checksum of what it holds so far.
func (e *encoder) seal() []byte { return append(disk.Seal(e.buf, e.start), '\n') }

// appendItem appends the line of an item to buf.
func appendItem(buf []byte, it *Item) []byte {
	e := begin(buf, it.Seq, it.At, string(it.Kind))
	e.text("id", it.ID)
	e.text("dedupe", it.Dedupe)
	if it.Context != (message.Context{}) {
		e.key("context")
		e.open()
		e.text("messageId", it.Context.MessageID)
		e.text("replyTo", it.Context.ReplyTo)
		e.text("sender", it.Context.Sender)
		e.close()
	}
	if it.Route != nil {
		e.key("route")
		e.open()
		e.text("connector", it.Route.Connector)
		e.text("channelId", it.Route.ChannelID)
		e.text("userId", it.Route.UserID)
		e.text("threadId", it.Route.ThreadID)
		e.close()
	}

	e.text("text", it.Text)
	e.files(it.Files)
	e.text("queue", string(it.Queue))
	e.text("origin", it.Origin)
	e.flag("silent", it.Silent)
	if it.Hops != 0 {
		e.integer("hops", int64(it.Hops))
	}

	e.flag("untrusted", it.Untrusted)
	e.text("source", it.Source)
	e.text("token", it.Token)
	e.text("decision", it.Decision)
	e.text("by", it.By)
	e.text("tag", it.Tag)
	e.text("sha256", it.SHA256)
	e.scripts(it.Scripts)
	if it.After != 0 {
		e.integer("after", it.After)
	}
	e.flag("edited", it.Edited)

	return e.seal()
}

func (e *encoder) files(all []message.File) {
	if len(all) == 0 {
		return
	}
	e.key("files")
	e.buf, e.comma = append(e.buf, '['), false

	for _, f := range all {
		if e.comma {
			e.buf = append(e.buf, ',')
		}
		e.open()
		e.text("id", f.ID)
		e.text("name", f.Name)
		e.text("mimeType", f.MimeType)
		e.integer("size", f.Size)
		e.text("path", f.Path)
		e.close()
	}

	e.buf, e.comma = append(e.buf, ']'), true
}

func (e *encoder) scripts(all []message.Script) {
	if len(all) == 0 {
		return
	}
	e.key("scripts")
	e.buf, e.comma = append(e.buf, '['), false

	for _, s := range all {
		if e.comma {
			e.buf = append(e.buf, ',')
		}
		e.open()
		e.text("path", s.Path)
		e.text("sha256", s.SHA256)
		e.close()
	}

	e.buf, e.comma = append(e.buf, ']'), true
}

func appendDone(buf []byte, seq int64, at time.Time, ids []string, open int) []byte {
	e := begin(buf, seq, at, lineDone)
	e.list("ids", ids)
	e.integer("open", int64(open))
	return e.seal()
}

// appendMark appends a dropped or front line.
func appendMark(buf []byte, seq int64, at time.Time, kind, id string) []byte {
	e := begin(buf, seq, at, kind)
	e.text("id", id)
	return e.seal()
}

func appendKeys(buf []byte, seq int64, at time.Time, keys []string) []byte {
	e := begin(buf, seq, at, lineKeys)
	e.list("keys", keys)
	return e.seal()
}

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. What is not UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, s[from:i]...), "\ufffd"...)
				from = i + 1
			}
			i += n
			continue
		}
		if c < ' ' || c == '"' || c == '\\' {
			b = appendEscape(append(b, s[from:i]...), c)
			from = i + 1
		}
		i++
	}

	return append(append(b, s[from:]...), '"')
}

func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}

	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
