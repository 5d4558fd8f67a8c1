package a2a

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/lazyregexp"
	"daycare/engine/message"
	"daycare/engine/plain"
)

const (
	maxKey   = 200 // bytes of an id that a client chooses
	maxParts = 100 // parts of a message
	markdown = "text/markdown"
)

// answer is the artifact of every task: what the agent says, as Markdown.
const answer sdk.ArtifactID = "answer"

// keyForm is what a client may call a context: it is shown to owners beside approvals.
var keyForm = lazyregexp.New(`^[!-~]+$`)

// taskID is the id of the task that a message becomes: the same for the same message, so that a
// message that is sent again is the same task.
func (c call) taskID(messageID string) sdk.TaskID {
	sum := sha256.Sum256([]byte(c.Name + "\x00" + c.agent.ID + "\x00" + messageID))
	return sdk.TaskID(strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:20])))
}

// A task is a message of a client, read.
type task struct {
	id, context string
	push        string // the id of its notification; "": none
	message     control.Message
}

// read makes a message for the agent of a message of a client.
func (c *Connector) read(from call, r *sdk.SendMessageRequest) (t task, err error) {
	m := r.Message
	switch {
	case m == nil:
		return t, bad("message is missing")
	case m.ID == "" || len(m.ID) > maxKey:
		return t, bad("message.messageId has %d bytes, allowed: 1 to %d", len(m.ID), maxKey)
	case m.Role != sdk.MessageRoleUser:
		return t, bad("message.role is %.40q, want %s", m.Role, sdk.MessageRoleUser)
	case len(m.ContextID) > maxKey || m.ContextID != "" && !keyForm.MatchString(m.ContextID):
		return t, bad("message.contextId is not of up to %d visible ASCII characters", maxKey)
	case len(m.Parts) == 0 || len(m.Parts) > maxParts:
		return t, bad("message.parts has %d parts, allowed: 1 to %d", len(m.Parts), maxParts)
	}
	if r.Config != nil {
		if err := checkModes(r.Config.AcceptedOutputModes); err != nil {
			return t, err
		}
	}

	text, files, err := content(m.Parts)
	if err != nil {
		return t, err
	}
	t = task{id: string(from.taskID(m.ID)), context: cmp.Or(m.ContextID, from.agent.ID)}
	to := message.Address{Connector: c.o.ID, ChannelID: t.context, UserID: from.Name, ThreadID: t.id}
	t.message = control.Message{
		Text: text, Files: files, Kind: message.Text, Queue: message.Followup, Untrusted: true, ID: t.id,
		Connector: to.Connector, ChannelID: to.ChannelID, UserID: to.UserID, ThreadID: to.ThreadID, Route: &to,
		Context: message.Context{MessageID: m.ID, Sender: "A2A client"},
	}

	return t, nil
}

// checkModes refuses a client that cannot read what agents say.
func checkModes(modes []string) error {
	readable := func(mode string) bool {
		return strings.HasPrefix(mode, "text/") || mode == "text" || strings.HasPrefix(mode, "*")
	}
	if len(modes) == 0 || slices.ContainsFunc(modes, readable) {
		return nil
	}

	return sdk.NewError(sdk.ErrUnsupportedContentType, "agents answer with "+markdown+"; add it, or text/plain, to acceptedOutputModes")
}

// content is what the parts of a message say. An address stays text: the agent reads it if its
// permissions allow that.
func content(parts sdk.ContentParts) (text string, files []control.File, err error) {
	var texts []string
	for i, p := range parts {
		if p == nil {
			return "", nil, bad("message.parts[%d] is null", i)
		}
		switch v := p.Content.(type) {
		case sdk.Text:
			texts = append(texts, string(v))
		case sdk.URL:
			texts = append(texts, fmt.Sprintf("[file: %s]", string(v)))
		case sdk.Raw:
			files = append(files, control.File{Name: fileName(p.Filename, i), Data: v})
		case sdk.Data:
			data, err := json.Marshal(v.Value)
			if err != nil {
				return "", nil, bad("message.parts[%d].data: %s", i, err)
			}
			texts = append(texts, "```json\n"+string(plain.Indented(data))+"\n```")
		default:
			return "", nil, bad("message.parts[%d] is neither text nor data nor a file", i)
		}
	}

	text = strings.TrimSpace(strings.Join(texts, "\n\n"))
	if text == "" && len(files) == 0 {
		return "", nil, bad("message.parts is empty")
	}

	return text, files, nil
}

// fileName is the name under which a file is kept.
func fileName(name string, i int) string {
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	if name == "." || name == "/" || name == ".." {
		return fmt.Sprintf("file%d", i+1)
	}

	return name
}

// ofTask makes a task of an item. It belongs to the call, or there is none.
func (c *Connector) ofTask(from call, p event.Posted) (*sdk.Task, error) {
	if p.Route == nil || p.Route.Connector != c.o.ID || p.Route.UserID != from.Name {
		return nil, sdk.NewError(sdk.ErrTaskNotFound, "there is no such task")
	}
	return newTask(p), nil
}

// newTask is an item as a task.
func newTask(p event.Posted) *sdk.Task {
	t := &sdk.Task{ID: sdk.TaskID(p.Item), ContextID: p.Route.ChannelID, Status: sdk.TaskStatus{State: sdk.TaskStateSubmitted}}
	t.History = []*sdk.Message{{ID: p.MessageID, Role: sdk.MessageRoleUser, TaskID: t.ID, ContextID: t.ContextID,
		Parts: sdk.ContentParts{sdk.NewTextPart(p.Text)}}}
	at := p.At
	switch {
	case p.State == "taken":
		t.Status.State = sdk.TaskStateWorking
	case p.Outcome != nil:
		if p.EndedAt != nil {
			at = *p.EndedAt
		}
		finish(t, *p.Outcome)
	}
	if !at.IsZero() {
		t.Status.Timestamp = &at
	}

	return t
}

// finish gives a task the state and the answer of its turn.
func finish(t *sdk.Task, o event.Outcome) {
	state, note, text := stateOf(o)
	t.Status.State = state
	if note != "" {
		t.Status.Message = &sdk.Message{ID: string(t.ID) + "-status", Role: sdk.MessageRoleAgent, TaskID: t.ID, ContextID: t.ContextID,
			Parts: sdk.ContentParts{sdk.NewTextPart(note)}}
	}
	if text != "" {
		t.Artifacts = []*sdk.Artifact{newAnswer(text)}
	}
}

func newAnswer(text string) *sdk.Artifact {
	return &sdk.Artifact{ID: answer, Name: "Answer", Parts: sdk.ContentParts{{Content: sdk.Text(text), MediaType: markdown}}}
}

// stateOf is what the end of a turn is to a client: the state of its task, what there is to say
// about that, and the answer.
func stateOf(o event.Outcome) (state sdk.TaskState, note, text string) {
	switch o.Reason {
	case "done":
		return sdk.TaskStateCompleted, "", o.Text
	case "waiting", "budget":
		const note = "The agent is waiting for its owner's approval and continues when it has it. "
		return sdk.TaskStateAuthRequired, strings.TrimSpace(note + o.Text), ""
	case "canceled", "dropped":
		return sdk.TaskStateCanceled, "", o.Text
	case "limit", "loop":
		return sdk.TaskStateFailed, "The turn ended at a limit of its tool calls; another message in this context continues it.",
			cmp.Or(o.Text, o.Work.Said)
	case "error", "poison":
		return sdk.TaskStateFailed, strings.TrimSpace(cmp.Or(o.Text, o.Error, "The turn failed.")), ""
	}

	return sdk.TaskStateRejected, "The message was not processed (" + o.Reason + ").", ""
}

// shorten leaves as much of a task's history as a client wants; nil: all.
func shorten(t *sdk.Task, length *int) *sdk.Task {
	if length != nil && *length >= 0 && *length < len(t.History) {
		t.History = t.History[len(t.History)-*length:]
	}
	return t
}

// now is the time of a status.
func now() *time.Time {
	at := time.Now().UTC().Truncate(time.Millisecond)
	return &at
}
