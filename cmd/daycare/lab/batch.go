package lab

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"daycare/agents/trial"
	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/workspace"
)

// batchOptions are the flags of batch.
type batchOptions struct {
	agent       string
	out         string
	concurrency int
	budget      float64
	now         bool
	metered     bool // a budget or a number of lines at a time was given
}

// Batch asks an agent many things, each in a conversation of its own.
func Batch(c *term.App) *cobra.Command {
	var o batchOptions
	cmd := &cobra.Command{
		Use: "batch PROMPTS.jsonl", Short: "Ask an agent many things, each in its own conversation",
		Long: "Answer each line of a file: {\"id\":\"…\",\"prompt\":\"…\"}, {\"prompt\":\"…\"} or a text in quotes. Each\n" +
			"line gets its own agent, which moves to the trash when its answer is in the results. Approval requests are\n" +
			"denied.\n\n" +
			"After an interruption or a kill, run it again to continue: a line that was answered is not asked again,\n" +
			"and one that was accepted is not accepted twice. The exit code is 1 if a line failed or the budget is used\n" +
			"up; failed lines are results, too.\n\n" +
			"If the provider has batch: true in the settings, daycare submits all lines to the vendor's batch API,\n" +
			"without tools: for half the price, within a day. --now asks at once instead.",
		Example: "  daycare batch questions.jsonl --agent Ops --concurrency 8 --budget 5\n" +
			"  daycare batch questions.jsonl --out answers.jsonl",
		Args: term.Words(0, "the file of prompts"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.concurrency < 1 || o.budget < 0 {
				return term.Usage(cmd, "--concurrency must be at least 1, and --budget must not be negative")
			}
			o.metered = cmd.Flags().Changed("budget") || cmd.Flags().Changed("concurrency")
			ctx, cancel := interruptible(cmd.Context(), c)
			defer cancel()
			return batch(ctx, c, args[0], o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.agent, "agent", "", "answer as this `AGENT`, with its prompt and model (default: a new agent)")
	flags.StringVar(&o.out, "out", "", "write the results to `FILE` (default: PROMPTS.results.jsonl)")
	flags.IntVar(&o.concurrency, "concurrency", 4, "answer `N` lines at a time")
	flags.Float64Var(&o.budget, "budget", 0, "start no more lines once all lines together have cost this many `USD`; 0: no limit")
	flags.BoolVar(&o.now, "now", false, "ask at once, even if the provider answers batches for less")
	_ = cmd.RegisterFlagCompletionFunc("agent", c.AgentRefs)

	return cmd
}

// A batching is one run of a batch.
type batching struct {
	app    *term.App
	client *control.Client
	who    subject
	name   string // of the batch, in the addresses of its agents
	budget float64

	mu      sync.Mutex
	results *ledger
	failed  int
	left    int // lines that the budget did not allow
}

func batch(ctx context.Context, c *term.App, path string, o batchOptions) (err error) {
	data, err := ownFile(path, maxPrompts)
	if err != nil {
		return err
	}
	questions, err := readPrompts(path, data)
	if err != nil {
		return &term.Problem{Code: fault.ExitUsage, Err: err}
	}
	if o.out == "" {
		o.out = strings.TrimSuffix(path, filepath.Ext(path)) + ".results.jsonl"
	}
	out, err := filepath.Abs(o.out)
	if err != nil {
		return err
	}
	results, err := openLedger(out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, results.log.Close()) }()

	at, err := c.MadePlace()
	if err != nil {
		return err
	}
	if vended, err := vendedBatch(ctx, c, at, questions, results, out, o); vended || err != nil {
		return err
	}

	return askNow(ctx, c, at, questions, results, out, o)
}

// vendedBatch has a vendor answer the lines, if the settings say so; vended is false if they do not.
func vendedBatch(ctx context.Context, c *term.App, at workspace.Place, questions []question, results *ledger, out string,
	o batchOptions) (vended bool, err error) {
	l, err := newLaboratory(ctx, &suite{app: c, at: at})
	if err != nil {
		return false, err
	}
	who, err := l.subject(ctx, trial.Test{Given: trial.Given{Agent: o.agent}, File: out})
	if err != nil {
		return false, err
	}
	list := strings.TrimSuffix(out, filepath.Ext(out)) + handedSuffix
	p, ok := l.vendorOf(who)
	switch {
	case ok && !o.now && o.metered:
		err := fmt.Errorf("%s answers in batches: cost and order are known only at the end", p.ID)
		return false, &term.Problem{Code: fault.ExitUsage, Err: err, Do: "leave out --budget and --concurrency, or add --now"}
	case ok && !o.now:
		return true, vend(ctx, c, l, who, p, questions, results, list)
	case !term.Exists(list):
		return false, nil
	}
	h, err := openHanded(results.vol, list)
	if err != nil {
		return false, err
	}
	if err := h.log.Close(); err != nil || len(h.open) == 0 {
		return false, err
	}

	return false, &term.Problem{Code: fault.ExitFailure,
		Err: errors.New("lines were already submitted to a vendor, and would be paid for twice"),
		Do:  "collect their answers: leave out --now, and set batch: true for the provider in the settings   (or remove " + list + ")"}
}

// askNow has agents of this workspace answer the lines.
func askNow(ctx context.Context, c *term.App, at workspace.Place, questions []question, results *ledger, out string,
	o batchOptions) (err error) {
	client, err := c.Dial(ctx, at)
	if errors.Is(err, control.ErrNotRunning) {
		var stop func() error
		if client, stop, err = c.InProcess(ctx, at); err == nil {
			defer func() { err = errors.Join(err, stop()) }()
		}
	}
	if err != nil {
		return err
	}

	b := &batching{app: c, client: client, budget: o.budget, results: results,
		name: fmt.Sprintf("batch-%x", sha256.Sum256([]byte(out)))[:14]}
	l := &laboratory{suite: &suite{at: at}, client: client}
	if b.who, err = l.subject(ctx, trial.Test{Given: trial.Given{Agent: o.agent}, File: out}); err != nil {
		return err
	}
	if err := b.sweep(ctx); err != nil {
		return err
	}

	return b.run(ctx, questions, o.concurrency)
}

// run answers the lines that have no answer yet.
func (b *batching) run(ctx context.Context, questions []question, n int) error {
	before := len(b.results.done)
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(n)
	for _, q := range questions {
		if _, done := b.results.find(&b.mu, q.ID); done {
			continue
		}
		group.Go(func() error {
			if inner.Err() != nil {
				return context.Cause(inner)
			}
			if !b.affordable() {
				return nil
			}
			return b.answer(inner, q)
		})
	}
	if err := group.Wait(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}

	return b.report(len(questions), before)
}

func (l *ledger) find(mu *sync.Mutex, id string) (answered, bool) {
	mu.Lock()
	defer mu.Unlock()
	a, ok := l.done[id]
	return a, ok
}

// affordable reports whether another line can begin.
func (b *batching) affordable() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.budget > 0 && b.results.cost >= b.budget {
		b.left++
		return false
	}

	return true
}

// address is where the agent of a line is found again.
func (b *batching) address(id string) string {
	return fmt.Sprintf("%s-%x", b.name, sha256.Sum256([]byte(id)))[:len(b.name)+17]
}

// answer asks one line and writes its result. What was asked before a kill is not asked again:
// the address finds the agent, the key the message.
func (b *batching) answer(ctx context.Context, q question) error {
	began := time.Now()
	agent, err := b.agent(ctx, q)
	if err != nil {
		return fmt.Errorf("line %d: %w", q.line, err)
	}
	s := &session{client: b.client, agent: agent, seen: map[string]bool{}, due: map[string]string{}, family: true}
	if _, err = b.client.Stream(ctx, agent, control.Message{Text: q.Prompt, Dedupe: "batch:" + q.ID}, nil); err == nil {
		if err = s.settle(ctx); err == nil {
			err = s.read(ctx)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("line %d: %w", q.line, err)
	}

	r := s.run
	a := answered{ID: q.ID, Line: q.line, Prompt: q.Prompt, Answer: r.Answer, Reason: r.Reason, Error: r.Error, Cost: r.Cost,
		Rounds: r.Rounds, Input: r.Input, Output: r.Output, MS: time.Since(began).Milliseconds()}
	b.mu.Lock()
	if err = b.results.write(a); err == nil && !slices.Contains([]string{"done", "waiting"}, a.Reason) {
		b.failed++
	}
	b.mu.Unlock()
	if err != nil {
		return err
	}
	if _, err := b.client.Remove(ctx, agent, true); err != nil {
		return fmt.Errorf("remove the agent of line %d: %w", q.line, err)
	}

	return nil
}

// agent makes the agent of a line, or finds it.
func (b *batching) agent(ctx context.Context, q question) (string, error) {
	a, err := b.client.Create(ctx, control.NewAgent{Connector: "terminal", ChannelID: b.address(q.ID), Name: "batch " + q.ID})
	if err != nil {
		return "", fmt.Errorf("make agent: %w", err)
	}
	if prompt := b.who.descriptor.SystemPrompt; prompt != "" {
		if err := b.prompted(ctx, a.ID, prompt); err != nil {
			return "", fmt.Errorf("make agent: %w", err)
		}
	}

	who := b.who
	return a.ID, who.answersWith(ctx, b.client, a.ID)
}

// prompted gives an agent the system prompt of another.
func (b *batching) prompted(ctx context.Context, id, prompt string) error {
	data, hash, err := b.client.Folders().ReadFile(ctx, id, "descriptor.json")
	if err != nil {
		return err
	}
	members := map[string]any{}
	if err := json.Unmarshal(data, &members); err != nil {
		return err
	}
	if members["systemPrompt"] == prompt {
		return nil
	}
	members["systemPrompt"] = prompt
	if data, err = json.MarshalIndent(members, "", "  "); err != nil {
		return err
	}

	return b.client.Folders().WriteFile(ctx, id, "descriptor.json", data, hash)
}

// sweep removes agents of lines that were answered right before a kill.
func (b *batching) sweep(ctx context.Context) error {
	agents, err := b.client.Agents(ctx)
	if err != nil {
		return err
	}
	old := map[string]bool{}
	for id := range b.results.done {
		old[b.address(id)] = true
	}
	for _, a := range slices.DeleteFunc(agents, func(a event.Agent) bool { return !old[a.ChannelID] }) {
		if _, err := b.client.Remove(ctx, a.ID, true); err != nil {
			return fmt.Errorf("remove %s: %w", a.Handle, err)
		}
	}

	return nil
}

// report prints the end of a run.
func (b *batching) report(lines, before int) error {
	answered := len(b.results.done)
	if b.app.JSON {
		if err := b.app.PrintJSON(map[string]any{"lines": lines, "answered": answered, "now": answered - before, "failed": b.failed,
			"left": b.left, "cost": b.results.cost}); err != nil {
			return err
		}
	} else {
		b.app.Print("%d of %s answered, %d now, %d failed, %s\n", answered, term.Plural(lines, "line", "lines"), answered-before, b.failed,
			term.Money(b.results.cost))
	}
	switch {
	case b.left > 0:
		return &term.Problem{Code: fault.ExitFailure, Err: fmt.Errorf("the budget of $%v is used up: %s not asked", b.budget,
			term.Plural(b.left, "line was", "lines were")), Do: "run it again with a higher --budget to continue"}
	case b.failed > 0:
		return &term.Problem{Code: fault.ExitFailure, Err: term.ErrSilent}
	}

	return nil
}
