package cassette

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"daycare/agents/providers"
)

// Version is that of the format.
const Version = 1

// A Head says what was recorded.
type Head struct {
	Version  int    `json:"cassette"`
	Provider string `json:"provider"` // id in the settings
	Wire     string `json:"wire"`     // as providers.Provider.Wire names it
	Model    string `json:"model"`    // that was asked for
}

// A Tape is a recording. It may be used from many goroutines at once.
type Tape struct {
	head Head
	blur Blur

	mu     sync.Mutex
	calls  []*call
	missed []*Mismatch
}

// A call is one request with its answer.
type call struct {
	frame  frame
	key    string
	answer []step
	used   bool // played already
}

// A step is a part of an answer. Pieces of a text that followed each other are one.
type step struct {
	Text     string    `json:"text,omitempty"`
	Thinking *thinking `json:"thinking,omitempty"`
	Call     *asked    `json:"call,omitempty"`
	End      *end      `json:"end,omitempty"`
}

type thinking struct {
	Text      string `json:"text,omitempty"`
	Signature string `json:"signature,omitempty"`
}

type asked struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type end struct {
	Finish providers.Finish `json:"finish"`
	Usage  providers.Usage  `json:"usage"`
	Model  string           `json:"model,omitempty"`
	Asked  string           `json:"asked,omitempty"`
}

// New is an empty tape, to record on.
func New(h Head, b Blur) *Tape {
	h.Version = Version
	return &Tape{head: h, blur: b}
}

// Head says what was recorded.
func (t *Tape) Head() Head { return t.head }

// Len is how many calls are recorded.
func (t *Tape) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.calls)
}

// Unused is how many recorded calls were not played.
func (t *Tape) Unused() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.calls {
		if !c.used {
			n++
		}
	}

	return n
}

// Missed are the requests that were not on the tape, in the order in which they were made.
func (t *Tape) Missed() []*Mismatch {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]*Mismatch(nil), t.missed...)
}

// A line is one line of the file: which members it has says what it is.
type line struct {
	System  string `json:"system,omitempty"`
	Tools   string `json:"tools,omitempty"`
	Message string `json:"message,omitempty"`
	Role    string `json:"role,omitempty"`
	Text    string `json:"text,omitempty"`
	List    []tool `json:"list,omitempty"`

	Call     int      `json:"call,omitempty"`
	Messages []string `json:"messages,omitempty"`
	Options  *options `json:"options,omitempty"`
	Answer   []step   `json:"answer,omitempty"`
}

// Bytes is the file of the tape.
func (t *Tape) Bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b bytes.Buffer
	w := writer{enc: json.NewEncoder(&b), names: map[string]string{}, count: map[string]int{}}
	w.enc.SetEscapeHTML(false)
	_ = w.enc.Encode(t.head) // into memory, and of texts and numbers
	for i, c := range t.calls {
		w.call(i+1, c)
	}

	return b.Bytes()
}

// A writer writes what calls have in common once.
type writer struct {
	enc   *json.Encoder
	names map[string]string // by content
	count map[string]int
}

// name is the name of a content; new: it has to be written before it is referred to.
func (w *writer) name(kind, content string) (name string, isNew bool) {
	key := kind + content
	if name = w.names[key]; name != "" {
		return name, false
	}
	w.count[kind]++
	name = fmt.Sprintf("%s%d", kind, w.count[kind])
	w.names[key] = name

	return name, true
}

func (w *writer) call(n int, c *call) {
	out := line{Call: n, Answer: c.answer}
	if c.frame.options != (options{}) {
		out.Options = &c.frame.options
	}
	var isNew bool
	if out.System, isNew = w.name("s", c.frame.system); isNew {
		_ = w.enc.Encode(line{System: out.System, Text: c.frame.system})
	}
	list, _ := json.Marshal(c.frame.tools)
	if out.Tools, isNew = w.name("t", string(list)); isNew {
		_ = w.enc.Encode(line{Tools: out.Tools, List: c.frame.tools})
	}

	for _, m := range c.frame.messages {
		name, isNew := w.name("m", m.Role+"\x00"+m.Text)
		if isNew {
			_ = w.enc.Encode(line{Message: name, Role: m.Role, Text: m.Text})
		}
		out.Messages = append(out.Messages, name)
	}

	_ = w.enc.Encode(out)
}

// Parse reads the file of a tape. Errors name the line: FILE:LINE.
func Parse(name string, data []byte, b Blur) (*Tape, error) {
	t := &Tape{blur: b}
	r := reader{tape: t, systems: map[string]string{}, tools: map[string][]tool{}, messages: map[string]said{}}
	n := 0
	for text := range bytes.Lines(data) {
		n++
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		if err := r.line(n, text); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}

	if t.head.Version == 0 {
		return nil, fmt.Errorf("%s:1: the file is empty: it must begin with {\"cassette\":%d,…}", name, Version)
	}

	return t, nil
}

// A reader knows what the lines before have defined.
type reader struct {
	tape     *Tape
	systems  map[string]string
	tools    map[string][]tool
	messages map[string]said
}

func (r *reader) line(n int, text []byte) error {
	if r.tape.head.Version == 0 {
		if err := json.Unmarshal(text, &r.tape.head); err != nil {
			return fmt.Errorf("not JSON: %w", err)
		}
		switch v := r.tape.head.Version; {
		case v == 0:
			return fmt.Errorf(`not a cassette: the first line must begin with {"cassette":%d`, Version)
		case v > Version:
			return fmt.Errorf("the cassette has format %d, and this daycare reads %d: update daycare, or record it again", v, Version)
		}
		return nil
	}

	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}

	switch {
	case l.Call > 0:
		return r.call(l)
	case l.System != "":
		r.systems[l.System] = r.tape.blur.ignored(l.Text)
	case l.Tools != "":
		r.tools[l.Tools] = l.List
	case l.Message != "":
		r.messages[l.Message] = said{l.Role, r.tape.blur.ignored(l.Text)}
	default:
		return errors.New("expected a member system, tools, message or call")
	}

	return nil
}

func (r *reader) call(l line) error {
	c := &call{answer: l.Answer}
	var known bool
	if c.frame.system, known = r.systems[l.System]; !known {
		return fmt.Errorf("call %d: no line before it has the system prompt %q", l.Call, l.System)
	}
	if c.frame.tools, known = r.tools[l.Tools]; !known {
		return fmt.Errorf("call %d: no line before it has the tools %q", l.Call, l.Tools)
	}

	for _, name := range l.Messages {
		m, known := r.messages[name]
		if !known {
			return fmt.Errorf("call %d: no line before it has the message %q", l.Call, name)
		}
		c.frame.messages = append(c.frame.messages, m)
	}

	if l.Options != nil {
		c.frame.options = *l.Options
	}
	if len(c.answer) == 0 || c.answer[len(c.answer)-1].End == nil {
		return fmt.Errorf("call %d: its answer has no end", l.Call)
	}

	c.key = c.frame.key()
	r.tape.calls = append(r.tape.calls, c)

	return nil
}
