package talk

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/setup"
	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/event"
)

// chatOptions are the flags of chat.
type chatOptions struct {
	agent      string // ref; "": the terminal's own agent
	wait       bool
	permission string // ask, deny, allow; "": ask where a user can be asked
	dryRun     bool
}

func Chat(c *term.App) *cobra.Command {
	var o chatOptions
	cmd := &cobra.Command{
		Use:   "chat [TEXT…]",
		Short: "Chat with an agent: one message, or a conversation line by line",
		Long: "Send one message and stream the answer; or, without TEXT on a terminal, hold a\n" +
			"conversation line by line (type /help for commands). Text is also read from stdin.\n" +
			"Joins the daemon if one is running, else runs the engine in this process.\n\n" +
			"If you type a line during an answer, the agent reads it before its next step.\n" +
			"Ctrl-C stops the turn, a second Ctrl-C exits.\n\n" +
			"With --dry-run, a copy of the agent works on a copy of its folder, and anything that would reach others\n" +
			"is recorded instead of sent. Then use daycare changes to show, apply or drop what it did.",
		Example: "  daycare chat what is in this folder?\n" +
			"  git diff | daycare chat --agent reviewer\n" +
			"  daycare chat --dry-run rename the option in all files; daycare changes",
		Args: term.Words(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains([]string{"", "ask", "deny", "allow"}, o.permission) {
				return term.Usage(cmd, "--permission %q is unknown; allowed: ask, deny, allow", o.permission)
			}
			text, err := chatText(c, cmd, args)
			if err != nil {
				return err
			}

			return talkToAgent(cmd.Context(), c, text, o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.agent, "agent", "", "the agent `ID` to chat with (default: the terminal's agent)")
	flags.BoolVar(&o.wait, "wait", false, "wait until the agent and its background agents are done")
	flags.StringVar(&o.permission, "permission", "",
		"how to answer approval requests: `ask` (default on a terminal), deny, or allow (each once)")
	flags.BoolVar(&o.dryRun, "dry-run", false, "let a copy of the agent work on a copy of its folder")
	_ = cmd.RegisterFlagCompletionFunc("agent", c.AgentRefs)
	_ = cmd.RegisterFlagCompletionFunc("permission",
		cobra.FixedCompletions([]string{"ask", "deny", "allow"}, cobra.ShellCompDirectiveNoFileComp))

	return cmd
}

// chatText is the message; "" means a conversation.
func chatText(c *term.App, cmd *cobra.Command, args []string) (string, error) {
	text := strings.Join(args, " ")
	if len(args) > 0 && text != "-" {
		return text, notEmpty(cmd, text)
	}
	if len(args) == 0 && term.IsTerminal(c.In) {
		if c.NoInput {
			return "", term.Usage(cmd, "TEXT is missing, and --no-input forbids a prompt for it")
		}
		return "", nil
	}

	text, err := readStdin(c)
	if err != nil {
		return "", err
	}

	return text, notEmpty(cmd, text)
}

func notEmpty(cmd *cobra.Command, text string) error {
	if strings.TrimSpace(text) == "" {
		return term.Usage(cmd, "the message is empty")
	}
	return nil
}

func readStdin(c *term.App) (string, error) {
	data, err := io.ReadAll(c.In)
	if err != nil {
		return "", fmt.Errorf("read stdin: %w", err)
	}

	return strings.TrimRight(string(data), "\n"), nil
}

func talkToAgent(ctx context.Context, c *term.App, text string, o chatOptions) error {
	c.WarnOfSettings()
	client, leave, err := join(ctx, c)
	if err != nil {
		return err
	}

	signals := c.TakeSignals()
	t := newTalk(c, client, o, signals, text != "")
	var copied event.Agent
	switch {
	case o.dryRun:
		copied, err = rehearse(ctx, client, o.agent)
		t.agent = copied.ID
	case o.agent != "":
		var a event.Agent
		a, err = client.Agent(ctx, o.agent)
		t.agent, err = a.ID, term.About(err, "find agent", o.agent)
	}
	if err == nil {
		text, err = expanded(ctx, client, text)
	}
	if err != nil {
		return errors.Join(err, leave())
	}

	err = t.run(ctx, text)
	if o.dryRun {
		err = errors.Join(err, rehearsed(ctx, c, copied))
	}
	left := make(chan error, 1)
	go func() { left <- leave() }()
	select {
	case stopErr := <-left:
		return errors.Join(err, stopErr)
	case <-signals:
		return term.ErrInterrupted // quits at once; what was acknowledged is on disk
	}
}

// join is a client of the running daemon, or of an engine in this process.
func join(ctx context.Context, c *term.App) (client *control.Client, leave func() error, err error) {
	at, err := c.Place()
	if err != nil {
		return nil, nil, err
	}
	if client, err := c.Dial(ctx, at); !errors.Is(err, control.ErrNotRunning) {
		if err == nil {
			setup.WarnOfMissed(ctx, c, at, client)
		}
		return client, func() error { return nil }, err
	}
	if err := setup.EnsureHome(c, at); err != nil {
		return nil, nil, err
	}
	if client, err := c.JoinStarting(ctx, at); client != nil || err != nil {
		return client, func() error { return nil }, err
	}

	return c.InProcess(ctx, at)
}

// Own says who speaks: the terminal's own agent is the one of this descriptor.
func Own(m control.Message) control.Message {
	m.Connector, m.UserID, m.ChannelID = "terminal", osUser(), "default"
	return m
}

// osUser is the name that the terminal's own agent knows its person by.
func osUser() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "user"
}

// typedLines reads stdin line by line. Its goroutine ends with the input or with
// the process: nothing can interrupt the reading of a terminal.
func typedLines(c *term.App) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		in := bufio.NewScanner(c.In)
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			lines <- in.Text()
		}
	}()

	return lines
}
