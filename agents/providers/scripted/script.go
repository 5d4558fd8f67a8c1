package scripted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"daycare/agents/providers"
	"daycare/engine/finding"
)

type script struct {
	name  string
	Model string  `yaml:"model"`
	Each  bool    `yaml:"each"`
	Rules []*rule `yaml:"rules"`
}

// rule is its conditions, of which all that are set must hold, and its answer.
type rule struct {
	Match      string `yaml:"match"`
	Contains   string `yaml:"contains"`
	ToolResult string `yaml:"tool_result"`
	After      string `yaml:"after"`
	From       string `yaml:"from"`
	Turn       int    `yaml:"turn"`
	Round      int    `yaml:"round"`
	Once       bool   `yaml:"once"`
	Reply      []step `yaml:"reply"`
	Finish     string `yaml:"finish"`

	match *regexp.Regexp
}

type step struct {
	Delay    time.Duration `yaml:"delay"`
	Thinking string        `yaml:"thinking"`
	Text     string        `yaml:"text"`
	Chunk    int           `yaml:"chunk"` // characters a piece; 0: all at once
	Every    time.Duration `yaml:"every"` // before each piece
	Calls    []toolCall    `yaml:"calls"`
	Usage    *usage        `yaml:"usage"`
	Fault    *fault        `yaml:"fault"`

	text, thinking filled
}

type toolCall struct {
	Name         string         `yaml:"name"`
	Arguments    map[string]any `yaml:"arguments"`
	RawArguments string         `yaml:"rawArguments"`

	arguments func(View) (string, error)
}

type usage struct {
	Input      int64 `yaml:"input"`
	Output     int64 `yaml:"output"`
	CacheRead  int64 `yaml:"cacheRead"`
	CacheWrite int64 `yaml:"cacheWrite"`
}

type fault struct {
	Status     int            `yaml:"status"`
	RetryAfter time.Duration  `yaml:"retryAfter"`
	Kind       providers.Kind `yaml:"kind"`
	Message    string         `yaml:"message"`
	Hang       bool           `yaml:"hang"`    // nothing more comes until the caller gives up
	Reset      bool           `yaml:"reset"`   // the connection breaks
	NoEnd      bool           `yaml:"noEnd"`   // the stream ends without its end mark
	Garbage    bool           `yaml:"garbage"` // the stream turns into something unreadable
}

// maxScript bounds a script, in bytes: far above any real one.
const maxScript = 4 << 20

// parse reads and compiles a script. Errors are finding.Finding with a line.
func parse(name string, source []byte) (*script, error) {
	wrong := func(line int, format string, args ...any) error {
		return finding.Finding{ID: "script", Severity: finding.Error, File: name, Line: line, Reason: fmt.Sprintf(format, args...)}
	}
	if len(source) > maxScript {
		return nil, wrong(0, "the script has %d bytes; allowed are %d", len(source), maxScript)
	}
	s := &script{name: name}
	dec := yaml.NewDecoder(bytes.NewReader(source))
	dec.KnownFields(true)
	if err := dec.Decode(s); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, wrong(1, "the script is empty; it needs rules")
		}
		line, reason := yamlLine(err)
		return nil, wrong(line, "%s", reason)
	}
	if len(s.Rules) == 0 {
		return nil, wrong(1, "the script has no rules")
	}
	for i, r := range s.Rules {
		if r == nil {
			return nil, wrong(newLines(source).rule(i), "rule %d is empty", i+1)
		}
		if err := r.compile(); err != nil {
			return nil, wrong(newLines(source).rule(i), "rule %d: %v", i+1, err)
		}
		for j := range r.Reply {
			if err := r.Reply[j].compile(); err != nil {
				return nil, wrong(newLines(source).step(i, j), "rule %d, step %d: %v", i+1, j+1, err)
			}
		}
	}
	return s, nil
}

func (r *rule) compile() (err error) {
	if r.Match != "" {
		if r.match, err = regexp.Compile(r.Match); err != nil {
			return fmt.Errorf("match: %w", err)
		}
	}
	if r.After != "" && r.After != "permission" {
		return fmt.Errorf("after is %q; allowed: permission", r.After)
	}
	if !slices.Contains([]string{"", fromUser, fromOutside, fromAgent, fromSystem}, r.From) {
		return fmt.Errorf("from is %q; allowed: user, outside, agent, system", r.From)
	}
	if r.Turn < 0 || r.Round < 0 {
		return errors.New("turn and round count from 1")
	}
	finishes := []providers.Finish{"", providers.EndTurn, providers.ToolUse, providers.MaxTokens, providers.Refusal}
	if !slices.Contains(finishes, providers.Finish(r.Finish)) {
		return fmt.Errorf("finish is %q; allowed: %v", r.Finish, finishes[1:])
	}
	if len(r.Reply) == 0 {
		return errors.New("reply has no steps")
	}
	r.Contains = strings.ToLower(r.Contains)
	return nil
}

func (s *step) compile() (err error) {
	if s.Delay < 0 || s.Every < 0 || s.Chunk < 0 {
		return errors.New("delay, every and chunk must not be negative")
	}
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
	if f := s.Fault; f != nil {
		if !(f.Status >= 400 && f.Status <= 599 || f.Status == 0 && (f.Hang || f.Reset || f.NoEnd || f.Garbage || f.Kind != "")) {
			return errors.New("fault needs a status from 400 to 599, a kind, hang, reset, noEnd or garbage")
		}
		kinds := []providers.Kind{"", providers.Busy, providers.Broken, providers.Overflow, providers.Auth, providers.Rejected}
		if !slices.Contains(kinds, f.Kind) {
			return fmt.Errorf("fault: kind is %q; allowed: %v", f.Kind, kinds[1:])
		}
	}
	return nil
}

func (c *toolCall) compile() error {
	if c.Name == "" {
		return errors.New("name must be set")
	}
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
