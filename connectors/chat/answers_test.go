package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
)

// says is what one message is answered.
func (d *Desk) says(t *testing.T, w *world, p Post) string {
	t.Helper()
	if err := d.Take(t.Context(), w.deliver, p); err != nil {
		t.Fatal(err)
	}
	return strings.Join(w.heard(), "\n")
}

// door lets users in with a code.
type door struct {
	reply Reply
	shut  bool // the allow list has the last word
	err   error
	asked []Stranger
	told  string // what an owner said
}

func (d *door) Ask(_ context.Context, s Stranger) (Reply, bool) {
	d.asked = append(d.asked, s)
	return d.reply, !d.shut
}

func (d *door) Admit(_ context.Context, connector, code string, reject bool, by string) (string, error) {
	d.told = fmt.Sprint(connector, " ", code, " ", reject, " ", by)
	return "Eve `x`", d.err
}

// Someone who is not known gets a code, and an owner learns of it and lets them in or not.
// Nobody else does, and in a group no code is shown.
func TestStrangersAreLetInByACode(t *testing.T) {
	eve := Post{Key: "1", From: message.Address{ChannelID: "c2", UserID: "eve"}, Sender: "Eve", Text: "hello"}
	group := eve
	group.Group, group.Addressed = true, true
	for name, tt := range map[string]struct {
		door door
		post Post
		want []string // what is said, one after the other
	}{
		"a code": {door{reply: Reply{Code: "abc"}}, eve,
			[]string{"c2: I do not know you yet, so I did not read your message. To get access, " +
				"give this code to the person who runs me: `abc`.",
				"private-ada: \"Eve\", id `eve`, requests access. To grant it, answer `/pair abc`"}},
		"words":       {door{reply: Reply{Text: "Not now."}}, eve, []string{"c2: Not now."}},
		"nothing":     {door{}, eve, nil},
		"by the list": {door{shut: true}, eve, []string{"c2: I work for another user", "private-ada: A user who is not"}},
		"in a group":  {door{reply: Reply{Code: "abc"}}, group, []string{"c2: I work for another user", "private-ada: A user who is not"}},
		"to nobody":   {door{reply: Reply{Code: "abc"}}, Post{Key: "1", From: eve.From, Group: true, Text: "x"}, nil},
		"only a note": {door{reply: Reply{Code: "abc"}}, Post{Key: "1", From: eve.From, Note: true, Text: "x"}, nil},
	} {
		w := newWorld()
		d := w.desk(Options{}, buttons{talker{w}})
		d.host.Admission = &tt.door
		if err := d.Take(t.Context(), w.deliver, tt.post); err != nil {
			t.Fatal(err)
		}
		said := w.heard()
		if len(said) != len(tt.want) || len(w.taken) != 0 {
			t.Errorf("%s: said %q, delivered %v, want %q", name, said, w.taken, tt.want)
			continue
		}
		for i, want := range tt.want {
			if !strings.HasPrefix(said[i], want) {
				t.Errorf("%s: said %q, want %q", name, said[i], want)
			}
		}
	}
	for _, tt := range []struct {
		user, text, want, told string
		err                    error
	}{
		{"ada", "/pair abc", "c1: \"Eve `x`\" now has access.", "chat abc false chat:ada", nil},
		{"ada", "/pair abc reject", "c1: \"Eve `x`\" was rejected.", "chat abc true chat:ada", nil},
		{"ada", "/pair abc", "c1: Nothing changed: no such code", "chat abc false chat:ada", errors.New("no such code")},
		{"ada", "/pair", "c1: Which code? `/pair CODE`, or `/pair CODE reject`.", "", nil},
		{"ada", "/pair abc yes", "c1: Which code?", "", nil},
		{"ada", "/pair abc reject now", "c1: Which code?", "", nil},
		{"bob", "/pair abc", "c1: Only an owner can grant access.", "", nil},
	} {
		w := newWorld()
		d := w.desk(Options{Settings: Settings{Allow: []string{"ada", "bob"}}}, buttons{talker{w}})
		front := &door{err: tt.err}
		d.commands.host.Admission = front
		if got := d.says(t, w, Post{Key: "1", From: message.Address{ChannelID: "c1", UserID: tt.user},
			Text: tt.text}); !strings.HasPrefix(got, tt.want) || front.told != tt.told {
			t.Errorf("%s says %s: %q, told %q, want %q, %q", tt.user, tt.text, got, front.told, tt.want, tt.told)
		}
	}
	w := newWorld()
	if got := w.desk(Options{}, talker{w}).says(t, w, post("/pair abc")); got != "c1: I cannot do that now." {
		t.Errorf("without codes: %q", got)
	}
}

// What waits is shown again to whoever may answer it, at the end of the chat; a guest learns
// who has to.
func TestPendingApprovalsAreListed(t *testing.T) {
	w := newWorld()
	d := w.house(permission.Set{}, Options{})
	bob := ask()
	bob.Token, bob.Owner.UserID = "bz4a98xxat96iws9zmbrgj3a", "bob"
	other := ask()
	other.Token, other.Owner, other.Agent = "cz4a98xxat96iws9zmbrgj3a", permission.Owner{Connector: "mail", UserID: "x"}, "agent9"
	w.asks = []permission.Pending{ask(), bob, other}
	d.approvals.look(t.Context())
	w.heard()
	said := d.says(t, w, post("/permissions"))
	if strings.Count(said, "card: ") != 2 || strings.Contains(said, other.Token) || !strings.Contains(said, "[{Once once "+token) {
		t.Errorf("an owner is shown\n%s", said)
	}
	d.approvals.settle(t.Context(), token, permission.Deny, "x")
	if said := w.heard(); len(said) != 1 {
		t.Errorf("shown again, it is settled %d times: %q", len(said), said)
	}
	said = d.says(t, w, Post{Key: "2", From: message.Address{ChannelID: "c2", UserID: "bob"}, Text: "/permissions"})
	if said != "c2: This needs an owner's approval: `@exec:git`. You may deny it: `deny bz4a98`, as a command." {
		t.Errorf("a guest is shown\n%s", said)
	}
	w.asks = nil
	if said := d.says(t, w, post("/permissions")); said != "c1: No pending approvals." {
		t.Errorf("without any: %s", said)
	}
}

// shaky is a platform that fails for a while.
type shaky struct {
	buttons
	fails *bool
}

func (s shaky) Say(ctx context.Context, to message.Address, replyTo, text string) error {
	if *s.fails {
		return errors.New("unreachable")
	}
	return s.buttons.Say(ctx, to, replyTo, text)
}

func (s shaky) Card(ctx context.Context, to message.Address, key, text string, c []Choice) (string, error) {
	if *s.fails {
		return "", errors.New("unreachable")
	}
	return s.buttons.Card(ctx, to, key, text, c)
}

func (s shaky) Settle(ctx context.Context, to message.Address, id, text string) error {
	if *s.fails {
		return errors.New("unreachable")
	}
	return s.buttons.Settle(ctx, to, id, text)
}

// A request that could not be shown is shown as soon as that is possible, and what could not
// be said is in the log.
func TestARequestThatCouldNotBeShownIsShownLater(t *testing.T) {
	w := newWorld()
	fails := true
	d := w.desk(Options{}, shaky{buttons{talker{w}}, &fails})
	w.asks = []permission.Pending{ask()}
	d.approvals.look(t.Context())
	d.says(t, w, post("/status"))
	fails = false
	d.approvals.look(t.Context())
	d.approvals.look(t.Context())
	if said := w.heard(); len(said) != 1 || !strings.Contains(said[0], "card: ") {
		t.Errorf("said %q, want the request once", said)
	}
	fails = true
	w.asks = nil
	d.approvals.look(t.Context())
	for _, want := range []string{"approval request not shown", "notice not delivered", "buttons of an answered request not removed"} {
		if n := strings.Count(w.log.String(), want); n != 1 {
			t.Errorf("the log says %d times %q:\n%s", n, want, &w.log)
		}
	}
}

// broken is an engine whose questions about agents fail.
type broken struct{ *world }

func (broken) Agent(context.Context, string) (event.Agent, error) {
	return event.Agent{}, errors.New("gone")
}
func (broken) Agents(context.Context) ([]event.Agent, error) { return nil, errors.New("gone") }
func (broken) Stop(context.Context, string) (bool, error)    { return false, errors.New("gone") }

// idle is one in which no turn is in progress.
type idle struct{ *world }

func (idle) Stop(context.Context, string) (bool, error) { return false, nil }

// What a chat asks about its agent is answered in words, also where there is nothing to say.
func TestWhatIsSaidOfAnAgent(t *testing.T) {
	full := Session{Messages: 3, Tokens: 100, Cost: 0.5, Context: 40, Since: time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local),
		Providers: []string{"p: m", "q: n"}}
	bare := full
	bare.Context, bare.Providers = 0, nil
	session := func(s Session, err error) func(h *Host, w *world) {
		return func(h *Host, _ *world) { h.Session = func(string) (Session, error) { return s, err } }
	}
	const since = "3 messages since 2026-11-20 12:00\n"
	const spent = "total tokens: 100, cost: $0.5000\n/compact shortens it, /reset starts over"
	nobody := func(h *Host, _ *world) { h.Directory, h.Agents = nil, nil }
	strange := func(h *Host, w *world) { h.Agents = broken{w} }
	for _, tt := range []struct {
		text  string
		world func(h *Host, w *world)
		want  string
	}{
		{"/context", session(full, nil), since + "the model was last sent 40 tokens\n" + spent},
		{"/context", session(bare, nil), since + spent},
		{"/context", session(Session{}, nil), "This conversation is empty."},
		{"/context", session(full, errors.New("gone")), "This conversation is empty."},
		{"/context", func(h *Host, _ *world) { h.Session = nil }, "This conversation is empty."},
		{"/model", session(full, nil), "I use `m`.\n\nIn the order in which they are tried:\n\n- p: m\n- q: n"},
		{"/model", session(bare, nil), "I use `m`."},
		{"/model", session(full, errors.New("gone")), "I use `m`."}, {"/model", func(h *Host, _ *world) { h.Session = nil }, "I use `m`."},
		{"/model two", func(h *Host, _ *world) { h.Switch = nil }, "I use `m`."},
		{"/status", func(_ *Host, w *world) { w.agent.Detail, w.agent.Queued = "reads", 0 },
			"**0/** is thinking: reads\nmodel: `m`\ncost so far: $0.0000"},
		{"/status", nobody, "We have not spoken yet."}, {"/status", strange, "I cannot read that right now."},
		{"/stop", nobody, "There is nothing to stop."}, {"/stop", strange, "I could not stop."},
		{"/stop", func(h *Host, w *world) { h.Agents = idle{w} }, "There is nothing to stop."},
		{"/stop", func(*Host, *world) {}, "Stopped. My inbox stays as it is."},
		{"/agents", nobody, "I cannot read that right now."}, {"/agents", strange, "I cannot read that right now."},
		{"/agents", func(_ *Host, w *world) { w.agent.Name = "Ops" }, "- `0/` user, thinking, Ops\n"},
		{"/permissions", func(h *Host, _ *world) { h.Asks = nil }, "No pending approvals."},
		{"/once " + token, func(h *Host, _ *world) { h.Asks = nil }, "I cannot do that right now."},
		{"/mark before", func(*Host, *world) {}, "Checkpoint set: /rewind before goes back to it."},
		{"/rewind", func(*Host, *world) {}, "I undo the newest turn. It stays in my history file."},
		{"/rewind before", func(*Host, *world) {},
			"I go back to before, if it is in this conversation. Everything after it stays in my history file."},
		{"/mark 12", func(*Host, *world) {}, "A checkpoint needs a name that is not a number, for example /mark before."},
		{"/compact", func(*Host, *world) {}, "I will compact this conversation."},
		{"/new", func(*Host, *world) {}, "This is a new conversation. My files and my memory stay."},
	} {
		w := newWorld()
		d := w.desk(Options{}, talker{w})
		host := d.host
		tt.world(&host, w)
		d = New(Options{Settings: Settings{ID: "chat", Allow: []string{"ada"}}}, host, talker{w}, slog.New(slog.DiscardHandler))
		if got := d.says(t, w, post(tt.text)); got != "c1: "+tt.want {
			t.Errorf("%s: %q, want %q", tt.text, got, tt.want)
		}
	}
}

// many is an engine of many agents.
type many struct {
	*world
	n int
}

func (m many) Agents(context.Context) (all []event.Agent, err error) {
	for i := range m.n {
		all = append(all, event.Agent{Handle: fmt.Sprint(i, "/"), Type: "user", State: event.Idle})
	}
	return all, nil
}

// Thirty agents are listed, and of the others how many there are.
func TestALongListOfAgentsHasAnEnd(t *testing.T) {
	for n, want := range map[int]string{0: "There are no agents yet.", maxListed: "", maxListed + 2: "\nand 2 more"} {
		w := newWorld()
		d := w.desk(Options{}, talker{w})
		d.commands.host.Agents = many{w, n}
		got := d.says(t, w, post("/agents"))
		if !strings.HasSuffix(got, want) || strings.Count(got, "user, idle") != min(n, maxListed) ||
			strings.Contains(got, "more") != (n > maxListed) {
			t.Errorf("of %d agents is said %q", n, got)
		}
	}
}

// An agent that many chats share is spoken of also by who has not written yet, and is reached
// where it was written to last, on this platform alone.
func TestAnAgentThatManyShare(t *testing.T) {
	w := newWorld()
	w.agent.ID = "agent1"
	d := w.desk(Options{Settings: Settings{AgentID: "0/", Allow: []string{"ada", "eve"}}}, talker{w})
	eve := Post{Key: "1", From: message.Address{ChannelID: "c9", UserID: "eve"}, Text: "/status"}
	if got := d.says(t, w, eve); !strings.Contains(got, "is thinking") {
		t.Errorf("who has not written is told %q", got)
	}
	eve.Text = "hello"
	d.says(t, w, eve)
	if id, ok := d.who.agent(Post{From: ada}); id != "agent1" || !ok {
		t.Errorf("the agent of all is %q", id)
	}
	if to, ok := d.who.home("agent1"); to.ChannelID != "c9" || !ok {
		t.Errorf("it is reached in %+v", to)
	}
	elsewhere := New(Options{Settings: Settings{ID: "mail"}}, Host{Directory: w}, talker{w}, slog.New(slog.DiscardHandler))
	if to, ok := elsewhere.who.home("agent1"); ok {
		t.Errorf("on another platform it is reached in %+v", to)
	}
	nowhere := New(Options{Settings: Settings{ID: "chat"}}, Host{}, talker{w}, slog.New(slog.DiscardHandler))
	if _, ok := nowhere.who.home("agent1"); ok {
		t.Error("without a directory it is reached")
	}
}

// watching runs a desk until the test has seen enough.
func watching(t *testing.T, w *world, d *Desk, during func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { d.Run(ctx, w.deliver, time.Second) })
	synctest.Wait()
	during()
	cancel()
	run.Wait()
}

// "typing" ends with the turn, and with the agent; the work of an agent's children is shown by
// nobody.
func TestTypingEndsWithTheTurn(t *testing.T) {
	for _, over := range []event.Type{event.TurnFinished, event.AgentSlept, event.AgentEnded, event.ItemDone} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			watching(t, w, w.desk(Options{}, buttons{talker{w}}), func() {
				w.Publish(event.Event{Type: event.TurnStarted, Agent: "agent1"})
				synctest.Wait()
				w.Publish(event.Event{Type: over, Agent: "agent1"})
				time.Sleep(2*typingEvery + time.Second)
				synctest.Wait()
				want := 1
				if over == event.ItemDone { // the turn continues
					want = 3
				}
				if w.typed != want {
					t.Errorf("after %s typing was shown %d times, want %d", over, w.typed, want)
				}
			})
		})
	}
	for name, change := range map[string]func(h *Host, w *world){
		"a child":      func(_ *Host, w *world) { w.agent.ParentAgentID = "parent" },
		"not known":    func(h *Host, w *world) { h.Agents = broken{w} },
		"not its home": func(_ *Host, w *world) { w.agent.ID = "agent2" },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			d := w.desk(Options{}, buttons{talker{w}})
			host := d.host
			change(&host, w)
			d = New(Options{Settings: Settings{ID: "chat", Allow: []string{"ada"}}}, host, buttons{talker{w}},
				slog.New(slog.DiscardHandler))
			watching(t, w, d, func() {
				w.Publish(event.Event{Type: event.TurnStarted, Agent: "agent1"})
				synctest.Wait()
				if w.typed != 0 {
					t.Errorf("%s: typing is shown", name)
				}
			})
		})
	}
}

// What waits when the desk begins is shown at once, and what comes later with its event.
func TestRequestsAreShownAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.asks = []permission.Pending{ask()}
		watching(t, w, w.desk(Options{}, buttons{talker{w}}), func() {
			if said := w.heard(); len(said) != 1 {
				t.Errorf("said %q at the start, want the request", said)
			}
			later := ask()
			later.Token = "bz4a98xxat96iws9zmbrgj3a"
			w.mu.Lock()
			w.asks = append(w.asks, later)
			w.mu.Unlock()
			w.Publish(event.Event{Type: event.PermissionRequested, Agent: "agent1"})
			synctest.Wait()
			if said := w.heard(); len(said) != 1 || !strings.Contains(said[0], later.Token) {
				t.Errorf("said %q, want the later request", said)
			}
		})
	})
}

// Cards that cannot be read are told in the log; that there are none yet is not.
func TestCardsThatCannotBeRead(t *testing.T) {
	for content, told := range map[string]bool{"": false, "{": true, "null": false} {
		w := newWorld()
		if content != "" {
			w.hints = map[string][]byte{cardsFile: []byte(content)}
		}
		d := w.desk(Options{}, buttons{talker{w}})
		d.approvals.cards.put(token, card{})
		if got := strings.Contains(w.log.String(), "cannot read which requests were shown"); got != told {
			t.Errorf("of %q the log says\n%s", content, &w.log)
		}
	}
}

// Who was told that too much waits is told again the next time, after all was taken.
func TestWhoWritesTooMuchIsToldEachTime(t *testing.T) {
	w := newWorld()
	d := w.desk(Options{Settings: Settings{Allow: []string{"eve"}}}, talker{w})
	for round := range 2 {
		w.refuse = inbox.ErrFull
		for n := range maxWaiting + 2 {
			if err := d.Take(t.Context(), w.deliver, from("eve", fmt.Sprint(round, "-", n), "hello")); err != nil {
				t.Fatal(err)
			}
		}
		if said := w.heard(); len(said) != 1 {
			t.Errorf("round %d: told %d times", round, len(said))
		}
		for len(headsOf(d)) > 0 {
			d.waiting.remove(headsOf(d)[0])
		}
	}
}

// A token is sent where one is given, and nowhere else.
func TestAClientSendsItsToken(t *testing.T) {
	var got []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.Header.Get("Authorization")+" "+r.Header.Get("Content-Type"))
		io.WriteString(w, "x")
	}))
	defer s.Close()
	c := NewClient(s.URL)
	defer c.HTTP.CloseIdleConnections()
	for _, bearer := range []string{"", "secret"} {
		if _, err := c.Do(t.Context(), Call{Name: "m", Media: "text/plain", Bearer: bearer}); err != nil {
			t.Fatal(err)
		}
		body, err := c.Download(t.Context(), s.URL, bearer)
		if err != nil {
			t.Fatal(err)
		}
		if data, err := io.ReadAll(body); err != nil || string(data) != "x" {
			t.Errorf("%q, %v", data, err)
		}
		body.Close()
	}
	if want := []string{"POST  text/plain", "GET  ", "POST Bearer secret text/plain", "GET Bearer secret "}; !slices.Equal(got, want) {
		t.Errorf("sent is %q, want %q", got, want)
	}
	if _, err := c.Download(t.Context(), "http://a b/", ""); err == nil {
		t.Error("an address that is none is opened")
	}
}

// A request that needs an owner who cannot be reached is told once, in the log and to whose
// agent it is.
func TestARequestWhoseOwnerCannotBeReached(t *testing.T) {
	w := newWorld()
	d := w.desk(Options{Settings: Settings{Allow: []string{"bob"}}}, talker{w})
	d.who.host.Owners = func(string) ([]string, permission.Set) { return []string{"ada"}, permission.Set{} }
	p := ask()
	p.Owner.UserID = "bob"
	w.asks, w.homeOf = []permission.Pending{p}, "bob"
	for range 3 {
		d.approvals.look(t.Context())
	}
	if said := w.heard(); len(said) != 1 || !strings.HasPrefix(said[0], "c1: This needs an owner's approval") {
		t.Errorf("said %q, want once that an owner is needed", said)
	}
	if n := strings.Count(w.log.String(), "a request waits for an owner, who cannot be reached here"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, &w.log)
	}
}

// Who answered in words is told there, and not once more by the event of their own answer.
func TestAnAnswerInWordsIsToldOnce(t *testing.T) {
	w := newWorld()
	d := w.desk(Options{}, talker{w})
	w.asks = []permission.Pending{ask()}
	d.approvals.look(t.Context())
	w.heard()
	if got := d.says(t, w, post("/deny tz4a98")); got != "c1: Denied." {
		t.Errorf("told %q", got)
	}
	d.watcher.happened(t.Context(), event.Event{Type: event.PermissionDecided, Agent: "agent1",
		Body: event.Asked{Token: token, Decision: "deny", By: "chat:ada"}}, nil)
	if said := w.heard(); len(said) != 0 {
		t.Errorf("told once more: %q", said)
	}
}
