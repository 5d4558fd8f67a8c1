package agents

import (
	"daycare/engine/record"
)

// hide takes the secrets that daycare knows of out of a record, in place, before it
// is written: what is in history goes to the model, to chats and to everyone who reads
// the files. Every record passes here; a tool's result a first time before it is
// shortened, because the whole of it is kept too.
func (j *journal) hide(rec record.Record) {
	text := func(s *string) { *s = j.redact.Text(*s) }
	switch r := rec.(type) {
	case *record.User:
		text(&r.Text)
		text(&r.Preface)
	case *record.Assistant:
		text(&r.Text)
		for i := range r.ToolCalls {
			r.ToolCalls[i].Arguments = j.redact.JSON(r.ToolCalls[i].Arguments)
		}

		for i := range r.Thinking {
			// A signature holds for the text as the model wrote it.
			if before := r.Thinking[i].Text; j.redact.Text(before) != before {
				r.Thinking[i] = record.Thinking{Text: j.redact.Text(before)}
			}
		}
	case *record.ToolResult:
		text(&r.Output.Text)
		for i := range r.Output.Blocks {
			text(&r.Output.Blocks[i].Text)
		}
	case *record.Summary:
		text(&r.Text)
	case *record.Note:
		text(&r.Text)
	case *record.Permission:
		text(&r.Request)
	case *record.Reset:
		text(&r.Message)
	case *record.TurnEnd:
		text(&r.Error)
	case *record.Delivery:
		text(&r.Error)
	}
}
