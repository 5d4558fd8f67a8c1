package record

import (
	"bytes"
	"strconv"
	"time"
)

// A head is what every line begins with, read without parsing the rest.
type head struct {
	seq int64
	at  time.Time
	typ Type
}

// readHead reads the head of a line as the runtime writes it. ok is false for a
// line that a user wrote in another order or spacing; Decode reads those.
func readHead(line []byte) (h head, ok bool) {
	seq, rest, ok := between(line, `{"seq":`, ',')
	if !ok {
		return h, false
	}
	at, rest, ok := between(rest, `"at":"`, '"')
	if !ok || len(rest) == 0 || rest[0] != ',' {
		return h, false
	}

	typ, rest, ok := between(rest[1:], `"type":"`, '"')
	if !ok || len(rest) == 0 || (rest[0] != ',' && rest[0] != '}') {
		return h, false
	}
	var err error
	if h.seq, err = strconv.ParseInt(string(seq), 10, 64); err != nil || h.seq < 0 {
		return h, false
	}
	if h.at, err = time.Parse(time.RFC3339, string(at)); err != nil {
		return h, false
	}

	h.typ, h.at = internType(typ), h.at.UTC()
	return h, true
}

// internType spares an allocation for each known type.
func internType(b []byte) Type {
	if r := blankTypes[string(b)]; r != "" {
		return r
	}
	return Type(b)
}

var blankTypes = func() map[string]Type {
	m := map[string]Type{}
	for _, t := range []Type{TypeStart, TypeReset, TypeMark, TypeRewind, TypePermission, TypeTurnBegin, TypeUser,
		TypeAssistant, TypeToolStart, TypeToolResult, TypeDelivery, TypeTurnEnd, TypeSummary, TypeNote} {
		m[string(t)] = t
	}

	return m
}()

// between cuts prefix off b and returns what stands before and behind the next end.
func between(b []byte, prefix string, end byte) (value, rest []byte, ok bool) {
	if len(b) < len(prefix) || string(b[:len(prefix)]) != prefix {
		return nil, nil, false
	}
	b = b[len(prefix):]
	i := bytes.IndexByte(b, end)
	if i < 0 {
		return nil, nil, false
	}

	return b[:i], b[i+1:], true
}

// seqOf reads the seq of a line, damaged or not; 0 if it has none to be read. A
// damaged line keeps its number, so that it is not given out twice.
func seqOf(line []byte) int64 {
	seq, _, ok := between(line, `{"seq":`, ',')
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(string(seq), 10, 64)
	if err != nil || n < 0 {
		return 0
	}

	return n
}
