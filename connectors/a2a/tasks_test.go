package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"daycare/engine/apitoken"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/message"
)

// A worker is Ann at work: what she is told with the word "slow" she works on until she is
// stopped, with "later" it stays in her inbox, with "ask" it waits for an approval, and all else
// is done at once.
type worker struct {
	agents
	mu      sync.Mutex
	posted  []*event.Posted
	ended   map[string]chan struct{}
	records []string     // lines of history
	refuse  error        // of each message
	drops   func() error // before an item is dropped
	events  *event.Stream
}

func (w *worker) find(item string) (*event.Posted, error) {
	for _, p := range w.posted {
		if p.Item == item {
			return p, nil
		}
	}
	return nil, fmt.Errorf("%w: %q", fault.UnknownItem, item)
}

// end is the end of an item. The lock is held.
func (w *worker) end(p *event.Posted, reason, text string) {
	at := p.At.Add(time.Second)
	p.State, p.EndedAt, p.Outcome = "done", &at, &event.Outcome{Agent: p.Agent, Item: p.Item, Reason: reason, Text: text}
	close(w.ended[p.Item])
}

func (w *worker) Deliver(_ context.Context, in message.Incoming) (message.Receipt, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refuse != nil {
		return message.Receipt{}, w.refuse
	}
	receipt := message.Receipt{Agent: in.Agent, Item: in.ID}
	if _, err := w.find(in.ID); err == nil {
		receipt.Duplicate = true
		return receipt, nil
	}

	to := in.Route
	p := &event.Posted{Agent: in.Agent, Item: in.ID, Type: string(in.Kind), State: "waiting", Text: in.Text,
		MessageID: in.Context.MessageID, At: time.Date(2026, 1, 1, 12, len(w.posted), 0, 0, time.UTC),
		Route: &event.Route{Connector: to.Connector, ChannelID: to.ChannelID, UserID: to.UserID, ThreadID: to.ThreadID}}
	w.posted, w.ended[in.ID] = append(w.posted, p), make(chan struct{})
	switch {
	case strings.Contains(in.Text, "later"):
	case strings.Contains(in.Text, "slow"):
		p.State = "taken"
	case strings.Contains(in.Text, "ask"):
		w.end(p, "waiting", "may I?")
	default:
		w.end(p, "done", "heard: "+in.Text)
	}

	return receipt, nil
}

func (w *worker) Item(_ context.Context, _, item string) (event.Posted, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, err := w.find(item)
	if err != nil {
		return event.Posted{}, err
	}
	return *p, nil
}

func (w *worker) Await(ctx context.Context, _, item string) (event.Outcome, error) {
	w.mu.Lock()
	p, err := w.find(item)
	ended := w.ended[item]
	w.mu.Unlock()
	if err != nil {
		return event.Outcome{}, err
	}

	select {
	case <-ended:
		return *p.Outcome, nil
	case <-ctx.Done():
		return event.Outcome{}, ctx.Err()
	}
}

func (w *worker) Inbox(context.Context, string) (list []event.Waiting, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.posted {
		if p.State != "done" {
			list = append(list, event.Waiting{ID: p.Item, Type: p.Type, State: p.State})
		}
	}
	return list, nil
}

func (w *worker) Drop(_ context.Context, _, item string) error {
	if w.drops != nil {
		if err := w.drops(); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p, err := w.find(item)
	switch {
	case err != nil:
		return err
	case p.State != "waiting":
		return fault.ItemTaken
	}
	w.posted = slices.DeleteFunc(w.posted, func(other *event.Posted) bool { return other == p })

	return nil
}

func (w *worker) Stop(_ context.Context, _, item string) (stopped bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.posted {
		if p.State == "taken" && p.Item == item {
			w.end(p, "canceled", "")
			stopped = true
		}
	}
	return stopped, nil
}

// History has a page for each two records, the newest last.
func (w *worker) History(_ context.Context, _ string, before int64, _ int) (event.Page, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []json.RawMessage
	for i, p := range w.posted {
		if p.State != "done" {
			continue
		}
		route, _ := json.Marshal(p.Route) // of texts
		all = append(all, json.RawMessage(fmt.Sprintf(`{"seq":%d,"type":"user_message","item":%q,"route":%s}`, i+1, p.Item, route)))
	}
	for i, text := range w.records {
		all = append(all, json.RawMessage(fmt.Sprintf(`{"seq":%d,%s}`, 100+i, text)))
	}
	if len(w.records) > 0 {
		return event.Page{Records: all}, nil
	}

	end := len(all)
	for before > 0 && end > 0 {
		var seq struct{ Seq int64 }
		if _ = json.Unmarshal(all[end-1], &seq); seq.Seq < before {
			break
		}
		end--
	}
	page := event.Page{Records: all[max(0, end-2):end]}
	if end > 2 {
		var first struct{ Seq int64 }
		_ = json.Unmarshal(page.Records[0], &first) // made above
		page.Before = &first.Seq
	}

	return page, nil
}

// A client is one that talks to Ann.
type client struct {
	tasks
	*worker
	ctx context.Context
	n   int
}

func newClient(t *testing.T, w *worker, name string) *client {
	t.Helper()
	api := control.Handler(control.Backend{Agents: w, Events: w.events}, control.Options{})
	rights := apitoken.Rights{Scopes: []apitoken.Scope{apitoken.Chat}}
	local := control.LocalAs(api, control.Caller{Name: name, Rights: rights, Via: "a2a"})
	ctx := context.WithValue(t.Context(), callKey{}, call{Peer{name, control.NewClient(local)}, someone.agent})

	return &client{tasks: tasks{newConnector(t)}, worker: w, ctx: ctx}
}

func newWorker() *worker {
	return &worker{ended: map[string]chan struct{}{}, events: event.NewStream("t")}
}

// send gives Ann a task; config is that of the request.
func (c *client) send(text string, config *sdk.SendMessageConfig, change ...func(*sdk.Message)) (*sdk.Task, error) {
	c.n++
	m := sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart(text))
	m.ID = fmt.Sprint("m", c.n)
	for _, f := range change {
		f(m)
	}
	got, err := c.SendMessage(c.ctx, &sdk.SendMessageRequest{Message: m, Config: config})
	if err != nil {
		return nil, err
	}
	return got.(*sdk.Task), nil
}

func (c *client) get(t *testing.T, id sdk.TaskID) *sdk.Task {
	t.Helper()
	task, err := c.GetTask(c.ctx, &sdk.GetTaskRequest{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func answerOf(t *sdk.Task) (text string) {
	for _, a := range t.Artifacts {
		text += a.Parts[0].Text()
	}
	return text
}

var atOnce = &sdk.SendMessageConfig{ReturnImmediately: true}

// A client that gives a task gets its answer, or the task at once if it does not want to wait;
// the same message again is the same task.
func TestATaskIsGivenAndAnswered(t *testing.T) {
	c := newClient(t, newWorker(), "token:x")
	done, err := c.send("hello", nil)
	if err != nil || done.Status.State != sdk.TaskStateCompleted || answerOf(done) != "heard: hello" || len(done.History) != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	again, err := c.send("hello", nil, func(m *sdk.Message) { m.ID = "m1" })
	if err != nil || again.ID != done.ID || len(c.posted) != 1 {
		t.Errorf("sent again it is %+v, %v", again, err)
	}
	none := 0
	short, err := c.send("hello", &sdk.SendMessageConfig{HistoryLength: &none})
	if err != nil || len(short.History) != 0 {
		t.Errorf("without history it is %+v, %v", short, err)
	}

	later, err := c.send("later", atOnce)
	if err != nil || later.Status.State != sdk.TaskStateSubmitted || answerOf(later) != "" {
		t.Errorf("at once it is %+v, %v", later, err)
	}
	if got, err := c.GetTask(c.ctx, &sdk.GetTaskRequest{ID: done.ID, HistoryLength: &none}); err != nil || len(got.History) != 0 ||
		answerOf(got) != "heard: hello" {
		t.Errorf("got is %+v, %v", got, err)
	}
}

// A task is of the client that gave it. To others, and once it is gone, there is none.
func TestATaskIsItsClientsAlone(t *testing.T) {
	w := newWorker()
	c, other := newClient(t, w, "token:x"), newClient(t, w, "token:y")
	mine, err := c.send("hello", nil)
	if err != nil {
		t.Fatal(err)
	}

	for what, try := range map[string]func(c *client, id sdk.TaskID) error{
		"get": func(c *client, id sdk.TaskID) error {
			_, err := c.GetTask(c.ctx, &sdk.GetTaskRequest{ID: id})
			return err
		},
		"cancel": func(c *client, id sdk.TaskID) error {
			_, err := c.CancelTask(c.ctx, &sdk.CancelTaskRequest{ID: id})
			return err
		},
		"a message to it": func(c *client, id sdk.TaskID) error {
			_, err := c.send("more", nil, func(m *sdk.Message) { m.TaskID = id })
			return err
		},
		"its notifications": func(c *client, id sdk.TaskID) error {
			_, err := c.ListTaskPushConfigs(c.ctx, &sdk.ListTaskPushConfigRequest{TaskID: id})
			return err
		},
	} {
		if err := try(other, mine.ID); !errors.Is(err, sdk.ErrTaskNotFound) {
			t.Errorf("%s by another client: %v", what, err)
		}
		if err := try(c, "none"); !errors.Is(err, sdk.ErrTaskNotFound) {
			t.Errorf("%s of none: %v", what, err)
		}
	}
	if _, err := c.send("more", nil, func(m *sdk.Message) { m.TaskID = mine.ID }); !errors.Is(err, sdk.ErrUnsupportedOperation) {
		t.Errorf("a message to a task of its own: %v", err)
	}
	if len(w.posted) != 1 {
		t.Errorf("Ann got %d messages, want the one", len(w.posted))
	}
}

// A client cancels what waits and what is worked on, and nothing else.
func TestTasksAreCanceled(t *testing.T) {
	c := newClient(t, newWorker(), "token:x")
	cancel := func(id sdk.TaskID) (*sdk.Task, error) { return c.CancelTask(c.ctx, &sdk.CancelTaskRequest{ID: id}) }
	waiting, err := c.send("later", atOnce)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := cancel(waiting.ID); err != nil || got.Status.State != sdk.TaskStateCanceled || len(c.posted) != 0 {
		t.Errorf("what waited is %+v, %v, and Ann has %d items", got, err, len(c.posted))
	}
	working, err := c.send("slow", atOnce)
	if err != nil || working.Status.State != sdk.TaskStateWorking {
		t.Fatalf("%+v, %v", working, err)
	}
	if got, err := cancel(working.ID); err != nil || got.Status.State != sdk.TaskStateCanceled {
		t.Errorf("what was worked on is %+v, %v", got, err)
	}

	done, err := c.send("hello", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cancel(done.ID); !errors.Is(err, sdk.ErrTaskNotCancelable) {
		t.Errorf("what has ended is canceled: %v", err)
	}
	if got := c.get(t, done.ID); got.Status.State != sdk.TaskStateCompleted {
		t.Errorf("it is now %+v", got)
	}
}

// A task whose turn begins, or ends, while it is canceled is what it is by then.
func TestTasksThatBeginWhileCanceled(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*worker, *event.Posted)
		drop   error
		state  sdk.TaskState
		err    error
	}{
		"begins": {func(_ *worker, p *event.Posted) { p.State = "taken" }, nil, sdk.TaskStateCanceled, nil},
		"ends":   {func(w *worker, p *event.Posted) { w.end(p, "done", "") }, nil, "", sdk.ErrTaskNotCancelable},
		"goes":   {func(w *worker, _ *event.Posted) { w.posted = nil }, nil, "", sdk.ErrTaskNotFound},
		"breaks": {func(*worker, *event.Posted) {}, fault.DiskFull, "", errAny},
	} {
		c := newClient(t, newWorker(), "token:x")
		waiting, err := c.send("later", atOnce)
		if err != nil {
			t.Fatal(err)
		}
		c.drops = func() error {
			c.mu.Lock()
			defer c.mu.Unlock()
			tt.change(c.worker, c.posted[0])
			return tt.drop
		}
		got, err := c.CancelTask(c.ctx, &sdk.CancelTaskRequest{ID: waiting.ID})
		switch {
		case tt.err == nil && (err != nil || got.Status.State != tt.state):
			t.Errorf("%s: %+v, %v", name, got, err)
		case tt.err == errAny && (err == nil || errors.Is(err, sdk.ErrTaskNotCancelable)):
			t.Errorf("%s: %v", name, err)
		case tt.err != nil && tt.err != errAny && !errors.Is(err, tt.err):
			t.Errorf("%s: %v, want %v", name, err, tt.err)
		}
	}
}

var errAny = errors.New("any error")

// What waits for an approval says so, until the turn after it has ended; what someone else wrote
// meanwhile is not its answer.
func TestATaskGoesOnAfterAnApproval(t *testing.T) {
	c := newClient(t, newWorker(), "token:x")
	asked, err := c.send("ask", nil)
	if err != nil || asked.Status.State != sdk.TaskStateAuthRequired || answerOf(asked) != "" {
		t.Fatalf("%+v, %v", asked, err)
	}
	item := string(asked.ID)
	c.records = []string{`"type":"turn_end","items":["` + item + `"],"reason":"waiting"`,
		`"type":"turn_begin","turn":"t2"`, `"type":"user_message","item":"i","text":"of another"`,
		`"type":"assistant_message","finish":"end_turn","text":"for another"`,
		`"type":"turn_end","turn":"t2","items":["i"],"reason":"done"`}
	if got := c.get(t, asked.ID); got.Status.State != sdk.TaskStateAuthRequired || answerOf(got) != "" {
		t.Errorf("after a turn of another it is %+v", got)
	}
	c.records = append(c.records, `"type":"turn_begin","turn":"t3"`, `"type":"assistant_message","finish":"tool_use","text":"on it"`,
		`"type":"assistant_message","finish":"end_turn","text":"it is done"`, `"type":"turn_end","turn":"t3","items":[],"reason":"done"`)
	if got := c.get(t, asked.ID); got.Status.State != sdk.TaskStateCompleted || answerOf(got) != "it is done" {
		t.Errorf("after its own turn it is %+v", got)
	}
}

// A client lists its tasks, the newest first, page by page, and by what it wants to know.
func TestTasksAreListed(t *testing.T) {
	w := newWorker()
	c, other := newClient(t, w, "token:x"), newClient(t, w, "token:y")
	var want []string
	for i, text := range []string{"one", "two", "three", "four", "five", "later"} {
		task, err := c.send(text, atOnce, func(m *sdk.Message) { m.ContextID = []string{"even", "odd"}[i%2] })
		if err != nil {
			t.Fatal(err)
		}
		want = append([]string{string(task.ID)}, want...)
		if _, err := other.send(text, atOnce); err != nil {
			t.Fatal(err)
		}
	}

	list := func(r *sdk.ListTasksRequest) (ids []string) {
		t.Helper()
		for range 20 {
			got, err := c.ListTasks(c.ctx, r)
			if err != nil {
				t.Fatal(err)
			}
			for _, task := range got.Tasks {
				ids = append(ids, string(task.ID))
				if has := len(task.Artifacts) > 0; has != (r.IncludeArtifacts && task.Status.State == sdk.TaskStateCompleted) {
					t.Errorf("%s has artifacts: %v", task.ID, has)
				}
			}
			if r.PageToken = got.NextPageToken; r.PageToken == "" {
				return ids
			}
		}
		t.Fatal("the list does not end")
		return nil
	}
	after := time.Date(2026, 1, 1, 12, 7, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		request *sdk.ListTasksRequest
		want    []string
	}{
		"all":           {&sdk.ListTasksRequest{}, want},
		"with answers":  {&sdk.ListTasksRequest{IncludeArtifacts: true}, want},
		"one at a time": {&sdk.ListTasksRequest{PageSize: 1}, want},
		"of a context":  {&sdk.ListTasksRequest{ContextID: "even"}, []string{want[1], want[3], want[5]}},
		"submitted":     {&sdk.ListTasksRequest{Status: sdk.TaskStateSubmitted}, want[:1]},
		"since a time":  {&sdk.ListTasksRequest{StatusTimestampAfter: &after}, want[:2]},
	} {
		if got := list(tt.request); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}

	for what, r := range map[string]*sdk.ListTasksRequest{"too many": {PageSize: mostTasks + 1}, "too few": {PageSize: -1},
		"no token of ours": {PageToken: "x"}} {
		if _, err := c.ListTasks(c.ctx, r); !errors.Is(err, sdk.ErrInvalidParams) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A client that wants to be notified is so of the task that it gives, as long as it has not ended.
func TestNotificationsOfATask(t *testing.T) {
	c := newClient(t, newWorker(), "token:x")
	to := &sdk.PushConfig{ID: "n1", URL: "https://example.org/hook"}
	task, err := c.send("slow", &sdk.SendMessageConfig{ReturnImmediately: true, PushConfig: to})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.GetTaskPushConfig(c.ctx, &sdk.GetTaskPushConfigRequest{TaskID: task.ID, ID: "n1"}); err != nil || got.URL != to.URL {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := c.CreateTaskPushConfig(c.ctx, &sdk.PushConfig{TaskID: task.ID, ID: "n2", URL: to.URL}); err != nil {
		t.Error(err)
	}
	if err := c.DeleteTaskPushConfig(c.ctx, &sdk.DeleteTaskPushConfigRequest{TaskID: task.ID, ID: "n1"}); err != nil {
		t.Error(err)
	}
	list, err := c.ListTaskPushConfigs(c.ctx, &sdk.ListTaskPushConfigRequest{TaskID: task.ID})
	if err != nil || len(list.Configs) != 1 || list.Configs[0].ID != "n2" {
		t.Errorf("left are %+v, %v", list, err)
	}
	_, err = c.GetTaskPushConfig(c.ctx, &sdk.GetTaskPushConfigRequest{TaskID: task.ID, ID: "n1"})
	if !errors.Is(err, sdk.ErrTaskNotFound) {
		t.Errorf("the one that was deleted: %v", err)
	}

	done, err := c.send("hello", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.CreateTaskPushConfig(c.ctx, &sdk.PushConfig{TaskID: done.ID, URL: to.URL})
	if !errors.Is(err, sdk.ErrUnsupportedOperation) {
		t.Errorf("of a task that has ended: %v", err)
	}

	waiting, err := c.send("later", &sdk.SendMessageConfig{ReturnImmediately: true, PushConfig: to})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CancelTask(c.ctx, &sdk.CancelTaskRequest{ID: waiting.ID}); err != nil || len(listed(t, &c.pushes,
		string(waiting.ID))) > 0 {
		t.Errorf("after it was canceled it has %v, %v", listed(t, &c.pushes, string(waiting.ID)), err)
	}

	c.refuse = fault.InboxFull
	for _, id := range []string{"refused", "m1"} { // m1 is that of the slow task
		m := sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart("hello"))
		m.ID = id
		to := &sdk.PushConfig{URL: "https://example.org/" + id}
		r := &sdk.SendMessageRequest{Message: m, Config: &sdk.SendMessageConfig{PushConfig: to}}
		if _, err := c.SendMessage(c.ctx, r); err == nil {
			t.Errorf("%s was accepted", id)
		}
		for range c.SendStreamingMessage(c.ctx, r) {
		}
		kept := len(listed(t, &c.pushes, string(callOf(c.ctx).taskID(id))))
		if want := map[string]int{"refused": 0, "m1": 2}[id]; kept != want {
			t.Errorf("%s: %d notifications are kept, want %d", id, kept, want)
		}
	}
}

// A stream tells of a task as it is and of its end; one of a task that has ended is refused.
func TestATaskIsStreamed(t *testing.T) {
	c := newClient(t, newWorker(), "token:x")
	stream := func(text string) (told []string, last error) {
		c.n++
		m := sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart(text))
		m.ID = fmt.Sprint("m", c.n)
		for e, err := range c.SendStreamingMessage(c.ctx, &sdk.SendMessageRequest{Message: m}) {
			if last = err; err == nil {
				told = append(told, fmt.Sprintf("%T", e))
			}
		}
		return told, last
	}
	if told, err := stream("hello"); err != nil || len(told) == 0 || told[0] != "*a2a.Task" {
		t.Errorf("told is %v, %v", told, err)
	}
	if told, err := stream(" "); !errors.Is(err, sdk.ErrInvalidParams) || len(told) > 0 {
		t.Errorf("of an empty message told is %v, %v", told, err)
	}

	done, err := c.send("hello", nil)
	if err != nil {
		t.Fatal(err)
	}
	working, err := c.send("slow", atOnce)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range c.SubscribeToTask(c.ctx, &sdk.SubscribeToTaskRequest{ID: done.ID}) {
		if !errors.Is(err, sdk.ErrUnsupportedOperation) {
			t.Errorf("of a task that has ended: %v", err)
		}
	}
	for _, err := range c.SubscribeToTask(c.ctx, &sdk.SubscribeToTaskRequest{ID: "none"}) {
		if !errors.Is(err, sdk.ErrTaskNotFound) {
			t.Errorf("of none: %v", err)
		}
	}
	var states []sdk.TaskState
	for e, err := range c.SubscribeToTask(c.ctx, &sdk.SubscribeToTaskRequest{ID: working.ID}) {
		if err != nil {
			t.Fatal(err)
		}
		switch e := e.(type) {
		case *sdk.Task:
			states = append(states, e.Status.State)
			if _, err := c.worker.Stop(c.ctx, "", string(working.ID)); err != nil {
				t.Error(err)
			}
		case *sdk.TaskStatusUpdateEvent:
			states = append(states, e.Status.State)
		}
	}
	if !slices.Equal(states, []sdk.TaskState{sdk.TaskStateWorking, sdk.TaskStateCanceled}) {
		t.Errorf("told is %v", states)
	}

	c.refuse = message.ErrUnknownAgent
	if told, err := stream("hello"); err == nil || len(told) > 0 {
		t.Errorf("of a message that the agent does not accept told is %v, %v", told, err)
	}
	if task, err := c.send("hello", nil); err == nil {
		t.Errorf("a message that the agent does not accept is %+v", task)
	}
}

// A stream has the answer piece by piece as the model writes it, and no piece twice.
func TestAnAnswerIsStreamed(t *testing.T) {
	c := newClient(t, newWorker(), "token:x")
	m := sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart("slow"))
	m.ID = "m1"
	text, state := "", sdk.TaskStateUnspecified
	for e, err := range c.SendStreamingMessage(c.ctx, &sdk.SendMessageRequest{Message: m}) {
		if err != nil {
			t.Fatal(err)
		}
		switch e := e.(type) {
		case *sdk.Task:
			id := string(e.ID)
			emit := func(kind event.Type, body event.Body) {
				c.events.Emit(event.Event{Type: kind, Agent: someone.agent.ID, Turn: "t1", Body: body})
			}
			emit(event.TurnStarted, event.Started{Items: []string{id}})
			emit(event.MessageDelta, event.Delta{Text: "it is "})
			emit(event.MessageDelta, event.Delta{Text: "done", Offset: len("it is ")})
			c.worker.mu.Lock()
			p, _ := c.find(id)
			c.worker.end(p, "done", "it is done")
			c.worker.mu.Unlock()
		case *sdk.TaskArtifactUpdateEvent:
			if !e.Append {
				text = ""
			}
			text += e.Artifact.Parts[0].Text()
		case *sdk.TaskStatusUpdateEvent:
			state = e.Status.State
		}
	}
	if text != "it is done" || state != sdk.TaskStateCompleted {
		t.Errorf("the answer is %q, and the task is %s", text, state)
	}
}
