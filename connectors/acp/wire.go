package acp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	acp "github.com/coder/acp-go-sdk"
)

const (
	// maxLine bounds one message of an editor, in bytes: the library reads no longer ones.
	maxLine = 10<<20 - 1
	// maxHead is how much of a longer one is looked at for its id.
	maxHead = 4 << 10
)

// A wire stands between an editor and the library: it refuses what the library would end the
// connection for or pass over in silence, each with an error that says why, and takes what cancels a prompt.
type wire struct {
	in     io.Reader
	out    io.Writer
	feed   *io.PipeWriter       // to the library
	cancel func(session string) // called for a prompt without a response
	mu     sync.Mutex           // of what is written, and of the maps
	told   chan struct{}        // a response was written; capacity 1
	open   map[string]*waiting  // those without a response, by id
	after  map[string]func()    // what follows the response that names a session
}

// A waiting request has no response yet.
type waiting struct {
	prompts  string // session of which it is the prompt; "": another request
	canceled bool
}

func newWire(in io.Reader, out io.Writer) (*wire, io.Reader) {
	r, w := io.Pipe()
	return &wire{in: in, out: out, feed: w, cancel: func(string) {}, told: make(chan struct{}, 1), open: map[string]*waiting{},
		after: map[string]func(){}}, r
}

// read hands on lines until the input ends.
func (w *wire) read() {
	in := bufio.NewReaderSize(w.in, 64<<10)
	for {
		line, size, err := readLine(in)
		if len(bytes.TrimSpace(line)) > 0 && !w.take(line, size) {
			return
		}
		if err != nil {
			w.feed.CloseWithError(err)
			return
		}
	}
}

// readLine returns a line and how long it is; of one over maxLine only the beginning.
func readLine(in *bufio.Reader) (line []byte, size int, err error) {
	for {
		part, err := in.ReadSlice('\n')
		size += len(part)
		switch {
		case size <= maxLine:
			line = append(line, part...)
		case len(line) > maxHead:
			line = bytes.Clone(line[:maxHead]) // the rest is let go
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return line, size, err
	}
}

// An envelope is what every message of JSON-RPC has.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Session string `json:"sessionId"`
	} `json:"params"`
}

// take hands a line on, or answers it. It is false when the library reads no more.
func (w *wire) take(line []byte, size int) bool {
	if size > maxLine {
		w.refuse(idIn(line), problem(codeRefused, "the message has %d bytes, allowed: %d; attach large files by path (resource_link)",
			size, maxLine))
		return true
	}
	if !json.Valid(line) {
		w.refuse(nil, problem(codeNoJSON, "not JSON: a message is one JSON object on one line"))
		return true
	}

	var e envelope
	if err := json.Unmarshal(line, &e); err != nil && bytes.TrimSpace(line)[0] != '{' {
		w.refuse(nil, problem(codeRefused, "not an object: batches are not part of the protocol"))
		return true
	}
	id := string(bytes.TrimSpace(e.ID))
	switch {
	case e.Method == "" && id == "":
		w.refuse(nil, problem(codeRefused, "the message has neither a method nor an id"))
		return true
	case e.Method != "" && id != "":
		if err := w.opened(e); err != nil {
			w.refuse(e.ID, err)
			return true
		}
	case e.Method == acp.AgentMethodSessionCancel:
		if w.withdrawn(e.Params.Session) {
			w.cancel(e.Params.Session)
		}
		return true
	}

	_, err := w.feed.Write(append(bytes.TrimRight(line, "\r\n"), '\n'))

	return err == nil
}

// opened notes a request, or says why it is refused. The library would end the prompt in progress when another one comes.
func (w *wire) opened(e envelope) *acp.RequestError {
	r := &waiting{}
	if e.Method == acp.AgentMethodSessionPrompt {
		r.prompts = e.Params.Session
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	id := idKey(e.ID)
	if w.open[id] != nil {
		return problem(codeRefused, "a request with the id %s has no response yet", bytes.TrimSpace(e.ID))
	}
	if r.prompts != "" && w.prompt(r.prompts) != nil {
		return errBusy()
	}
	w.open[id] = r

	return nil
}

// withdrawn notes that the prompt of a session is canceled. It is false if none waits. A cancel is meant for the prompt whose line
// was read before it, and the library would cancel the one that it finds, which may be the next one.
func (w *wire) withdrawn(session string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.prompt(session)
	if r != nil {
		r.canceled = true
	}

	return r != nil
}

// canceled reports whether the prompt of a session that waits was canceled.
func (w *wire) canceled(session string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.prompt(session)

	return r != nil && r.canceled
}

// prompt is the one of a session that waits; nil: none does. w.mu is held.
func (w *wire) prompt(session string) *waiting {
	for _, r := range w.open {
		if r.prompts == session {
			return r
		}
	}

	return nil
}

// idKey is the same for an id however it is spelled.
func idKey(id json.RawMessage) string {
	var v any
	if json.Unmarshal(id, &v) != nil {
		return string(id)
	}
	key, err := json.Marshal(v)
	if err != nil {
		return string(id)
	}

	return string(key)
}

// idIn looks for the id in the beginning of a message.
func idIn(head []byte) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(head))
	if _, err := dec.Token(); err != nil {
		return nil
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return nil
		}
		if key == "id" {
			return value
		}
	}

	return nil
}

// refuse answers a message with an error; id nil: it is not known whose.
func (w *wire) refuse(id json.RawMessage, why *acp.RequestError) {
	line, err := json.Marshal(struct {
		Version string            `json:"jsonrpc"`
		ID      json.RawMessage   `json:"id"`
		Error   *acp.RequestError `json:"error"`
	}{"2.0", id, why})
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.out.Write(append(line, '\n')) // the input ends, too, when nobody reads
}

// Write takes one message of the library, a line.
func (w *wire) Write(line []byte) (int, error) {
	w.mu.Lock()
	n, err := w.out.Write(line)
	var next []func()
	if bytes.HasPrefix(line, []byte(`{"jsonrpc":"2.0","id":`)) {
		next = w.responded(line)
	}
	w.mu.Unlock()
	for _, f := range next {
		f()
	}

	return n, err
}

// responded lets go of the id of a response, and returns what is to follow. w.mu is held.
func (w *wire) responded(line []byte) (next []func()) {
	var e struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Result struct {
			Session string `json:"sessionId"`
		} `json:"result"`
	}
	if json.Unmarshal(line, &e) != nil || e.Method != "" {
		return nil
	}
	delete(w.open, idKey(e.ID))
	select {
	case w.told <- struct{}{}:
	default:
	}
	if f := w.after[e.Result.Session]; f != nil {
		delete(w.after, e.Result.Session)
		next = append(next, f)
	}

	return next
}

// settled waits until every request has its response, or ctx ends.
func (w *wire) settled(ctx context.Context) {
	for {
		w.mu.Lock()
		left := len(w.open)
		w.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-w.told:
		case <-ctx.Done():
			return
		}
	}
}

// then calls f after the response that names a session was written.
func (w *wire) then(session string, f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.after[session] = func() { go f() }
}
