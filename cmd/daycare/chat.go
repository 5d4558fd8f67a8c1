package main

import (
	"bufio"
	"context"
	"daycare/engine/workspace"
	"errors"
	"fmt"
	"io"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"daycare/engine/control"
	"daycare/engine/disk"

	"github.com/spf13/cobra"
)

// chatOptions are the flags of chat.
type chatOptions struct {
	agent      string // ref; "": the terminal's own agent
	wait       bool
	permission string // ask, deny, allow; "": ask where a person can be asked
}

func (c *cli) chatCommand() *cobra.Command {
	var o chatOptions
	cmd := &cobra.Command{
		Use:   "chat [TEXT…]",
		Short: "Talk to an agent: one message, or a conversation line by line",
		Long: "Send one message and print the answer while it comes; or, without TEXT on a terminal,\n" +
			"hold a conversation line by line (/help says what else can be typed). Text also comes\n" +
			"from stdin. Joins the daemon if one runs, else runs the engine in this process.\n\n" +
			"A line typed while an answer streams is read by the agent before its next step.\n" +
			"Ctrl-C stops the turn, a second one leaves.",
		Example: "  daycare chat what is in this folder?\n" +
			"  git diff | daycare chat --agent reviewer",
		Args: words(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains([]string{"", "ask", "deny", "allow"}, o.permission) {
				return usage(cmd, "--permission %q is none of ask, deny, allow", o.permission)
			}
			text, err := c.chatText(cmd, args)
			if err != nil {
				return err
			}
			return c.chat(cmd.Context(), text, o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.agent, "agent", "", "the `ID` of another agent than the terminal's own")
	flags.BoolVar(&o.wait, "wait", false, "stay until the agent and its background agents are done")
	flags.StringVar(&o.permission, "permission", "", "what agents ask for: `ask` (default on a terminal), deny or allow (each once)")
	_ = cmd.RegisterFlagCompletionFunc("agent", c.agentRefs)
	_ = cmd.RegisterFlagCompletionFunc("permission",
		cobra.FixedCompletions([]string{"ask", "deny", "allow"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// chatText is the message; "" means a conversation.
func (c *cli) chatText(cmd *cobra.Command, args []string) (string, error) {
	text := strings.Join(args, " ")
	if len(args) > 0 && text != "-" {
		return text, c.notEmpty(cmd, text)
	}
	if len(args) == 0 && isTerminal(c.stdin) {
		if c.noInput {
			return "", usage(cmd, "there is no TEXT, and --no-input forbids to ask for it")
		}
		return "", nil
	}
	text, err := c.readStdin()
	if err != nil {
		return "", err
	}
	return text, c.notEmpty(cmd, text)
}

func (c *cli) notEmpty(cmd *cobra.Command, text string) error {
	if strings.TrimSpace(text) == "" {
		return usage(cmd, "the message is empty")
	}
	return nil
}

func (c *cli) readStdin() (string, error) {
	data, err := io.ReadAll(c.stdin)
	if err != nil {
		return "", fmt.Errorf("read stdin: %w", err)
	}
	return strings.TrimRight(string(data), "\n"), nil
}

func (c *cli) chat(ctx context.Context, text string, o chatOptions) error {
	c.warnOfSettings()
	client, leave, err := c.join(ctx)
	if err != nil {
		return err
	}
	signals := c.takeSignals()
	t := c.newTalk(client, o, signals, text != "")
	if o.agent != "" {
		a, err := client.Agent(ctx, o.agent)
		if err != nil {
			return errors.Join(fmt.Errorf("find agent %s: %w", o.agent, err), leave())
		}
		t.agent = a.ID
	}
	err = t.run(ctx, text)
	left := make(chan error, 1)
	go func() { left <- leave() }()
	select {
	case stopErr := <-left:
		return errors.Join(err, stopErr)
	case <-signals:
		return errInterrupted // quits at once; what was acknowledged is on disk
	}
}

// join is a client of the running daemon, or of an engine in this process.
func (c *cli) join(ctx context.Context) (client *control.Client, leave func() error, err error) {
	root, err := c.root()
	if err != nil {
		return nil, nil, err
	}
	if client, err := c.dial(ctx, root); !errors.Is(err, control.ErrNotRunning) {
		return client, func() error { return nil }, err
	}
	if err := c.ensureHome(root); err != nil {
		return nil, nil, err
	}
	if client, err := c.joinStarting(ctx, root); client != nil || err != nil {
		return client, func() error { return nil }, err
	}
	return c.inProcess(ctx, root)
}

// startingWait is how long a process that holds the lock and does not answer yet
// is waited for.
const startingWait = 10 * time.Second

// joinStarting waits for the socket of a process that just starts, or ends; nil if
// there is none.
func (c *cli) joinStarting(ctx context.Context, root string) (*control.Client, error) {
	for deadline := time.Now().Add(startingWait); disk.Held(workspace.Lock(root)); {
		if client, err := c.dial(ctx, root); err == nil {
			return client, nil
		}
		if time.Now().After(deadline) {
			return nil, alreadyRunning(root)
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// dial connects to the daemon of a workspace, or gives control.ErrNotRunning.
func (c *cli) dial(_ context.Context, root string) (*control.Client, error) {
	return control.Dial(filepath.Join(root, home))
}

// own says who speaks: the terminal's own agent is the one of this descriptor.
func own(m control.Message) control.Message {
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
func (c *cli) typedLines() <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		in := bufio.NewScanner(c.stdin)
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			lines <- in.Text()
		}
	}()
	return lines
}
