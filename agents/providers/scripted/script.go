package scripted

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"daycare/agents/providers"
	"daycare/engine/finding"
	"daycare/engine/form"
)

type script struct {
	name  string
	Model string  `json:"model"`
	Each  bool    `json:"each"`
	Rules []*rule `json:"rules"`
}

// rule is its conditions, of which all that are set must hold, and its answer.
type rule struct {
	Match      string `json:"match"`
	Contains   string `json:"contains"`
	ToolResult string `json:"tool_result"`
	After      string `json:"after" allow:"|permission"`
	From       string `json:"from" allow:"|user|outside|agent|system"`
	Turn       int    `json:"turn" min:"1"`
	Round      int    `json:"round" min:"1"`
	Once       bool   `json:"once"`
	Reply      []step `json:"reply"`
	Finish     string `json:"finish" allow:"|end_turn|tool_use|max_tokens|refusal"`

	match *regexp.Regexp
}

type step struct {
	Delay    time.Duration `json:"delay" check:"off"`
	Thinking string        `json:"thinking"`
	Text     string        `json:"text"`
	Chunk    int           `json:"chunk" min:"0"`     // characters a piece; 0: all at once
	Every    time.Duration `json:"every" check:"off"` // before each piece
	Calls    []toolCall    `json:"calls"`
	Usage    *usage        `json:"usage"`
	Fault    *fault        `json:"fault"`

	text, thinking filled
}

type toolCall struct {
	Name         string         `json:"name" check:"required"`
	Arguments    map[string]any `json:"arguments"`
	RawArguments string         `json:"rawArguments"`

	arguments func(View) (string, error)
}

type usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cacheRead"`
	CacheWrite int64 `json:"cacheWrite"`
	Reasoning  int64 `json:"reasoning"`
}

type fault struct {
	Status     int            `json:"status" min:"400" max:"599"`
	RetryAfter time.Duration  `json:"retryAfter"`
	Kind       providers.Kind `json:"kind" allow:"|busy|broken|overflow|auth|rejected"`
	Message    string         `json:"message"`
	Hang       bool           `json:"hang"`    // nothing more comes until the caller gives up
	Reset      bool           `json:"reset"`   // the connection breaks
	NoEnd      bool           `json:"noEnd"`   // the stream ends without its end mark
	Garbage    bool           `json:"garbage"` // the stream turns into something unreadable
}

// kind is how scripts are read; the bound is far above any real one.
var kind = form.Kind{ID: "script", Unknown: finding.Error, Max: 4 << 20}

// parse reads and compiles a script. Errors are finding.Finding with a line.
func parse(name string, source []byte) (*script, error) {
	s := &script{name: name}
	f := kind.YAML(name, source)
	f.Read(s)
	if len(s.Rules) == 0 && !f.Failed() {
		f.Bad("rules", ": a script needs at least one")
	}
	if f.Failed() {
		return nil, finding.Join(f.Found)
	}

	for i, r := range s.Rules {
		at := fmt.Sprintf("rules[%d]", i)
		if err := r.compile(); err != nil {
			f.Bad(at, ": %v", err)
		}
		for j := range r.Reply {
			if err := r.Reply[j].compile(); err != nil {
				f.Bad(fmt.Sprintf("%s.reply[%d]", at, j), ": %v", err)
			}
		}
	}

	return s, finding.Join(f.Found)
}

func (r *rule) compile() (err error) {
	if r.Match != "" {
		if r.match, err = regexp.Compile(r.Match); err != nil {
			return fmt.Errorf("match: %w", err)
		}
	}
	if len(r.Reply) == 0 {
		return errors.New("reply has no steps")
	}

	r.Contains = strings.ToLower(r.Contains)

	return nil
}

func (s *step) compile() (err error) {
	if s.text, err = fill(s.Text); err != nil {
		return fmt.Errorf("text: %w", err)
	}
	if s.thinking, err = fill(s.Thinking); err != nil {
		return fmt.Errorf("thinking: %w", err)
	}

	for i := range s.Calls {
		if err := s.Calls[i].compile(); err != nil {
			return fmt.Errorf("call %d: %w", i+1, err)
		}
	}

	if f := s.Fault; f != nil && *f == (fault{RetryAfter: f.RetryAfter, Message: f.Message}) {
		return errors.New("fault needs a status from 400 to 599, a kind, hang, reset, noEnd or garbage")
	}

	return nil
}

func (c *toolCall) compile() error {
	if c.RawArguments != "" {
		if c.Arguments != nil {
			return errors.New("arguments and rawArguments exclude each other")
		}
		raw, err := fill(c.RawArguments)
		c.arguments = raw.String
		return err
	}
	if c.Arguments == nil {
		c.Arguments = map[string]any{}
	}

	tree, fixed, err := fillTree(c.Arguments)
	if err != nil {
		return fmt.Errorf("arguments: %w", err)
	}
	encode := func(v View) (string, error) {
		value, err := tree(v)
		if err != nil {
			return "", err
		}
		data, err := json.Marshal(value)

		return string(data), err
	}
	c.arguments = encode
	text, err := "", error(nil)
	if fixed {
		text, err = encode(View{})
		c.arguments = func(View) (string, error) { return text, nil }
	}

	return err
}
