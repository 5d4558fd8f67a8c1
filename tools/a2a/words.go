package a2a

import (
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"daycare/engine/permission"
	"daycare/engine/plain"
	"daycare/tools"
)

// maxText bounds what a remote agent said, in characters.
const maxText = 20_000

// describe is a task as the agent that gave it reads of it.
func describe(r Remote, t *sdk.Task) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The remote agent %s: %s (task %s, context %s).", r.ID, stateText(t.Status.State), key(string(t.ID)), key(t.ContextID))
	if m := t.Status.Message; m != nil && len(m.Parts) > 0 {
		b.WriteString("\n\n" + said(m.Parts))
	}
	for _, a := range t.Artifacts {
		if a == nil {
			continue
		}
		b.WriteString("\n\n")
		if len(t.Artifacts) > 1 && a.Name != "" {
			b.WriteString(permission.VisibleLine(a.Name) + ":\n")
		}
		b.WriteString(said(a.Parts))
	}

	return head(strings.TrimSpace(b.String()), maxText)
}

func stateText(s sdk.TaskState) string {
	switch s {
	case sdk.TaskStateCompleted:
		return "the task is done"
	case sdk.TaskStateFailed:
		return "the task failed"
	case sdk.TaskStateCanceled:
		return "the task was canceled"
	case sdk.TaskStateRejected:
		return "the task was rejected"
	case sdk.TaskStateInputRequired:
		return "it needs your input; answer with " + ToolName + " and this task and context"
	case sdk.TaskStateAuthRequired:
		return "it waits for an authorization of its own, and goes on afterwards"
	}

	return "it works on the task"
}

// said are parts as text.
func said(parts sdk.ContentParts) string {
	var texts []string
	for _, p := range parts {
		if p == nil {
			continue
		}
		switch v := p.Content.(type) {
		case sdk.Text:
			texts = append(texts, string(v))
		case sdk.URL:
			texts = append(texts, fmt.Sprintf("[file: %s]", permission.VisibleLine(string(v))))
		case sdk.Raw:
			texts = append(texts, fmt.Sprintf("[file %s of %d bytes, which is not kept]", permission.VisibleLine(p.Filename), len(v)))
		case sdk.Data:
			data, _ := json.Marshal(v.Value) // it was JSON
			texts = append(texts, "```json\n"+string(plain.Indented(data))+"\n```")
		}
	}

	return strings.ToValidUTF8(strings.Join(texts, "\n\n"), "\uFFFD")
}

// key is an id that a remote agent made, as part of a line.
func key(id string) string { return permission.VisibleLine(head(id, maxKey)) }

// head is the beginning of a long text.
func head(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}

	return string(runes[:most]) + fmt.Sprintf("\n[the first %d of %d characters]", most, len(runes))
}

// result is what a call gives of a task.
func result(r Remote, t *sdk.Task) tools.Result {
	res := tools.Result{Text: describe(r, t), Source: r.right().SourceOf()}
	switch t.Status.State {
	case sdk.TaskStateFailed, sdk.TaskStateRejected, sdk.TaskStateCanceled:
		res.Status = tools.Failed
	}

	return res
}
