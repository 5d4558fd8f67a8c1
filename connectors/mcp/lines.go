package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A sieve is what a client writes, without lines that are not messages: those are answered with an error, as JSON-RPC has
// it. The SDK would end the session.
type sieve struct {
	io.Closer
	lines *bufio.Reader
	out   *oneAtATime
	left  []byte // of a line that is handed on
}

func newSieve(in io.ReadCloser, out *oneAtATime) *sieve {
	return &sieve{Closer: in, lines: bufio.NewReader(in), out: out}
}

// Read hands on the next messages.
func (s *sieve) Read(p []byte) (int, error) {
	for len(s.left) == 0 {
		line, end := s.line()
		if text := bytes.TrimSpace(line); len(text) > 0 {
			if wrong := check(text); wrong != nil {
				if _, err := s.out.Write(append(wrong, '\n')); err != nil {
					return 0, err
				}
			} else {
				s.left = append(text, '\n')
			}
		}
		if end != nil && len(s.left) == 0 {
			return 0, end
		}
	}
	n := copy(p, s.left)
	s.left = s.left[n:]

	return n, nil
}

// line reads a line. One that is longer than maxBody may never end, so it ends the session.
func (s *sieve) line() (line []byte, err error) {
	for {
		part, err := s.lines.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxBody {
			return nil, fmt.Errorf("a message has over %d bytes", maxBody)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// check returns the answer to a line that is not a message or a batch of messages; nil: it is.
func check(line []byte) []byte {
	if !json.Valid(line) {
		return refusal(nil, jsonrpc.CodeParseError, "the line is not JSON: write each message on one line")
	}
	all := []json.RawMessage{line}
	if line[0] == '[' {
		all = nil
		if err := json.Unmarshal(line, &all); err != nil || len(all) == 0 {
			return refusal(nil, jsonrpc.CodeInvalidRequest, "a batch needs messages")
		}
	}
	for _, m := range all {
		if _, err := jsonrpc.DecodeMessage(m); err != nil {
			return refusal(m, jsonrpc.CodeInvalidRequest, "this is not a JSON-RPC 2.0 message: "+err.Error())
		}
	}

	return nil
}

// refusal is an error in answer to a message, under its id if it has one.
func refusal(m json.RawMessage, code int, text string) []byte {
	var asked struct {
		ID any `json:"id"`
	}
	_ = json.Unmarshal(m, &asked) // one that is not an object has no id
	switch asked.ID.(type) {
	case string, float64:
	default:
		asked.ID = nil
	}
	data, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": asked.ID, "error": map[string]any{"code": code, "message": text}})

	return data
}

// oneAtATime are writes that do not mix: the SDK writes each message at once, and so does a sieve.
type oneAtATime struct {
	io.WriteCloser
	mu sync.Mutex
}

func (w *oneAtATime) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.WriteCloser.Write(p)
}
