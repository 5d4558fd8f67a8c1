package engine

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/engine/record"
)

// The maker of a permanent agent changes its words; nobody else does, and nothing else
// in its descriptor changes.
func TestMakerUpdatesItsPermanentAgent(t *testing.T) {
	h := newHousehold(t, Limits{})
	one, two := h.person("one"), h.person("two")
	ops, err := h.Family.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops", Description: "old",
		SystemPrompt: "old prompt", CreatedBy: one}, message.Incoming{})
	if err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(h.folder(ops.ID), address.File)
	const byHand = `{"note":"kept as it is",  "type":"permanent","id":"`
	rest := `","name":"Ops","createdBy":"` + one + `","systemPrompt":"old prompt","description":"old"}`
	if err := os.WriteFile(path, []byte(byHand+ops.ID+rest), 0o600); err != nil {
		t.Fatal(err)
	}

	h.reread(ops.ID, true)

	for _, asker := range []string{two, ops.ID, "nobody"} {
		if _, err := h.Update(t.Context(), asker, ops.ID, "", "mine now"); !errors.Is(err, ErrNotMaker) {
			t.Errorf("%s changed an agent of %s: %v", h.name(asker), h.name(one), err)
		}
	}
	if _, err := h.Update(t.Context(), one, two, "", "mine now"); !errors.Is(err, ErrNotMaker) {
		t.Errorf("an agent changed a person's agent: %v", err)
	}
	child, err := h.System.Create(t.Context(), address.Descriptor{Type: address.Subagent, ParentAgentID: one, CreatedBy: one, Name: "c"})
	must(t, err)
	for _, id := range []string{child.ID, "none"} {
		if _, err := h.Update(t.Context(), one, id, "", "mine now"); !errors.Is(err, ErrNotMaker) {
			t.Errorf("an agent changed %q, which is no permanent one: %v", id, err)
		}
	}

	if _, err := h.Update(t.Context(), one, ops.ID, "", "new \"prompt\"\nof two lines"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	want := byHand + ops.ID + `","name":"Ops","createdBy":"` + one + `","systemPrompt":"new \"prompt\"\nof two lines","description":"old"}`
	if err != nil || string(got) != want {
		t.Errorf("descriptor is\n%s\nwant\n%s", got, want)
	}
	if meta, _ := h.index.Get(ops.ID); meta.Descriptor.SystemPrompt != "new \"prompt\"\nof two lines" ||
		meta.Descriptor.Description != "old" {
		t.Errorf("the index has %+v", meta.Descriptor)
	}
}

// The conversation of an agent is counted with what came since it slept, when state.json
// was written.
func TestSessionOfAnAgentThatIsAwake(t *testing.T) {
	h := newHousehold(t, Limits{})
	one := h.person("one")
	hist, _, err := record.Open(h.vol, h.folder(one), time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer hist.Close()
	say := func(turn, text string) {
		t.Helper()
		err := hist.Begin("s1")
		if err == nil {
			_, err = hist.Append(&record.TurnBegin{Turn: turn}, &record.User{Item: turn, Text: text},
				&record.Assistant{Turn: turn, Text: "yes", Provider: "p", Tokens: record.Tokens{Input: 100, CacheRead: 300, Output: 20}},
				&record.TurnEnd{Turn: turn, Reason: record.ReasonDone})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	check := func(messages int) {
		t.Helper()
		s, err := h.Family.Session(t.Context(), one, one)
		turns := int64(messages / 2)
		if err != nil || s.Title != "Logs" || s.Messages != messages || s.PromptTokens != 400*turns ||
			s.CompletionTokens != 20*turns || s.Context != 420 || s.State == "" || s.StartedAt == nil {
			t.Errorf("after %d messages: %+v, %v", messages, s, err)
		}
	}
	say("t1", "Logs")
	check(2)
	counted, err := hist.Session()
	if err != nil {
		t.Fatal(err)
	}

	seq := hist.Obligations().LastSeq
	if err := record.UpdateState(h.vol, h.folder(one), func(s *record.State) { s.Session, s.Seq = counted, seq }); err != nil {
		t.Fatal(err)
	}
	say("t2", "and more")
	check(4)
	mine := h.deliver(message.Incoming{From: Terminal(), Text: "x"}).Agent
	if _, err := h.Family.Session(t.Context(), mine, "none"); !errors.Is(err, message.ErrUnknownAgent) {
		t.Errorf("the conversation of an agent that is not there: %v", err)
	}
	stranger := h.deliver(message.Incoming{From: message.Address{Connector: "c", ChannelID: "9", UserID: "eve"}, Text: "x"}).Agent
	if _, err := h.Family.Session(t.Context(), stranger, one); !errors.Is(err, ErrStranger) {
		t.Errorf("a stranger reads about the conversation: %v", err)
	}
}

// What an agent works on can be awaited by another one, while its inbox stays open.
func TestWorkOfAnAgentCanBeAwaited(t *testing.T) {
	h := newHousehold(t, Limits{})
	one := h.person("one")
	child, err := h.child(one, "c", true)
	if err != nil {
		t.Fatal(err)
	}

	item, err := h.Work(t.Context(), one, child.ID)
	if err != nil || item == "" {
		t.Fatalf("the child's work is %q, %v", item, err)
	}
	ended := make(chan event.Outcome, 1)
	go func() {
		o, err := h.Family.Await(t.Context(), child.ID, item)
		if err != nil {
			t.Error(err)
		}
		ended <- o
	}()

	if _, err := h.Post(t.Context(), message.Incoming{Agent: one, Origin: child.ID, Text: "half done", Dedupe: "d1"}); err != nil {
		t.Errorf("the inbox of the agent that waits takes nothing: %v", err)
	}
	h.mu.Lock()
	close(h.hold["c"])
	h.mu.Unlock()
	if o := <-ended; o.Item != item { // this actor keeps no history to read an answer from
		t.Errorf("outcome %+v", o)
	}
	if item, err := h.Work(t.Context(), one, child.ID); err != nil || item != "" {
		t.Errorf("after its end the child's work is %q, %v", item, err)
	}

	stranger := h.deliver(message.Incoming{From: message.Address{Connector: "c", ChannelID: "9", UserID: "eve"}, Text: "x"}).Agent
	if _, err := h.Work(t.Context(), stranger, child.ID); !errors.Is(err, ErrStranger) {
		t.Errorf("a stranger may wait: %v", err)
	}
}
