package schedule

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"daycare/engine/finding"
	"daycare/engine/form"
)

// maxFile bounds a TASK.md or a prompt, in bytes: the text goes to a model.
const maxFile = 256 << 10

// kind is how the files of tasks and prompts are read.
var kind = form.Kind{ID: "schedule", IDs: map[string]string{"bad-value": "wrong-value"}, Loose: true, Max: maxFile,
	Syntax: "correct the line; a text with a colon or a star needs quotes, and the keys end with a line of ---"}

// taskKeys are the keys of a TASK.md.
type taskKeys struct {
	TaskID      string `json:"taskId" jsonschema:"the id of the task's own agent; a file without one gets one"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Timing
	Timezone       string  `json:"timezone" jsonschema:"an IANA name like Europe/Berlin"`
	Enabled        bool    `json:"enabled"`
	AgentID        string  `json:"agentId" jsonschema:"id of the agent that runs it; empty: its own agent"`
	CatchUp        CatchUp `json:"catchUp" allow:"|one|all|none"`
	DeleteAfterRun bool    `json:"deleteAfterRun"`
	Model          string  `json:"model"`
	origin
	conditions
}

// origin is where a task comes from.
type origin struct {
	CreatedBy string `json:"createdBy" jsonschema:"the agent that made the task, which works for the same person; empty: made by hand"`
	Source    string `json:"source" jsonschema:"what the agent had read from outside when it wrote the task; its runs are as untrusted"`
}

// conditions are what else must be so that a task or prompt runs.
type conditions struct {
	Gate         *gateKeys `json:"gate" short:"command"`
	Watch        []string  `json:"watch" jsonschema:"globs, relative to the workspace: run only when something changed"`
	WatchCommand string    `json:"watchCommand"`
}

// gateKeys are the keys of a gate; a gate that is one text is the command.
type gateKeys struct {
	Command        string   `json:"command" check:"required" jsonschema:"it runs if this exits with 0; the output is part of the prompt"`
	TimeoutMS      int      `json:"timeoutMs" min:"1" max:"600000"`
	Permissions    []string `json:"permissions"`
	AllowedDomains []string `json:"allowedDomains"`
}

// promptKeys are the keys of a prompt of the heartbeat.
type promptKeys struct {
	Title       string `json:"title"`
	Enabled     bool   `json:"enabled"`
	ActiveHours string `json:"activeHours" jsonschema:"like 08:00-22:00"`
	conditions
}

// TaskType and PromptType are the structs that the keys of a TASK.md and of a heartbeat item are
// read into.
func TaskType() reflect.Type   { return reflect.TypeFor[taskKeys]() }
func PromptType() reflect.Type { return reflect.TypeFor[promptKeys]() }

// gate is the gate that the keys say; nil: none.
func (c conditions) gate() *Gate {
	k := c.Gate
	if k == nil {
		return nil
	}
	g := &Gate{Command: k.Command, Timeout: gateTimeout, Permissions: k.Permissions, AllowedDomains: k.AllowedDomains}
	if k.TimeoutMS > 0 {
		g.Timeout = time.Duration(k.TimeoutMS) * time.Millisecond
	}

	return g
}

// checkName refuses a file whose name cannot be that of a task or prompt.
func checkName(f *form.File, slug string) {
	if !ValidSlug(slug) {
		f.Found = append(f.Found, badName(f.Name, slug))
	}
}

// checkWatch refuses patterns that cannot be matched or lead out of the workspace.
func checkWatch(f *form.File, patterns []string) {
	for _, p := range patterns {
		if !doublestar.ValidatePattern(p) || strings.HasPrefix(p, "/") || slices.Contains(strings.Split(p, "/"), "..") || p == "" {
			f.Tell(finding.Error, "watch", "watch",
				fmt.Sprintf("watch: %q is not a pattern of files inside the workspace, such as notes/**/*.md", p), "")
		}
	}
}
