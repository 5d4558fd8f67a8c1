package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"daycare/agents/providers"
	"daycare/agents/providers/scripted"
	"daycare/cmd/daycare/daemon"
	"daycare/cmd/daycare/show"
	"daycare/cmd/daycare/term"
	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/crash"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/workspace"
)

// Simulate plays a workspace in virtual time.
func Simulate(c *term.App) *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use: "simulate SCRIPT", Short: "Simulate days of a workspace in seconds: what it would cost, what it would ask",
		Long: "Simulate a copy of this workspace in virtual time: its agents, scheduled tasks, heartbeat and budgets,\n" +
			"with a scripted model in place of each model. SCRIPT (YAML) sets the start and the duration, what users\n" +
			"say and when, when a provider is down and when the machine is off. The output shows what it would cost at\n" +
			"the models' prices, how much each agent would work, and which approvals it would request.\n\n" +
			"The workspace is not touched, nothing is sent, and agents have no network access. daycare estimates\n" +
			"tokens from the length of each request, unless the scripted model gives a number.",
		Example: "  daycare simulate week.yaml\n  daycare simulate week.yaml --json",
		Args:    term.Words(0, "the file of the script"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := interruptible(cmd.Context(), c)
			defer cancel()
			return simulate(ctx, c, args[0], keep)
		},
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the simulated workspace, and print where it is")

	return cmd
}

func simulate(ctx context.Context, c *term.App, path string, keep bool) (err error) {
	data, err := ownFile(path, maxSimScript)
	if err != nil {
		return err
	}
	script, err := readSimScript(path, data, time.Now())
	if err != nil {
		return &term.Problem{Code: fault.ExitUsage, Err: err}
	}
	at, err := c.MadePlace()
	if err != nil {
		return err
	}
	where, err := newDouble(at, script)
	defer func() {
		if keep && where.dir != "" {
			c.Note("the simulated workspace is in %s", where.dir)
			return
		}
		err = errors.Join(err, where.remove())
	}()
	if err != nil {
		return err
	}

	began := time.Now()
	s := &simulation{script: script, where: where, agenda: script.agenda(), session: &session{seen: map[string]bool{}},
		outages: &outages{}, tally: newTally(script.from)}
	s.clock = crash.Simulate(script.from)
	defer s.clock.Stop()
	if err := s.run(ctx); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}

	return s.report(c, time.Since(began))
}

// A simulation is a workspace whose time is moved from one event to the next.
type simulation struct {
	script  simScript
	where   throwaway
	clock   *crash.Virtual
	agenda  []agendum // that is still to come, in order
	outages *outages

	*session
	settled func() (seen bool, running int)
	stop    func() error // of the engine; nil: it does not run
	tally
}

// run plays the script to its end.
func (s *simulation) run(ctx context.Context) (err error) {
	if err := s.start(ctx); err != nil {
		return err
	}
	defer func() {
		if s.stop != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	end := s.script.from.Add(s.script.length)
	for {
		if err := s.calm(ctx); err != nil {
			return err
		}
		at := end
		if next, ok := s.clock.Next(); ok && next.Before(at) {
			at = next
		}
		if len(s.agenda) > 0 && s.agenda[0].at.Before(at) {
			at = s.agenda[0].at
		}
		if !at.Before(end) {
			break
		}
		s.steps++
		s.clock.Move(at)
		for len(s.agenda) > 0 && !s.agenda[0].at.After(s.clock.Now()) {
			now := s.agenda[0]
			s.agenda = s.agenda[1:]
			if err := now.do(ctx, s); err != nil {
				return err
			}
		}
	}

	return s.look(ctx)
}

// start starts the engine of the workspace.
func (s *simulation) start(ctx context.Context) (err error) {
	o := daemon.Options{Place: s.where.at(), Provider: s.provider, Alone: true}
	s.client, s.settled, s.stop, err = daemon.Watched(ctx, o)
	if err != nil {
		return fmt.Errorf("start the engine of the simulation: %w", err)
	}

	return nil
}

// later adds something that happens after a while.
func (s *simulation) later(after time.Duration, do func(context.Context, *simulation) error) {
	at := s.clock.Now().Add(after)
	i, _ := slices.BinarySearchFunc(s.agenda, at, func(a agendum, t time.Time) int { return cmp.Or(a.at.Compare(t), -1) })
	s.agenda = slices.Insert(s.agenda, i, agendum{at, do})
}

// happens makes an event of the script happen.
func (s *simulation) happens(ctx context.Context, e simEvent) error {
	switch {
	case e.Fault != nil:
		s.outages.add(*e.Fault, s.clock.Now().Add(e.Fault.length))
		return nil
	case e.Off != "":
		if err := s.stop(); err != nil {
			return err
		}
		s.stop = nil
		s.clock.Forget()
		s.clock.Move(s.clock.Now().Add(e.off))
		return s.start(ctx)
	}
	ref := e.To
	if ref == "" {
		a, err := s.client.Create(ctx, control.NewAgent{Connector: "terminal", ChannelID: "default"})
		if err != nil {
			return err
		}
		ref = a.ID
	}
	_, err := s.client.Send(ctx, ref, control.Message{Text: e.Say})

	return term.About(err, "send to agent", ref)
}

// stuckAfter ends a simulation in which nothing happens any more, in real time.
const stuckAfter = time.Minute

// calm waits until nothing can happen any more before the time moves, and takes up what agents ask.
func (s *simulation) calm(ctx context.Context) error {
	give, quiet := time.Now().Add(stuckAfter), 0
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		// In the order in which one causes the next, so that nothing moves on unseen between two looks.
		atWork := s.clock.Busy()
		seen, running := s.settled()
		busy, sleeping, err := s.busy(ctx)
		if err != nil {
			return err
		}
		asks, err := s.takeUp(ctx)
		switch {
		case err != nil:
			return err
		case atWork || !seen || asks > 0:
			quiet = 0
		case busy == 0 && sleeping == 0 && running == 0:
			return nil
		case busy > 0 && busy == sleeping: // all of them wait for a later time
			if quiet++; quiet > 3 {
				return nil
			}
		default:
			quiet = 0
		}
		if time.Now().After(give) {
			return fmt.Errorf("the simulation is stuck at %s: %s of agents, %d of them waiting, and %s",
				s.clock.Now().Format(time.DateTime), term.Plural(busy, "turn", "turns"), sleeping,
				term.Plural(running, "scheduled run", "scheduled runs"))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// busy is how many agents work, and how many of them wait for a later time.
func (s *simulation) busy(ctx context.Context) (busy, sleeping int, err error) {
	sleeping = s.clock.Sleeping()
	agents, err := s.client.Agents(ctx)
	for _, a := range agents {
		if works(a) {
			busy++
		}
	}

	return busy, sleeping, err
}

// takeUp takes up new requests for approval, and has them answered as the script says. n is 0 if there is nothing new.
func (s *simulation) takeUp(ctx context.Context) (n int, err error) {
	asks, err := s.client.Permissions(ctx)
	if len(asks) > 0 && !s.clock.Waits("approvals") {
		n++ // their end is not waited for yet
	}
	for _, a := range asks {
		if s.seen[a.Token] {
			continue
		}
		n++
		s.seen[a.Token] = true
		s.approvals = append(s.approvals, approval{At: s.clock.Now(), Agent: handle(ctx, s.client, a.AgentID), Permission: a.Tag})
		if s.script.Answers == "none" {
			continue
		}
		i := len(s.approvals) - 1
		s.later(s.script.pending, func(ctx context.Context, s *simulation) error { return s.decide(ctx, a, i) })
	}

	return n, err
}

// decide answers a request, unless it was withdrawn or has expired.
func (s *simulation) decide(ctx context.Context, a event.Ask, i int) error {
	decision := "deny"
	held := a.Kind != "command" || a.Sandbox != "none" // else it would run on this machine as it is
	if s.script.Answers == "allow" && held && !show.IsBudget(a) {
		decision = "once"
	}
	err := s.client.Decide(ctx, a.Token, decision, "")
	if err == nil {
		s.approvals[i].Answer = decision
		return nil
	}
	pending, lerr := s.client.Permissions(ctx)
	if lerr == nil && !slices.ContainsFunc(pending, func(one event.Ask) bool { return one.Token == a.Token }) {
		return nil
	}

	return fmt.Errorf("answer approval request: %w", err)
}

// provider makes the model that answers for a provider of the settings.
func (s *simulation) provider(_ workspace.Place, p config.Provider, _ func() string) (providers.Provider, error) {
	o := scripted.Options{ID: p.ID, Model: p.Model}
	var path string
	switch {
	case s.script.Script == nil:
	case json.Unmarshal(s.script.Script, &path) != nil:
		o.Path, o.Source = s.script.file+" (script)", s.script.Script
	case filepath.IsAbs(path):
		o.Path = path
	default:
		o.Path = filepath.Join(filepath.Dir(s.script.file), path)
	}
	player, err := scripted.New(o)
	if err != nil {
		return nil, err
	}

	return simulated{player, s.outages}, nil
}

// outages are the faults of providers.
type outages struct {
	mu  sync.Mutex
	all []struct {
		outage
		until time.Time
	}
}

func (o *outages) add(one outage, until time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, struct {
		outage
		until time.Time
	}{one, until})
}

// status is the error that a provider answers with now; 0: it works.
func (o *outages) status(provider string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := crash.Now()
	for _, one := range o.all {
		if (one.Provider == "" || one.Provider == provider) && now.Before(one.until) {
			return cmp.Or(one.Status, 503)
		}
	}

	return 0
}

// A simulated provider is down when the script says so.
type simulated struct {
	*scripted.Provider
	outages *outages
}

// Stream answers, or fails.
func (p simulated) Stream(ctx context.Context, req *providers.Request) iter.Seq[providers.Event] {
	status := p.outages.status(p.ID())
	if status == 0 {
		return p.Provider.Stream(ctx, req)
	}
	source := fmt.Appendf(nil, "rules: [ { reply: [ { fault: { status: %d } } ] } ]", status)
	down, err := scripted.New(scripted.Options{ID: p.ID(), Source: source})
	if err != nil {
		return func(yield func(providers.Event) bool) { yield(providers.Error{Err: err}) }
	}

	return down.Stream(ctx, req)
}
