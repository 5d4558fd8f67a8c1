package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/address"
	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/tools"
)

// general asks for the right to read /srv, as request_permission does.
type general struct{}

func (general) Spec() tools.Spec {
	return tools.Spec{Name: "request", Description: "d", Schema: json.RawMessage(`{"type":"object"}`), Replay: tools.Idempotent}
}
func (general) Needs(tools.Call) (*permission.Request, error) {
	r, err := permission.General("@read:/srv", "to look")
	return &r, err
}
func (general) Widens(tools.Call) string { return "@read:/srv" }
func (general) Run(context.Context, tools.Call) (tools.Result, error) {
	return tools.Result{Text: "granted"}, nil
}

// fromHere is general by a relative path, which is meant from the working directory.
type fromHere struct{ general }

func (fromHere) Widens(c tools.Call) string {
	if c.Access.WorkingDir == "" {
		return "@read:srv"
	}
	return "@read:/srv"
}

// look tells whether the agent may read /srv.
type look struct{}

func (look) Spec() tools.Spec {
	return tools.Spec{Name: "look", Description: "d", Schema: json.RawMessage(`{"type":"object"}`), Replay: tools.ReadOnly}
}
func (look) Run(_ context.Context, c tools.Call) (tools.Result, error) {
	if c.Access.Allows(permission.Read{Path: "/srv/x"}) {
		return tools.Result{Text: "may read"}, nil
	}
	return tools.Result{Text: "may not read"}, nil
}

const rightsScript = `
rules:
  - { contains: "ask", round: 1, reply: [ { calls: [ { name: request, arguments: {} } ] } ] }
  - { after: permission, round: 1, reply: [ { calls: [ { name: request, arguments: {} } ] } ] }
  - { tool_result: request, round: 2, reply: [ { calls: [ { name: look, arguments: {} } ] } ] }
  - { contains: "look", round: 1, reply: [ { calls: [ { name: look, arguments: {} } ] } ] }
  - { tool_result: look, reply: [ { text: "{{.Result}}" } ] }
  - { reply: [ { text: "ok {{.Text}}" } ] }
`

// overseeing is a fake of Overseer.
type overseeing struct{ notes []string }

func (*overseeing) Owner() permission.Owner {
	return permission.Owner{Connector: "chat", UserID: "ada"}
}
func (o *overseeing) Note(key, text string) error {
	o.notes = append(o.notes, strings.Split(key, ":")[0]+" "+text)
	return nil
}

// decide answers the request that waits.
func (b *bench) decide(d permission.Decision) string {
	b.t.Helper()
	q := b.opts.Permits.(*permission.Queue)
	list := q.List()
	if len(list) != 1 {
		b.t.Fatalf("%d requests wait, want one", len(list))
	}
	p := list[0]
	r, err := b.box.Accept(b.t.Context(), inbox.Item{Kind: message.Permission, Dedupe: p.DedupeKey(), Token: p.Token,
		Decision: string(d), By: "ada", Tag: p.Request.Tag, SHA256: p.SHA256, Text: p.Request.Detail.String()})
	if err != nil {
		b.t.Fatal(err)
	}
	b.wait(r.Item)
	return r.Item
}

func (b *bench) texts() (list []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.sent {
		list = append(list, p.Text)
	}
	return list
}

func TestDecisions(t *testing.T) {
	for decision, want := range map[permission.Decision][]string{
		// What the agent finds in the turn of the decision, and in the next one.
		permission.Once:   {"may read", "may not read"},
		permission.Always: {"may read", "may read"},
	} {
		b := newBench(t, rightsScript, fromHere{}, look{})
		b.writeState(`{"permissions":{"workingDir":"/ws"}}`)
		b.run()
		b.outcome(b.say("ask"))
		b.decide(decision)
		for deadline := time.Now().Add(time.Minute); b.count("turn_end") < 2 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		b.outcome(b.say("look again"))
		b.halt()
		if diff := cmp.Diff(want, b.texts()[1:]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", decision, diff)
		}
		st, _, _, err := record.ReadState(b.dir)
		if err != nil {
			t.Fatal(err)
		}
		if allowed := st.Permissions.Allows(permission.Read{Path: "/srv"}); allowed != (decision == permission.Always) {
			t.Errorf("%s: state.json allows it: %v", decision, allowed)
		}
	}
}

// A user who said no is not asked the same again until they speak: the model of the
// script asks at each answer.
func TestANoIsNotAskedAgain(t *testing.T) {
	b := newBench(t, rightsScript, general{}, look{})
	b.run()
	b.outcome(b.say("ask"))
	b.decide(permission.Deny)
	for deadline := time.Now().Add(30 * time.Second); b.count("turn_end") < 2 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if n := len(b.opts.Permits.(*permission.Queue).List()); n != 0 {
		t.Errorf("the person is asked again, after a no: %d requests wait", n)
	}
	if !strings.Contains(b.history(), "ada denied exactly this") {
		t.Errorf("the model was not told why:\n%s", b.history())
	}
	b.outcome(b.say("do ask"))
	b.halt()
	if n := len(b.opts.Permits.(*permission.Queue).List()); n != 1 {
		t.Errorf("after the person has spoken %d requests wait, want one", n)
	}
}

// An answer counts for exactly what was asked, until a user speaks; what agents and tasks say is no word of a user.
func TestWhichAnswerCounts(t *testing.T) {
	no := &record.Permission{Token: "t", Event: "deny", SHA256: "asked", By: "ada"}
	for name, tt := range map[string]struct {
		recs []record.Record
		sha  string
		ways []permission.Decision
		want bool
	}{
		"this request":       {[]record.Record{no}, "asked", []permission.Decision{permission.Deny}, true},
		"another request":    {[]record.Record{no}, "other", []permission.Decision{permission.Deny}, false},
		"another answer":     {[]record.Record{no}, "asked", []permission.Decision{permission.Always}, false},
		"one of the answers": {[]record.Record{no}, "asked", []permission.Decision{permission.Always, permission.Deny}, true},
		"a user spoke":       {[]record.Record{no, &record.User{Text: "do it"}}, "asked", []permission.Decision{permission.Deny}, false},
		"an agent spoke": {[]record.Record{no, &record.User{Text: "do it", Origin: "0/1"}}, "asked",
			[]permission.Decision{permission.Deny}, true},
		"nothing was asked": {[]record.Record{&record.User{Text: "x"}}, "asked", []permission.Decision{permission.Deny}, false},
	} {
		b := newBench(t, callHold)
		b.cutAfter(tt.recs...)
		a, err := open(t.Context(), b.opts.options())
		if err != nil {
			t.Fatal(err)
		}
		if got := a.journal.answered(tt.sha, tt.ways...); (got != nil) != tt.want {
			t.Errorf("%s: %+v", name, got)
		}
		if err := a.close(); err != nil {
			t.Error(err)
		}
	}
}

func TestARevokedRightIsGoneAtTheNextCall(t *testing.T) {
	b := newBench(t, rightsScript, general{}, look{})
	if err := record.UpdateState(b.vol, b.dir, func(s *record.State) { s.Permissions.ReadDirs = []string{"/srv"} }); err != nil {
		t.Fatal(err)
	}
	b.run()
	b.outcome(b.say("look"))
	r, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Permission, Token: "t",
		Decision: string(permission.Revoked), Tag: "@read:/srv", By: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	b.wait(r.Item)
	b.outcome(b.say("look"))
	b.halt()
	if diff := cmp.Diff([]string{"may read", "may not read"}, b.texts()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.Contains(b.history(), `"event":"revoked"`) || strings.Contains(b.history(), "changed-by-hand") {
		t.Errorf("the history must say that it was revoked, and not by hand:\n%s", b.history())
	}
	if n := strings.Count(b.history(), `"type":"turn_begin"`); n != 2 {
		t.Errorf("%d turns, want 2: taking a right away asks for none", n)
	}
}

func TestThePersonOfABackgroundAgentIsAskedAndTold(t *testing.T) {
	b := newBench(t, rightsScript, general{}, look{})
	o := &overseeing{}
	b.opts.Overseer, b.opts.Meta.Descriptor = o, address.Descriptor{Type: address.Subagent}
	b.run()
	b.outcome(b.say("ask"))
	if p := b.opts.Permits.(*permission.Queue).List()[0]; p.Owner != o.Owner() {
		t.Errorf("the owner is %+v, want %+v", p.Owner, o.Owner())
	}
	b.decide(permission.Deny)
	b.halt()
	// After the decision the script asks anew: there may be a third note by now.
	if len(o.notes) < 2 || !strings.HasPrefix(o.notes[0], "ask ") || !strings.HasPrefix(o.notes[1], "decided ") ||
		!strings.Contains(o.notes[1], "deny") {
		t.Errorf("notes %q, want one of the request and one of the decision", o.notes)
	}
}

// A crash right after a decision was recorded must not keep what follows from it from
// being done: the note to who oversees the agent, and the request's way out of the queue.
func TestADecisionIsConcludedAfterADeath(t *testing.T) {
	b := newBench(t, rightsScript, general{}, look{})
	o := &overseeing{}
	b.opts.Overseer, b.opts.Meta.Descriptor = o, address.Descriptor{Type: address.Subagent}
	b.run()
	b.outcome(b.say("ask"))
	b.halt()
	b.openBox()
	q := b.opts.Permits.(*permission.Queue)
	p := q.List()[0]
	r, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Permission, Dedupe: p.DedupeKey(), Token: p.Token,
		Decision: string(permission.Deny), By: "ada", Tag: p.Request.Tag, SHA256: p.SHA256, Text: p.Request.Detail.String()})
	if err != nil {
		t.Fatal(err)
	}
	hist, _, err := record.Open(b.vol, b.dir, time.Now, b.opts.Log)
	if err == nil {
		_, err = hist.Append(&record.Permission{Token: p.Token, Item: r.Item, Event: string(permission.Deny),
			Tag: p.Request.Tag, By: "ada", SHA256: p.SHA256})
	}
	if err = errors.Join(err, hist.Barrier(), hist.Close()); err != nil {
		t.Fatal(err)
	}
	b.run()
	b.wait(r.Item)
	b.halt()
	if n := len(q.List()); n != 0 {
		t.Errorf("%d requests wait still", n)
	}
	if last := o.notes[len(o.notes)-1]; !strings.HasPrefix(last, "decided ") {
		t.Errorf("notes %q, want one of the decision", o.notes)
	}
}

// A crash after an approval for once was used up, and before the call had its result,
// must not make a user answer again: the call is run again with it.
func TestOnceCoversTheCallThatADeathCut(t *testing.T) {
	t.Parallel()
	b := newBench(t, rightsScript, general{}, look{})
	b.run()
	b.outcome(b.say("ask"))
	b.decide(permission.Once)
	for deadline := time.Now().Add(30 * time.Second); b.count("turn_end") < 2 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	b.halt()
	// The history as it was when the call had begun.
	path := filepath.Join(b.dir, "history.jsonl")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begun := bytes.Index(data, []byte(`"type":"tool_started"`))
	if begun < 0 {
		t.Fatalf("no start in\n%s", data)
	}
	end := begun + bytes.IndexByte(data[begun:], '\n') + 1
	if err := errors.Join(os.WriteFile(path, data[:end], 0o600), os.Remove(filepath.Join(b.dir, "state.json"))); err != nil {
		t.Fatal(err)
	}
	b.openBox()
	b.run()
	for deadline := time.Now().Add(30 * time.Second); b.count("turn_end") < 2 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	b.halt()
	if list := b.opts.Permits.(*permission.Queue).List(); len(list) != 0 {
		t.Errorf("the person is asked again: %+v", list)
	}
	if got := b.texts(); got[len(got)-1] != "may read" {
		t.Errorf("the agent said %q, want that it may read", got)
	}
}

// wide asks for a right whose tag nobody could read.
type wide struct{ general }

func (wide) Needs(tools.Call) (*permission.Request, error) {
	return &permission.Request{Tag: "@exec:" + strings.Repeat("x", 10_000), Reason: "r", Detail: permission.Detail{Command: "x"}}, nil
}

// A request whose tag is too long to be asked for is an error that the model reads; the
// turn continues to its end.
func TestOverlongTagIsAnErrorOfTheCall(t *testing.T) {
	b := newBench(t, `
rules:
  - { contains: "ask", round: 1, reply: [ { calls: [ { name: request, arguments: {} } ] } ] }
  - { tool_result: request, reply: [ { text: "{{.Result}}" } ] }
`, wide{})
	b.run()
	o := b.outcome(b.say("ask"))
	if o.Reason != record.ReasonDone || !strings.Contains(o.Text, "cannot request approval") {
		t.Errorf("the turn ended with %q: %q", o.Reason, o.Text)
	}
}

// The answer "prefix" gives the rule that was offered, with the scripts that it is bound
// to, and nothing that the exact request had beside it.
func TestRuleOfTheBeginningIsGranted(t *testing.T) {
	b := newBench(t, rightsScript, general{}, look{})
	b.run()
	b.outcome(b.say("ask"))
	q := b.opts.Permits.(*permission.Queue)
	p := q.List()[0]
	scripts := []message.Script{{Path: "/ws/build.sh", SHA256: "00"}}
	r, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Permission, Dedupe: p.DedupeKey(), Token: p.Token,
		Decision: string(permission.Prefix), By: "ada", Tag: "@exec:sh build.sh", SHA256: p.SHA256, Scripts: scripts})
	if err != nil {
		t.Fatal(err)
	}
	b.wait(r.Item)
	state, _, _, err := record.ReadState(b.opts.Dir)
	if err != nil {
		t.Fatal(err)
	}
	set := state.Permissions
	if diff := cmp.Diff([]string{"sh build.sh"}, set.Exec); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if len(set.Grants) != 1 || set.Grants[0].SHA256 != "" || cmp.Diff(scripts, set.Grants[0].Scripts) != "" {
		t.Errorf("grants are %+v", set.Grants)
	}
}

// page brings text from outside into the turn.
type page struct{}

func (page) Spec() tools.Spec {
	return tools.Spec{Name: "page", Description: "d", Schema: json.RawMessage(`{"type":"object"}`), Replay: tools.ReadOnly}
}
func (page) Run(context.Context, tools.Call) (tools.Result, error) {
	return tools.Result{Text: "do it", Source: "https://example.com/howto"}, nil
}

// reach is a command without a sandbox, or a host under a wide right.
type reaching struct{ host bool }

func (r reaching) Spec() tools.Spec {
	return tools.Spec{Name: "reach", Description: "d", Schema: json.RawMessage(`{"type":"object"}`), Replay: tools.ReadOnly}
}
func (r reaching) Needs(c tools.Call) (*permission.Request, error) {
	if r.host {
		if c.Access.Allows(permission.Web{Host: "new.example"}) {
			return nil, nil
		}
		return &permission.Request{Tag: "@web:new.example", Detail: permission.Detail{Host: "https://new.example/"}}, nil
	}
	return &permission.Request{Tag: "@exec:id", AskAlways: true, Sandbox: permission.NoSandbox,
		Detail: permission.Detail{Command: "id"}}, nil
}
func (reaching) Run(context.Context, tools.Call) (tools.Result, error) {
	return tools.Result{Text: "reached"}, nil
}

const untrustedScript = `
rules:
  - { after: permission, round: 1, reply: [ { calls: [ { name: reach, arguments: {} } ] } ] }
  - { contains: "read", round: 1, reply: [ { calls: [ { name: page, arguments: {} } ] } ] }
  - { tool_result: page, round: 2, reply: [ { calls: [ { name: reach, arguments: {} } ] } ] }
  - { contains: "go", round: 1, reply: [ { calls: [ { name: reach, arguments: {} } ] } ] }
  - { reply: [ { text: "{{.Result}}" } ] }
`

// allowedBefore gives a bench's agent rights before it runs.
func (b *bench) allowedBefore(grants ...permission.Grant) {
	b.t.Helper()
	if err := record.UpdateState(b.opts.Volume, b.opts.Dir, func(s *record.State) {
		for _, g := range grants {
			g.At = disk.StampOf(time.Now().Add(-time.Hour))
			set, err := s.Permissions.Grant(g)
			if err != nil {
				b.t.Fatal(err)
			}
			s.Permissions = set
		}
	}); err != nil {
		b.t.Fatal(err)
	}
}

// What was allowed always asks again in a turn that has read text from outside, with the
// source in the request; what was said in so many words does not, and a turn without such
// text does not.
func TestUntrustedTurnAsksAgain(t *testing.T) {
	id := permission.Request{Tag: "@exec:id", Sandbox: permission.NoSandbox, Detail: permission.Detail{Command: "id"}}
	for name, tt := range map[string]struct {
		tool   reaching
		grant  permission.Grant
		reads  bool
		source string // of the message
		asks   bool
	}{
		"command, read":        {reaching{}, permission.Grant{Tag: "@exec:id", Token: "t", SHA256: "id"}, true, "", true},
		"command, not read":    {reaching{}, permission.Grant{Tag: "@exec:id", Token: "t", SHA256: "id"}, false, "", false},
		"command, of a hook":   {reaching{}, permission.Grant{Tag: "@exec:id", Token: "t", SHA256: "id"}, false, "the hook x", true},
		"any host, read":       {reaching{true}, permission.Grant{Tag: "@web", Token: "t"}, true, "", true},
		"a pattern, read":      {reaching{true}, permission.Grant{Tag: "@web:*.example", Token: "t"}, true, "", true},
		"any host, not read":   {reaching{true}, permission.Grant{Tag: "@web", Token: "t"}, false, "", false},
		"this host, read":      {reaching{true}, permission.Grant{Tag: "@web:new.example", Token: "t"}, true, "", false},
		"any host, in words":   {reaching{true}, permission.Grant{Tag: "@web"}, true, "", false},
		"any host, of a guest": {reaching{true}, permission.Grant{Tag: "@web", Token: "t"}, false, "a message of the guest Bob", true},
		"any host, of a report": {reaching{true}, permission.Grant{Tag: "@web", Token: "t"}, false,
			"agent x, which read https://example.com/", true},
	} {
		b := newBench(t, untrustedScript, page{}, tt.tool)
		if tt.grant.SHA256 != "" {
			tt.grant.SHA256 = id.SHA256(b.opts.Meta.ID)
		}
		b.allowedBefore(tt.grant)
		b.run()
		text, want := "go", tt.source
		if tt.reads {
			text, want = "read", "https://example.com/howto"
		}
		r, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Text, Text: text, Source: tt.source})
		if err != nil {
			t.Fatal(err)
		}
		o := b.outcome(r.Item)
		list := b.opts.Permits.(*permission.Queue).List()
		if (len(list) == 1) != tt.asks {
			t.Errorf("%s: %d requests wait after %q, want it to ask: %v", name, len(list), o.Text, tt.asks)
			continue
		}
		if !tt.asks {
			continue
		}
		if card := list[0].Request.Card(); !strings.Contains(card, "untrusted   this turn read "+want) {
			t.Errorf("%s: the card does not name the source %q:\n%s", name, want, card)
		}
		// The answer holds: the turn that follows from it does not ask once more.
		b.decide(permission.Always)
		waitFor(t, func() bool { return strings.Contains(b.history(), `"reached"`) })
	}
}

// The mark survives a restart, and ends with the next turn that an owner's message begins.
func TestUntrustedMarkIsInHistory(t *testing.T) {
	b := newBench(t, untrustedScript, page{}, reaching{true})
	b.allowedBefore(permission.Grant{Tag: "@web", Token: "t"})
	b.run()
	b.outcome(b.say("read"))
	for what, count := range map[string]int{`"source":"https://example.com/howto"`: 2, `"sources":[`: 1} {
		if got := strings.Count(b.history(), what); got < count {
			t.Errorf("history has %s %d times, want it with the result and at the turn's end:\n%s", what, got, b.history())
		}
	}
	sources, err := record.SourcesOf(b.dir)
	if err != nil || len(sources) != 1 {
		t.Errorf("read from the files: %+v, %v", sources, err)
	}
	time.Sleep(2 * time.Millisecond) // histories tell times in milliseconds
	if o := b.outcome(b.say("go")); o.Text != "reached" {
		t.Errorf("the owner's next message still is marked: %q", o.Text)
	}
}

// exact asks for one exact request, and tells what was approved for the call.
type exact struct{ general }

func (exact) Needs(tools.Call) (*permission.Request, error) {
	return &permission.Request{Tag: "@lan:nas.home:80", Reason: "to look", Detail: permission.Detail{Host: "http://nas.home/x"}}, nil
}

func (exact) Run(_ context.Context, c tools.Call) (tools.Result, error) {
	return tools.Result{Text: "approved " + c.Approved}, nil
}

// A tool learns what a user allowed for its very call: the answer widens no right.
func TestACallKnowsWhatWasApprovedForIt(t *testing.T) {
	for _, decision := range []permission.Decision{permission.Once, permission.Always} {
		b := newBench(t, `
rules:
  - { contains: "ask", round: 1, reply: [ { calls: [ { name: request, arguments: {} } ] } ] }
  - { after: permission, round: 1, reply: [ { calls: [ { name: request, arguments: {} } ] } ] }
  - { tool_result: request, reply: [ { text: "{{.Result}}" } ] }
  - { reply: [ { text: "ok {{.Text}}" } ] }
`, exact{})
		b.run()
		b.outcome(b.say("ask"))
		b.decide(decision)
		for deadline := time.Now().Add(30 * time.Second); b.count("turn_end") < 2 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		b.halt()
		if texts := b.texts(); texts[len(texts)-1] != "approved @lan:nas.home:80" {
			t.Errorf("%s: %q", decision, texts)
		}
		st, _, _, err := record.ReadState(b.dir)
		if err != nil || len(st.Permissions.Lan) > 0 {
			t.Errorf("%s: state.json opens %q, %v", decision, st.Permissions.Lan, err)
		}
	}
}
