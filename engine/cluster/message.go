package cluster

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
)

// version of the format of log messages.
const version = 1

// An op is what a segment does.
type op string

const (
	opAppend   op = "append"   // n bytes are added to the file, which is at bytes long
	opPut      op = "put"      // n bytes are the file
	opRemove   op = "remove"   // the file is removed
	opClaim    op = "claim"    // the writer of the message owns the unit from now on
	opRelease  op = "release"  // nobody owns it; open: it has work left
	opSnapshot op = "snapshot" // what follows is all there is; the log before it is not needed
)

// A segment is one change in a message.
type segment struct {
	Op     op     `json:"op"`
	File   string `json:"f,omitempty"`   // relative to the folder, with slashes
	At     int64  `json:"at,omitempty"`  // append: bytes
	N      int    `json:"n,omitempty"`   // bytes of the content
	SHA    string `json:"sha,omitempty"` // SHA-256 of the content, in hex
	Object bool   `json:"obj,omitempty"` // the content is in the object store, under SHA
	Open   bool   `json:"open,omitempty"`

	data  []byte
	inner []segment // of a snapshot that is an object
}

// content returns a segment with a content.
func content(o op, file string, at int64, data []byte) segment {
	return segment{Op: o, File: file, At: at, N: len(data), SHA: sum(data), data: data}
}

// jsonOf is the JSON of a value of this package, which has nothing that cannot be written.
func jsonOf(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}

	return data
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// errVersion: a message was written by a newer daycare.
var errVersion = errors.New("written by a newer version of daycare")

// errDamaged: a message is not as it was written.
var errDamaged = errors.New("damaged message")

// encode writes the body of a message.
func encode(segments []segment) []byte {
	var b bytes.Buffer
	for _, s := range segments {
		b.Write(append(jsonOf(s), '\n'))
		if !s.Object {
			b.Write(s.data)
		}
	}

	return b.Bytes()
}

// decode reads the body of a message. Errors: errVersion, errDamaged.
func decode(body []byte) (list []segment, err error) {
	for len(body) > 0 {
		line, rest, ok := bytes.Cut(body, []byte("\n"))
		var s segment
		if err := json.Unmarshal(line, &s); err != nil || !ok {
			return nil, fmt.Errorf("%w: %q is not a segment", errDamaged, line[:min(len(line), 100)])
		}

		switch s.Op {
		case opAppend, opPut, opRemove, opClaim, opRelease, opSnapshot:
		default:
			return nil, fmt.Errorf("%w: it has the operation %q", errVersion, s.Op)
		}
		if s.N < 0 || s.At < 0 || !s.Object && s.N > len(rest) {
			return nil, fmt.Errorf("%w: %s of %d bytes at %d, and %d follow", errDamaged, s.Op, s.N, s.At, len(rest))
		}
		if !s.Object {
			s.data, rest = rest[:s.N:s.N], rest[s.N:]
			if s.N > 0 && sum(s.data) != s.SHA {
				return nil, fmt.Errorf("%w: the content of %q has another checksum", errDamaged, s.File)
			}
		}

		list, body = append(list, s), rest
	}

	return list, nil
}

// A logged is one message of a log.
type logged struct {
	seq   uint64 // of the stream; 0: there is none
	n     uint64 // D-N
	owner string // D-Owner
	id    string // D-Id
	ending
	body []byte
}

// An ending is what becomes of a unit with a message.
type ending struct {
	released bool // D-Released: nobody owns it
	retired  bool // D-Retired: its agent was removed; what was before does not count
}

// header writes what is not in the body.
func (l logged) header() nats.Header {
	h := nats.Header{}
	h.Set("D-V", strconv.Itoa(version))
	h.Set("D-Owner", l.owner)
	h.Set("D-Id", l.id)
	h.Set("D-N", strconv.FormatUint(l.n, 10))
	if l.released {
		h.Set("D-Released", "1")
	}
	if l.retired {
		h.Set("D-Retired", "1")
	}

	return h
}

// received reads a message of the stream. Errors: errVersion, errDamaged.
func received(seq uint64, h nats.Header, body []byte) (logged, error) {
	v, err := strconv.Atoi(h.Get("D-V"))
	if err != nil {
		return logged{}, fmt.Errorf("%w: message %d has the version %q", errDamaged, seq, h.Get("D-V"))
	}
	if v > version {
		return logged{}, fmt.Errorf("%w: message %d has version %d of the format, known are those up to %d",
			errVersion, seq, v, version)
	}
	n, err := strconv.ParseUint(h.Get("D-N"), 10, 64)
	if err != nil || n == 0 {
		return logged{}, fmt.Errorf("%w: message %d has the number %q", errDamaged, seq, h.Get("D-N"))
	}

	return logged{seq: seq, n: n, owner: h.Get("D-Owner"), id: h.Get("D-Id"), body: body,
		ending: ending{h.Get("D-Released") != "", h.Get("D-Retired") != ""}}, nil
}
