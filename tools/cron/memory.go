package cron

import (
	"daycare/engine/message"
	"daycare/tools"
)

type memoryArgs struct {
	Task string `json:"task"`
	Text string `json:"text"`
}

const memorySchema = `{"type":"object","properties":{
"task":{"type":"string"},
"text":{"type":"string"}},
"required":["task","text"],"additionalProperties":false}`

func (c *clocks) memoryTools() []tools.Tool {
	return []tools.Tool{
		makeTool("cron_read_memory", "Read the notes that a scheduled task keeps for its next run.", tools.ReadOnly,
			slugSchema, c.readMemory),
		makeTool("cron_write_memory", "Replace the notes that a scheduled task keeps for its next run.", tools.Idempotent,
			memorySchema, c.writeMemory),
	}
}

func (c *clocks) readMemory(call tools.Call, a slugArgs) (tools.Result, error) {
	if _, err := c.seen(call, a.Task); err != nil {
		return tools.Result{}, err
	}
	text, err := c.Memory(a.Task)
	if err == nil && text == "" {
		text = "There is nothing yet."
	}

	return tools.Result{Text: text, Source: message.SourceOf(text)}, err
}

func (c *clocks) writeMemory(call tools.Call, a memoryArgs) (tools.Result, error) {
	if _, err := c.own(call, a.Task); err != nil {
		return tools.Result{}, err
	}
	if err := c.SetMemory(a.Task, message.WithSource(a.Text, message.Relayed(call.Agent, call.Sources))); err != nil {
		return tools.Result{}, err
	}

	return tools.Result{Text: "Noted."}, nil
}
