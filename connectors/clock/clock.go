package clock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"time"

	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/schedule"
)

// A Task is what a task's own agent is made of.
type Task struct {
	ID    string // the agent's id
	Name  string
	Model string // "": the usual one
	Dir   string // where it works, absolute
	Maker string // the agent that made the task; "": a user did
}

// Agents is what the clock needs of the engine.
type Agents interface {
	// Cron makes the agent of a task, or finds it and brings its model up to date.
	Cron(ctx context.Context, t Task) (id string, err error)
	// Heartbeat makes or finds the agent of the heartbeat.
	Heartbeat(ctx context.Context) (id string, err error)
	// Find is the id of an agent by whatever a user calls it. Errors wrap
	// message.ErrUnknownAgent if there is none.
	Find(ref string) (id string, err error)
	// Busy reports whether an agent has work in progress or waiting.
	Busy(id string) bool
	// Foreground is the agent that a user wrote to last, found on disk.
	Foreground() (id string, ok bool)
}

// An End is how an item ended.
type End struct {
	Reason string // of the turn's end; "dropped" for an item that was taken away
	Text   string // the final answer
	Error  string
	Source string // what the turn had read from outside; "": nothing
}

// An AwaitFunc waits for the end of an item.
type AwaitFunc func(ctx context.Context, agent, item string) (End, error)

// A Clock hands firings to agents. It may be used from many goroutines at once.
type Clock struct {
	agents  Agents
	deliver message.Deliver
	await   AwaitFunc
	log     *slog.Logger
}

// New makes a Clock.
func New(agents Agents, deliver message.Deliver, await AwaitFunc, log *slog.Logger) *Clock {
	return &Clock{agents: agents, deliver: deliver, await: await, log: log}
}

// Target makes sure that the agent of a firing is there: it is made at the first. While
// the disk does not let it be made it is tried again: what is due waits for room, as its
// message would.
func (c *Clock) Target(ctx context.Context, f schedule.Firing) (string, error) {
	for pause := offerFirst; ; pause = min(2*pause, offerLast) {
		agent, err := c.agent(ctx, f)
		if !errors.As(err, new(syscall.Errno)) {
			return agent, err
		}
		c.log.Warn("cannot create the agent of a scheduled run, retrying", "task", f.Slug, "err", err, "again", pause)

		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(pause):
		}
	}
}

func (c *Clock) agent(ctx context.Context, f schedule.Firing) (string, error) {
	switch {
	case f.Kind == schedule.Heartbeat:
		return c.agents.Heartbeat(ctx)
	case f.Agent != "":
		return c.agents.Find(f.Agent)
	}

	return c.agents.Cron(ctx, Task{ID: f.TaskID, Name: f.Name, Model: f.Model, Dir: f.Dir, Maker: f.Maker})
}

// Due puts a firing into its agent's inbox and waits for its end.
func (c *Clock) Due(ctx context.Context, f schedule.Firing) (schedule.Result, error) {
	agent, err := c.Target(ctx, f)
	if err != nil {
		return schedule.Result{}, err
	}
	if f.Kind == schedule.Heartbeat && !f.Resumed {
		if c.agents.Busy(agent) {
			return schedule.Result{Outcome: schedule.Skipped, Reason: "busy: the heartbeat's agent is in a turn"}, nil
		}

		// An empty context: one line repeats the answer of the last run.
		reset := message.Incoming{Agent: agent, Kind: message.Reset, Dedupe: f.Dedupe + "/reset", Text: "a new heartbeat"}
		if _, err := c.offer(ctx, reset); err != nil {
			return schedule.Result{}, err
		}
	}

	receipt, err := c.offer(ctx, message.Incoming{Agent: agent, Kind: message.System, Origin: string(f.Kind),
		Dedupe: f.Dedupe, Text: text(f), Source: f.Source})
	if err != nil {
		return schedule.Result{}, err
	}

	end, err := c.await(ctx, receipt.Agent, receipt.Item)
	if err != nil {
		return schedule.Result{}, fmt.Errorf("wait for the run: %w", err)
	}

	res := judge(end)
	res.Item = receipt.Item
	return res, nil
}

// Pauses between offers of a message that cannot be taken now.
const (
	offerFirst = 2 * time.Second
	offerLast  = time.Minute
)

// offer delivers a message, again and again while there is no room for it.
func (c *Clock) offer(ctx context.Context, in message.Incoming) (message.Receipt, error) {
	for pause := offerFirst; ; pause = min(2*pause, offerLast) {
		receipt, err := c.deliver(ctx, in)
		if err == nil || errors.Is(err, message.ErrUnknownAgent) || errors.Is(err, inbox.ErrTooLarge) {
			return receipt, err
		}
		c.log.Warn("scheduled message not accepted, retrying", "agent", in.Agent, "err", err, "again", pause)

		select {
		case <-ctx.Done():
			return receipt, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// judge makes the outcome of a run of how its item ended.
func judge(end End) schedule.Result {
	res := schedule.Result{Outcome: schedule.Ran, Text: end.Text, Source: end.Source, Nothing: nothing(end.Text)}
	switch end.Reason {
	case "done":
	case "waiting": // it continues when a user or a child has answered
		res.Reason = "waiting for an answer"
	case "dropped", "reset":
		res.Outcome, res.Reason = schedule.Skipped, "removed from the inbox by hand"
	default:
		res.Outcome, res.Reason = schedule.Failed, end.Reason
		if end.Error != "" {
			res.Reason += ": " + firstLine(end.Error)
		}
	}

	return res
}

// nothing reports an answer that says that there is nothing to report.
func nothing(text string) bool {
	s := strings.TrimSuffix(strings.Trim(strings.TrimSpace(text), "\"'`*"), ".")
	s = strings.Trim(s, "\"'`*")
	return s == "HEARTBEAT_OK" || s == "NO_MESSAGE"
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	const most = 200
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}

	return s
}

// Say tells the owner something by the agent that a user wrote to last. key makes
// saying it again harmless.
func (c *Clock) Say(ctx context.Context, key, text string) error {
	agent, ok := c.agents.Foreground()
	if !ok {
		c.log.Warn("no agent to notify", "text", text)
		return nil
	}
	_, err := c.offer(ctx, message.Incoming{Agent: agent, Kind: message.System, Origin: "heartbeat", Dedupe: key,
		Text: text + "\nTell the user so in one or two sentences."})

	return err
}
