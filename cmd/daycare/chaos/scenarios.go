package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"daycare/cmd/daycare/chaos/platforms"
	"daycare/engine/control"
	"daycare/engine/message"
)

var first = []step{say("a", "first", "hello"), answered(1)}

// Scenarios lists all scenarios.
func Scenarios() []*Scenario { return slices.Concat(conversations(), workspaces()) }

// conversations are about one conversation: messages, tool calls, approvals, deliveries.
func conversations() []*Scenario {
	return []*Scenario{
		{Name: "chat", Steps: []step{say("a", "m1", "hello"), answered(1), say("a", "m2", "hello"), say("a", "m3", "think")}},
		{Name: "waiting", Before: first, Steps: []step{burst("a", "w", "think", 6)}},
		{Name: "tools", Before: first, Steps: []step{say("a", "t1", "look"), answered(1), say("a", "t2", "act")}},
		{Name: "parallel", Before: first, Steps: []step{say("a", "p1", "several"), answered(1), say("a", "p2", "several")}},
		{Name: "steer", Before: first, Steps: []step{say("a", "s1", "slow"), happened("s1"), burst("a", "s2-", "hello", 2)}},
		{Name: "approval", Before: first, Settings: Settings{Asks: true},
			Steps: []step{say("a", "q1", "ask"), decide("once"), happened("approved"), say("a", "q2", "hello")}},
		chatting(platforms.Telegram), chatting(platforms.Matrix), chatting(platforms.WhatsApp),
		{Name: "once", Before: first, Settings: Settings{Asks: true}, Selection: only("permission", "inbox.", "tool."),
			Steps: []step{say("a", "q1", "ask"), decide("once"), calm,
				say("a", "q2", "ask"), decide("deny"), calm}},
		{Name: "always", Before: first, Settings: Settings{Asks: true},
			Steps: []step{say("a", "q1", "ask"), decide("always"), happened("approved")}},
		{Name: "revoke", Before: first, Settings: Settings{Asks: true},
			Selection: only("permission", "state.", "inbox."),
			Steps: []step{say("a", "q1", "ask"), decide("always"), calm,
				say("a", "q2", "ask"), calm, revoke, calm, say("a", "q3", "ask"), decide("deny"), calm}},
		{Name: "deny", Before: first, Settings: Settings{Asks: true}, Selection: only("permission", "inbox."),
			Steps: []step{say("a", "q1", "ask"), decide("deny"), calm, say("a", "q2", "hello")}},
		{Name: "reset", Before: first, Steps: []step{say("a", "r1", "think"), burst("a", "r2-", "hello", 2),
			reset("r3"), say("a", "r4", "hello")}},
		{Name: "inbox-rotation", Before: []step{say("a", "b1", large()), answered(1), say("a", "b2", large()), answered(2)},
			Selection: only("inbox.rotate", "inbox.write", "inbox.sync"),
			Steps:     []step{say("a", "b3", large()), answered(1), say("a", "b4", "hello")}},
		{Name: "history-rotation", Before: append(slices.Clip(first), reset("second"), say("a", "third", "hello"),
			answered(2)), Age: lengthen, Selection: only("history.rotate", "sessions.", "state."),
			Steps: []step{say("a", "h1", "hello"), answered(1), reset("h2"), say("a", "h3", "hello")}},
		{Name: "letters", Before: first, Prepare: letters, Steps: []step{letter("l3"), say("a", "l4", "hello")}},
		{Name: "blob", Before: first, Prepare: longFile, Steps: []step{say("a", "o1", "large"), answered(1), say("a", "o2", "pore")}},
		{Name: "draft", Before: first, Selection: only("draft.", "turn."),
			Steps: []step{say("a", "d1", "recite"), answered(1)}},
		{Name: "refused", Before: first, Platform: Platform{Refuse: 1}, Selection: only("send.", "history.", "turn."),
			Steps: []step{say("a", "c1", "hello"), answered(1)}},
		labour(),
		neighbours(),
	}
}

// workspaces are about agents that start each other, tasks, folders and files.
func workspaces() []*Scenario {
	return []*Scenario{
		{Name: "file", Before: first, Steps: []step{attach("f1")}},
		{Name: "remove", Before: first, Steps: []step{remove}},
		{Name: "background", Before: first, Check: reported,
			Steps: []step{say("a", "b1", "delegate"), happened("b1-child"), say("a", "b2", "hello")}},
		{Name: "spawn", Before: first, Check: reported, Steps: []step{say("a", "b1", "spawn"), happened("b1-child")}},
		{Name: "subagent", Before: first, Steps: []step{say("a", "c1", "research"), answered(1)}},
		{Name: "rewind", Before: first, Check: rewound, Steps: []step{say("a", "m1", "hello"), answered(1), mark("here"),
			say("a", "m2", "hello"), answered(2), rewind("here"), say("a", "m3", "recall"), answered(3)}},
		{Name: "cron", Before: first, Selection: Selection{Clocked: true}, Prepare: pastTask, Check: onceInLedger,
			Steps: []step{ran("cron/once")}},
		{Name: "long-ledger", Before: first, Prepare: longLedger, Check: onceInLedger,
			Selection: Selection{Clocked: true, Only: []string{"runs."}}, Steps: []step{ran("cron/once")}},
		{Name: "heartbeat", Before: first, Selection: Selection{Clocked: true}, Prepare: heartbeatPrompt, Check: onceABeat,
			Steps: []step{ran("heartbeat")}},
		{Name: "fork", Before: first, Check: whole(2), Selection: only("fork.", "folder."),
			Steps: []step{branch("branch"), say("a", "m1", "hello")}},
		{Name: "import", Before: first, Prepare: exported, Check: whole(1), Selection: only("import.", "folder."),
			Steps: []step{bring(), say("a", "m1", "hello")}},
		{Name: "post", Before: first, Command: post(), Steps: []step{say("a", "p2", "hello")}},
		{Name: "doctor", Before: first, Prepare: badLines, Command: repair(), Steps: []step{say("a", "m1", "hello"), ran("cron/once")}},
		{Name: "models", Before: first, Prepare: newModels, Command: refresh(), Steps: []step{say("a", "m1", "hello")}},
		{Name: "edit", Before: first, Check: editStands,
			Steps: []step{say("a", "e1", "hello"), answered(1), edit("e1"), say("a", "e2", "hello")}},
		{Name: "hand-edit", Before: first, After: cutTurn("e1"),
			Steps: []step{say("a", "e1", "hello"), answered(1), say("a", "e2", "hello"), answered(2), say("a", "e3", "hello")}},
		{Name: "crowd", Settings: Settings{Hooks: crowd()}, Selection: Selection{Crowd: true, Only: []string{"turn.closed"}},
			Steps: []step{everybody("hello")}},
		{Name: "agents", Settings: Settings{Hooks: []string{"a", "b", "c"}}, Steps: []step{together(
			burst("a", "a", "think", 2), burst("b", "b", "act", 2), burst("c", "c", "look", 2))}},
	}
}

// only limits the failpoints that a scenario dies at to those with these prefixes.
func only(prefixes ...string) Selection { return Selection{Only: prefixes} }

// chatting: a conversation over a chat platform that fails now and then, with an approval.
func chatting(name string) *Scenario {
	return &Scenario{Name: name, Before: first, Settings: Settings{Asks: true, Chat: name},
		Selection: only("hints.", "waiting.", "inbox.", "permission"),
		Check:     onceEach("m1: I have thought", "m2: I have thought", "m3: I have thought"),
		Steps: []step{chats("m1", "think"), heard("m1: I have thought"), chats("q1", "ask"), presses("approved"),
			chats("m2", "think"), heard("m2: I have thought"), chats("m3", "think"), heard("m3: I have thought")}}
}

// labour: an answer is delivered, and another agent works, while a call runs. The platform
// takes its time until the call of the second turn runs, so that the first answer arrives during it; what
// the agent beside it writes is written over a second later, and while the call runs, also on
// a busy machine.
func labour() *Scenario {
	return &Scenario{Name: "labour", Before: first, Settings: Settings{Hooks: []string{"a", "b"}},
		Platform:  Platform{Hangs: map[string]time.Duration{"a": latestNote}, HangsUntil: effected("t2")},
		Selection: only("history.", "tool.after"),
		Steps: []step{say("a", "t1", "hello"), answered(1), say("a", "t2", "toil"), happenedAfter(1, "t2"),
			idle(1500 * time.Millisecond), noted, say("b", "t3", "hello"), idle(500 * time.Millisecond), ended, say("a", "t4", "hello")}}
}

// neighbours: the chat of one agent hangs until the agents beside it have answered, or for longer than their answers may
// take. So what holds them up is seen, and how quick the machine is decides nothing.
func neighbours() *Scenario {
	others := []string{"b", "c", "d"}
	return &Scenario{Name: "neighbours", Settings: Settings{Hooks: append([]string{"a"}, others...)},
		Platform:  Platform{Hangs: map[string]time.Duration{"a": neighbour + time.Second}, HangsUntil: reached(others...)},
		Selection: only("send."), Check: quick(others...),
		Steps: []step{say("a", "a0", "hello"),
			together(say("a", "a1", "labour"), burst("b", "b", "hello", 4), burst("c", "c", "look", 4), burst("d", "d", "act", 4))}}
}

// crowd are the names of many hooks.
func crowd() (hooks []string) {
	for i := range 40 {
		hooks = append(hooks, fmt.Sprintf("h%d", i))
	}
	return hooks
}

// everybody says something on each hook at the same time.
func everybody(text string) step {
	var all []step
	for _, hook := range crowd() {
		all = append(all, say(hook, hook+"m", text))
	}

	return together(all...)
}

// reported: the agent that was started told the one that started it what came of it. One
// that could not be started, as on a full disk, has nothing to tell: its maker knows.
func reported(_ *user, v view) error {
	for _, a := range v.agents {
		for _, l := range a.history {
			if l.Type == "tool_result" && l.Status == "error" && slices.Contains([]string{"spawn", "start_background_agent"}, l.Name) {
				return nil
			}
			if l.Type == "user_message" && l.Origin != "" && strings.Contains(l.Text, "b1-child did it") {
				return nil
			}
		}
	}

	return errors.New("never came: the report of the agent that was started")
}

// large makes a message of which three are more than an inbox holds before it is
// rotated. It is made when it is wanted: every command would pay for a variable.
func large() string { return "hello " + strings.Repeat("lorem ipsum ", 34_000) }

func decide(decision string) step {
	return func(ctx context.Context, u *user) error { return u.decide(ctx, decision) }
}

func revoke(ctx context.Context, u *user) error { return u.revoke(ctx) }

func reset(key string) step {
	return func(ctx context.Context, u *user) error {
		return u.tell(ctx, "0/", key, "reset", control.Message{Kind: message.Reset})
	}
}

// longFile is one that a tool cannot show whole.
func longFile(u *user) error {
	text := strings.Repeat(strings.Repeat("lorem ipsum ", 8)+"\n", 600)
	return os.WriteFile(filepath.Join(filepath.Dir(u.root), "long.txt"), []byte(text), 0o600)
}

// letters are in the slot before the daemon starts; one brings a file.
func letters(u *user) error {
	if err := u.drop("0-__one.md", "l1 hello from a script", saying{key: "l1", texts: []string{"l1 hello from a script"}}); err != nil {
		return err
	}
	note := filepath.Join(filepath.Dir(u.root), "note.txt")
	if err := os.WriteFile(note, []byte("attached"), 0o600); err != nil {
		return err
	}

	return u.drop("two.json", fmt.Sprintf(`{"text": "l2 hello", "files": [%q]}`, note),
		saying{key: "l2", texts: []string{"l2 hello"}, files: map[string]string{"note.txt": "attached"}})
}

// letter drops one while the daemon runs.
func letter(key string) step {
	return func(_ context.Context, u *user) error {
		return u.drop("0-__"+key+".json", fmt.Sprintf(`{"id": "lettertothedaycare%06d", "text": "%s hello"}`, len(key), key),
			saying{key: key, texts: []string{key + " hello"}})
	}
}

// attach sends a message with a file, which is kept before the message is.
func attach(key string) step {
	return func(ctx context.Context, u *user) error {
		return u.tell(ctx, "0/", key, "user_message", control.Message{Text: key + " hello",
			Files: []control.File{{Name: "a.txt", Data: []byte("attached")}}})
	}
}

// remove makes an agent and removes it.
func remove(ctx context.Context, u *user) error {
	const name = "short-lived"
	err := u.ask(ctx, func(c *control.Client) error {
		if _, err := c.Agent(ctx, name); !errors.Is(err, message.ErrUnknownAgent) {
			return err
		}
		_, err := c.Create(ctx, control.NewAgent{Type: "permanent", Name: name})
		return err
	})
	if err != nil {
		return err
	}

	return u.ask(ctx, func(c *control.Client) error {
		_, err := c.Remove(ctx, name, true)
		if errors.Is(err, message.ErrUnknownAgent) {
			return nil
		}
		return err
	})
}

// cutTurn removes the turn of a message from the history, once it is finished and
// another followed it: what a user removed in the middle must not come back.
func cutTurn(key string) func(u *user) error {
	return func(u *user) error {
		s := u.byKey[key]
		files, err := agentFiles(u.root, nil)
		if err != nil || s == nil || !s.accepted || s.removed {
			return err
		}

		for _, a := range files {
			if kept, ok := a.withoutTurn(s.item); ok {
				u.mu.Lock()
				s.removed = true
				u.mu.Unlock()
				u.note("removed", key)
				path := filepath.Join(a.dir, "history.jsonl")
				return errors.Join(os.WriteFile(path, kept, 0o600), u.settled(path))
			}
		}

		return nil
	}
}
