package agents

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/address"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
)

// A message is taken as it asks itself, else as the agent's state says, else as the
// connector it came by is set, else the agent's own connector, else as all are.
func TestWhoSaysHowAMessageIsTaken(t *testing.T) {
	full := func() (*self, inbox.Head) {
		return &self{state: record.State{Queue: "collect"}, meta: address.Meta{Descriptor: address.Descriptor{Connector: "own"}},
				settings: Settings{Queue: Steer, Queues: map[string]Queue{"own": Followup, "ticker": Interrupt}}},
			inbox.Head{Queue: message.Followup, Connector: "ticker"}
	}
	for _, tt := range []struct {
		without func(s *self, h *inbox.Head)
		want    Queue
	}{
		{func(*self, *inbox.Head) {}, Followup},
		{func(_ *self, h *inbox.Head) { h.Queue = "" }, Collect},
		{func(s *self, h *inbox.Head) { h.Queue, s.state.Queue = "", "" }, Interrupt},
		{func(s *self, h *inbox.Head) { h.Queue, s.state.Queue, h.Connector = "", "", "other" }, Followup},
		{func(s *self, h *inbox.Head) {
			h.Queue, s.state.Queue, h.Connector, s.settings.Queues = "", "", "other", nil
		}, Steer},
	} {
		s, h := full()
		tt.without(s, &h)
		if got := s.queue(h); got != tt.want {
			t.Errorf("a message %+v of %+v is taken by %q, want %q", h, s.settings, got, tt.want)
		}
	}
}

// Only an agent of which a message can interrupt a turn looks out for one.
func TestWhoCanBeInterrupted(t *testing.T) {
	for name, tt := range map[string]struct {
		state    string
		settings Settings
		want     bool
	}{
		"as all are":                        {"", Settings{Queue: Interrupt}, true},
		"by a connector":                    {"", Settings{Queue: Steer, Queues: map[string]Queue{"a": Steer, "b": Interrupt}}, true},
		"as its state says":                 {"interrupt", Settings{Queue: Steer}, true},
		"not at all":                        {"", Settings{Queue: Steer, Queues: map[string]Queue{"a": Collect}}, false},
		"its state says otherwise than all": {"steer", Settings{Queue: Interrupt, Queues: map[string]Queue{"b": Interrupt}}, false},
	} {
		s := &self{state: record.State{Queue: tt.state}, settings: tt.settings}
		if got := s.interrupts(); got != tt.want {
			t.Errorf("%s: interrupts is %v, want %v", name, got, tt.want)
		}
	}
}

// Which of the waiting messages make the next turn: those of one sender who wrote them
// within two seconds of each other, or all up to the first that wants a turn of its own.
func TestWhichMessagesMakeTheNextTurn(t *testing.T) {
	at := func(id string, ms int) inbox.Head {
		return inbox.Head{ID: id, Kind: message.Text, Sender: "ada", At: time.UnixMilli(int64(ms))}
	}
	with := func(h inbox.Head, change func(h *inbox.Head)) inbox.Head { change(&h); return h }
	report := func(h inbox.Head) inbox.Head { return with(h, func(h *inbox.Head) { h.Kind = message.System }) }
	quiet := func(h inbox.Head) inbox.Head { return with(h, func(h *inbox.Head) { h.Silent = true }) }
	of := func(h inbox.Head, q message.Queue) inbox.Head { return with(h, func(h *inbox.Head) { h.Queue = q }) }
	for name, tt := range map[string]struct {
		way   Queue
		heads []inbox.Head
		want  string
	}{
		"one":                 {Followup, []inbox.Head{at("a", 0)}, "a"},
		"at once":             {Followup, []inbox.Head{at("a", 0), at("b", 2000)}, "a b"},
		"a moment later":      {Followup, []inbox.Head{at("a", 0), at("b", 2001)}, "a"},
		"one after the other": {Followup, []inbox.Head{at("a", 0), at("b", 1500), at("c", 3000), at("d", 9000)}, "a b c"},
		"of somebody else": {Followup, []inbox.Head{at("a", 0),
			with(at("b", 1), func(h *inbox.Head) { h.Sender = "bob" })}, "a"},
		"a report behind it":             {Followup, []inbox.Head{at("a", 0), report(at("b", 1))}, "a"},
		"behind a report":                {Followup, []inbox.Head{report(at("a", 0)), at("b", 1)}, "a"},
		"two reports":                    {Followup, []inbox.Head{report(at("a", 0)), report(at("b", 1))}, "a"},
		"taken otherwise":                {Followup, []inbox.Head{at("a", 0), of(at("b", 1), message.Steer)}, "a"},
		"with a silent one between":      {Followup, []inbox.Head{at("a", 0), quiet(at("q", 1)), at("b", 2)}, "a b"},
		"all that wait":                  {Collect, []inbox.Head{at("a", 0), report(at("b", 1)), at("c", 90_000)}, "a b c"},
		"up to one that is taken alone":  {Collect, []inbox.Head{at("a", 0), of(at("b", 1), message.Followup), at("c", 2)}, "a"},
		"one that is taken alone, first": {Collect, []inbox.Head{of(at("a", 0), message.Followup), at("b", 1)}, "a"},
	} {
		s := &self{settings: Settings{Queue: tt.way}}
		if got := strings.Join(ids(s.next(tt.heads)), " "); got != tt.want {
			t.Errorf("%s: the next turn is of %q, want %q", name, got, tt.want)
		}
	}
}

// What the model reads as one message was written by one user within two seconds.
func TestWhichMessagesAreReadAsOne(t *testing.T) {
	now := time.Unix(1000, 0)
	first := inbox.Item{ID: "a", Kind: message.Text, At: now, Context: message.Context{Sender: "ada"}}
	elsewhere := &message.Address{Connector: "chat", ChannelID: "c2"}
	a, err := open(t.Context(), newBench(t, callHold).opts.options())
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	for name, tt := range map[string]struct {
		change func(it *inbox.Item)
		want   bool
	}{
		"at once":                {func(*inbox.Item) {}, true},
		"two seconds later":      {func(it *inbox.Item) { it.At = now.Add(2 * time.Second) }, true},
		"later":                  {func(it *inbox.Item) { it.At = now.Add(2*time.Second + 1) }, false},
		"of somebody else":       {func(it *inbox.Item) { it.Context.Sender = "bob" }, false},
		"from another chat":      {func(it *inbox.Item) { it.Route = elsewhere }, false},
		"a report of the system": {func(it *inbox.Item) { it.Kind = message.System }, false},
	} {
		second := first
		second.ID = "b"
		tt.change(&second)
		recs, _ := a.intake.users(t.Context(), &self{}, "turn", []inbox.Item{first, second})
		if got := recs[1].(*record.User).Joins; got != tt.want || recs[0].(*record.User).Joins {
			t.Errorf("%s: read as one: %v, want %v", name, got, tt.want)
		}
		recs, _ = a.intake.users(t.Context(), &self{}, "turn", []inbox.Item{second, first})
		if got := recs[1].(*record.User).Joins; name == "a report of the system" && got {
			t.Errorf("%s: what follows it is read as part of it", name)
		}
	}
}

// What a message says of itself is in its record as it was: who it is from, its files,
// whether it is silent, and what is not known to speak for the owner.
func TestWhatARecordSaysOfItsMessage(t *testing.T) {
	b := newBench(t, callHold)
	b.opts.Preface = func() string { return "at work: 0/0" }
	a, err := open(t.Context(), b.opts.options())
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	s := &self{settings: Settings{Zone: "Europe/Paris"}}
	chat := &message.Address{Connector: "chat", ChannelID: "c2"}
	file := message.File{Name: "a.txt", Path: "/a.txt"}
	for name, tt := range map[string]struct {
		turn string
		item inbox.Item
		want record.User
	}{
		"a message": {"turn", inbox.Item{ID: "i", Kind: message.Text, Text: "hello", Route: chat, Files: []message.File{file},
			Context: message.Context{Sender: "ada", MessageID: "m"}, Hops: 2, Source: "a guest", Untrusted: true},
			record.User{Item: "i", Text: "hello", Route: chat, Context: &message.Context{Sender: "ada", MessageID: "m"},
				Hops: 2, Source: "a guest", Untrusted: true, Preface: "at work: 0/0", Zone: "Europe/Paris"}},
		"a report": {"turn", inbox.Item{ID: "i", Kind: message.System, Origin: "child", Text: "done"},
			record.User{Item: "i", Text: "done", Origin: "child", Zone: "Europe/Paris"}},
		"of nobody in person": {"turn", inbox.Item{ID: "i", Kind: message.System, Text: "done"},
			record.User{Item: "i", Text: "done", Origin: "system", Zone: "Europe/Paris"}},
		"between turns": {"", inbox.Item{ID: "i", Kind: message.Text, Silent: true, Text: "for later", Origin: "not looked at"},
			record.User{Item: "i", Text: "for later", Silent: true, Zone: "Europe/Paris"}},
	} {
		made, _ := a.intake.users(t.Context(), s, tt.turn, []inbox.Item{tt.item})
		got := *made[0].(*record.User)
		files := got.Files
		got.Files = nil
		if diff := cmp.Diff(tt.want, got); diff != "" || len(files) != len(tt.item.Files) {
			t.Errorf("%s (-want +got):\n%s%d files", name, diff, len(files))
		}
	}
	recs, _ := a.intake.users(t.Context(), s, "turn", []inbox.Item{{ID: "a", Kind: message.Text}, {ID: "b", Kind: message.Text}})
	if first, second := recs[0].(*record.User), recs[1].(*record.User); first.Preface == "" || second.Preface != "" {
		t.Errorf("the preface stands before %q and %q, want before the first message alone", first.Preface, second.Preface)
	}
}
