package a2a

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/message"
)

var someone = call{Peer{Name: "token:x"}, event.Agent{ID: "annannannannannannannann", Handle: "0/", Name: "Ann"}}

func newConnector(t *testing.T, notify ...string) *Connector {
	t.Helper()
	c, err := New(Options{ID: "a2a", Agents: []Published{{Agent: "Ann", Description: "Knows"}}, Notify: notify}, nil, &drawer{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func readMessage(t *testing.T, body string) (task, error) {
	t.Helper()
	var r sdk.SendMessageRequest
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Fatal(err)
	}
	return newConnector(t).read(someone, &r)
}

// A message of a client is one message of the agent, whose item is the task.
func TestAMessageIsAnItem(t *testing.T) {
	const body = `{"message":{"messageId":"m1","contextId":"c1","role":"ROLE_USER","parts":[{"text":"look at"},{"data":{"a":1}},
		{"url":"https://example.org/x.png"},{"raw":"cGljdHVyZQ==","filename":"../a.png"},{"raw":"eA=="}]}}`
	got, err := readMessage(t, body)
	if err != nil {
		t.Fatal(err)
	}
	m := got.message
	to := message.Address{Connector: "a2a", ChannelID: "c1", UserID: "token:x", ThreadID: got.id}
	if m.Text != "look at\n\n```json\n{\n  \"a\": 1\n}\n```\n\n[file: https://example.org/x.png]" || m.ID != got.id || *m.Route != to ||
		!m.Untrusted || m.Queue != message.Followup || len(m.Files) != 2 || m.Files[0].Name != "a.png" ||
		string(m.Files[0].Data) != "picture" ||
		m.Files[1].Name != "file5" || m.Context.MessageID != "m1" {
		t.Errorf("%+v", m)
	}

	again, err := readMessage(t, strings.Replace(body, "look at", "edited", 1))
	if err != nil || again.id != got.id {
		t.Errorf("sent again it is %q, %v; want %q", again.id, err, got.id)
	}
	other, err := readMessage(t, strings.Replace(body, "m1", "m2", 1))
	if err != nil || other.id == got.id || someone.taskID("m1") == (call{Peer{Name: "token:y"}, someone.agent}).taskID("m1") {
		t.Errorf("another message is %q, %v", other.id, err)
	}
}

// Data is shown without many times its length, however deep it is.
func TestDeepData(t *testing.T) {
	const n = 2000
	for _, data := range []string{
		strings.Repeat("[", n) + strings.Repeat("1,", n) + "1" + strings.Repeat("]", n),
		strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n),
	} {
		got, err := readMessage(t, `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":`+data+`}]}}`)
		if err != nil || len(got.message.Text) > 2*len(data) {
			t.Errorf("%d bytes of data are a message of %d, %v", len(data), len(got.message.Text), err)
		}
	}
}

// What cannot be used is refused with the member that it is about.
func TestMessagesThatCannotBeUsed(t *testing.T) {
	part := `"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]`
	for body, want := range map[string]string{
		`{}`: "message is missing", `{"message":{}}`: "messageId",
		`{"message":{"messageId":"` + strings.Repeat("m", 201) + `"}}`:                     "messageId",
		`{"message":{"messageId":"m","role":"ROLE_AGENT"}}`:                                "role",
		`{"message":{"messageId":"m","role":"ROLE_USER"}}`:                                 "parts",
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":" "}]}}`:          "parts",
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[null]}}`:                  "parts[0]",
		`{"message":{"contextId":"a b",` + part + `}}`:                                     "contextId",
		`{"message":{"contextId":"a\u202eb",` + part + `}}`:                                "contextId",
		`{"message":{` + part + `},"configuration":{"acceptedOutputModes":["image/png"]}}`: "acceptedOutputModes",
	} {
		if got, err := readMessage(t, body); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %+v, %v; want %q", body, got, err, want)
		}
	}
	if _, err := readMessage(t, `{"message":{`+part+`},"configuration":{"acceptedOutputModes":["image/png","text/plain"]}}`); err != nil {
		t.Error(err)
	}
}

// Whatever a client sends is refused or becomes a message; nothing panics.
func FuzzMessages(f *testing.F) {
	f.Add(`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"},{"data":[1]},{"raw":"eA=="},{"url":"x"}]}}`)
	c, err := New(Options{ID: "a2a", Agents: []Published{{Agent: "Ann", Description: "Knows"}}}, nil, &drawer{}, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var r sdk.SendMessageRequest
		if json.Unmarshal([]byte(body), &r) != nil {
			return
		}
		got, err := c.read(someone, &r)
		if err == nil && (got.message.Text == "" && len(got.message.Files) == 0 || got.message.ID != got.id || got.context == "") {
			t.Errorf("%s becomes %+v", body, got)
		}
	})
}

// The end of a turn is a state of its task, and its text an answer or what is said of the state.
func TestStatesOfTasks(t *testing.T) {
	for reason, want := range map[string]sdk.TaskState{
		"done": sdk.TaskStateCompleted, "waiting": sdk.TaskStateAuthRequired, "budget": sdk.TaskStateAuthRequired,
		"canceled": sdk.TaskStateCanceled, "dropped": sdk.TaskStateCanceled, "limit": sdk.TaskStateFailed, "loop": sdk.TaskStateFailed,
		"error": sdk.TaskStateFailed, "poison": sdk.TaskStateFailed, "reset": sdk.TaskStateRejected,
	} {
		p := event.Posted{Item: "i", State: "done", Route: &event.Route{ChannelID: "c"},
			Outcome: &event.Outcome{Reason: reason, Text: "said"}}
		got := newTask(p)
		whole, err := json.Marshal(got)
		if err != nil || got.Status.State != want || reason != "reset" && !strings.Contains(string(whole), "said") {
			t.Errorf("%s: %s, %v; want %s", reason, whole, err, want)
		}
	}
	c := newConnector(t)
	mine := event.Posted{Item: "i", State: "taken", Route: &event.Route{Connector: "a2a", ChannelID: "c", UserID: "token:x"}}
	if got, err := c.ofTask(someone, mine); err != nil || got.Status.State != sdk.TaskStateWorking || got.ContextID != "c" {
		t.Errorf("%+v, %v", got, err)
	}
	for name, route := range map[string]*event.Route{"of the terminal": nil, "of another client": {Connector: "a2a", UserID: "token:y"},
		"of another connector": {Connector: "mcp", UserID: "token:x"}} {
		if got, err := c.ofTask(someone, event.Posted{Item: "i", Route: route}); err == nil {
			t.Errorf("an item %s is a task: %+v", name, got)
		}
	}
}

// A client that puts the pieces together has the final answer, whatever was lost on the way.
func TestStreamsEndWithTheWholeAnswer(t *testing.T) {
	delta := func(offset int, text string) any { return event.Delta{Offset: offset, Text: text} }
	for name, events := range map[string][]any{
		"in pieces": {delta(0, "hel"), delta(3, "lo")}, "in one": {delta(0, "hello")}, "not at all": {},
		"with a gap": {delta(0, "h"), delta(4, "o")}, "one twice": {delta(0, "hel"), delta(0, "hello"), delta(3, "lo")},
		"after another":     {delta(0, "I look."), delta(0, "hel")},
		"after a failure":   {delta(0, "he"), event.Attempt{Discard: true}, delta(0, "hello")},
		"of another answer": {delta(0, "good day")},
	} {
		var text string
		var states []sdk.TaskState
		w := &teller{task: &sdk.Task{ID: "i", Status: sdk.TaskStatus{State: sdk.TaskStateSubmitted}}, yield: func(e sdk.Event) {
			switch e := e.(type) {
			case *sdk.TaskArtifactUpdateEvent:
				if !e.Append {
					text = ""
				}
				text += e.Artifact.Parts[0].Text()
			case *sdk.TaskStatusUpdateEvent:
				states = append(states, e.Status.State)
			}
		}}
		w.happened(control.RawEvent{Type: event.TurnStarted})
		for _, body := range events {
			data, _ := json.Marshal(body) // of strings and numbers
			e := control.RawEvent{Type: event.MessageDelta, Data: data}
			if _, ok := body.(event.Attempt); ok {
				e.Type = event.Retry
			}
			w.happened(e)
		}
		w.end(event.Outcome{Reason: "done", Text: "hello"})
		if text != "hello" || len(states) != 2 || states[1] != sdk.TaskStateCompleted {
			t.Errorf("%s: %q, %v", name, text, states)
		}
	}
}

// A client gets the newest messages of a task, as many as it wants.
func TestHistoriesAreShortened(t *testing.T) {
	for length, want := range map[int]string{-1: "abc", 0: "", 1: "c", 2: "bc", 3: "abc", 4: "abc"} {
		task := &sdk.Task{History: []*sdk.Message{{ID: "a"}, {ID: "b"}, {ID: "c"}}}
		var got string
		for _, m := range shorten(task, &length).History {
			got += m.ID
		}
		if got != want {
			t.Errorf("%d messages are %q, want %q", length, got, want)
		}
	}
	if task := shorten(&sdk.Task{History: []*sdk.Message{{ID: "a"}}}, nil); len(task.History) != 1 {
		t.Errorf("without a length: %+v", task.History)
	}
}

// An answer that comes in many pieces takes no memory for each of them as long as all of it.
func TestManyPiecesOfAnAnswer(t *testing.T) {
	const n = 50_000
	sent := 0
	w := &teller{working: true, task: &sdk.Task{}, yield: func(sdk.Event) { sent++ }}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range n {
		w.delta(event.Delta{Offset: 4 * i, Text: "word"})
	}
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; sent != n || took > 100 {
		t.Errorf("%d pieces are sent in %d events and take %d MB of memory", n, sent, took)
	}
}
