package agents

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"daycare/agents/providers"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// cutAfter writes what a life left in history that ended after these records.
func (b *bench) cutAfter(recs ...record.Record) {
	b.t.Helper()
	hist, _, err := record.Open(b.vol, b.dir, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		b.t.Fatal(err)
	}
	if err = hist.Begin("session"); err == nil {
		_, err = hist.Append(recs...)
	}
	if err := errors.Join(err, hist.Barrier(), hist.Close()); err != nil {
		b.t.Fatal(err)
	}

	b.box.Close()
	b.openBox()
}

// What a crash left of a turn is taken up where it ended: nothing is said, asked or
// recorded twice, and nothing is left out.
func TestATurnIsTakenUpWhereItWasCut(t *testing.T) {
	begin := func(item string) *record.TurnBegin {
		return &record.TurnBegin{Turn: "turn", Items: []string{item}, Attempt: 1}
	}
	user := func(item string) *record.User { return &record.User{Item: item, Text: "hello"} }
	chat := message.Address{Connector: "chat", ChannelID: "c1", UserID: "u1"}
	for name, tt := range map[string]struct {
		left  func(item string) []record.Record
		asked int // how often the model is asked
		says  string
	}{
		"before it was begun": {func(string) []record.Record { return nil }, 1, "heard: hello"},
		"before its message":  {func(item string) []record.Record { return []record.Record{begin(item)} }, 1, "heard: hello"},
		"before its model was asked": {func(item string) []record.Record { return []record.Record{begin(item), user(item)} }, 1,
			"heard: hello"},
		"between an answer and its end": {func(item string) []record.Record {
			return []record.Record{begin(item), user(item), &record.Assistant{Turn: "turn", Text: "well", Finish: record.FinishEndTurn,
				Out: &record.Out{ID: strings.Repeat("o", 24), To: chat}}}
		}, 0, "well"},
		"between an apology and its end": {func(item string) []record.Record {
			return []record.Record{begin(item), user(item), &record.Assistant{Turn: "turn", Text: "sorry", Finish: record.FinishError,
				Out: &record.Out{ID: strings.Repeat("o", 24), To: chat}}}
		}, 0, "sorry"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, callHold)
			item := b.say("hello")
			b.cutAfter(tt.left(item)...)
			told := b.watched()
			b.run()
			o := b.outcome(item)
			want := record.ReasonDone
			if tt.says == "sorry" {
				want = record.ReasonError
			}
			if o.Text != tt.says || o.Reason != want {
				t.Errorf("outcome %+v, want %s with %q", o, want, tt.says)
			}

			b.halt()
			if got := b.texts(); len(got) != 1 || got[0] != tt.says {
				t.Errorf("sent %q, want %q once", got, tt.says)
			}
			if n := b.model.calls(); n != tt.asked {
				t.Errorf("the model was asked %d times, want %d", n, tt.asked)
			}
			if users, ends := b.count("user_message"), b.count("turn_end"); users != 1 || ends != 1 {
				t.Errorf("%d messages and %d ends, want one of each\n%s", users, ends, b.history())
			}

			within(t, "the end is told", func() bool { return len(told.of("turn.finished")) == 1 })
		})
	}
}

// A turn of two messages of which a death lost one takes up both, in one answer.
func TestALostMessageOfATurnIsTakenAgain(t *testing.T) {
	b := newBench(t, `rules: [ { reply: [ { text: "heard" } ] } ]`)
	one, two := b.say("first"), b.say("second")
	b.cutAfter(&record.TurnBegin{Turn: "turn", Items: []string{one, two}, Attempt: 1}, &record.User{Item: one, Text: "first"})
	b.run()
	b.outcome(one)
	b.outcome(two)
	b.halt()
	asked := b.model.request(0)
	if n := b.model.calls(); n != 1 || !strings.Contains(asked, "first") || !strings.Contains(asked, "second") {
		t.Errorf("the model was asked %d times:\n%s", n, asked)
	}
	if users, ends := b.count("user_message"), b.count("turn_end"); users != 2 || ends != 1 {
		t.Errorf("%d messages and %d ends, want 2 and 1\n%s", users, ends, b.history())
	}
}

// What a model thought is recorded with the name that it was asked under, where it answers
// under another: its thoughts are only for that one.
func TestTheNameOfAModelThatThinks(t *testing.T) {
	rs := &replies{costs: costs{&world{}}}
	thought := []providers.Reasoning{{Text: "hm"}}
	for name, tt := range map[string]struct {
		response providers.Response
		want     string
	}{
		"an alias":         {providers.Response{Asked: "best", Model: "m-1", Thinking: thought}, "best"},
		"its own name":     {providers.Response{Asked: "m-1", Model: "m-1", Thinking: thought}, ""},
		"without thoughts": {providers.Response{Asked: "best", Model: "m-1"}, ""},
	} {
		if as := rs.assistant(&turn{}, &tt.response, record.FinishEndTurn); as.Asked != tt.want ||
			len(as.Thinking) != len(tt.response.Thinking) {
			t.Errorf("%s: recorded is %+v, want it asked as %q", name, as, tt.want)
		}
	}
}

// An answer that a crash cut is kept as far as it had come, with what it cost.
func TestACutAnswerIsKeptWithItsCost(t *testing.T) {
	for name, tt := range map[string]struct {
		draft record.Draft
		kept  bool
		paid  bool
	}{
		"words and thoughts": {record.Draft{Turn: "turn", Text: "half a word", Thinking: "half a thought",
			Provider: "p", Model: "m", Input: 40}, true, true},
		"thoughts": {record.Draft{Turn: "turn", Thinking: "half a thought", Provider: "p", Model: "m",
			Input: 40}, true, true},
		"words that were counted": {record.Draft{Turn: "turn", Text: "half a word"}, true, false},
		"nothing":                 {record.Draft{Turn: "turn", Provider: "p", Model: "m", Input: 40}, false, false},
		"another turn":            {record.Draft{Turn: "other", Text: "half a word", Provider: "p", Model: "m", Input: 40}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, callHold)
			reserved := int64(0)
			b.opts.Price = func(u providers.Usage) float64 { return float64(u.Input) }
			b.opts.Cut = func(u providers.Usage) { reserved += u.Input }
			item := b.say("hello")
			b.cutAfter(&record.TurnBegin{Turn: "turn", Items: []string{item}, Attempt: 1}, &record.User{Item: item, Text: "hello"})
			if err := record.WriteDraft(b.vol, b.dir, tt.draft); err != nil {
				t.Fatal(err)
			}

			b.run()
			b.outcome(item)
			b.halt()
			var cut []record.Assistant
			for line := range strings.Lines(b.history()) {
				if !strings.Contains(line, `"finish":"interrupted"`) {
					continue
				}
				var as record.Assistant
				if err := json.Unmarshal([]byte(line), &as); err != nil {
					t.Fatal(err)
				}
				cut = append(cut, as)
			}

			if len(cut) != 0 != tt.kept {
				t.Fatalf("kept is %+v, want that it is kept: %v", cut, tt.kept)
			}
			if !tt.kept {
				return
			}

			thoughts := ""
			for _, th := range cut[0].Thinking {
				thoughts += th.Text
			}
			if cut[0].Text != tt.draft.Text || thoughts != tt.draft.Thinking || cut[0].Turn != "turn" {
				t.Errorf("kept is %+v", cut[0])
			}
			if paid := cut[0].Cost == 40 && cut[0].Tokens.Input == 40 && cut[0].Tokens.Output > 0 &&
				cut[0].Tokens.Estimated; paid != tt.paid ||
				(reserved == 40) != tt.paid {
				t.Errorf("it cost %v for %+v, want that it is paid for: %v", cut[0].Cost, cut[0].Tokens, tt.paid)
			}
		})
	}
}

// The draft of an answer that a crash cut is gone before the model is asked again: a second crash
// must not record the answer, and what it cost, once more.
func TestACutAnswerIsRecordedOnce(t *testing.T) {
	b := newBench(t, callHold)
	item := b.say("hello")
	b.cutAfter(begun(item)...)
	half := record.Draft{Turn: "turn", Text: "half a word", Provider: "p", Model: "m", Input: 40}
	if err := record.WriteDraft(b.vol, b.dir, half); err != nil {
		t.Fatal(err)
	}
	left := make(chan bool, 1)
	b.opts.Model = func(record.Model) Model {
		return thinker(func(ctx context.Context, req *providers.Request, watch func(providers.Event)) (*providers.Response, error) {
			_, there, err := record.ReadDraft(b.dir)
			left <- there || err != nil
			return b.model.Call(ctx, req, watch)
		})
	}
	b.run()
	if <-left {
		t.Error("it is still there")
	}
	b.outcome(item)
}

// A decision that is recorded, and whose request a crash kept in the queue, leaves the
// queue at the next start and changes nothing again.
func TestARecordedDecisionIsConcluded(t *testing.T) {
	b := newBench(t, rightsScript, general{}, look{})
	over := &overseeing{}
	b.opts.Overseer = over
	need, err := permission.General("@read:/srv", "to look")
	if err != nil {
		t.Fatal(err)
	}

	p, _, err := b.opts.Permits.Ask(b.opts.Meta.ID, permission.Owner{}, need)
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Permission, Dedupe: p.DedupeKey(), Token: p.Token,
		Decision: string(permission.Deny), By: "ada", Tag: need.Tag, SHA256: p.SHA256, Silent: true})
	if err != nil {
		t.Fatal(err)
	}

	b.cutAfter(&record.Permission{Token: p.Token, Item: r.Item, Event: string(permission.Deny), Tag: need.Tag,
		By: "ada", SHA256: p.SHA256, Silent: true})
	b.run()
	b.wait(r.Item)
	b.halt()
	if left := b.opts.Permits.(*permission.Queue).List(); len(left) != 0 {
		t.Errorf("%+v still waits", left)
	}
	if n := b.count("permission"); n != 1 {
		t.Errorf("the decision is recorded %d times\n%s", n, b.history())
	}
	if len(over.notes) != 1 || !strings.HasPrefix(over.notes[0], "decided ") {
		t.Errorf("who oversees it is told %q", over.notes)
	}
}

// A user who answered while the agent was down is not asked again by the turn that is
// taken up.
func TestAnAnswerInTheInboxIsNotAskedForAgain(t *testing.T) {
	b := newBench(t, rightsScript, general{}, look{})
	need, err := permission.General("@read:/srv", "to look")
	if err != nil {
		t.Fatal(err)
	}
	item := b.say("ask")

	for _, other := range []inbox.Item{ // not what is asked for here
		{Kind: message.Permission, Token: "other", Decision: string(permission.Deny), By: "ada", Tag: "@web", SHA256: "other",
			Silent: true},
		{Kind: message.Permission, Token: "mine", Decision: string(permission.Always), By: "ada", Tag: need.Tag,
			SHA256: need.SHA256(b.opts.Meta.ID)},
	} {
		if _, err := b.box.Accept(t.Context(), other); err != nil {
			t.Fatal(err)
		}
	}

	b.cutAfter(&record.TurnBegin{Turn: "turn", Items: []string{item}, Attempt: 1}, &record.User{Item: item, Text: "ask"},
		&record.Assistant{Turn: "turn", Finish: record.FinishToolUse,
			ToolCalls: []record.ToolCall{{ID: "call", RemoteID: "call", Name: "request", Arguments: json.RawMessage("{}")}}})
	b.run()
	if o := b.outcome(item); o.Reason != record.ReasonWaiting {
		t.Errorf("the turn ended %q, want that it waits for the answer", o.Reason)
	}

	within(t, "the turn of the decision", func() bool { return b.count("turn_end") == 2 })
	b.halt()
	if text := b.history(); strings.Contains(text, `"event":"asked"`) || !strings.Contains(text, "needs approval mine") {
		t.Errorf("the person is asked again:\n%s", text)
	}
	if left := b.opts.Permits.(*permission.Queue).List(); len(left) != 0 {
		t.Errorf("%+v waits", left)
	}
	if s, _, _, err := record.ReadState(b.dir); err != nil || !s.Permissions.Allows(permission.Read{Path: "/srv"}) {
		t.Errorf("the right is not there: %+v, %v", s.Permissions, err)
	}
}

// A request that a crash left in the queue is recorded by the turn that is taken up, once.
func TestARequestIsRecordedOnce(t *testing.T) {
	for name, recorded := range map[string]bool{"not recorded": false, "recorded": true} {
		b := newBench(t, rightsScript, general{}, look{})
		need, err := permission.General("@read:/srv", "to look")
		if err != nil {
			t.Fatal(err)
		}
		p, _, err := b.opts.Permits.Ask(b.opts.Meta.ID, permission.Owner{}, need)
		if err != nil {
			t.Fatal(err)
		}
		item := b.say("ask")
		left := append(begun(item), &record.Assistant{Turn: "turn", Finish: record.FinishToolUse,
			ToolCalls: []record.ToolCall{{ID: "call", RemoteID: "call", Name: "request", Arguments: json.RawMessage("{}")}}})
		if recorded {
			left = append(left, &record.Permission{Token: p.Token, Event: "asked", Tag: need.Tag, SHA256: p.SHA256})
		}
		b.cutAfter(left...)
		b.run()
		o := b.outcome(item)
		b.halt()
		if n := strings.Count(b.history(), `"event":"asked"`); o.Reason != record.ReasonWaiting || n != 1 {
			t.Errorf("%s: the turn ended %q, the request is recorded %d times\n%s", name, o.Reason, n, b.history())
		}
		if left := b.opts.Permits.(*permission.Queue).List(); len(left) != 1 || left[0].Token != p.Token {
			t.Errorf("%s: %+v waits", name, left)
		}
	}
}
