package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/message"
)

const (
	usualTasks = 50
	mostTasks  = 100
	// maxPages bounds how far one request looks for tasks: most records are not of this client.
	maxPages   = 5
	pageLength = 200
	// newest is the page token of the history as a whole, behind what is in the inbox.
	newest = math.MaxInt64
)

// A line is what is read of a record of history.
type line struct {
	Type   string
	At     time.Time
	Turn   string
	Items  []string
	Reason string
	Text   string
	Finish string
	Item   string
	Origin string
	Route  *message.Address
}

func readLine(raw json.RawMessage) (l line, ok bool) {
	return l, json.Unmarshal(raw, &l) == nil // a line that a user broke is nothing
}

// isFinal reports whether the line is the last answer of a turn.
func (l line) isFinal() bool {
	return l.Type == "assistant_message" && slices.Contains([]string{"end_turn", "max_tokens", "error", "canceled"}, l.Finish)
}

// ListTasks returns the newest tasks of the caller first. Its page token is the number of a record.
func (t tasks) ListTasks(ctx context.Context, r *sdk.ListTasksRequest) (*sdk.ListTasksResponse, error) {
	size := r.PageSize
	if size == 0 {
		size = usualTasks
	}
	if size < 1 || size > mostTasks {
		return nil, said(bad("pageSize is %d, allowed: 1 to %d", size, mostTasks))
	}
	before, err := strconv.ParseInt("0"+r.PageToken, 10, 64)
	if err != nil {
		return nil, said(bad("pageToken %.40q is not one of this agent's", r.PageToken))
	}

	from := callOf(ctx)
	l := listing{tasks: t, from: from, request: r, size: size}
	if l.first = before == 0; l.first {
		err = l.waiting(ctx)
		before = newest
	}
	for range maxPages {
		if err != nil || len(l.found) >= size {
			break
		}
		var more bool
		if before, more, err = l.page(ctx, before); !more {
			before = 0
			break
		}
	}
	if err != nil {
		return nil, said(err)
	}

	out := &sdk.ListTasksResponse{Tasks: l.found, PageSize: size, TotalSize: len(l.found)}
	if out.Tasks == nil {
		out.Tasks = []*sdk.Task{}
	}
	if before > 0 {
		out.NextPageToken = strconv.FormatInt(before, 10)
	}

	return out, nil
}

// A listing is the search for the tasks of a caller.
type listing struct {
	tasks
	from    call
	request *sdk.ListTasksRequest
	size    int
	first   bool // the first page, which has what is in the inbox
	found   []*sdk.Task
}

// waiting finds tasks in the inbox, the newest first.
func (l *listing) waiting(ctx context.Context) error {
	items, err := l.from.API.Inbox(ctx, l.from.agent.ID)
	for _, item := range slices.Backward(items) {
		if item.Type != string(message.Text) {
			continue
		}
		if err := l.add(ctx, item.ID); err != nil {
			return err
		}
	}

	return err
}

// page finds tasks in the records before one; more: there are older ones.
func (l *listing) page(ctx context.Context, before int64) (next int64, more bool, err error) {
	if before == newest {
		before = 0
	}
	page, err := l.from.API.History(ctx, l.from.agent.ID, before, pageLength)
	if err != nil {
		return 0, false, err
	}
	for i, raw := range slices.Backward(page.Records) {
		u, ok := readLine(raw)
		if !ok || u.Type != "user_message" || u.Route == nil || u.Route.Connector != l.o.ID || u.Route.UserID != l.from.Name {
			continue
		}
		if err := l.add(ctx, u.Item); err != nil {
			return 0, false, err
		}
		if len(l.found) >= l.size {
			var seq struct{ Seq int64 }
			return seq.Seq, json.Unmarshal(page.Records[i], &seq) == nil && seq.Seq > 1, nil
		}
	}

	if page.Before == nil {
		return 0, false, nil
	}

	return *page.Before, true, nil
}

// add adds a task that the request is about.
func (l *listing) add(ctx context.Context, id string) error {
	r := l.request
	if slices.ContainsFunc(l.found, func(t *sdk.Task) bool { return string(t.ID) == id }) {
		return nil // it is in the inbox and, being worked on, in history
	}
	task, err := l.task(ctx, l.from, sdk.TaskID(id))
	switch {
	case errors.Is(err, sdk.ErrTaskNotFound) || errors.Is(err, fault.UnknownItem):
		return nil // of someone else, or removed meanwhile
	case err != nil:
		return err
	case !l.first && (task.Status.State == sdk.TaskStateSubmitted || task.Status.State == sdk.TaskStateWorking):
		return nil // it is in the inbox, too
	case r.ContextID != "" && task.ContextID != r.ContextID, r.Status != "" && task.Status.State != r.Status:
		return nil
	case r.StatusTimestampAfter != nil && task.Status.Timestamp != nil && !task.Status.Timestamp.After(*r.StatusTimestampAfter):
		return nil
	}
	if !r.IncludeArtifacts {
		task.Artifacts = nil
	}
	l.found = append(l.found, shorten(task, r.HistoryLength))

	return nil
}

// continued is how a turn ended that went on after an approval, as far as the newest records tell:
// with the first turn after it that no message began. Without a reason there was none yet.
func continued(ctx context.Context, from call, p event.Posted) (o event.Outcome, err error) {
	page, err := from.API.History(ctx, from.agent.ID, 0, pageLength)
	if err != nil {
		return o, err
	}
	after, asked, text := false, false, ""
	for _, raw := range page.Records {
		l, ok := readLine(raw)
		switch {
		case !ok:
		case l.Type == "turn_end" && slices.Contains(l.Items, p.Item):
			after = true
		case !after:
		case l.Type == "turn_begin":
			asked, text = false, ""
		case l.Type == "user_message" && l.Origin == "":
			asked = true
		case l.isFinal():
			text = l.Text
		case l.Type == "turn_end" && !asked:
			o = event.Outcome{Agent: p.Agent, Item: p.Item, Turn: l.Turn, Reason: l.Reason, Text: text}
			if l.Reason != "waiting" {
				return o, nil
			}
		}
	}

	return o, nil
}
