package agents

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/agents/compact"
	"daycare/agents/providers"
	"daycare/engine/crash"
	"daycare/engine/crash/crashtest"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/tools"
	"daycare/tools/hooks"
)

var errSeeded = errors.New("seeded")

// faulty is a mailbox of which one operation fails, for some items.
type faulty struct {
	inbox.Mailbox
	operation string
	fails     func(ids []string) bool
}

func (f faulty) err(operation string, ids ...string) error {
	if operation == f.operation && f.fails(ids) {
		return errSeeded
	}
	return nil
}

func (f faulty) Take(ids ...string) ([]inbox.Item, error) {
	if err := f.err("take", ids...); err != nil {
		return nil, err
	}
	return f.Mailbox.Take(ids...)
}

func (f faulty) Read(id string) (inbox.Item, error) {
	if err := f.err("read", id); err != nil {
		return inbox.Item{}, err
	}
	return f.Mailbox.Read(id)
}

func (f faulty) Done(ids ...string) error {
	if err := f.err("done", ids...); err != nil {
		return err
	}
	return f.Mailbox.Done(ids...)
}

// An inbox that fails ends the agent with the reason, wherever the item is on its way. The
// next life does the work, once.
func TestAnInboxThatFailsEndsTheAgent(t *testing.T) {
	all := func([]string) bool { return true }
	denied := inbox.Item{Kind: message.Permission, Token: "t", Decision: "deny", Tag: "@web"}
	for name, tt := range map[string]struct {
		operation string
		item      inbox.Item
		before    func(item string) []record.Record // what an earlier life recorded
	}{
		"a message is taken":        {"take", inbox.Item{Kind: message.Text, Text: "hello"}, nil},
		"a silent message is taken": {"take", inbox.Item{Kind: message.System, Silent: true, Text: "hello"}, nil},
		"an order is taken":         {"take", inbox.Item{Kind: message.Mark, Text: "here"}, nil},
		"a turn is taken up":        {"take", inbox.Item{Kind: message.Text, Text: "hello"}, begun},
		"a turn without its message": {"take", inbox.Item{Kind: message.Text, Text: "hello"},
			func(item string) []record.Record { return begun(item)[:1] }},
		"a message is done":        {"done", inbox.Item{Kind: message.Text, Text: "hello"}, nil},
		"a silent message is done": {"done", inbox.Item{Kind: message.System, Silent: true, Text: "hello"}, nil},
		"an order is done":         {"done", inbox.Item{Kind: message.Mark, Text: "here"}, nil},
		"a reset is done":          {"done", inbox.Item{Kind: message.Reset}, nil},
		"a decision is done":       {"done", inbox.Item{Kind: message.Permission, Token: "t", Decision: "revoked", Tag: "@web"}, nil},
		"what was closed is done": {"done", inbox.Item{Kind: message.Mark, Text: "here"},
			func(item string) []record.Record { return []record.Record{&record.Mark{Name: "here", Item: item}} }},
		"a recorded decision is read": {"read", denied, func(item string) []record.Record {
			return []record.Record{&record.Permission{Token: "t", Item: item, Event: "deny", Tag: "@web"}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, callHold)
			b.opts.Settings.Queue = Followup // so that no turn takes it later
			tt.item.ID = strings.Repeat("i", 24)
			if _, err := b.box.Accept(t.Context(), tt.item); err != nil {
				t.Fatal(err)
			}
			if tt.before != nil {
				b.cutAfter(tt.before(tt.item.ID)...)
			}
			b.opts.Inbox = faulty{b.box, tt.operation, all}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := b.opts.Run(ctx); !errors.Is(err, errSeeded) {
				t.Fatalf("the agent ended with %v, want the reason", err)
			}
			if tt.operation == "take" && (b.model.calls() > 0 || b.count("turn_end") > 0) {
				t.Errorf("it worked without the item: %d model calls\n%s", b.model.calls(), b.history())
			}
			b.reopen()
			if err := b.until(tt.item.ID); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(b.history(), `"item":"`+tt.item.ID+`"`); n != 1 {
				t.Errorf("the item is in history %d times, want once\n%s", n, b.history())
			}
		})
	}
}

// A message that cannot be taken into the current turn ends the agent; the next life
// reads it.
func TestAMessageThatCannotJoinEndsTheAgent(t *testing.T) {
	h := newHold("hold", tools.ReadOnly)
	b := newBench(t, callHold, h)
	first := b.say("go")
	b.opts.Inbox = faulty{b.box, "take", func(ids []string) bool { return ids[0] != first }}
	ended := make(chan error, 1)
	go func() { ended <- b.opts.Run(t.Context()) }()
	<-h.running
	second := b.say("more")
	h.release <- "r"
	if err := <-ended; !errors.Is(err, errSeeded) {
		t.Fatalf("the agent ended with %v, want the reason", err)
	}
	b.reopen()
	if err := b.until(first, second); err != nil {
		t.Fatal(err)
	}
	if last := b.model.request(b.model.calls() - 1); !strings.Contains(last, "more") {
		t.Errorf("the message is not in the request:\n%s", last)
	}
}

// mumbling are Permits to which nothing can be asked.
type mumbling struct{}

func (mumbling) Ask(string, permission.Owner, permission.Request) (p permission.Pending, fresh bool, err error) {
	return p, false, errSeeded
}
func (mumbling) Find(string, string) (p permission.Pending, ok bool) { return p, false }
func (mumbling) Settle(string, permission.Decision, string, time.Time) (p permission.Pending, err error) {
	return p, errSeeded
}

// A call whose approval cannot be asked for does not run, nor does a turn at its limit continue.
func TestWhatCannotBeAskedForIsNotDone(t *testing.T) {
	ran := false
	tool := asks{bareTool: bareTool{spec: tools.Spec{Name: "tell", Replay: tools.Once}, run: func(context.Context) (tools.Result, error) {
		ran = true
		return tools.Result{}, nil
	}}, need: &permission.Request{Tag: "@exec:rm", Detail: permission.Detail{Command: "rm"}}}
	for name, prepare := range map[string]func(b *bench){
		"a call":               func(*bench) {},
		"the raise of a limit": func(b *bench) { newPurse(b, 0) },
	} {
		b := newBench(t, reportScript, tool)
		prepare(b)
		b.opts.Permits = mumbling{}
		b.say("tell")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := b.opts.Run(ctx); !errors.Is(err, errSeeded) {
			t.Errorf("%s: the agent ended with %v, want the reason", name, err)
		}
		cancel()
		if ran || len(b.texts()) != 0 {
			t.Errorf("%s: the call ran: %v; sent %q", name, ran, b.texts())
		}
	}
}

// No user is asked for a command where the settings deny commands, nor for anything where no answer could come.
func TestWhatSettingsDenyIsNotAskedFor(t *testing.T) {
	for name, tt := range map[string]struct {
		tag    string
		denied bool // commands are, by the settings
		alone  bool // there is no queue
		asked  bool
	}{
		"a command":                {"@exec:rm", false, false, true},
		"a command that is denied": {"@exec:rm", true, false, false},
		"a folder":                 {"@read:/srv", true, false, true},
		"without a queue":          {"@read:/srv", false, true, false},
	} {
		spec := tools.Spec{Name: "tell", Replay: tools.Once}
		tool := asks{bareTool: bareTool{spec: spec, run: func(context.Context) (tools.Result, error) {
			t.Errorf("%s: the call ran", name)
			return tools.Result{}, nil
		}}, need: &permission.Request{Tag: tt.tag, Workdir: "/", Detail: permission.Detail{Command: "rm"}}}
		b := newBench(t, reportScript, tool)
		queue := b.opts.Permits.(*permission.Queue)
		if b.opts.Settings.ExecDenied = tt.denied; tt.alone {
			b.opts.Permits = nil
		}
		b.run()
		b.outcome(b.say("tell"))
		b.halt()
		if asked := len(queue.List()) == 1; asked != tt.asked || strings.Contains(b.history(), "is disabled in the settings") == tt.asked {
			t.Errorf("%s: asked %v, want %v\n%s", name, asked, tt.asked, b.history())
		}
	}
}

// A step that the disk refuses is reported by what needs it, not only by the next one.
func TestAStepThatFailsIsReportedAtOnce(t *testing.T) {
	said := func() *providers.Response { return &providers.Response{Text: "one moment"} }
	background := context.Background()
	for name, do := range map[string]map[string]func(a *agent, t *turn) error{
		"history.write": {
			"a summary": func(a *agent, t *turn) error {
				return a.shortener.summarized(compact.Plan{}, record.Summary{Text: "s"}, "")
			},
			"a mark":       func(a *agent, t *turn) error { return a.intake.close(inbox.Item{}, &record.Mark{}) },
			"a last word":  func(a *agent, t *turn) error { return a.worker.replies.finish(t, record.ReasonDone, nil) },
			"words before": func(a *agent, t *turn) error { return a.worker.replies.interim(t, said(), "why") },
			"a cut call": func(a *agent, t *turn) error {
				return a.worker.hooks.lost(background, t, nil, []record.Record{&record.ToolResult{ToolCallID: "c", Name: "hold"}})
			},
			"a result": func(a *agent, t *turn) error {
				_, err := a.worker.executor.execute(background, background, t, []record.ToolCall{{ID: "c", Name: "none"}})
				return err
			},
			"a hook":        func(a *agent, t *turn) error { _, err := a.worker.hooks.goOn(background, t, "well"); return err },
			"a hook's word": func(a *agent, t *turn) error { _, err := a.worker.hooks.opening(background, t); return err },
		},
		"history.sync": {
			"a summary": func(a *agent, t *turn) error {
				return a.shortener.summarized(compact.Plan{}, record.Summary{Text: "s"}, "")
			},
			"a mark":       func(a *agent, t *turn) error { return a.intake.close(inbox.Item{}, &record.Mark{}) },
			"a reset":      func(a *agent, t *turn) error { return a.reset("", "user", "") },
			"a last word":  func(a *agent, t *turn) error { return a.worker.replies.finish(t, record.ReasonDone, nil) },
			"words before": func(a *agent, t *turn) error { return a.worker.replies.interim(t, said(), "why") },
			"words beside": func(a *agent, t *turn) error { _, err := a.worker.replies.record(t, said()); return err },
			"a missing end": func(a *agent, t *turn) error {
				return a.worker.replies.complete(t, &record.Entry{Rec: &record.Assistant{}})
			},
			"a silent message": func(a *agent, t *turn) error { return a.intake.hear(background, &a.files.self, a.Inbox.Open()) },
			"a stop":           func(a *agent, t *turn) error { return a.journal.suspend("turn") },
		},
	} {
		for what, do := range do {
			t.Run(what+" at "+name, func(t *testing.T) {
				b := newBench(t, callHold)
				b.opts.Outbox = brittle{b, true}
				b.hooking(moments{hooks.AfterTool: always(hooks.Verdict{}), hooks.TurnEnd: always(hooks.Verdict{}),
					hooks.SessionStart: always(hooks.Verdict{Context: "Tuesday"})})
				b.say("hello")
				b.cutAfter(&record.User{Item: "before", Text: "hello"})
				a, err := open(t.Context(), b.opts.options())
				if err != nil {
					t.Fatal(err)
				}
				defer a.close()
				if err := a.lookAround(); err != nil {
					t.Fatal(err)
				}
				work := &turn{self: a.files.self, id: "turn"}
				_, work.clock = watchProgress(background, time.Minute)
				defer work.clock.stop()
				crash.Arm(t, "eio@"+name+"#1")
				if err := do(a, work); !errors.Is(err, disk.ErrFailed) {
					t.Errorf("it is reported as %v", err)
				}
			})
		}
	}
}

// A history that cannot be begun is reported as that, before anything is written into it.
func TestAHistoryThatCannotBeBegunIsReported(t *testing.T) {
	b := newBench(t, callHold)
	a, err := open(t.Context(), b.opts.options())
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	crash.Arm(t, "eio@history.write#1")
	if err := a.journal.begin(); !errors.Is(err, disk.ErrFailed) || a.journal.history.Begun() {
		t.Errorf("it is reported as %v; begun: %v", err, a.journal.history.Begun())
	}
}

// A request that cannot be recorded is reported, whether its hook or it itself was refused by the disk.
func TestARequestThatCannotBeRecordedIsReported(t *testing.T) {
	for _, write := range []string{"1", "2"} {
		b := newBench(t, callHold)
		b.hooking(moments{hooks.Approval: always(hooks.Verdict{})})
		b.cutAfter(&record.User{Item: "before", Text: "hello"})
		a, err := open(t.Context(), b.opts.options())
		if err != nil {
			t.Fatal(err)
		}
		need, err := permission.General("@read:/srv", "to look")
		if err != nil {
			t.Fatal(err)
		}

		work := &turn{self: a.files.self, id: "turn"}
		_, work.clock = watchProgress(t.Context(), time.Minute)
		crash.Arm(t, "eio@history.write#"+write)
		if token, err := a.permits.askOnce(t.Context(), work, need, "sha"); !errors.Is(err, disk.ErrFailed) {
			t.Errorf("write %s: it is reported as %v, with token %q", write, err, token)
		}
		work.clock.stop()
		_ = a.close()
	}
}

// Where history cannot be read, nothing is known from it: no earlier answer, no route and no notice.
func TestNothingIsKnownFromAHistoryThatCannotBeRead(t *testing.T) {
	b := newBench(t, callHold)
	b.cutAfter(&record.User{Item: "before", Text: "hello", Route: &message.Address{Connector: "chat"}},
		&record.Permission{SHA256: "sha", Event: "deny"})
	a, err := open(t.Context(), b.opts.options())
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	path := filepath.Join(b.dir, "history.jsonl")
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700), a.journal.history.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := a.journal.history.Context(); err == nil {
		t.Fatal("the history can be read")
	}

	p, r, n := a.journal.answered("sha", permission.Deny), a.journal.lastRoute(), a.intake.known()
	if p != nil || r != nil || n != nil {
		t.Errorf("known are %+v, %+v and %v", p, r, n)
	}
}

// A decision whose request cannot leave the queue ends the agent, and stays open.
func TestADecisionThatCannotBeSettledStaysOpen(t *testing.T) {
	b := newBench(t, callHold)
	b.opts.Permits = mumbling{}
	if _, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Permission, Token: "t", Decision: "deny", Tag: "@web"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := b.opts.Run(ctx); !errors.Is(err, errSeeded) || b.box.Len() != 1 {
		t.Errorf("the agent ended with %v, %d items are open; want the reason and the decision", err, b.box.Len())
	}
}

// What needs the history says so where it cannot be read or written any more.
func TestWhatNeedsTheHistorySaysThatItFails(t *testing.T) {
	for name, do := range map[string]func(a *agent) error{
		"a request":   func(a *agent) error { _, err := a.requests.build(&turn{}); return err },
		"a rewind":    func(a *agent) error { return a.rewind(inbox.Item{Text: "nowhere"}) },
		"a mark":      func(a *agent) error { return a.intake.close(inbox.Item{}, &record.Mark{}) },
		"a reset":     func(a *agent) error { return a.reset("", "user", "") },
		"a recovery":  func(a *agent) error { return a.recover() },
		"a suspended": func(a *agent) error { return a.journal.suspend("turn") },
		"a summary": func(a *agent) error {
			_, err := a.shortener.shorten(context.Background(), shortening{self: &a.files.self, limit: 1000})
			return err
		},
		"an ended summary": func(a *agent) error { return a.compact(context.Background(), inbox.Item{}) },
		"an edited prompt": func(a *agent) error {
			a.requests.session = "session"
			a.requests.definition.Name = "another"
			return a.requests.lookAtPrompt(&a.files.self)
		},
		"a cut call": func(a *agent) error { return a.worker.executor.cancelled([]record.ToolCall{{ID: "c"}}) },
		"a missing end": func(a *agent) error {
			return a.worker.replies.complete(&turn{}, &record.Entry{Rec: &record.Assistant{}})
		},
		"a silent message": func(a *agent) error { return a.intake.hear(context.Background(), &a.files.self, a.Inbox.Open()) },
		"a turn":           func(a *agent) error { return a.begin(context.Background(), nil) },
		"a changed right": func(a *agent) error {
			a.files.announced, a.files.loaded = &permission.Set{Web: true}, true
			return a.files.announceRights()
		},
		"a first hook": func(a *agent) error {
			a.worker.hooks.hooks = &program{at: moments{hooks.SessionStart: always(hooks.Verdict{})}}
			_, err := a.worker.hooks.opening(context.Background(), &turn{})
			return err
		},
		"a delivery result": func(a *agent) error { a.Results.Put(message.Result{Out: "o", Parts: 1}); return a.deliveries.settle() },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, callHold)
			b.say("hello")
			b.cutAfter(&record.User{Item: "before", Text: "hello"})
			a, err := open(t.Context(), b.opts.options())
			if err != nil {
				t.Fatal(err)
			}
			if err := a.journal.history.Close(); err != nil {
				t.Fatal(err)
			}
			b.edit("history.jsonl", b.history()) // another file, which has to be read
			if err := do(a); err == nil {
				t.Error("it is reported as done")
			}
		})
	}
}

// An idle agent that cannot record which rights a user changed says so, although its history can be read.
func TestAChangedRightThatCannotBeRecordedIsReported(t *testing.T) {
	b := newBench(t, callHold)
	b.cutAfter(&record.User{Item: "before", Text: "hello"})
	a, err := open(t.Context(), b.opts.options())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.lookAround(), a.disturbed(), a.journal.history.Close()); err != nil {
		t.Fatal(err)
	}
	a.files.announced = &permission.Set{Web: true}
	if err := a.disturbed(); err == nil || !strings.Contains(err.Error(), "write history") {
		t.Errorf("it is reported as %v", err)
	}
}

// What has to be recorded waits while the disk is full, until the agent must stop; then that is said.
func TestAStopOnAFullDiskIsReported(t *testing.T) {
	b := newBench(t, callHold)
	ctx, stop := context.WithCancel(t.Context())
	a, err := open(ctx, b.opts.options())
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	stop()
	if err := a.journal.untilRoom(func() error { return disk.ErrFull }); !errors.Is(err, disk.ErrFull) {
		t.Errorf("it is reported as %v", err)
	}
}

// A file of a tool that the disk did not take is not recorded.
func TestAFileOfAToolThatIsNotDurableEndsTheAgent(t *testing.T) {
	b := newBench(t, callHold)
	a, err := open(t.Context(), b.opts.options())
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	name := strings.Repeat("0", 64)
	path := filepath.Join(b.dir, "blobs", name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("whole"), 0o600)); err != nil {
		t.Fatal(err)
	}

	crash.Arm(t, "eio@blob.sync#1")
	r := &record.ToolResult{Name: "hold"}
	err = a.worker.executor.cap(&turn{self: self{tools: b.opts.Tools}, share: 500}, r, &tools.Whole{Blob: name})
	if !errors.Is(err, disk.ErrFailed) || r.Output.Blob != "" {
		t.Errorf("it is reported as %v, and recorded is %q", err, r.Output.Blob)
	}
}

// A history that a user made unreadable is reported by whatever looks at it.
func TestAHistoryThatCannotBeReadIsReported(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(a *agent) error{
		"a look":            func(a *agent) error { return a.journal.refresh("") },
		"a look while idle": func(a *agent) error { return a.disturbed() },
		"a request":         func(a *agent) error { _, err := a.requests.build(&turn{}); return err },
		"a call of the model": func(a *agent) error {
			_, err := a.worker.ask(context.Background(), &turn{})
			return err
		},
	} {
		b := newBench(t, callHold)
		b.cutAfter(&record.User{Item: "before", Text: "hello"})
		a, err := open(t.Context(), b.opts.options())
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(b.dir, "history.jsonl")
		if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
			t.Fatal(err)
		}
		if err := do(a); err == nil || errors.As(err, new(callError)) {
			t.Errorf("%s: it is reported as %v", name, err)
		}
		_ = a.close()
	}
}

// An agent whose history cannot be opened does not run, and says so.
func TestAHistoryThatCannotBeOpenedIsReported(t *testing.T) {
	b := newBench(t, callHold)
	if err := os.Mkdir(filepath.Join(b.dir, "history.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := b.opts.Run(ctx); err == nil || !strings.HasPrefix(err.Error(), "open history: ") {
		t.Errorf("the agent ended with %v", err)
	}
}

// An agent that is stopped in the middle says so where that cannot be recorded.
func TestEachFailedStepOfAStopIsReported(t *testing.T) {
	for _, busy := range []string{"tool", "model"} {
		t.Run("beside a "+busy, func(t *testing.T) {
			crashtest.EachStepFails(t, "eio", func(t *testing.T) func() error {
				h := newHold("hold", tools.ReadOnly)
				b := newBench(t, callHold, h)
				if busy == "model" {
					m := heldModel{b.model, make(chan struct{})}
					b.opts.Model = func(record.Model) Model { return m }
					b.run()
					b.wait(b.say("hello"))
					b.say("more")
					<-m.asked
				} else {
					b.run()
					b.say("go")
					<-h.running
				}
				return func() error {
					b.end()
					err := <-b.done
					b.end = nil
					if err != nil && !errors.Is(err, disk.ErrFailed) {
						t.Errorf("the disk failed, and the agent ends with %v", err)
					}
					return errors.Join(err, b.vol.Err())
				}
			}, excused...)
		})
	}
}

// An orderly stop waits for answers in progress, and says so where their result cannot be
// recorded.
func TestAStopWaitsForAnswersUnderWay(t *testing.T) {
	for _, fails := range []bool{false, true} {
		b := newBench(t, callHold)
		chat := slowChat{b, make(chan message.Promise, 2)}
		b.opts.Outbox = chat
		b.run()
		b.wait(b.say("hello"))
		p := <-chat.promised
		b.end()
		select {
		case err := <-b.done:
			t.Fatalf("the agent ended with %v before its answer arrived", err)
		case <-time.After(20 * time.Millisecond):
		}
		if fails {
			crash.Arm(t, "eio@history.write#1")
		}
		p.Report(message.Result{Out: p.ID, Parts: 1})
		err := <-b.done
		b.end = nil
		if fails != errors.Is(err, disk.ErrFailed) {
			t.Errorf("the agent ended with %v; its disk failed: %v", err, fails)
		}
		if n := b.count("delivery"); n != 1 && !fails {
			t.Errorf("%d deliveries are recorded\n%s", n, b.history())
		}
	}
}

// A result that the run which failed could not record is recorded by the next one, and a
// failure of that is reported.
func TestEachFailedStepOfALateResultIsReported(t *testing.T) {
	out := strings.Repeat("o", 24)
	crashtest.EachStepFails(t, "eio", func(t *testing.T) func() error {
		b := newBench(t, callHold)
		b.opts.Results = message.NewResults()
		b.cutAfter(&record.TurnBegin{Turn: "turn", Items: []string{"i"}, Attempt: 1}, &record.User{Item: "i", Text: "hello"},
			&record.Assistant{Turn: "turn", Text: "well", Finish: record.FinishEndTurn,
				Out: &record.Out{ID: out, To: message.Address{Connector: "chat", ChannelID: "c1"}}},
			&record.TurnEnd{Turn: "turn", Items: []string{"i"}, Reason: record.ReasonDone})
		b.opts.Results.Put(message.Result{Out: out, Parts: 1})
		return func() error {
			err := b.until()
			if err == nil && b.count("delivery") != 1 && b.vol.Err() == nil {
				t.Errorf("it is recorded %d times\n%s", b.count("delivery"), b.history())
			}
			if err == nil && len(b.texts()) != 0 {
				t.Errorf("sent again: %q", b.texts())
			}
			return errors.Join(err, b.vol.Err())
		}
	}, excused...)
}

// Where it cannot be known which messages were answered before, none is answered: it would be
// a second time.
func TestWhatMayHaveBeenAnsweredIsNotAnsweredAgain(t *testing.T) {
	b := newBench(t, callHold)
	item := b.say("hello")
	b.openBox() // by a later life
	older := filepath.Join(b.dir, "history", "000001.jsonl")
	if err := os.MkdirAll(older, 0o700); err != nil { // no file: it cannot be read
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := b.opts.Run(ctx); err == nil || b.model.calls() > 0 {
		t.Fatalf("it ended with %v after %d calls of the model", err, b.model.calls())
	}

	if err := os.Remove(older); err != nil {
		t.Fatal(err)
	}
	b.reopen()
	if err := b.until(item); err != nil {
		t.Error(err)
	}
}

// A start syncs the history that it acts on, and none where there is nothing to act on.
func TestAStartSyncsWhatItActsOn(t *testing.T) {
	open := []record.Record{&record.TurnBegin{Turn: "turn", Items: []string{"i"}, Attempt: 1}, &record.User{Item: "i", Text: "hello"}}
	for name, tt := range map[string]struct {
		left []record.Record
		want bool
	}{"an open turn": {open, true},
		"nothing": {append(open[:2:2], &record.TurnEnd{Turn: "turn", Items: []string{"i"}, Reason: record.ReasonDone}), false}} {
		b := newBench(t, callHold)
		b.cutAfter(tt.left...)
		crash.Arm(t, "eio@history.sync#1")
		if err := b.until(); errors.Is(err, disk.ErrFailed) != tt.want {
			t.Errorf("%s: %v", name, err)
		}
		crash.Arm(t, "")
	}
}

// A line of a history that is broken stays reported while the history cannot be read.
func TestABrokenLineStaysReported(t *testing.T) {
	b := newBench(t, callHold)
	b.cutAfter(&record.User{Item: "before", Text: "hello"})
	a, err := open(t.Context(), b.opts.options())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(b.dir, "history.jsonl")
	a.journal.problems.Set(a.journal.id, path, []finding.Finding{{ID: "broken", Severity: finding.Error, File: path, Line: 2}})
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	a.journal.checkHistory()
	if !a.journal.problems.Has(path) {
		t.Error("nothing is reported any more")
	}
}
