package providers

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"
)

// A Body is the body of a request as a list of slices, most of them the kept
// encodings of messages: it is sent without being copied together.
type Body struct {
	parts [][]byte // the first two are a head and what begun has, unless that is nil
	size  int64
	kept  *Kept
	begun *beginning
}

var comma = []byte{','}

// Begin appends those messages of req that begin the later requests of the conversation, too, but none beyond the first n,
// each with a comma after it, and returns how many these are. It must come after one Add.
func (b *Body) Begin(req *Request, n int, key string, encode func(*Message) []byte) int {
	n = min(n, req.Answered)
	if req.Kept == nil || n <= 0 {
		return 0
	}
	begun, text := req.Kept.begin(key, req.Messages[:n], encode)
	b.kept, b.begun = req.Kept, begun
	b.Add(text)

	return n
}

// Messages appends all messages of req with commas between them. It must come after one Add.
func (b *Body) Messages(req *Request, key string, encode func(*Message) []byte) {
	begun := b.Begin(req, len(req.Messages)-1, key, encode)
	rest := req.Messages[begun:]
	b.Grow(2*len(rest) + 1)
	for i, m := range rest {
		if i > 0 {
			b.Add(comma)
		}
		b.Add(m.Encoded(key, encode))
	}
}

// Add appends b, which must not change any more.
func (b *Body) Add(p []byte) {
	b.parts = append(b.parts, p)
	b.size += int64(len(p))
}

// Grow makes room for n further slices.
func (b *Body) Grow(n int) { b.parts = slices.Grow(b.parts, n) }

// Len is the length in bytes.
func (b *Body) Len() int64 { return b.size }

// Bytes is the whole body in one piece, for tests and logs.
func (b *Body) Bytes() []byte { return slices.Concat(b.parts...) }

// Sum is the SHA-256 of the body, in hexadecimal.
func (b *Body) Sum() string {
	h, rest := sha256.New(), b.parts
	if b.begun != nil {
		h, rest = b.kept.sumOf(b.begun, b.parts[0], b.parts[1]), b.parts[2:]
	}
	for _, p := range rest {
		h.Write(p)
	}

	return fmt.Sprintf("%x", h.Sum(nil))
}

// Reader reads the body from its start; any number may be in use at once.
func (b *Body) Reader() io.ReadCloser { return &bodyReader{rest: b.parts} }

type bodyReader struct {
	rest [][]byte
	off  int // into rest[0]
}

func (r *bodyReader) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && len(r.rest) > 0 {
		c := copy(p[n:], r.rest[0][r.off:])
		n += c
		if r.off += c; r.off == len(r.rest[0]) {
			r.rest, r.off = r.rest[1:], 0
		}
	}

	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}

	return n, nil
}

func (r *bodyReader) Close() error { return nil }

// Options are fields that the settings add to every request, as JSON. They win
// over what the wire would write; null takes a field away.
type Options map[string]json.RawMessage

// EncodeOptions prepares options; reserved names the fields of the wire that
// carry the conversation and cannot be set.
func EncodeOptions(options map[string]any, reserved ...string) (Options, error) {
	o := make(Options, len(options))
	for name, value := range options {
		if slices.Contains(reserved, name) {
			return nil, fmt.Errorf("option %q: the field belongs to the conversation and cannot be set", name)
		}
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("encode option %q: %w", name, err)
		}
		o[name] = raw
	}

	return o, nil
}

// Head writes the fields of a JSON object before the long ones: in a fixed order,
// as requests must be equal byte for byte up to where the conversation grew.
type Head struct {
	Bytes   []byte
	options Options
	set     []string // written by Set
}

// NewHead begins the object for req, with room for its system prompt and tools;
// options are written by Done, in place of a Field of the same name.
func NewHead(req *Request, options Options) *Head {
	size := 1024 + len(req.System)*9/8
	for _, t := range req.Tools {
		size += 128 + len(t.Name) + len(t.Description)*9/8 + len(t.Schema)
	}

	return &Head{Bytes: append(make([]byte, 0, size), '{'), options: options}
}

// Field appends a field with the JSON in raw, if the options do not have it.
func (h *Head) Field(name, raw string) {
	if _, ok := h.options[name]; !ok {
		h.add(name, raw)
	}
}

// Set writes a field in place of an option's value, but not where that is null.
func (h *Head) Set(name, raw string) {
	if string(h.options[name]) == "null" {
		return
	}
	h.add(name, raw)
	h.set = append(h.set, name)
}

// Done appends the options and returns all, ready for one more field.
func (h *Head) Done() []byte {
	for _, name := range slices.Sorted(maps.Keys(h.options)) {
		if raw := string(h.options[name]); raw != "null" && !slices.Contains(h.set, name) {
			h.add(name, raw)
		}
	}

	return append(h.Bytes, ',')
}

func (h *Head) add(name, raw string) {
	if len(h.Bytes) > 1 {
		h.Bytes = append(h.Bytes, ',')
	}
	h.Bytes = AppendString(h.Bytes, name)
	h.Bytes = append(h.Bytes, ':')
	h.Bytes = append(h.Bytes, raw...)
}

// AppendTools appends the list of tools as OpenAI's formats have it, each between begin and end, and a comma.
func AppendTools(b []byte, tools []Tool, begin, end string) []byte {
	if len(tools) == 0 {
		return b
	}
	b = append(b, `"tools":[`...)
	empty := len(b)
	for _, t := range tools {
		b = AppendField(Separate(b, empty), begin, t.Name)
		b = AppendField(b, `,"description":`, t.Description)
		b = append(b, `,"parameters":`...)
		if len(t.Schema) == 0 {
			b = append(b, `{"type":"object","properties":{}}`...)
		}

		b = append(b, t.Schema...)
		b = append(b, end...)
	}

	return append(b, "],"...)
}

// Separate appends a comma to what stands after empty, if something does.
func Separate(b []byte, empty int) []byte {
	if len(b) > empty {
		return append(b, ',')
	}
	return b
}

// AppendField appends what stands before a text, and the text as a JSON string.
func AppendField(b []byte, before, text string) []byte {
	return AppendString(append(b, before...), text)
}

const hex = "0123456789abcdef"

// plain are the bytes that stand for themselves in a JSON string.
var plain = func() (t [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// AppendString appends s as a JSON string. What is not UTF-8 becomes U+FFFD.
// It exists because encoding/json cannot append and escapes < > & as well, which
// costs tokens where models see the raw text.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if plain[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(append(dst, s[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += size
			continue
		}

		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}

	return append(append(dst, s[start:]...), '"')
}

// AppendData appends data as the rest of a JSON string, with its end: a data URL.
func AppendData(dst []byte, kind string, data []byte) []byte {
	prefix := AppendString(nil, "data:"+kind+";base64,")
	dst = append(dst, prefix[:len(prefix)-1]...)
	return append(base64.StdEncoding.AppendEncode(dst, data), '"')
}
