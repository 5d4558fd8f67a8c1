package chat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
)

// world is an engine and a platform in memory.
type world struct {
	event.Broker[event.Event]
	mu      sync.Mutex
	said    []string // "channel: text" as the platform was asked to say
	typed   int
	taken   []message.Incoming
	refuse  error
	agent   event.Agent
	asks    []permission.Pending
	decided *permission.Pending
	stopped bool
	homeOf  string // the user of the agent, ada if it is not said
	log     bytes.Buffer
	hints   map[string][]byte // that survive the desk
	keepErr error             // of keeping a message that waits
	loadErr error             // of reading those that wait
}

var ada = message.Address{Connector: "chat", ChannelID: "c1", UserID: "ada"}

const token = "tz4a98xxat96iws9zmbrgj3a"

func newWorld() *world {
	return &world{agent: event.Agent{ID: "agent1", Handle: "0/", Type: "user", State: event.Thinking, Model: "m", Queued: 2}}
}

func (w *world) desk(o Options, p Platform) *Desk {
	o.ID = "chat"
	if o.Allow == nil {
		o.Allow = []string{"ada"}
	}
	host := Host{Directory: w, Agents: w, Asks: w, Events: w, Files: w, Hints: w, Waiting: w,
		Session: func(string) (Session, error) { return Session{Messages: 3, Context: 40, Tokens: 100}, nil },
		Switch: func(_ context.Context, _, model string) (string, error) {
			if model != "two" {
				return "", errors.New("unknown model \"" + model + "\". near to it: two")
			}
			return "p/two", nil
		}}
	return New(o, host, p, slog.New(slog.NewTextHandler(&w.log, nil)))
}

func (w *world) Load(_, name string) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if name == waitingFile && w.loadErr != nil {
		return nil, w.loadErr
	}
	if data, ok := w.hints[name]; ok {
		return data, nil
	}
	return nil, fs.ErrNotExist
}

func (w *world) Save(_, name string, data []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if name == waitingFile && w.keepErr != nil {
		return w.keepErr
	}
	if w.hints == nil {
		w.hints = map[string][]byte{}
	}
	w.hints[name] = data
	return nil
}

func (w *world) Find(from message.Address) (string, bool) {
	return w.agent.ID, from == ada || from.UserID == "bob"
}
func (w *world) Home(agent string) (message.Address, bool) {
	to := ada
	if w.homeOf != "" {
		to.UserID = w.homeOf
	}
	return to, agent == w.agent.ID
}
func (w *world) Agent(context.Context, string) (event.Agent, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.agent, nil
}
func (w *world) Known(_ context.Context, asker string) ([]event.Agent, error) {
	return []event.Agent{{ID: asker, Handle: "3/", Type: "user", State: event.Idle}}, nil
}

func (w *world) Agents(context.Context) ([]event.Agent, error) { return []event.Agent{w.agent}, nil }
func (w *world) Stop(context.Context, string) (bool, error)    { w.stopped = true; return true, nil }
func (w *world) List() []permission.Pending {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]permission.Pending(nil), w.asks...)
}

func (w *world) Decide(_ context.Context, tok string, d permission.Decision, by string) (*permission.Pending, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, p := range w.asks {
		if p.Token == tok {
			p.Decision, p.DecidedBy = d, by
			w.decided, w.asks = &p, append(w.asks[:i:i], w.asks[i+1:]...)
			return nil, nil
		}
	}
	if w.decided != nil && strings.HasPrefix(w.decided.Token, tok) {
		return w.decided, nil
	}
	return nil, permission.ErrUnknown
}

func (w *world) Put(name string, r io.Reader) (message.File, error) {
	data, err := io.ReadAll(r)
	return message.File{Name: name, Size: int64(len(data))}, err
}

func (w *world) deliver(_ context.Context, in message.Incoming) (message.Receipt, error) {
	if w.refuse != nil {
		return message.Receipt{}, w.refuse
	}
	w.taken = append(w.taken, in)
	return message.Receipt{Agent: "agent1"}, nil
}

func (w *world) heard() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	said := w.said
	w.said = nil
	return said
}

// talker is the least platform, buttons one with cards.
type talker struct{ *world }

func (p talker) Say(_ context.Context, to message.Address, _, text string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = append(p.said, to.ChannelID+": "+text)
	return nil
}

type buttons struct{ talker }

func (p buttons) Typing(context.Context, message.Address) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.typed++
	return nil
}

func (p buttons) Card(ctx context.Context, to message.Address, key, text string, c []Choice) (string, error) {
	return "77", p.Say(ctx, to, "", "card: "+text+fmt.Sprint(c))
}

func (p buttons) Settle(ctx context.Context, to message.Address, id, text string) error {
	return p.Say(ctx, to, "", "settled "+id+": "+text)
}

func (p buttons) Direct(user string) (message.Address, bool) {
	return message.Address{ChannelID: "private-" + user}, true
}

func post(text string) Post {
	return Post{Key: "k1", From: ada, MessageID: "m1", Sender: "Ada", Text: text}
}

func TestTake(t *testing.T) {
	w := newWorld()
	d := w.desk(Options{}, talker{w})
	if err := d.Take(t.Context(), w.deliver, post("hello")); err != nil {
		t.Fatal(err)
	}
	want := []message.Incoming{{From: ada, Dedupe: "chat:k1", Text: "hello", Context: message.Context{MessageID: "m1", Sender: "Ada"}}}
	if diff := cmp.Diff(want, w.taken); diff != "" {
		t.Errorf("delivered (-want +got):\n%s", diff)
	}
	for _, refusal := range []error{disk.ErrFull, disk.ErrFailed} {
		w.refuse = refusal
		if err := d.Take(t.Context(), w.deliver, post("again")); !errors.Is(err, refusal) {
			t.Errorf("Take = %v, want %v: it is to be offered again", err, refusal)
		}
	}
	for _, final := range []error{inbox.ErrTooLarge, message.ErrUnknownAgent} {
		w.refuse = final
		w.heard()
		if err := d.Take(t.Context(), w.deliver, post("never")); err != nil || len(w.heard()) != 1 {
			t.Errorf("%v: Take = %v, want nil and a notice", final, err)
		}
	}
}

func TestAgentForAll(t *testing.T) {
	w := newWorld()
	d := w.desk(Options{Settings: Settings{AgentID: "0/"}}, talker{w})
	if err := d.Take(t.Context(), w.deliver, post("hello")); err != nil {
		t.Fatal(err)
	}
	if in := w.taken[0]; in.Agent != "0/" || in.Route == nil || *in.Route != ada {
		t.Errorf("delivered %+v, want agent 0/ with the way back", in)
	}
}

func TestFiles(t *testing.T) {
	w := newWorld()
	d := w.desk(Options{}, talker{w})
	broken := File{Name: "a.txt", Open: func(context.Context) (io.ReadCloser, error) { return nil, errors.New("reset by peer") }}
	p := post("see")
	p.Files = []File{broken, {Name: "b.txt", Open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("b")), nil
	}}}
	for range fetchTries - 1 {
		if err := d.Take(t.Context(), w.deliver, p); err == nil {
			t.Fatal("Take = nil, want the error: the file may come yet")
		}
	}
	if err := d.Take(t.Context(), w.deliver, p); err != nil {
		t.Fatalf("Take = %v, want the message without the file", err)
	}
	in := w.taken[0]
	if len(in.Files) != 1 || in.Text != "see\n[the file a.txt is missing: it could not be fetched]" {
		t.Errorf("delivered %q with %d files", in.Text, len(in.Files))
	}
}

// own are commands of a workspace.
type own map[string]string

func (o own) Commands() (list []Command) {
	for name, text := range o {
		list = append(list, Command{name, "says " + text})
	}
	return list
}

func (o own) Expand(name, arguments string) (string, bool) {
	text, ok := o[name]
	return text + arguments, ok
}

// A command that a user of the workspace wrote is a message from whoever types it. What is
// built in comes first, and what no command could be called is a message as it is.
func TestOwnCommandIsAMessage(t *testing.T) {
	w := newWorld()
	d := w.desk(Options{}, talker{w})
	d.commands.host.Own = own{"review": "Review ", "fix-it": "Fix it. ", "status": "never "}
	for _, text := range []string{"/review main.go", "/Fix-It now", "/5-a-day", "/no-such thing", "/status", "/nosuch", "/help"} {
		if err := d.Take(t.Context(), w.deliver, post(text)); err != nil {
			t.Fatal(err)
		}
	}
	var texts []string
	for _, in := range w.taken {
		texts = append(texts, in.Text)
	}
	if diff := cmp.Diff([]string{"Review main.go", "Fix it. now", "/5-a-day", "/no-such thing"}, texts); diff != "" {
		t.Errorf("delivered (-want +got):\n%s", diff)
	}
	said := w.heard()
	if len(said) != 3 || !strings.Contains(said[0], "is thinking") || !strings.Contains(said[1], "Unknown command `/nosuch`") ||
		!strings.Contains(said[2], "- /review: says Review") {
		t.Errorf("said %q", said)
	}
}

func TestCommands(t *testing.T) {
	w := newWorld()
	d := w.desk(Options{Prefix: "!"}, talker{w})
	for _, test := range []struct{ text, want string }{
		{"/status", "**0/** is thinking\nqueued messages: 2\nmodel: `m`\ncost so far: $0.0000"},
		{"/context", "3 messages since"},
		{"/model", "I use `m`."},
		{"/model two", "From the next turn on I use `p/two`."},
		{"/model tow", "I stay with `m`: unknown model \"tow\". near to it: two"},
		{"/agents", "- `0/` user, thinking"},
		{"/stop", "Stopped."},
		{"!help", "- !reset:"},
		{"/start", "- !reset:"},
		{"/nosuch", "Unknown command `!nosuch`."},
		{"/permissions", "No pending approvals"},
		{"/compact", "I will compact"},
		{"/RESET", "This is a new conversation."},
	} {
		if err := d.Take(t.Context(), w.deliver, post(test.text)); err != nil {
			t.Fatal(err)
		}
		if said := w.heard(); len(said) != 1 || !strings.Contains(said[0], test.want) {
			t.Errorf("%s: said %q, want %q", test.text, said, test.want)
		}
	}
	var kinds []message.Kind
	for _, in := range w.taken {
		kinds = append(kinds, in.Kind)
	}
	if diff := cmp.Diff([]message.Kind{message.Compact, message.Reset}, kinds); diff != "" || !w.stopped {
		t.Errorf("delivered (-want +got):\n%s", diff)
	}
	for _, text := range []string{"/etc/passwd", "/ x", "a /stop", "/stop\nand more", "!!"} {
		if _, _, ok := d.commands.read(post(text)); ok {
			t.Errorf("%q is a command, want a message", text)
		}
	}
}

func ask() permission.Pending {
	return permission.Pending{Token: token, Agent: "agent1", Owner: permission.Owner{Connector: "chat", UserID: "ada"},
		Request: permission.Request{Tag: "@exec:git", Reason: "to publish", Detail: permission.Detail{Command: "git push ```"}}}
}

func TestApprovalByButtons(t *testing.T) {
	w := newWorld()
	d := w.desk(Options{Settings: Settings{Allow: []string{"ada", "bob"}}}, buttons{talker{w}})
	w.asks = []permission.Pending{ask()}
	d.approvals.look(t.Context())
	d.approvals.look(t.Context())
	want := "c1: card: **Permission needed** by 0/\n\n````\n    git push ```\npermission  @exec:git\nreason      to " +
		"publish\n````[{Once once " + token +
		"} {Always this exact command always " + token + "} {Deny deny " + token + "}]"
	if diff := cmp.Diff([]string{want}, w.heard()); diff != "" {
		t.Errorf("shown, once (-want +got):\n%s", diff)
	}
	bob := message.Address{ChannelID: "c1", UserID: "bob"}
	for _, test := range []struct {
		from       message.Address
		data, want string
	}{
		{message.Address{UserID: "eve"}, "always " + token, "I work for another user."},
		{bob, "always " + token, "Only the user this agent works for can answer that."},
		{ada, "format-disk " + token, "That button does nothing."},
		{ada, "once " + token, "Allowed once."},
		{ada, "deny " + token, "chat:ada has already answered: allowed once."},
	} {
		if got := d.Answer(t.Context(), test.from, test.data); got != test.want {
			t.Errorf("%s presses %q: %q, want %q", test.from.UserID, test.data, got, test.want)
		}
	}
	if said := w.heard(); len(said) != 1 || !strings.HasPrefix(said[0], "c1: settled 77: ") ||
		!strings.HasSuffix(said[0], "**Allowed once by chat:ada.**") {
		t.Errorf("said %q, want the card settled once", said)
	}
}

func TestApprovalByText(t *testing.T) {
	w := newWorld()
	d := w.desk(Options{}, talker{w})
	w.asks = []permission.Pending{ask()}
	d.approvals.look(t.Context())
	if said := w.heard(); len(said) != 1 || !strings.Contains(said[0], "`/always tz4a98`") {
		t.Errorf("said %q, want how to answer", said)
	}
	for _, test := range []struct{ text, want string }{
		{"/deny", "Say which"}, {"/deny zzzzzz", "no longer open"}, {"/deny tz4a98", "Denied."},
		{"/once " + token, "has already answered: denied"}, {"/once tz4a98", "has already answered: denied"},
	} {
		if err := d.Take(t.Context(), w.deliver, post(test.text)); err != nil {
			t.Fatal(err)
		}
		if said := w.heard(); len(said) != 1 || !strings.Contains(said[0], test.want) {
			t.Errorf("%s: said %q, want %q", test.text, said, test.want)
		}
	}
	if got := d.approvals.decide(t.Context(), message.Address{UserID: "bob", ChannelID: "c2"}, permission.Once,
		"tz4a98"); got != "That request is no longer open." {
		t.Errorf("somebody else is told of the answer: %q", got)
	}
}

// TestCompactionIsReported: the user reads that their conversation was shortened, what
// it cost their last message, and why nothing came of one that they asked for.
func TestCompactionIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		d := w.desk(Options{}, talker{w})
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { d.Run(ctx, w.deliver, time.Hour) })
		synctest.Wait()
		for _, test := range []struct {
			agent string
			is    string // type of the agent
			body  event.Compacted
			want  string
		}{
			{"agent1", "user", event.Compacted{Before: 9000, Gone: 40, Kept: 3},
				"c1: Our conversation was getting too long for me, so I replaced its older part by a summary."},
			{"agent1", "user", event.Compacted{Before: 9000, Gone: 40, Kept: 3, RequestCut: 1234},
				"about 1234 characters in between are left out. Send long texts as a file."},
			{"agent1", "user", event.Compacted{Failed: "no model could be reached to summarise it"},
				"c1: I did not compact it: no model could be reached to summarise it."},
			{"agent1", "cron", event.Compacted{Before: 9000}, ""},
			{"agent2", "user", event.Compacted{Before: 9000}, ""},
		} {
			w.mu.Lock()
			w.agent.Type = test.is
			w.mu.Unlock()
			w.Publish(event.Event{Type: event.AgentCompacted, Agent: test.agent, Body: test.body})
			synctest.Wait()
			said := strings.Join(w.heard(), "\n")
			if !strings.Contains(said, test.want) || test.want == "" && said != "" {
				t.Errorf("%s agent %s, %+v: said %q, want %q", test.is, test.agent, test.body, said, test.want)
			}
		}
		cancel()
		run.Wait()
	})
}

// TestWatch: typing while the agent works and not longer, requests as they come,
// and both also where the event that would have told was lost.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		d := w.desk(Options{}, buttons{talker{w}})
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { d.Run(ctx, w.deliver, time.Second) })
		synctest.Wait()
		w.Publish(event.Event{Type: event.TurnStarted, Agent: "agent1"})
		time.Sleep(3*typingEvery + time.Second)
		synctest.Wait()
		if w.typed != 4 {
			t.Errorf("typing was shown %d times in 13 s, want 4", w.typed)
		}
		w.mu.Lock()
		w.agent.State = event.Idle // and the event of its end is lost
		w.asks = []permission.Pending{ask()}
		w.mu.Unlock()
		time.Sleep(lookAfter)
		synctest.Wait()
		if w.typed != 4 {
			t.Errorf("typing was shown %d times, also after the end", w.typed)
		}
		if said := w.heard(); len(said) != 1 || !strings.Contains(said[0], "card:") {
			t.Errorf("said %q, want the request that no event told of", said)
		}
		w.Publish(event.Event{Type: event.PermissionDecided, Agent: "agent1",
			Body: event.Asked{Token: token, Decision: "always", By: "terminal"}})
		synctest.Wait()
		if said := w.heard(); len(said) != 1 || !strings.HasSuffix(said[0], "**Allowed from now on by terminal.**") {
			t.Errorf("said %q, want the card settled", said)
		}
		cancel()
		run.Wait()
	})
}

// A restart shows no request again, and settles the card that stood there before.
func TestARequestIsShownOnceOverRestarts(t *testing.T) {
	w := newWorld()
	w.asks = []permission.Pending{ask()}
	for range 3 {
		w.desk(Options{}, buttons{talker{w}}).approvals.look(t.Context())
	}
	if said := w.heard(); len(said) != 1 || !strings.Contains(said[0], "card:") {
		t.Errorf("said %q, want the request once", said)
	}
	d := w.desk(Options{}, buttons{talker{w}})
	w.Decide(t.Context(), token, permission.Deny, "terminal") // while nothing ran
	d.approvals.look(t.Context())
	if said := w.heard(); len(said) != 1 || !strings.Contains(said[0], "settled 77: ") {
		t.Errorf("said %q, want the old card settled", said)
	}
	w.desk(Options{}, buttons{talker{w}}).approvals.look(t.Context())
	if said := w.heard(); len(said) > 0 {
		t.Errorf("said %q about a request that is over", said)
	}
	w.hints[cardsFile] = []byte("{") // lost: shown once more, no worse
	w.asks = []permission.Pending{ask()}
	w.desk(Options{}, buttons{talker{w}}).approvals.look(t.Context())
	if said := w.heard(); len(said) != 1 {
		t.Errorf("said %q, want the request", said)
	}
}

// keyed notes under which keys requests are shown.
type keyed struct {
	buttons
	keys *[]string
}

func (k keyed) Card(ctx context.Context, to message.Address, key, text string, c []Choice) (string, error) {
	*k.keys = append(*k.keys, key)
	return k.buttons.Card(ctx, to, key, text, c)
}

// A process that died between showing a request and noting that leaves a request that the next
// one shows under the same key, which does not tell how the request is answered. Where a user
// asks for it, it is shown once more.
func TestARequestHasAKey(t *testing.T) {
	w := newWorld()
	w.asks = []permission.Pending{ask()}
	var keys []string
	for range 2 {
		delete(w.hints, cardsFile)
		w.desk(Options{}, keyed{buttons{talker{w}}, &keys}).approvals.look(t.Context())
	}
	d := w.desk(Options{}, keyed{buttons{talker{w}}, &keys})
	if err := d.Take(t.Context(), w.deliver, post("/permissions")); err != nil {
		t.Fatal(err)
	}
	if len(keys) != 3 || keys[0] == "" || keys[0] != keys[1] || keys[2] != "" || strings.Contains(keys[0], token) {
		t.Errorf("shown under the keys %q, want one twice, and then none", keys)
	}
}

// failing shows requests, and the process dies before it can note that.
type failing struct{ buttons }

func (f failing) Card(ctx context.Context, to message.Address, key, text string, c []Choice) (string, error) {
	if _, err := f.buttons.Card(ctx, to, key, text, c); err != nil {
		return "", err
	}
	return "", errors.New("the connection broke")
}

// A request that may have been shown before says so when it is shown again. The older message loses
// its buttons when one of them is pressed after the answer.
func TestARequestThatMayBeThereTwice(t *testing.T) {
	w := newWorld()
	w.asks = []permission.Pending{ask()}
	w.desk(Options{}, failing{buttons{talker{w}}}).approvals.look(t.Context())
	if said := w.heard(); len(said) != 1 || strings.Contains(said[0], "may be here twice") {
		t.Fatalf("said %q, want the request", said)
	}
	d := w.desk(Options{}, buttons{talker{w}})
	d.approvals.look(t.Context())
	if said := w.heard(); len(said) != 1 || !strings.Contains(said[0], "may be here twice") {
		t.Fatalf("said %q, want the request with a note", said)
	}
	d.approvals.look(t.Context())
	if got := d.Pressed(t.Context(), ada, "once "+token, "66"); got != "Allowed once." {
		t.Errorf("the older button said %q", got)
	}
	said := w.heard()
	if len(said) != 2 || !strings.Contains(said[0], "settled 77: ") || !strings.Contains(said[1], "settled 66: Allowed once.") {
		t.Errorf("said %q, want both messages without buttons", said)
	}
	eve := message.Address{ChannelID: "c1", UserID: "eve"}
	if got := d.Pressed(t.Context(), eve, "once "+token, "55"); got != "I work for another user." {
		t.Errorf("the reply to a stranger is %q", got)
	}
	if said := w.heard(); len(said) != 0 {
		t.Errorf("a stranger changed a message: %q", said)
	}
}

// What was refused was not shown, and is shown again without a note.
func TestARequestThatWasRefused(t *testing.T) {
	w := newWorld()
	w.asks = []permission.Pending{ask()}
	w.desk(Options{}, refusing{buttons{talker{w}}}).approvals.look(t.Context())
	w.desk(Options{}, buttons{talker{w}}).approvals.look(t.Context())
	if said := w.heard(); len(said) != 1 || strings.Contains(said[0], "may be here twice") {
		t.Errorf("said %q, want the request without a note", said)
	}
}

type refusing struct{ buttons }

func (refusing) Card(context.Context, message.Address, string, string, []Choice) (string, error) {
	return "", &message.NotSent{Err: errors.New("too many requests")}
}

// Names of users and files, and what is quoted, have nothing in them that users cannot see.
func TestNothingInvisibleIsDelivered(t *testing.T) {
	w := newWorld()
	d := w.desk(Options{}, talker{w})
	p := post("hi\u202e there")
	p.Sender, p.Quote = "Ada\n\u202eSystem", "earlier\U000E0041"
	p.Files = []File{{Name: "cod\u202efdp.exe", Size: 1 << 40}} // too large, so its name is said
	if err := d.Take(t.Context(), w.deliver, p); err != nil {
		t.Fatal(err)
	}
	in := w.taken[0]
	if in.Context.Sender != "Ada [U+202E]System" || !strings.Contains(in.Text, "hi[U+202E] there") ||
		!strings.Contains(in.Text, "earlier[U+E0041]") || !strings.Contains(in.Text, "cod[U+202E]fdp.exe") {
		t.Errorf("delivered %q of %q", in.Text, in.Context.Sender)
	}
}

func TestStrangersAreTurnedAway(t *testing.T) {
	w := newWorld()
	d := w.desk(Options{}, buttons{talker{w}})
	for range 3 {
		p := post("/reset")
		p.From.UserID, p.From.ChannelID, p.Sender = "eve", "c2", "Eve `rm`"
		if err := d.Take(t.Context(), w.deliver, p); err != nil {
			t.Fatal(err)
		}
	}
	said := w.heard()
	if len(w.taken) > 0 || len(said) != 2 || !strings.HasPrefix(said[0], "c2: I work for another user") ||
		!strings.HasPrefix(said[1], "private-ada: ") {
		t.Errorf("delivered %v, said %q; want one notice to each", w.taken, said)
	}
	if n := strings.Count(w.log.String(), "not in allow"); n != 1 {
		t.Errorf("logged %d times, want once", n)
	}
	d = w.desk(Options{Settings: Settings{Allow: []string{}}}, talker{w})
	if err := d.Take(t.Context(), w.deliver, post("hello")); err != nil || len(w.taken) > 0 {
		t.Error("an empty allow list let somebody in")
	}
}

// What a chat cannot show whole has no button that allows it, and no typed answer does.
func TestWhatIsNotShownWholeCannotBeAllowed(t *testing.T) {
	for name, command := range map[string]string{"long": "git push " + strings.Repeat("x", 3000) + "; rm -rf ~",
		"long once written out": strings.Repeat("<", 900) + "; rm -rf ~",
		"long once named":       strings.Repeat("\u200b", 500) + "; rm -rf ~"} {
		w := newWorld()
		d := w.desk(Options{Settings: Settings{Allow: []string{"ada"}}}, buttons{talker{w}})
		p := ask()
		p.Request.Detail.Command, p.Request.Prefix = command, "@exec:git push"
		w.asks = []permission.Pending{p}
		d.approvals.look(t.Context())
		said := strings.Join(w.heard(), "\n")
		if !strings.HasSuffix(said, "[{Deny deny "+token+"}]") || !strings.Contains(said, "daycare permissions show "+token) {
			t.Errorf("%s: said %q, want the place to read it and one button that denies", name, said)
		}
		for _, word := range []string{"once", "always", "prefix"} {
			if got := d.Answer(t.Context(), ada, word+" "+token); !strings.Contains(got, "too long") {
				t.Errorf("%s: %s was answered %q", name, word, got)
			}
		}
		if got := d.Answer(t.Context(), ada, "deny "+token); got != "Denied." {
			t.Errorf("%s: deny was answered %q", name, got)
		}
	}
}

// The rule for the beginning of a command is a button and a word, and is spelled.
func TestRuleForTheBeginningIsOffered(t *testing.T) {
	w := newWorld()
	d := w.desk(Options{Settings: Settings{Allow: []string{"ada"}}}, buttons{talker{w}})
	p := ask()
	p.Request.Detail.Command, p.Request.Prefix = "git push origin \u202emain", "@exec:git push"
	w.asks = []permission.Pending{p}
	d.approvals.look(t.Context())
	said := strings.Join(w.heard(), "\n")
	for _, want := range []string{"{Always commands that begin with `git push` prefix " + token + "}",
		"    git push origin [U+202E]main\n", "but with no other command in the line"} {
		if !strings.Contains(said, want) {
			t.Errorf("the card lacks %q:\n%s", want, said)
		}
	}
	if got := d.Answer(t.Context(), ada, "prefix "+token); !strings.HasPrefix(got, "Allowed from now on, with any words that follow") {
		t.Errorf("answered %q", got)
	}
	if w.decided == nil || w.decided.Decision != permission.Prefix {
		t.Errorf("decided %+v", w.decided)
	}
}

// A budget that is used up has buttons of its own; a question that is no more is closed.
func TestAPausedAgentAsksInTheChat(t *testing.T) {
	w := newWorld()
	d := w.desk(Options{Settings: Settings{Allow: []string{"ada"}}}, buttons{talker{w}})
	p := ask()
	p.Request = permission.Budget{Scope: permission.BudgetTotal, Unit: permission.Tokens, Limit: 2000, More: 2000}.Request("it is used up")
	w.asks = []permission.Pending{p}
	d.approvals.look(t.Context())
	said := strings.Join(w.heard(), "\n")
	for _, want := range []string{"**Paused at a budget**: 0/", "    continue beyond the budget of 2,000 tokens",
		"{Raise once: 2,000 tokens more once " + token + "}",
		"{Raise limit to 4,000 tokens: budget.total.tokens in settings.yaml always " + token + "}", "{Stop deny " + token + "}"} {
		if !strings.Contains(said, want) {
			t.Errorf("the card lacks %q:\n%s", want, said)
		}
	}
	d.watcher.happened(t.Context(), event.Event{Type: event.PermissionDecided, Agent: "agent1",
		Body: event.Asked{Token: token, Decision: "freed", By: "daycare"}}, nil)
	if said := w.heard(); len(said) != 1 || !strings.HasSuffix(said[0], "**No longer needed: the budget allows more again.**") {
		t.Errorf("said %q, want the card closed", said)
	}
}

// Only an owner raises a budget, whatever the ceiling is; the guest whose agent it is may
// stop it.
func TestAGuestRaisesNoBudget(t *testing.T) {
	w := newWorld()
	ceiling, err := permission.Ceiling([]string{"@web", "@read:/", "@write:/"})
	if err != nil {
		t.Fatal(err)
	}
	d := w.house(ceiling, Options{})
	p := ask()
	p.Owner = permission.Owner{Connector: "chat", UserID: "bob"}
	p.Request = permission.Budget{Scope: permission.BudgetTotal, Unit: permission.USD, Limit: 5, More: 5}.Request("it is used up")
	w.asks = []permission.Pending{p}
	bob := message.Address{ChannelID: "c1", UserID: "bob"}
	for _, answer := range []string{"once", "always"} {
		if got := d.Answer(t.Context(), bob, answer+" "+token); got != "Only an owner can allow that." {
			t.Errorf("%s: %q", answer, got)
		}
	}
	if got := d.Answer(t.Context(), bob, "deny "+token); got != "Denied." {
		t.Errorf("deny: %q", got)
	}
}

// house is a desk with an owner, ada, and a guest, bob, whose agents are different ones.
func (w *world) house(ceiling permission.Set, o Options) *Desk {
	o.Allow = []string{"bob", "ada"}
	d := w.desk(o, buttons{talker{w}})
	d.who.host.Owners = func(string) ([]string, permission.Set) { return []string{"ada"}, ceiling }
	return d
}

// A guest allows their own agent what the ceiling covers and nothing else; an owner is
// asked for the rest and answers for all.
func TestOnlyOwnersAllowBeyondTheCeiling(t *testing.T) {
	ceiling, err := permission.Ceiling([]string{"@web:*.example.com", "@read:/srv/docs", "@exec:git status"})
	if err != nil {
		t.Fatal(err)
	}
	sandboxed := func(tag, command string) permission.Request {
		return permission.Request{Tag: tag, Detail: permission.Detail{Command: command}, Sandbox: "bwrap", Prefix: tag}
	}
	loose := sandboxed("@exec:git status", "git status")
	loose.Sandbox = permission.NoSandbox
	for name, tt := range map[string]struct {
		request permission.Request
		may     bool
	}{
		"a host beneath": {permission.Request{Tag: "@web:docs.example.com",
			Detail: permission.Detail{Host: "docs.example.com"}}, true},
		"another host":          {permission.Request{Tag: "@web:example.org", Detail: permission.Detail{Host: "example.org"}}, false},
		"any host":              {permission.Request{Tag: "@web", Detail: permission.Detail{Host: "any host"}}, false},
		"a folder beneath":      {permission.Request{Tag: "@read:/srv/docs/a", Detail: permission.Detail{Path: "/srv/docs/a"}}, true},
		"the owner's files":     {permission.Request{Tag: "@read:/home/ada", Detail: permission.Detail{Path: "/home/ada"}}, false},
		"writing":               {permission.Request{Tag: "@write:/srv/docs/a", Detail: permission.Detail{Diff: "+x"}}, false},
		"the command":           {sandboxed("@exec:git status", "git status --short"), true},
		"the command, unheld":   {loose, false},
		"what follows it":       {sandboxed("@exec:git status", "git status; rm -rf ~"), false},
		"with a network":        {sandboxed("@exec:git status", "git status\n[network] example.org"), false},
		"another command":       {sandboxed("@exec:git push", "git push"), false},
		"the rule as such":      {permission.Request{Tag: "@exec:git status", Detail: permission.Detail{Command: "git status …"}}, true},
		"a wider rule as such":  {permission.Request{Tag: "@exec:git", Detail: permission.Detail{Command: "git …"}}, false},
		"a path out of the way": {permission.Request{Tag: "@read:/srv/docs/../../home", Detail: permission.Detail{Path: "/home"}}, false},
	} {
		for _, word := range []string{"once", "always"} {
			w := newWorld()
			d := w.house(ceiling, Options{})
			p := ask()
			p.Request, p.Owner.UserID = tt.request, "bob"
			w.asks, w.homeOf = []permission.Pending{p}, "bob"
			d.approvals.look(t.Context())
			said := strings.Join(w.heard(), "\n")
			if asked := strings.Contains(said, "needs an owner's approval"); asked == tt.may {
				t.Errorf("%s: %q", name, said)
			}
			got := d.Answer(t.Context(), message.Address{ChannelID: "c1", UserID: "bob"}, word+" "+token)
			if allowed := strings.HasPrefix(got, "Allowed"); allowed != tt.may || (w.decided != nil) != tt.may {
				t.Errorf("%s: the guest's %s is answered %q", name, word, got)
			}
			if tt.may {
				continue
			}
			if got := d.Answer(t.Context(), ada, word+" "+token); !strings.HasPrefix(got, "Allowed") {
				t.Errorf("%s: the owner's %s is answered %q", name, word, got)
			}
		}
	}
}

// Who wrote last to an agent that many share answers nothing of it.
func TestWhoWroteLastToASharedAgentDoesNotAnswerForTheOwner(t *testing.T) {
	w := newWorld()
	d := w.house(permission.Set{}, Options{Settings: Settings{AgentID: "agent1"}})
	bob := message.Address{ChannelID: "c2", UserID: "bob"}
	if err := d.Take(t.Context(), w.deliver, Post{Key: "1", From: bob, Text: "hello"}); err != nil {
		t.Fatal(err)
	}
	p := ask()
	p.Owner = permission.Owner{Connector: "terminal", UserID: "root"}
	w.asks = []permission.Pending{p}
	d.approvals.look(t.Context())
	if said := strings.Join(w.heard(), "\n"); !strings.Contains(said, "private-ada: card:") || strings.Contains(said, "c2: card") {
		t.Errorf("shown to %q, want the owner's own chat", said)
	}
	for _, word := range []string{"once", "always", "prefix", "deny"} {
		if got := d.Answer(t.Context(), bob, word+" "+token); !strings.HasPrefix(got, "Only") {
			t.Errorf("the guest's %s is answered %q", word, got)
		}
	}
	if got := d.Answer(t.Context(), ada, "always "+token); got != "Allowed from now on." {
		t.Errorf("the owner is answered %q", got)
	}
}

// A guest is shown the agents that their own one knows, and of a shared one itself alone.
func TestAgentsOfOthersAreNotListed(t *testing.T) {
	for shared, want := range map[string]string{"": "`3/`", "agent1": "`0/`"} {
		w := newWorld()
		d := w.house(permission.Set{}, Options{Settings: Settings{AgentID: shared}})
		bob := Post{Key: "1", From: message.Address{ChannelID: "c2", UserID: "bob"}, Text: "/agents"}
		if err := d.Take(t.Context(), w.deliver, bob); err != nil {
			t.Fatal(err)
		}
		if said := strings.Join(w.heard(), "\n"); !strings.Contains(said, want) || strings.Count(said, "\n") > 1 {
			t.Errorf("shared %q: the guest is shown %q, want %s", shared, said, want)
		}
	}
}

// A question answered elsewhere is closed where there are no buttons, too.
func TestQuestionAnsweredElsewhereIsClosedInWords(t *testing.T) {
	w := newWorld()
	d := w.desk(Options{}, talker{w})
	w.asks = []permission.Pending{ask()}
	d.approvals.look(t.Context())
	w.heard()
	w.asks = nil
	d.watcher.happened(t.Context(), event.Event{Type: event.PermissionDecided, Agent: "agent1",
		Body: event.Asked{Token: token, Decision: "deny", By: "terminal:ada"}}, nil)
	if said := strings.Join(w.heard(), "\n"); !strings.Contains(said, "The request tz4a98 is closed: Denied by terminal:ada.") {
		t.Errorf("said %q", said)
	}
}
