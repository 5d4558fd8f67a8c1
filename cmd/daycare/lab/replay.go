package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"daycare/agents/prompt"
	"daycare/cmd/daycare/daemon"
	"daycare/cmd/daycare/term"
	"daycare/engine/address"
	"daycare/engine/fault"
	"daycare/engine/record"
	"daycare/engine/workspace"
)

// replayOptions are the flags of replay.
type replayOptions struct {
	model      string
	system     string
	times      int
	exact      bool
	unrecorded string // what to do with a call that was never recorded; "": ask, if a user is there
	at         workspace.Place
}

// Replay plays a turn that is in a history again.
func Replay(c *term.App) *cobra.Command {
	var o replayOptions
	var ask bool
	cmd := &cobra.Command{
		Use: "replay ID", Short: "Replay a turn with any model, and compare the answers",
		Long: "Give a model what an agent had when a turn began, and compare its answer with the recorded one: cost,\n" +
			"time, tokens, tool calls. ID is a turn, an item, a reply, a tool call or a session (all its turns). Tool\n" +
			"calls get the results in the history, and no tool runs. If the model makes a call that is not in the\n" +
			"history, daycare asks you what to do: dry-run it in a copy of the agent's folder, make it, type its\n" +
			"result, or stop. --unrecorded answers in advance; without a terminal, the replay stops. Otherwise the\n" +
			"agent and its files do not change. The model calls cost money, as usual.\n\n" +
			"--exact calls no model: it rebuilds each request from the files and proves that it is, byte for byte, the\n" +
			"one that was sent, or says what cannot be rebuilt. The exit code is then 1 if a request is not exact.",
		Example: "  item=$(daycare send 0/ hello) && daycare replay $item --model local/qwen3 --times 3\n" +
			"  daycare replay $item --system shorter.md --unrecorded dry-run\n" +
			"  daycare replay $item --exact",
		Args: term.Words(0, "the ID of a turn, an item or a session"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if ask {
				o.unrecorded = cmp.Or(o.unrecorded, askUser)
			}
			switch {
			case o.times < 1:
				return term.Usage(cmd, "--times must be at least 1")
			case o.exact && (o.model != "" || o.system != "" || o.times > 1 || o.unrecorded != ""):
				return term.Usage(cmd, "--exact cannot be combined with other flags: it asks no model")
			case o.unrecorded != "" && !slices.Contains(unrecordedModes, o.unrecorded):
				return term.Usage(cmd, "--unrecorded must be one of %s", strings.Join(unrecordedModes, ", "))
			}
			return replay(cmd.Context(), c, args[0], o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.model, "model", "", "ask this `MODEL`: PROVIDER, PROVIDER/MODEL or a model (default: the agent's)")
	flags.StringVar(&o.system, "system", "", "use the system prompt in `FILE` instead of the agent's")
	flags.IntVar(&o.times, "times", 1, "ask `N` times")
	flags.BoolVar(&o.exact, "exact", false, "prove that the rebuilt requests are those that were sent")
	flags.StringVar(&o.unrecorded, "unrecorded", "", "what to do with a call that was never recorded: ask, dry-run, make or stop\n"+
		"(default: ask on a terminal, else stop)")
	flags.BoolVar(&ask, "ask", false, "the earlier name of --unrecorded ask")
	_ = flags.MarkHidden("ask")
	_ = cmd.RegisterFlagCompletionFunc("unrecorded", cobra.FixedCompletions(unrecordedModes, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.MarkFlagFilename("system", "md", "txt")

	return cmd
}

func replay(ctx context.Context, c *term.App, id string, o replayOptions) (err error) {
	if o.unrecorded == "" && c.Asks() {
		o.unrecorded = askUser
	}
	o.unrecorded = cmp.Or(o.unrecorded, stopThere)
	if o.at, err = c.MadePlace(); err != nil {
		return err
	}
	requests, err := daemon.OpenRequests(ctx, o.at, c.Warn)
	if err != nil {
		return err
	}
	turns, err := findTurns(requests, id)
	if err != nil {
		return err
	}
	if o.exact {
		return prove(ctx, c, requests, turns)
	}

	return again(ctx, c, requests, turns, o)
}

// A turn is one that is in a history.
type turn struct {
	meta    address.Meta
	past    *record.Past // of the agent
	builder *prompt.Builder
	session string
	trace   record.Trace
}

// findTurns looks through all agents for the turns that an id means.
func findTurns(r daemon.Requests, id string) ([]turn, error) {
	for _, meta := range r.Agents() {
		dir := r.Dir(meta.ID)
		trace, ok, err := record.TraceOf(dir, id)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", meta.Handle, err)
		}
		if ok {
			past, err := record.OpenPast(dir)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", meta.Handle, err)
			}
			t, err := newTurn(meta, past, r.Builder(meta), trace)
			return []turn{t}, err
		}
		past, err := record.OpenPast(dir)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", meta.Handle, err)
		}

		var all []turn
		builder := r.Builder(meta)
		for _, trace := range past.Turns(id) {
			if t, err := newTurn(meta, past, builder, trace); err == nil {
				all = append(all, t)
			}
		}
		if len(all) > 0 {
			return all, nil
		}
	}

	return nil, fault.NoTrace.Says("%s is in no history, or no turn of the session has ended", id)
}

func newTurn(meta address.Meta, past *record.Past, b *prompt.Builder, trace record.Trace) (turn, error) {
	t := turn{meta: meta, past: past, builder: b, trace: trace}
	for _, e := range trace.Entries {
		if end, ok := e.Rec.(*record.TurnEnd); ok {
			t.session = end.Session
		}
	}

	switch {
	case trace.Turn == "":
		return t, &term.Problem{Code: fault.ExitFailure, Err: errors.New("no turn belongs to this id, so no model was asked"),
			Do: "see: daycare why ID"}
	case t.session == "":
		return t, &term.Problem{Code: fault.ExitFailure, Err: errors.New("the turn has not ended"), Do: "replay it when it has"}
	case len(t.calls()) == 0:
		return t, &term.Problem{Code: fault.ExitFailure, Err: errors.New("no model answered in this turn"), Do: "see: daycare why ID"}
	}

	return t, nil
}

// calls are the answers of models in the turn.
func (t turn) calls() (all []*record.Entry) {
	for _, e := range t.trace.Entries {
		if a, ok := e.Rec.(*record.Assistant); ok && a.Provider != "" && a.Finish != record.FinishInterrupted &&
			a.Finish != record.FinishError && a.Finish != record.FinishCanceled {
			all = append(all, e)
		}
	}

	return all
}

// A proof says whether a request that is made again is the one that was sent.
type proof struct {
	Turn   string `json:"turn"`
	Seq    int64  `json:"seq"` // of the answer
	Model  string `json:"model"`
	Exact  bool   `json:"exact"`
	Bytes  int64  `json:"bytes,omitempty"`
	SHA256 string `json:"sha256,omitempty"` // that was recorded
	Why    string `json:"why,omitempty"`    // it is not, or cannot be known
}

// prove compares the requests of turns with what was sent.
func prove(ctx context.Context, c *term.App, r daemon.Requests, turns []turn) error {
	var proofs []proof
	exact := 0
	for _, t := range turns {
		for _, e := range t.calls() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			p, err := t.proof(ctx, r, e)
			if err != nil {
				return err
			}
			if proofs = append(proofs, p); p.Exact {
				exact++
			}
		}
	}

	if err := showProofs(c, proofs, exact); err != nil {
		return err
	}
	if exact < len(proofs) {
		return &term.Problem{Code: fault.ExitFailure, Err: term.ErrSilent}
	}

	return nil
}

func showProofs(c *term.App, proofs []proof, exact int) error {
	if c.JSON {
		return c.PrintJSON(map[string]any{"calls": len(proofs), "exact": exact, "proofs": proofs})
	}
	for _, p := range proofs {
		if p.Exact {
			c.Print("exact    record %d  %s  %d bytes  sha256 %.16s…\n", p.Seq, p.Model, p.Bytes, p.SHA256)
			continue
		}
		c.Print("%s  record %d  %s\n%s\n", c.OutStyle().Red("differs"), p.Seq, p.Model, indented(p.Why))
	}
	c.Print("%d of %s exact\n", exact, term.Plural(len(proofs), "request is", "requests are"))

	return nil
}
