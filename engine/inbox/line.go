package inbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"daycare/engine/disk"
	"daycare/engine/message"
)

// A line is any line of inbox.jsonl, as it is read.
type line struct {
	Item
	IDs    []string `json:"ids"`
	Left   int      `json:"open"`
	Keys   []string `json:"keys"`
	byHand bool     // its checksum is missing or wrong
}

// errUnknownType: a line of a kind that this version does not know. It is kept
// in the file and otherwise ignored.
var errUnknownType = errors.New("unknown type")

// lineMark is how every line begins that we wrote.
const lineMark = `{"seq":`

// decode reads one line without its newline. An error says that it cannot be
// used: errUnknownType, or what is broken; the line is what could be read all the same.
func decode(raw []byte) (*line, error) {
	l := new(line)
	if err := json.Unmarshal(raw, l); err != nil {
		return l, err
	}
	l.byHand = !disk.Sealed(raw)

	switch string(l.Kind) {
	case lineDone, lineKeys:
		return l, nil
	case lineDropped, lineFront:
	case string(message.Text), string(message.System), string(message.Reset),
		string(message.Compact), string(message.Permission), string(message.Rewind), string(message.Mark):
	case "":
		return l, errors.New(`no "type"`)
	default:
		return l, fmt.Errorf("%w %q", errUnknownType, l.Kind)
	}

	if l.ID == "" {
		return l, errors.New(`no "id"`)
	}

	return l, nil
}

// usable judges a last line that has no newline: an editor may have left it out,
// or damage may have put something else in its place.
func usable(raw []byte) bool {
	_, err := decode(raw)
	return err == nil || len(salvage(raw)) > 0
}

// salvage finds the whole lines inside a line that cannot be read: where the
// newline between two was damaged, both are still there with their checksums.
// It returns their places in raw.
func salvage(raw []byte) (whole []span) {
	for at := 0; ; {
		i := bytes.Index(raw[at:], []byte(disk.SealMark))
		if i < 0 || at+i+disk.SealLen > len(raw) {
			return whole
		}
		end := at + i + disk.SealLen
		if from, ok := wholeFrom(raw[at:end]); ok {
			whole = append(whole, span{int64(at + from), end - at - from})
		}
		at = end
	}
}

// wholeFrom finds where in raw a line begins that is intact up to its end. The
// tries are bounded, because each costs a checksum.
func wholeFrom(raw []byte) (int, bool) {
	from := 0
	for range 8 {
		i := bytes.Index(raw[from:], []byte(lineMark))
		if i < 0 {
			return 0, false
		}
		from += i
		if disk.Sealed(raw[from:]) {
			return from, true
		}
		from++
	}

	return 0, false
}

// A span is a place in the file: offset and length in bytes, without newline.
type span struct {
	off int64
	n   int
}

// column is where in its line an error of decode lies, from 1.
func column(err error) int {
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return max(1, int(syntax.Offset))
	case errors.As(err, &wrong):
		return max(1, int(wrong.Offset))
	}

	return 1
}

// hash64 is what is kept of a dedupe key or an id. It is taken from SHA-256
// because keys come from outside, where someone might look for a collision.
func hash64(s string) uint64 {
	sum := sha256.Sum256([]byte(s))
	return binary.BigEndian.Uint64(sum[:])
}

// connectorOf is the connector that an item came by: dedupe keys begin with it. "":
// it has no such key.
func connectorOf(it *Item) string {
	id, _, ok := strings.Cut(it.Dedupe, ":")
	if !ok {
		return ""
	}

	return strings.Clone(id) // not to keep the whole key
}

// senderOf is who an item is from, for joining adjacent messages of one sender:
// the agent that speaks, else the address it came by and the name it carried.
// Text of unknown outsiders is never joined with a known person's.
func senderOf(it *Item) string {
	if it.Origin != "" {
		return "agent " + it.Origin
	}
	s := it.Context.Sender
	if r := it.Route; r != nil {
		s = r.Connector + "/" + r.ChannelID + "/" + r.ThreadID + "/" + r.UserID + " " + s
	}
	if it.Untrusted {
		s = "untrusted " + s
	}
	if len(s) > maxSender {
		s = "#" + strconv.FormatUint(hash64(s), 16)
	}

	return s
}

// maxSender bounds what a head keeps in memory of its sender, bytes.
const maxSender = 200
