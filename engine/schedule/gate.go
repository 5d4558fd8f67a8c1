package schedule

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// A Gate is a command that decides whether a task runs: exit 0 runs it with the
// output appended.
type Gate struct {
	Command        string
	Timeout        time.Duration
	Permissions    []string // tags that the command needs
	AllowedDomains []string
	// ByHand: a person runs the task now, and may be asked what they said no to before.
	ByHand bool
}

// An Output is how a gate ended.
type Output struct {
	Code int    // exit code
	Text string // standard output and error, bounded by whoever ran it
	// Refused says why the command was not run: a permission is missing and was
	// asked for.
	Refused string
}

// A GateFunc runs a gate with the rights of an agent, in the folder dir.
type GateFunc func(ctx context.Context, agentID, dir string, g Gate) (Output, error)

// Bounds of a gate's time.
const (
	gateTimeout    = 30 * time.Second
	maxGateTimeout = 10 * time.Minute
)

var gateKeys = []string{"command", "timeoutMs", "permissions", "allowedDomains"}

// gate reads the key gate; nil where there is none.
func (f *front) gate() *Gate {
	n := f.keys["gate"]
	if n == nil || n.Kind == yaml.ScalarNode && (n.ShortTag() == "!!null" || n.Value == "") {
		return nil
	}
	if n.Kind == yaml.ScalarNode {
		return &Gate{Command: n.Value, Timeout: gateTimeout}
	}
	if n.Kind != yaml.MappingNode {
		f.bad(n, "wrong-type", "gate must be a command, or keys: command, timeoutMs, permissions, allowedDomains")
		return nil
	}
	sub := &front{file: f.file, first: f.first, keys: map[string]*yaml.Node{}}
	for i := 0; i+1 < len(n.Content); i += 2 {
		sub.keys[n.Content[i].Value] = plain(n.Content[i+1])
		sub.order = append(sub.order, n.Content[i])
	}
	sub.unknown(gateKeys...)
	g := &Gate{Command: sub.text("command"), Timeout: gateTimeout,
		Permissions:    sub.list("permissions", sub.keys["permissions"]),
		AllowedDomains: sub.list("allowedDomains", sub.keys["allowedDomains"])}
	if g.Command == "" {
		sub.bad(n, "missing", "gate has no command")
	}
	if ms := sub.text("timeoutMs"); ms != "" {
		v, err := strconv.Atoi(ms)
		g.Timeout = time.Duration(v) * time.Millisecond
		if err != nil || v < 1 || v > int(maxGateTimeout.Milliseconds()) {
			sub.bad(sub.keys["timeoutMs"], "wrong-value",
				fmt.Sprintf("timeoutMs is %q, allowed: 1 to %d", ms, maxGateTimeout.Milliseconds()))
			g.Timeout = gateTimeout
		}
	}
	f.found = append(f.found, sub.found...)
	return g
}
