package cron

import (
	"fmt"
	"strings"

	"daycare/engine/message"
	"daycare/tools"
)

type heartAddArgs struct {
	Title       string `json:"title"`
	Prompt      string `json:"prompt"`
	ActiveHours string `json:"activeHours"`
	Gate        string `json:"gate"`
}

type heartArgs struct {
	Name string `json:"name"`
}

const (
	none           = `{"type":"object","properties":{},"additionalProperties":false}`
	heartAddSchema = `{"type":"object","properties":{
"title":{"type":"string"},
"prompt":{"type":"string","description":"what to check, and what to report"},
"activeHours":{"type":"string","description":"such as 08:00-22:00; default: always"},
"gate":{"type":"string","description":"command: the item is skipped unless it exits with 0"}},
"required":["title","prompt"],"additionalProperties":false}`
	heartSchema = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`
)

func (c *clocks) heartTools() []tools.Tool {
	return []tools.Tool{
		makeTool("heartbeat_add", "Add an item to the heartbeat, a periodic background check.", tools.Idempotent,
			heartAddSchema, c.heartAdd),
		makeTool("heartbeat_list", "List the items of the heartbeat and its last result.", tools.ReadOnly, none, c.heartList),
		makeTool("heartbeat_run", "Run the heartbeat now, even if nothing changed.", tools.Once, none, c.heartRun),
		makeTool("heartbeat_remove", "Move an item of the heartbeat to the trash.", tools.Once, heartSchema, c.heartRemove),
	}
}

func (c *clocks) heartAdd(call tools.Call, a heartAddArgs) (tools.Result, error) {
	if err := c.heartbeat(call); err != nil {
		return tools.Result{}, err
	}
	p, err := c.AddPrompt(a.Title, message.WithSource(a.Prompt, message.Relayed(call.Agent, call.Sources)), a.Gate, a.ActiveHours, true)
	if err != nil {
		return tools.Result{}, err
	}

	return tools.Result{Text: fmt.Sprintf("The heartbeat looks at %s.", p.Slug)}, nil
}

func (c *clocks) heartList(call tools.Call, _ struct{}) (tools.Result, error) {
	if !c.rights.Knows(call.Agent, "") {
		return tools.Result{}, errHouse
	}
	b, _, err := c.Heartbeat()
	if err != nil {
		return tools.Result{}, err
	}
	if len(b.Prompts) == 0 {
		return tools.Result{Text: "The heartbeat has nothing to look at."}, nil
	}

	var text strings.Builder
	for _, p := range b.Prompts {
		state := ""
		if !p.Enabled {
			state = " (switched off)"
		}
		fmt.Fprintf(&text, "%s: %s%s\n", p.Slug, p.Title, state)
	}

	switch {
	case b.Stopped:
		text.WriteString("It has stopped after too many failures; last: " + last(b.Last))
	case b.Next.IsZero():
		text.WriteString("It is switched off; last: " + last(b.Last))
	default:
		fmt.Fprintf(&text, "next: %s; last: %s", b.Next.Format("2006-01-02 15:04 UTC"), last(b.Last))
	}

	return tools.Result{Text: text.String()}, nil
}

func (c *clocks) heartRun(call tools.Call, _ struct{}) (tools.Result, error) {
	if err := c.heartbeat(call); err != nil {
		return tools.Result{}, err
	}
	if _, err := c.BeatNow(); err != nil {
		return tools.Result{}, err
	}

	return tools.Result{Text: "The heartbeat runs now; heartbeat_list tells how it ended."}, nil
}

func (c *clocks) heartRemove(call tools.Call, a heartArgs) (tools.Result, error) {
	if err := c.heartbeat(call); err != nil {
		return tools.Result{}, err
	}
	if _, err := c.RemovePrompt(a.Name); err != nil {
		return tools.Result{}, err
	}

	return tools.Result{Text: a.Name + " is in the trash."}, nil
}
