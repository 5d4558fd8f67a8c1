package acp

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	acp "github.com/coder/acp-go-sdk"

	"daycare/engine/event"
	"daycare/engine/message"
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
		case u.UserMessageChunk != nil && u.UserMessageChunk.Content.ResourceLink != nil:
			link := u.UserMessageChunk.Content.ResourceLink
			*said = append(*said, "file "+link.Name+" "+link.Uri)
		case u.UserMessageChunk != nil:
			*said = append(*said, "user "+u.UserMessageChunk.Content.Text.Text)
		case u.ToolCall != nil:
			*said = append(*said, fmt.Sprintf("calls %s %s %s", u.ToolCall.ToolCallId, u.ToolCall.Title, u.ToolCall.Status))
		case u.ToolCallUpdate != nil && u.ToolCallUpdate.Status == nil:
			*said = append(*said, fmt.Sprintf("call %s prints", u.ToolCallUpdate.ToolCallId))
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
	te.progress(event.Progress{Call: "none", Text: "x"}, time.Now()) // of a call that is not known
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

// What happens to a conversation is reported, and so are messages that were not typed in this editor; silent ones
// are not.
func TestWhatARecordTells(t *testing.T) {
	var said []string
	te := newTeller("/w", heard(&said))
	say(te, false, 0, "half")
	for i, r := range []record.Record{&record.TurnBegin{Turn: "t"}, &record.User{Origin: "ops", Text: "done", Item: "i1"},
		&record.User{Origin: "ops", Text: "hush", Item: "i2", Silent: true},
		&record.User{Item: "i3", Text: "look", Files: []message.File{{Name: "a.txt", Path: "/w/a.txt"}}},
		&record.Assistant{Text: "first", Finish: record.FinishInterrupted}, &record.Assistant{Finish: record.FinishInterrupted},
		&record.Rewind{To: 1}, &record.Summary{Text: "S"}, &record.Reset{Session: "s"}} {
		te.record(at(int64(i+1), r))
	}
	cut := "says " + beginsAgain
	expect(t, said, "says half", cut, "thinks Message of ops: done\n\n", "user look", "file a.txt file:///w/a.txt", "says first", cut,
		"thinks Rewound: the messages after the checkpoint are no longer in context.\n\n",
		"thinks The conversation so far was compacted to a summary.\n\n", "thinks A new conversation begins.\n\n")
	if te.seq != 9 {
		t.Errorf("told up to record %d", te.seq)
	}
}

// A call is shown from its begin to its end, whichever of record and event comes first; what it prints
// is shown now and then, and no more than its end.
func TestACallIsShown(t *testing.T) {
	var said []string
	var shown []acp.SessionUpdate
	te := newTeller("/w", func(u acp.SessionUpdate) { shown = append(shown, u); heard(&said)(u) })
	now := time.Now()
	te.progress(event.Progress{Call: "c1", Text: "before it began"}, now)
	te.record(at(1, &record.Assistant{ToolCalls: []record.ToolCall{{ID: "c1", Name: "exec", Arguments: []byte(`{"command":"make"}`)}}}))
	te.runs(event.Tool{Call: "c1", Name: "exec"})
	te.runs(event.Tool{Call: "c2", Name: "exec", Arguments: []byte(`{"command":"ls"}`)})
	expect(t, said, "calls c1 "+titleOf("exec", argumentsOf([]byte(`{"command":"make"}`)))+" pending", "call c1 in_progress",
		"calls c2 "+titleOf("exec", argumentsOf([]byte(`{"command":"ls"}`)))+" in_progress")

	printed := func() string { return shown[len(shown)-1].ToolCallUpdate.Content[0].Content.Content.Text.Text }
	te.progress(event.Progress{Call: "c1", Text: "one\n"}, now)
	if before := len(shown); before != 4 || !strings.Contains(printed(), "one") {
		t.Fatalf("%d updates, the last one %+v", before, shown[len(shown)-1])
	}
	te.progress(event.Progress{Call: "c1", Text: "two\n"}, now.Add(progressEvery-1))
	if len(shown) != 4 {
		t.Error("it is shown more often than it changes")
	}
	te.progress(event.Progress{Call: "c1", Text: strings.Repeat("ü", maxProgress) + "end"}, now.Add(progressEvery))
	if got := printed(); len(shown) != 5 || strings.Contains(got, "one") || !strings.Contains(got, "end") || len(got) > maxProgress+100 ||
		!utf8.ValidString(got) {
		t.Errorf("after %d updates shown are %d bytes", len(shown), len(got))
	}

	said = nil
	te.record(at(2, &record.ToolResult{ToolCallID: "c1", Name: "exec", Status: record.StatusOK,
		Output: record.Output{Text: strings.Repeat("x", maxOutput) + "1234567"}}))
	if got := printed(); !strings.HasSuffix(strings.TrimSpace(strings.TrimRight(got, "`\n")), "… 7 more bytes") {
		t.Errorf("shown is …%s", got[len(got)-40:])
	}
	te.progress(event.Progress{Call: "c1", Text: "late"}, now.Add(time.Hour))
	te.record(at(3, &record.ToolResult{ToolCallID: "c3", Name: "read", Status: record.StatusError, Output: record.Output{Text: "no"},
		Files: []message.File{{Name: "a.txt", Path: "/w/a.txt"}}}))
	expect(t, said, "call c1 completed", "calls c3 "+titleOf("read", argumentsOf(nil))+" pending", "call c3 failed")
	if content := shown[len(shown)-1].ToolCallUpdate.Content; len(content) != 2 || content[1].Content.Content.ResourceLink.Name != "a.txt" {
		t.Errorf("its result is %+v", content)
	}
	if text := shortened("short"); text != "short" {
		t.Errorf("a short text is %q", text)
	}
}

// The answer to a request is said on the card of its call; what is no answer is not.
func TestHowARequestWasAnswered(t *testing.T) {
	for name, want := range map[string]string{"once": "Allowed once by ada.", "always": "Allowed from now on by ada.",
		"prefix": "Allowed from now on by ada.", "freed": "The budget allows more again.", "deny": "Denied by ada.",
		"expired": "Nobody answered in time.", "asked": "", "revoked": ""} {
		var said []string
		te := newTeller("/w", heard(&said))
		te.record(at(1, &record.ToolResult{ToolCallID: "c", Name: "web", Status: record.StatusDenied,
			Output: record.Output{Text: needsApproval + "tok: @web"}}))
		said = nil
		te.record(at(2, &record.Permission{Token: "other", Event: name, By: "ada"}))
		for range 2 {
			te.record(at(3, &record.Permission{Token: "tok", Event: name, By: "ada"}))
		}
		words, allowed := answerIn(&record.Permission{Event: name, By: "ada"})
		status := "call c failed"
		if allowed {
			status = "call c completed"
		}
		if words != want || allowed != (want != "" && name != "deny" && name != "expired") {
			t.Errorf("%s: %q, %v", name, words, allowed)
		}
		if want == "" {
			expect(t, said)
			continue
		}
		expect(t, said, status)
	}
	if words, _ := answerIn(&record.Permission{Event: "once"}); words != "Allowed once." {
		t.Errorf("by nobody: %q", words)
	}
}

// A piece that begins anew belongs to another answer, unless it repeats what was said.
func TestWhenAnotherAnswerBegins(t *testing.T) {
	for name, tt := range map[string]struct {
		thought, answer string
		thinking        bool
		piece           event.Delta
		want            bool
	}{
		"another text":           {"", "Hello", false, event.Delta{Text: "No"}, true},
		"the same, again":        {"", "Hello", false, event.Delta{Text: "Hel"}, false},
		"it goes on":             {"", "Hello", false, event.Delta{Text: "No", Offset: 5}, false},
		"the first":              {"hm", "", false, event.Delta{Text: "No"}, false},
		"another thought":        {"hm", "Hello", true, event.Delta{Text: "No"}, true},
		"the same thought again": {"hm", "No", true, event.Delta{Text: "h"}, false},
	} {
		te := newTeller("/w", func(acp.SessionUpdate) {})
		te.thought, te.answer = []byte(tt.thought), []byte(tt.answer)
		if got := te.begins(tt.thinking, tt.piece); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for _, tt := range []struct{ said, text, want string }{{"Hel", "Hello", "lo"}, {"Hello", "Hel", ""}, {"Hello", "No", "\n\nNo"},
		{"", "No", "No"}} {
		if got := unsaid(tt.said, tt.text); got != tt.want {
			t.Errorf("of %q after %q, %q is to be said", tt.text, tt.said, got)
		}
	}
}

// A conversation is what was said since its reset, without what was rewound.
func TestTheConversationAsItIs(t *testing.T) {
	var all []*record.Entry
	for i, r := range []record.Record{&record.User{Text: "old"}, &record.Reset{}, &record.User{Text: "a"}, &record.User{Text: "b"},
		&record.User{Text: "c"}, &record.Rewind{To: 3}, &record.User{Text: "d"}, &record.Rewind{To: 7}} {
		all = append(all, at(int64(i+1), r))
	}
	texts := func(list []*record.Entry) (text string) {
		for _, e := range list {
			text += e.Rec.(*record.User).Text
		}
		return text
	}
	if got := texts(current(all)); got != "ad" {
		t.Errorf("it is %q", got)
	}
	if got := texts(current(append(all, at(9, &record.Rewind{To: 0})))); got != "" {
		t.Errorf("rewound to its begin it is %q", got)
	}
}

// An answer that comes in many pieces takes no memory for each of them as long as all of it.
func TestManyPiecesOfAnAnswer(t *testing.T) {
	const n = 50_000
	said := 0
	w := newTeller("/w", func(acp.SessionUpdate) { said++ })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range n {
		w.delta(false, event.Delta{Offset: 4 * i, Text: "word"})
	}
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; said != n || took > 100 {
		t.Errorf("%d pieces are said in %d updates and take %d MB of memory", n, said, took)
	}
}
