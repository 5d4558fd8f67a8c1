package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"

	"daycare/engine/disk"
	"daycare/engine/finding"
)

// maxSeq is the highest valid seq: beyond it JSON numbers are no
// longer exact, and no history gets there.
const maxSeq = 1 << 53

// ErrUnknownType: a line is well formed but has an unknown type, perhaps of a newer version. Such a
// line is skipped with a warning and stays in the file.
var ErrUnknownType = errors.New("unknown record type")

// Encode returns the line of an entry, with the newline.
func Encode(e *Entry) []byte { return appendLine(nil, e) }

// around is about how many bytes a line has beside the members of its record: seq, time, type and checksum.
const around = 128

// appendLine appends the line of an entry, with the newline.
func appendLine(buf []byte, e *Entry) []byte {
	start := len(buf)
	withFields(e.Rec, func(fields []byte) {
		buf = slices.Grow(buf, len(fields)+around)
		buf = append(buf, `{"seq":`...)
		buf = strconv.AppendInt(buf, e.Seq, 10)
		buf = append(buf, `,"at":"`...)
		buf = e.At.UTC().AppendFormat(buf, disk.LineTime)
		buf = append(buf, `","type":"`...)
		buf = append(buf, e.Rec.Type()...)
		buf = append(buf, '"')
		if len(fields) > 2 {
			buf = append(buf, ',')
			buf = append(buf, fields[1:len(fields)-1]...)
		}
	})

	return append(disk.Seal(buf, start), '\n')
}

// withFields calls use with the JSON object of a record's own members, which is valid until use returns.
func withFields(r Record, use func(fields []byte)) {
	enc := encoders.Get().(*encoder)
	defer enc.free()
	r = written(r)
	fields, err := enc.marshal(r)
	if err != nil {
		// Arguments that are no JSON, a cost that is not a number: the line must be
		// written all the same, or a turn would be lost for a model's slip.
		fields = encoded(mended(r))
	}
	use(fields)
}

// encoded is marshal of a value that JSON can hold, whatever its content is.
func encoded(v any) []byte {
	data, err := marshal(v)
	if err != nil {
		panic(fmt.Sprintf("record: a %T cannot be encoded: %v", v, err))
	}

	return data
}

// marshal is json.Marshal with <, > and & left as users wrote them.
func marshal(v any) ([]byte, error) {
	enc := encoders.Get().(*encoder)
	defer enc.free()
	data, err := enc.marshal(v)

	return bytes.Clone(data), err
}

// An encoder is used again and again: a turn writes four lines.
type encoder struct {
	buf bytes.Buffer
	enc *json.Encoder
}

var encoders = sync.Pool{New: func() any {
	e := &encoder{}
	e.enc = json.NewEncoder(&e.buf)
	e.enc.SetEscapeHTML(false)

	return e
}}

// marshal returns what is valid until the next call, or free.
func (e *encoder) marshal(v any) ([]byte, error) {
	e.buf.Reset()
	if err := e.enc.Encode(v); err != nil {
		return nil, err
	}

	return bytes.TrimSuffix(e.buf.Bytes(), []byte{'\n'}), nil
}

// free gives the encoder back, unless it has grown far beyond an ordinary line.
func (e *encoder) free() {
	if e.buf.Cap() <= 64<<10 {
		encoders.Put(e)
	}
}

// written is the record as it is written: lists that a reader relies on are there
// also when they are empty.
func written(r Record) Record {
	switch r := r.(type) {
	case *TurnBegin:
		if r.Items == nil {
			c := *r
			c.Items = []string{}
			return &c
		}
	case *TurnEnd:
		if r.Items == nil || r.Outs == nil {
			c := *r
			c.Items = append([]string{}, r.Items...)
			c.Outs = append([]Out{}, r.Outs...)
			return &c
		}
	}

	return r
}

// mended is the record with what JSON cannot hold replaced.
func mended(r Record) Record {
	switch r := r.(type) {
	case *Assistant:
		c := *r
		c.Cost = number(c.Cost)
		c.ToolCalls = slices.Clone(c.ToolCalls)
		for i, call := range c.ToolCalls {
			switch {
			case len(call.Arguments) == 0:
				c.ToolCalls[i].Arguments = json.RawMessage(`{}`)
			case !json.Valid(call.Arguments):
				c.ToolCalls[i].Arguments = encoded(string(call.Arguments))
			}
		}
		return &c
	case *Summary:
		c := *r
		c.Cost = number(c.Cost)
		return &c
	}

	return r
}

func number(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}

// Decode reads one line. An error is, or wraps, a finding.Finding with reason and column; the
// caller adds file and line. With ErrUnknownType the entry is returned, too, without Rec. A missing
// or wrong crc is not an error: it means that a user wrote the line, and sets ByHand.
func Decode(line []byte) (*Entry, error) {
	line = bytes.TrimRight(line, "\r\n")
	sealed := disk.Sealed(line)
	if h, ok := readHead(line); ok && sealed {
		rec := blank(h.typ)
		if rec == nil {
			return &Entry{Seq: h.seq, At: h.at}, unknownType(h.typ)
		}
		if err := json.Unmarshal(line, rec); err != nil {
			return nil, badLine(line, err)
		}
		return &Entry{Seq: h.seq, At: h.at, Rec: rec}, nil
	}

	return decodeByHand(line, sealed)
}

// decodeByHand reads a line in any order and spacing of its members.
func decodeByHand(line []byte, sealed bool) (*Entry, error) {
	var head struct {
		Seq  int64      `json:"seq"`
		At   disk.Stamp `json:"at"`
		Type Type       `json:"type"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return nil, badLine(line, err)
	}

	switch {
	case bytes.TrimLeft(line, " \t\r\n")[0] != '{':
		return nil, badLine(line, errors.New("a record is a JSON object"))
	case head.Type == "":
		return nil, badLine(line, errors.New(`"type" is missing`))
	case head.Seq < 0 || head.Seq > maxSeq:
		return nil, badLine(line, fmt.Errorf(`"seq" is %d; it must be at least 1, or absent`, head.Seq))
	}

	e := &Entry{Seq: head.Seq, At: head.At.UTC(), Rec: blank(head.Type), ByHand: !sealed}
	if e.Rec == nil {
		return e, unknownType(head.Type)
	}
	if err := json.Unmarshal(line, e.Rec); err != nil {
		return nil, badLine(line, err)
	}

	return e, nil
}

// Blanks returns an empty record of each type.
func Blanks() (all []Record) {
	for _, t := range []Type{TypeStart, TypeReset, TypeMark, TypeRewind, TypePermission, TypeTurnBegin, TypeUser,
		TypeAssistant, TypeToolStart,
		TypeToolResult, TypeDelivery, TypeTurnEnd, TypeSummary, TypeNote} {
		all = append(all, blank(t))
	}

	return all
}

// blank is a new record of type t, nil if there is no such type.
func blank(t Type) Record {
	switch t {
	case TypeStart:
		return new(Start)
	case TypeReset:
		return new(Reset)
	case TypeMark:
		return new(Mark)
	case TypeRewind:
		return new(Rewind)
	case TypePermission:
		return new(Permission)
	case TypeTurnBegin:
		return new(TurnBegin)
	case TypeUser:
		return new(User)
	case TypeAssistant:
		return new(Assistant)
	case TypeToolStart:
		return new(ToolStart)
	case TypeToolResult:
		return new(ToolResult)
	case TypeDelivery:
		return new(Delivery)
	case TypeTurnEnd:
		return new(TurnEnd)
	case TypeSummary:
		return new(Summary)
	case TypeNote:
		return new(Note)
	default:
		return nil
	}
}

// badLine says what is wrong with a line, and at which column.
func badLine(line []byte, err error) error {
	f := finding.Finding{ID: "history-bad-line", Severity: finding.Warning, Line: 1, Reason: err.Error(),
		Remedy: "The line is ignored and stays in the file. Correct or remove it."}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		// Offset counts the bytes read, the offending one included.
		f.Column = int(min(max(syntax.Offset, 1), int64(len(line))+1))
	case errors.As(err, &kind):
		f.Column = int(min(max(kind.Offset, 1), int64(len(line))+1))
		f.Reason = fmt.Sprintf("%q is a %s, not a %s", kind.Field, kind.Value, kind.Type)
	}

	return f
}

func unknownType(t Type) error {
	return fmt.Errorf("%w: %w", ErrUnknownType, finding.Finding{
		ID: "history-unknown-type", Severity: finding.Warning, Line: 1,
		Reason: fmt.Sprintf("record type %q is unknown", t),
		Remedy: "The line is ignored and stays in the file; a newer version of daycare may have written it.",
	})
}
