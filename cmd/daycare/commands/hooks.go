package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
)

// hookEvents are the moments at which hooks run.
var hookEvents = []string{"session_start", "on_message", "before_prompt", "before_tool", "after_tool", "turn_end", "approval"}

// Hooks lists and tries the programs that run at moments of agents' work.
func Hooks(c *term.App) *cobra.Command {
	return term.Group("hooks", "List and test hooks: your programs that run at fixed points of a turn", "  daycare hooks ls\n"+
		"  daycare hooks test before_tool --tool exec --input '{\"command\":\"git push\"}'", hooksLs(c), hooksTest(c))
}

func hooksLs(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Short:   "List the hooks in the settings, in the order in which they run",
		Example: "  daycare hooks ls",
		Args:    term.Words(0),
		RunE: term.List(c, term.Listing[control.HookInfo]{Key: "hooks", None: "no hooks in settings.yaml",
			Get: func(c *control.Client, ctx context.Context) ([]control.HookInfo, error) {
				return control.HookClient{Client: c}.List(ctx)
			},
			Table: func(list []control.HookInfo) (t term.Table, _ error) {
				t.Row("EVENT", "TOOLS", "TIMEOUT", "IF IT FAILS", "SANDBOX", "COMMAND")
				for _, h := range list {
					t.Row(h.Event, term.OneLine(cmp.Or(h.Matcher, "*"), 30), (time.Duration(h.TimeoutMS) * time.Millisecond).String(),
						h.OnError, yesNo(h.Sandbox), term.OneLine(h.Command, 60))
				}
				return t, nil
			}}),
	}
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

func hooksTest(c *term.App) *cobra.Command {
	var s control.HookSample
	var input string
	var cmd *cobra.Command
	cmd = &cobra.Command{
		Use:   "test EVENT",
		Short: "Run the hooks of an event with sample input, and show their decisions",
		Long: "Run the hooks that match an event, as a turn would, with sample input, and show the exit code, the\n" +
			"output, the decision and the duration of each. No agent is involved and\n" +
			"no history is written, but the programs do run. Events: session_start, on_message,\n" +
			"before_prompt, before_tool, after_tool, turn_end, approval.",
		Example: "  daycare hooks test before_tool --tool exec --input '{\"command\":\"git push\"}'\n" +
			"  daycare hooks test on_message --text hello",
		Args: term.Words(0, "the EVENT"), ValidArgs: hookEvents,
		RunE: term.Read(c, func(ctx context.Context, client *control.Client, args []string) (control.HookTest, error) {
			if s.Event = args[0]; input != "" {
				if !json.Valid([]byte(input)) {
					return control.HookTest{}, term.Usage(cmd, "--input is not JSON")
				}
				s.Input = json.RawMessage(input)
			}
			t, err := control.HookClient{Client: client}.Test(ctx, s)
			return t, term.Wrap(err, "test hooks")
		}, func(t control.HookTest) error { showHookTest(c, t); return nil }),
	}
	cmd.Flags().StringVar(&s.Tool, "tool", "", "name of the tool (before_tool, after_tool)")
	cmd.Flags().StringVar(&input, "input", "", "input of the tool, a JSON object")
	cmd.Flags().StringVar(&s.Text, "text", "", "text of the message, the result or the answer")
	return cmd
}

// showHookTest shows what each hook said, then what they said together.
func showHookTest(c *term.App, t control.HookTest) {
	if len(t.Runs) == 0 {
		c.Print("no hook matches\n")
		return
	}
	for _, r := range t.Runs {
		ended := fmt.Sprintf("exit code %d", r.Code)
		if r.Signal != "" {
			ended = "signal " + r.Signal
		}
		c.Print("%s  %s\n", c.OutStyle().Bold(term.OneLine(r.Command, 80)),
			term.Join("  ", ended, fmt.Sprintf("%d ms", r.MS), cmp.Or(r.Decision, "no decision")))
		c.Fields("  failed", r.Failed, "  output", term.OneLine(r.Output, 500), "  errors", term.OneLine(r.Errors, 500))
	}
	c.Fields("decision", cmp.Or(t.Decision, "none"), "reason", t.Reason, "context", t.Context,
		"input", string(t.Input))
}
