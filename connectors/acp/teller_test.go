package acp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"daycare/engine/event"
	"daycare/engine/record"
)

// heard is what an editor shows, in short.
func heard(said *[]string) func(acp.SessionUpdate) {
	return func(u acp.SessionUpdate) {
		switch {
		case u.AgentMessageChunk != nil:
			*said = append(*said, "says "+u.AgentMessageChunk.Content.Text.Text)
		case u.AgentThoughtChunk != nil:
			*said = append(*said, "thinks "+u.AgentThoughtChunk.Content.Text.Text)
		case u.UserMessageChunk != nil:
			*said = append(*said, "user "+u.UserMessageChunk.Content.Text.Text)
		case u.ToolCall != nil:
			*said = append(*said, fmt.Sprintf("calls %s %s %s", u.ToolCall.ToolCallId, u.ToolCall.Title, u.ToolCall.Status))
		case u.ToolCallUpdate != nil:
			*said = append(*said, fmt.Sprintf("call %s %s", u.ToolCallUpdate.ToolCallId, *u.ToolCallUpdate.Status))
		}
	}
}

func at(seq int64, r record.Record) *record.Entry { return &record.Entry{Seq: seq, Rec: r} }

func expect(t *testing.T, said []string, want ...string) {
	t.Helper()
	if got := strings.Join(said, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("said:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
}

func say(te *teller, thinking bool, offset int, text string) bool {
	return te.delta(thinking, event.Delta{Offset: offset, Text: text})
}

// What streamed is not said again by its record, and what was missed is said once.
func TestNothingIsSaidTwice(t *testing.T) {
	var said []string
	te := newTeller("/w", heard(&said))
	te.mine["i1"] = true
	te.record(at(1, &record.User{Item: "i1", Text: "typed here"}))
	te.record(at(2, &record.User{Item: "i2", Text: "typed elsewhere"}))
	say(te, true, 0, "hm")
	say(te, false, 0, "Hel")
	say(te, false, 0, "Hel") // the draft and the piece
	if !say(te, false, 9, "late") {
		t.Error("a hole was not noticed")
	}
	te.draft(event.Draft{Turn: "t", Thinking: "hmm", Text: "Hello wo"})
	te.record(at(3, &record.Assistant{Text: "Hello world", Thinking: []record.Thinking{{Text: "hmm"}}}))
	te.record(at(4, &record.TurnEnd{Reason: "done"}))
	say(te, false, 0, "Hello")
	expect(t, said, "user typed elsewhere", "thinks hm", "says Hel", "thinks m", "says lo wo", "says rld", "says Hello")
}

// An answer that a crash cut off begins again, and that is said.
func TestAnAnswerThatWasCutOff(t *testing.T) {
	var said []string
	te := newTeller("/w", heard(&said))
	say(te, false, 0, "Half an ans")
	te.record(at(1, &record.Assistant{Text: "Half an", Finish: record.FinishInterrupted}))
	te.record(at(2, &record.TurnBegin{Attempt: 2}))
	te.record(at(3, &record.Assistant{Text: "All of it", Finish: record.FinishEndTurn}))
	say(te, false, 0, "Again ha")
	te.record(at(4, &record.Assistant{Finish: record.FinishInterrupted})) // of an orderly stop, for what it cost
	te.record(at(4, &record.TurnBegin{Attempt: 1}))
	te.record(at(5, &record.Assistant{Text: "Again all of it"}))
	expect(t, said, "says Half an ans", "says "+beginsAgain, "says All of it", "says Again ha", "says "+beginsAgain, "says Again all of it")
}

// A call that needs an approval and is made again is one call to the editor.
func TestAnApprovedCallStaysOneCall(t *testing.T) {
	var said []string
	te := newTeller("/w", heard(&said))
	args := json.RawMessage(`{"command":"make"}`)
	calls := func(seq int64, id string) {
		te.record(at(seq, &record.Assistant{ToolCalls: []record.ToolCall{{ID: id, Name: "exec", Arguments: args}}}))
	}
	calls(1, "c1")
	te.record(at(2, &record.ToolResult{ToolCallID: "c1", Name: "exec", Status: record.StatusDenied,
		Output: record.Output{Text: "needs approval tok: the user has been asked"}}))
	te.record(at(3, &record.Permission{Token: "tok", Event: "asked"}))
	te.record(at(4, &record.Permission{Token: "tok", Event: "once", By: "ada"}))
	calls(5, "c2")
	te.runs(event.Tool{Call: "c2"})
	te.progress(event.Progress{Call: "c2", Text: "x"}, time.Time{}) // too soon to show
	te.record(at(6, &record.ToolResult{ToolCallID: "c2", Name: "exec", Status: record.StatusOK, Output: record.Output{Text: "made"}}))
	expect(t, said, "calls c1 exec make pending", "call c1 pending", "call c1 completed", "call c1 in_progress", "call c1 in_progress",
		"call c1 completed")
}

// The steps of a plan are done when the turn after its approval has ended well, and not before.
func TestWhenAPlanIsDone(t *testing.T) {
	for _, tt := range []struct {
		status record.Status
		reason string
		want   acp.PlanEntryStatus
	}{
		{record.StatusOK, record.ReasonDone, acp.PlanEntryStatusCompleted},
		{record.StatusOK, record.ReasonCanceled, acp.PlanEntryStatusPending},
		{record.StatusDenied, record.ReasonDone, acp.PlanEntryStatusPending},
	} {
		var last []acp.PlanEntry
		te := newTeller("/w", func(u acp.SessionUpdate) {
			if u.Plan != nil {
				last = slices.Clone(u.Plan.Entries)
			}
		})
		te.record(at(1, &record.Assistant{ToolCalls: []record.ToolCall{
			{ID: "c", Name: "submit_plan", Arguments: json.RawMessage(`{"plan":"1. read it\n2. change it"}`)}}}))
		te.record(at(2, &record.ToolResult{ToolCallID: "c", Name: "submit_plan", Status: tt.status}))
		te.record(at(3, &record.TurnEnd{Reason: tt.reason}))
		if len(last) != 2 || last[0].Status != tt.want || last[1].Status != tt.want {
			t.Errorf("%s, then %s: %+v", tt.status, tt.reason, last)
		}
	}
}

// An editor is told why there is no answer in the words that say most.
func TestWhyAPromptFailed(t *testing.T) {
	for want, records := range map[string][]record.Record{
		"no such model": {&record.Assistant{Finish: record.FinishError, Text: "no such model"},
			&record.TurnEnd{Reason: record.ReasonError, Items: []string{"i"}, Error: "the provider failed"}},
		"the provider failed": {&record.Assistant{Text: "hello"},
			&record.TurnEnd{Reason: record.ReasonError, Items: []string{"i"}, Error: "the provider failed"}},
		"daycare logs": {&record.TurnEnd{Reason: record.ReasonPoison, Items: []string{"i"}}},
		"budget":       {&record.TurnEnd{Reason: record.ReasonBudget, Items: []string{"i"}}},
	} {
		p := &prompt{item: "i", due: map[string]bool{}}
		for n, r := range records {
			p.record(at(int64(n), r))
		}
		if _, err := p.result(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A prompt is over when its turn has ended, and those that follow from answers.
func TestWhenAPromptIsOver(t *testing.T) {
	ended := func(reason string, items ...string) *record.TurnEnd {
		return &record.TurnEnd{Reason: reason, Items: items}
	}
	asked := &record.Permission{Token: "k", Event: "asked"}
	for _, tt := range []struct {
		name    string
		records []record.Record
		over    bool
		stop    acp.StopReason
	}{
		{"another item's turn", []record.Record{ended("done", "other")}, false, ""},
		{"done", []record.Record{ended("done", "i")}, true, acp.StopReasonEndTurn},
		{"asks", []record.Record{asked, ended("waiting", "i")}, false, ""},
		{"answered, and no turn yet", []record.Record{asked, ended("waiting", "i"),
			&record.Permission{Token: "k", Event: "deny"}}, false, ""},
		{"answered", []record.Record{asked, ended("waiting", "i"), &record.Permission{Token: "k", Event: "once"}, ended("done", "d")},
			true, acp.StopReasonEndTurn},
		{"canceled", []record.Record{ended("canceled", "i")}, true, acp.StopReasonCancelled},
		{"limit", []record.Record{ended("limit", "i")}, true, acp.StopReasonMaxTurnRequests},
		{"max tokens", []record.Record{&record.Assistant{Finish: record.FinishMaxTokens}, ended("done", "i")}, true,
			acp.StopReasonMaxTokens},
		{"error", []record.Record{ended("error", "i")}, true, ""},
	} {
		p := &prompt{item: "i", due: map[string]bool{}}
		for n, r := range tt.records {
			p.record(at(int64(n), r))
		}
		got, err := p.result()
		if p.over() != tt.over || tt.over && (got.StopReason != tt.stop || (err != nil) != (tt.stop == "")) {
			t.Errorf("%s: over %v, %q, %v", tt.name, p.over(), got.StopReason, err)
		}
	}
}

// Pieces and drafts of an answer whose record was read already are not said again.
func TestALatePieceIsKnown(t *testing.T) {
	var said []string
	te := newTeller("/w", heard(&said))
	now := time.Now()
	e := at(1, &record.Assistant{Turn: "t", Text: "All of it"})
	e.At = now
	te.record(e)
	if !te.late(now) || te.late(now.Add(time.Millisecond)) {
		t.Error("a piece is late if it is not newer than the record")
	}
	te.draft(event.Draft{Turn: "t", Text: "All of"})
	te.draft(event.Draft{Turn: "t", Text: "And more"})
	expect(t, said, "says All of it", "says And more")
}
