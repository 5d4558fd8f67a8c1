package agents

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/address"
	"daycare/engine/message"
	"daycare/engine/record"
)

// answering is an outbox of which only one thing is asked.
type answering struct {
	Outbox
	own bool // answers to the agent's own chat are delivered
}

func (a answering) Answers(message.Address) bool { return a.own }

// A turn answers where the last message of a user came from. Who reads along in a
// terminal takes no answer away from who waits elsewhere; a report asks for the answer
// where its work was asked for, unless a user has spoken since.
func TestWhereATurnAnswers(t *testing.T) {
	a, b := &message.Address{Connector: "hook", ChannelID: "a"}, &message.Address{Connector: "chat", ChannelID: "b"}
	person := func(item string, route *message.Address, id string) *record.Entry {
		u := &record.User{Item: item, Route: route}
		if id != "" {
			u.Context = &message.Context{MessageID: id}
		}
		return &record.Entry{Rec: u}
	}
	report := func(item string, route *message.Address) *record.Entry {
		return &record.Entry{Rec: &record.User{Item: item, Origin: "child", Route: route}}
	}
	for name, tt := range map[string]struct {
		entries    []*record.Entry
		own        bool // somebody reads answers in the agent's own chat
		background bool
		want       addressee
	}{
		"from the own chat": {[]*record.Entry{person("i", nil, "m1")}, true, false, addressee{nil, true, "m1"}},
		"from elsewhere":    {[]*record.Entry{person("i", a, "m1")}, true, false, addressee{a, true, "m1"}},
		"from two places": {[]*record.Entry{person("i", a, "m1"), person("j", b, "m2")}, true, false,
			addressee{b, true, "m2"}},
		"without an id": {[]*record.Entry{person("i", a, "m1"), person("j", b, "")}, true, false,
			addressee{b, true, ""}},
		"back in the own chat": {[]*record.Entry{person("i", a, "m1"), person("j", nil, "m2")}, true, false,
			addressee{nil, true, "m2"}},
		"in a terminal": {[]*record.Entry{person("i", nil, "m1")}, false, false, addressee{nil, true, "m1"}},
		"a terminal beside a hook": {[]*record.Entry{person("i", a, "m1"), person("j", nil, "m2")}, false, false,
			addressee{a, true, "m1"}},
		"a chat after a terminal": {[]*record.Entry{person("i", nil, "m1"), person("j", b, "m2")}, false, false,
			addressee{b, true, "m2"}},
		"a report":            {[]*record.Entry{report("i", a)}, true, false, addressee{a, false, ""}},
		"a report of no chat": {[]*record.Entry{report("i", nil)}, true, false, addressee{}},
		"two reports":         {[]*record.Entry{report("i", a), report("j", nil)}, true, false, addressee{a, false, ""}},
		"a report after a person": {[]*record.Entry{person("i", b, "m1"), report("j", a)}, true, false,
			addressee{b, true, "m1"}},
		"a person in a terminal after a report": {[]*record.Entry{report("i", a), person("j", nil, "m2")}, false, false,
			addressee{nil, true, "m2"}},
		"a report to an agent in the background": {[]*record.Entry{report("i", a)}, true, true, addressee{}},
	} {
		tn := &turn{}
		tn.meta.Descriptor.Type = address.User
		if tt.background {
			tn.meta.Descriptor.Type = address.Subagent
		}
		tn.join(answering{own: tt.own}, tt.entries)
		if diff := cmp.Diff(tt.want, tn.addressee, cmp.AllowUnexported(addressee{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if len(tn.items) != len(tt.entries) {
			t.Errorf("%s: the turn closes %q, want all its items", name, tn.items)
		}
	}
}

// A turn counts the hops of the message that came the longest way, and takes only messages
// for items.
func TestATurnJoinsMessagesAlone(t *testing.T) {
	tn := &turn{}
	tn.join(answering{}, []*record.Entry{{Rec: &record.Note{Item: "note"}}, {Rec: &record.User{Item: "a", Hops: 3}},
		{Rec: &record.User{Item: "b", Hops: 1}}})
	if tn.origin != "" {
		t.Errorf("what a user says in the own chat has the origin %q", tn.origin)
	}
	for want, u := range map[string]*record.User{"child": {Item: "c", Origin: "child", Route: &message.Address{Connector: "chat"}},
		"chat/b":   {Item: "d", Route: &message.Address{Connector: "chat", ChannelID: "b"}},
		"chat/b/u": {Item: "e", Route: &message.Address{Connector: "chat", ChannelID: "b", UserID: "u"}}} {
		from := &turn{}
		if from.join(answering{}, []*record.Entry{{Rec: u}}); from.origin != want {
			t.Errorf("the origin is %q, want %q", from.origin, want)
		}
	}
	if diff := cmp.Diff([]string{"a", "b"}, tn.items); diff != "" || tn.hops != 3 {
		t.Errorf("%d hops, want 3; items (-want +got):\n%s", tn.hops, diff)
	}
}

// Work that is begun in the turn of a user reports where the turn answers; that of an
// agent in the background where the agent itself was started from.
func TestWhereWorkIsReported(t *testing.T) {
	hook, origin := message.Address{Connector: "hook", ChannelID: "a"}, message.Address{Connector: "chat", ChannelID: "b"}
	for _, typ := range []address.Type{address.User, address.Subagent} {
		tn := &turn{addressee: addressee{route: &hook, spoken: true}}
		tn.meta.Descriptor = address.Descriptor{Type: typ, Route: origin}
		want := hook
		if typ == address.Subagent {
			want = origin
		}
		if got := tn.workRoute(nil); got != want {
			t.Errorf("of a %s it is reported to %+v, want %+v", typ, got, want)
		}
	}
}
