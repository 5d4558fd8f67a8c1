package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"daycare/engine/control"
	"daycare/engine/event"
)

// How a turn ended is a state, and in words what to do; of an id that was used before it is said.
func TestOutcomes(t *testing.T) {
	for reason, want := range map[string][2]string{"done": {answered, ""}, "waiting": {approval, "asked its owner"},
		"budget": {ended, "budget is used up"}, "canceled": {ended, "stopped"}, "limit": {ended, "limit of its tool calls"},
		"loop": {ended, "limit of its tool calls"}, "dropped": {ended, "removed from the inbox"}, "error": {ended, "it broke"},
		"other": {ended, "the turn ended: other"}} {
		for _, again := range []bool{false, true} {
			s := sendOut{ID: "m1", Duplicate: again}
			o := event.Outcome{Reason: reason, Text: "words"}
			if reason == "error" {
				o.Error = "it broke"
			}
			s.outcome(o)
			if s.State != want[0] || s.Answer != "words" || !strings.Contains(s.Note, want[1]) || strings.Contains(s.Note,
				"used before") != again {
				t.Errorf("%s, again %v: %+v", reason, again, s)
			}
			text := shown(s).Content[0].(*sdk.TextContent).Text
			if !strings.HasPrefix(text, "words") || strings.Contains(text, "["+want[0]+": ") == (reason == "done" && !again) {
				t.Errorf("%s, again %v, is shown as %q", reason, again, text)
			}
		}
	}
	if text := shown(sendOut{State: working, Note: "n", ID: "m1"}).Content[0].(*sdk.TextContent).Text; text != "[working: n (id m1)]" {
		t.Errorf("without an answer: %q", text)
	}
}

// How the waiting ended, for a message that was accepted or not.
func TestHowTheWaitingEnds(t *testing.T) {
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	gone, leave := context.WithCancel(t.Context())
	leave()
	for name, tt := range map[string]struct {
		item    string
		err     error
		waiting context.Context
		state   string
		note    string
	}{
		"an answer":              {"i", nil, t.Context(), answered, ""},
		"not accepted":           {"", errors.New("no room"), t.Context(), "", ""},
		"daycare is away":        {"", control.ErrNotRunning, t.Context(), unknown, "not known whether"},
		"cancelled before":       {"", context.Canceled, gone, unknown, "not known whether"},
		"too late before":        {"", context.DeadlineExceeded, late, unknown, "not known whether"},
		"too late":               {"i", context.DeadlineExceeded, late, working, "still working"},
		"cancelled":              {"i", context.Canceled, gone, working, "was cancelled"},
		"the connection is lost": {"i", io.EOF, t.Context(), working, "connection to it broke"},
	} {
		s := sendOut{Item: tt.item}
		err := s.end(event.Outcome{Reason: "done"}, tt.err, tt.waiting)
		if (err != nil) != (name == "not accepted") || s.State != tt.state || !strings.Contains(s.Note, tt.note) {
			t.Errorf("%s: %v, %+v", name, err, s)
		}
	}
}

// What was said, of a page of records.
func TestMessagesOfAPage(t *testing.T) {
	long := strings.Repeat("ä", maxText/2+1)
	text, err := json.Marshal(long)
	if err != nil {
		t.Fatal(err)
	}
	got := messages(event.Page{Records: []json.RawMessage{
		[]byte(`{"seq":1,"type":"user_message","text":"hi","untrusted":true,"context":{"sender":"a\u001b b"}}`),
		[]byte(`{"seq":2,"type":"assistant_message","text":"yes","toolCalls":[{"name":"read"},{"name":"ls\n"}]}`),
		[]byte(`{"seq":3,"type":"user_message","text":"told","origin":"system"}`), []byte(`{"seq":4,"type":"tool_result"}`),
		[]byte(`{broken`),
		[]byte(`{"seq":5,"type":"user_message","text":` + string(text) + `}`)}})
	var told []string
	for _, s := range got {
		told = append(told, s.From+" "+s.Text[:min(len(s.Text), 4)]+" "+s.Sender+strings.Join(s.Tools, ","))
	}
	if want := []string{`user hi a\x1b b`, "agent yes read,ls", "system told ", "user ää "}; !slices.Equal(told, want) {
		t.Errorf("%q, want %q", told, want)
	}
	if !got[0].Untrusted || got[1].Untrusted || got[0].Cut || !got[3].Cut || len(got[3].Text) != maxText || got[2].Seq != 3 {
		t.Errorf("%+v", got[:3])
	}
}

// Whoever nobody is known to be is served nothing.
func TestNobody(t *testing.T) {
	called := ""
	next := func(ctx context.Context, method string, _ sdk.Request) (sdk.Result, error) {
		called = method + " " + peerOf(ctx).Name
		return nil, nil
	}
	d := New(Options{})
	for want, p := range map[string]Peer{"": {}, "ping a": {Name: "a", API: &control.Client{}}} {
		called, d.local = "", p
		_, err := d.identify(next)(t.Context(), "ping", &sdk.CallToolRequest{})
		if called != want || errors.Is(err, errNobody) != (want == "") {
			t.Errorf("%q: %q, %v", want, called, err)
		}
	}
}

// words are a connection whose client says this and then no more, or what is no message.
type words struct {
	sdk.Connection
	said []jsonrpc.Message
	last error // after it
}

func (w *words) Read(context.Context) (jsonrpc.Message, error) {
	if len(w.said) == 0 {
		return nil, w.last
	}
	m := w.said[0]
	w.said = w.said[1:]
	return m, nil
}

func (*words) Write(context.Context, jsonrpc.Message) error { return nil }
func (*words) Close() error                                 { return nil }

type one struct{ sdk.Connection }

func (o one) Connect(context.Context) (sdk.Connection, error) { return o.Connection, nil }

var errNoMessage = errors.New("invalid character")

// The end of what a client says comes when its requests are answered, or it is closed, or nobody waits
// any more, or after half a minute.
func TestTheLastWord(t *testing.T) {
	id := func(n float64) jsonrpc.ID {
		id, err := jsonrpc.MakeID(n)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	type end struct {
		then func(c sdk.Connection, cancel context.CancelFunc)
		took time.Duration
	}
	ends := map[string]end{
		"answered": {func(c sdk.Connection, _ context.CancelFunc) {
			for _, n := range []float64{1, 2} {
				time.Sleep(time.Second)
				_ = c.Write(context.Background(), &jsonrpc.Response{ID: id(n)})
			}
		}, 2 * time.Second},
		"one is not answered": {func(c sdk.Connection, _ context.CancelFunc) {
			_ = c.Write(context.Background(), &jsonrpc.Response{ID: id(1)})
			_ = c.Write(context.Background(), &jsonrpc.Request{Method: "progress"})
		}, lastAnswers},
		"closed":    {func(c sdk.Connection, _ context.CancelFunc) { time.Sleep(time.Second); c.Close(); c.Close() }, time.Second},
		"cancelled": {func(_ sdk.Connection, cancel context.CancelFunc) { time.Sleep(time.Second); cancel() }, time.Second},
	}
	ends["no message"] = ends["answered"]
	for name, tt := range ends {
		last := map[bool]error{true: errNoMessage, false: io.EOF}[name == "no message"]
		synctest.Test(t, func(t *testing.T) {
			c, err := patient{one{&words{said: []jsonrpc.Message{&jsonrpc.Request{ID: id(1), Method: "a"}, &jsonrpc.Request{Method: "note"},
				&jsonrpc.Request{ID: id(2), Method: "b"}}, last: last}}}.Connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for range 3 {
				if _, err := c.Read(ctx); err != nil {
					t.Fatal(err)
				}
			}
			go tt.then(c, cancel)
			began := time.Now()
			if _, err := c.Read(ctx); !errors.Is(err, last) || time.Since(began) != tt.took {
				t.Errorf("%s: %v after %v, want the end after %v", name, err, time.Since(began), tt.took)
			}
		})
	}
}

// What a client is told while it waits; the growing answer not more than every two seconds.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &progress{}
		raw := func(kind event.Type, body any) control.RawEvent {
			data, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			return control.RawEvent{Type: kind, Data: data}
		}
		for _, step := range []struct {
			e    control.RawEvent
			want string
		}{{raw(event.ItemQueued, nil), "accepted"}, {raw(event.TurnStarted, nil), "the agent reads it"},
			{raw(event.ToolStarted, event.Tool{Name: "read\n"}), "uses the tool read"},
			{raw(event.PermissionRequested, event.Asked{Tag: "@web:x"}), "asks its owner for the permission @web:x"},
			{raw(event.Retry, nil), "the model's service failed; it is tried again"},
			{raw(event.MessageDelta, event.Delta{Offset: 3, Text: "abc"}), "writes its answer, 6 bytes so far"},
			{raw(event.MessageDelta, event.Delta{Offset: 6, Text: "abc"}), ""}, {raw(event.TurnFinished, nil), ""}} {
			if got := p.text(step.e); got != step.want {
				t.Errorf("%s: %q, want %q", step.e.Type, got, step.want)
			}
		}
		time.Sleep(writingEvery)
		if got := p.text(raw(event.MessageDelta, event.Delta{Offset: 9, Text: "a"})); got != "writes its answer, 10 bytes so far" {
			t.Errorf("later: %q", got)
		}
		p.tell(raw(event.ItemQueued, nil)) // nobody asked for progress
		if p.steps != 0 {
			t.Error("progress is told that nobody asked for")
		}
	})
}
