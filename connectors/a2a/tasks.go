package a2a

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/fault"
)

// cancelTime is how long a turn that is stopped may take to end.
const cancelTime = 10 * time.Second

// tasks are the operations of the protocol, whatever the binding is.
type tasks struct{ *Connector }

var _ a2asrv.RequestHandler = tasks{}

// SendMessage gives the agent a task, and waits for its end unless the client does not want that.
func (t tasks) SendMessage(ctx context.Context, r *sdk.SendMessageRequest) (sdk.SendMessageResult, error) {
	from := callOf(ctx)
	in, err := t.prepare(ctx, from, r)
	if err == nil {
		_, err = from.API.Send(ctx, from.agent.ID, in.message)
		t.refused(ctx, from, in, err)
	}
	if err != nil {
		return nil, said(err)
	}
	if r.Config == nil || !r.Config.ReturnImmediately {
		if _, err := from.API.Follow(ctx, from.agent.ID, in.id, nil); err != nil && !errors.Is(err, fault.UnknownItem) {
			return nil, said(why(ctx, err))
		}
	}
	task, err := t.task(ctx, from, sdk.TaskID(in.id))
	if err != nil {
		return nil, said(why(ctx, err))
	}
	if r.Config != nil {
		shorten(task, r.Config.HistoryLength)
	}

	return task, nil
}

// prepare reads a message and makes durable what the client wants to be notified of, before the
// message is.
func (t tasks) prepare(ctx context.Context, from call, r *sdk.SendMessageRequest) (task, error) {
	in, err := t.read(from, r)
	if err != nil {
		return in, err
	}
	if err := t.continues(ctx, from, r.Message); err != nil {
		return in, err
	}
	if r.Config != nil && r.Config.PushConfig != nil {
		saved, err := t.pushes.save(t.o.Notify, from, in.id, in.context, r.Config.PushConfig)
		if err != nil {
			return in, err
		}
		in.push = saved.ID
	}

	return in, nil
}

// refused forgets what a client wanted to be notified of if there is no such message: the agent did not get it. What cannot be
// forgotten now is so by its age.
func (t tasks) refused(ctx context.Context, from call, in task, err error) {
	if err == nil || in.push == "" {
		return
	}
	if _, err := from.API.Item(context.WithoutCancel(ctx), from.agent.ID, in.id); errors.Is(err, fault.UnknownItem) {
		_ = t.pushes.forget(in.id, in.push)
	}
}

// continues refuses a message to a task: each message is one of its own.
func (t tasks) continues(ctx context.Context, from call, m *sdk.Message) error {
	if m.TaskID == "" || m.TaskID == from.taskID(m.ID) {
		return nil
	}
	if _, err := t.task(ctx, from, m.TaskID); err != nil {
		return err
	}

	return unsupported("each message is a separate task: leave out taskId, and give the contextId to continue the conversation")
}

// why is the error of a request that ended with its context: that says more.
func why(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// task is a task of the caller as it is now.
func (t tasks) task(ctx context.Context, from call, id sdk.TaskID) (*sdk.Task, error) {
	p, err := from.API.Item(ctx, from.agent.ID, string(id))
	if err != nil {
		return nil, err
	}
	task, err := t.ofTask(from, p)
	if err != nil || p.Outcome == nil || p.Outcome.Reason != "waiting" {
		return task, err
	}
	later, err := continued(ctx, from, p)
	if err == nil && later.Reason != "" {
		finish(task, later)
	}

	return task, err
}

// GetTask returns a task as it is now.
func (t tasks) GetTask(ctx context.Context, r *sdk.GetTaskRequest) (*sdk.Task, error) {
	task, err := t.task(ctx, callOf(ctx), r.ID)
	if err != nil {
		return nil, said(err)
	}

	return shorten(task, r.HistoryLength), nil
}

// CancelTask stops the turn of a task, or takes it out of the inbox.
func (t tasks) CancelTask(ctx context.Context, r *sdk.CancelTaskRequest) (*sdk.Task, error) {
	from := callOf(ctx)
	task, err := t.task(ctx, from, r.ID)
	if err != nil {
		return nil, said(err)
	}
	if task.Status.State == sdk.TaskStateSubmitted {
		err := from.API.Drop(ctx, from.agent.ID, string(r.ID))
		if err == nil {
			t.pushes.remove(string(r.ID))
			task.Status = sdk.TaskStatus{State: sdk.TaskStateCanceled, Timestamp: now()}
			return task, nil
		}
		if !errors.Is(err, fault.ItemTaken) && !errors.Is(err, fault.UnknownItem) {
			return nil, said(err)
		}
		if task, err = t.task(ctx, from, r.ID); err != nil { // its turn has begun
			return nil, said(err)
		}
	}
	if task.Status.State != sdk.TaskStateWorking {
		return nil, sdk.NewError(sdk.ErrTaskNotCancelable, fmt.Sprintf("the task is %s", task.Status.State))
	}
	if _, err := from.API.Stop(ctx, from.agent.ID, string(r.ID)); err != nil {
		return nil, said(err)
	}

	waiting, cancel := context.WithTimeout(ctx, cancelTime)
	defer cancel()
	if _, err := from.API.Follow(waiting, from.agent.ID, string(r.ID), nil); err != nil && waiting.Err() == nil {
		return nil, said(err)
	}
	task, err = t.task(ctx, from, r.ID)

	return task, said(err)
}

// SendStreamingMessage gives the agent a task and tells of its turn.
func (t tasks) SendStreamingMessage(ctx context.Context, r *sdk.SendMessageRequest) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		from := callOf(ctx)
		in, err := t.prepare(ctx, from, r)
		if err != nil {
			yield(nil, said(err))
			return
		}
		// One request, so that nothing of the turn is missed.
		t.follow(ctx, from, sdk.TaskID(in.id), yield, func(ctx context.Context, f func(control.RawEvent)) (event.Outcome, error) {
			o, err := from.API.Stream(ctx, from.agent.ID, in.message, f)
			t.refused(ctx, from, in, err)
			return o, err
		})
	}
}

// SubscribeToTask tells of the turn of a task that has not ended.
func (t tasks) SubscribeToTask(ctx context.Context, r *sdk.SubscribeToTaskRequest) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		from := callOf(ctx)
		task, err := t.task(ctx, from, r.ID)
		switch {
		case err != nil:
			yield(nil, said(err))
		case task.Status.State.Terminal():
			yield(nil, unsupported("the task is %s; get it to read its answer", task.Status.State))
		default:
			t.follow(ctx, from, r.ID, yield, func(ctx context.Context, f func(control.RawEvent)) (event.Outcome, error) {
				return from.API.Follow(ctx, from.agent.ID, string(r.ID), f)
			})
		}
	}
}

// follow yields a task as it is, and then what happens in its turn, to its end. turn tells of that,
// first of the item.
func (t tasks) follow(ctx context.Context, from call, id sdk.TaskID, yield func(sdk.Event, error) bool,
	turn func(context.Context, func(control.RawEvent)) (event.Outcome, error)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	gone := false
	tell := func(e sdk.Event, err error) {
		if !gone && (!yield(e, err) || err != nil) {
			gone = true
			cancel()
		}
	}
	w := &teller{yield: func(e sdk.Event) { tell(e, nil) }}
	o, err := turn(ctx, func(e control.RawEvent) {
		if w.task != nil {
			w.happened(e)
			return
		}
		task, err := t.task(ctx, from, id)
		if err != nil {
			tell(nil, said(why(ctx, err)))
			return
		}
		w.task = task
		tell(task, nil)
		if s := task.Status.State; s != sdk.TaskStateSubmitted && s != sdk.TaskStateWorking { // it has ended
			gone = true
			cancel()
		}
	})
	switch {
	case gone:
	case err == nil && w.task == nil:
		yield(nil, sdk.ErrInternalError)
	case err != nil && (w.task == nil || !errors.Is(err, fault.UnknownItem)):
		yield(nil, said(why(ctx, err)))
	case err != nil: // someone took it out of the inbox
		w.end(event.Outcome{Reason: "dropped"})
	default:
		w.end(o)
	}
}

// GetTaskPushConfig returns what a client wants to be notified of.
func (t tasks) GetTaskPushConfig(ctx context.Context, r *sdk.GetTaskPushConfigRequest) (*sdk.PushConfig, error) {
	list, err := t.configs(ctx, r.TaskID)
	for _, p := range list {
		if p.ID == r.ID {
			return p, nil
		}
	}
	if err == nil {
		err = sdk.NewError(sdk.ErrTaskNotFound, "the task has no notification with this id")
	}

	return nil, said(err)
}

// ListTaskPushConfigs returns all that a client wants to be notified of about a task.
func (t tasks) ListTaskPushConfigs(ctx context.Context, r *sdk.ListTaskPushConfigRequest) (*sdk.ListTaskPushConfigResponse, error) {
	list, err := t.configs(ctx, r.TaskID)
	return &sdk.ListTaskPushConfigResponse{Configs: list}, said(err)
}

func (t tasks) configs(ctx context.Context, id sdk.TaskID) ([]*sdk.PushConfig, error) {
	if _, err := t.task(ctx, callOf(ctx), id); err != nil {
		return nil, err
	}
	return t.pushes.list(string(id))
}

// CreateTaskPushConfig notes that a client wants to be notified of a task that has not ended.
func (t tasks) CreateTaskPushConfig(ctx context.Context, r *sdk.PushConfig) (*sdk.PushConfig, error) {
	from := callOf(ctx)
	task, err := t.task(ctx, from, r.TaskID)
	if err != nil {
		return nil, said(err)
	}
	if task.Status.State.Terminal() {
		return nil, unsupported("the task is %s; get it to read its answer", task.Status.State)
	}
	saved, err := t.pushes.save(t.o.Notify, from, string(task.ID), task.ContextID, r)

	return saved, said(err)
}

// DeleteTaskPushConfig forgets that a client wants to be notified.
func (t tasks) DeleteTaskPushConfig(ctx context.Context, r *sdk.DeleteTaskPushConfigRequest) error {
	if _, err := t.task(ctx, callOf(ctx), r.TaskID); err != nil {
		return said(err)
	}
	return said(t.pushes.forget(string(r.TaskID), r.ID))
}

// GetExtendedAgentCard: the card that everybody with a token reads is all there is.
func (t tasks) GetExtendedAgentCard(context.Context, *sdk.GetExtendedAgentCardRequest) (*sdk.AgentCard, error) {
	return nil, sdk.ErrExtendedCardNotConfigured
}
