package talk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/setup"
	"daycare/cmd/daycare/term"
	"daycare/engine/address"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/message"
)

// sendOptions are the flags of send.
type sendOptions struct {
	as      string
	silent  bool
	queue   string
	wait    bool
	files   []string
	timeout time.Duration
	dryRun  bool
}

func Send(c *term.App) *cobra.Command {
	var o sendOptions
	cmd := &cobra.Command{
		Use:   "send ID [TEXT…]",
		Short: "Send a message to an agent",
		Long: "Send a message to an agent's inbox and print the item's id once it is on disk.\n" +
			"Without TEXT, or with -, the text is read from stdin. Without a daemon the message\n" +
			"goes to the drop folder .daycare/drop, which the next start picks up. --wait streams the answer.",
		Example: "  daycare send 0/ --wait summarise the log\n" +
			"  make 2>&1 | daycare send Ops --as system -",
		Args: term.Words(-1, "the ID of an agent"), ValidArgsFunction: c.Refs,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := composed(c, cmd, args[1:], o)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			if o.timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, o.timeout)
				defer cancel()
			}

			return send(ctx, c, args[0], m, o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.as, "as", "user", "the sender: `user` or system")
	flags.BoolVar(&o.silent, "silent", false, "record the message without starting a turn (with --as system)")
	flags.StringVar(&o.queue, "queue", "", "when a busy agent reads it: `MODE` steer (at its next step) or followup (after its turn)")
	flags.BoolVar(&o.wait, "wait", false, "wait for the answer and stream it")
	flags.BoolVar(&o.dryRun, "dry-run", false, "send it to a copy of the agent, which works on a copy of its folder; see daycare changes")
	flags.StringArrayVar(&o.files, "file", nil, "attach a `FILE`; repeatable")
	flags.DurationVar(&o.timeout, "timeout", 0, "stop waiting after this duration, such as 90s or 5m (exit code 124)")
	_ = cmd.RegisterFlagCompletionFunc("as", term.OneOf("user", "system"))
	_ = cmd.RegisterFlagCompletionFunc("queue", term.OneOf(string(message.Steer), string(message.Followup)))

	return cmd
}

// composed is the message that flags and words make.
func composed(c *term.App, cmd *cobra.Command, args []string, o sendOptions) (control.Message, error) {
	var m control.Message
	switch {
	case o.as != "user" && o.as != "system":
		return m, term.Usage(cmd, "--as %q is unknown; allowed: user, system", o.as)
	case o.silent && o.as == "user" && cmd.Flags().Changed("as"):
		return m, term.Usage(cmd, "--silent needs --as system: a user's message always gets an answer")
	case o.silent && o.wait:
		return m, term.Usage(cmd, "--silent and --wait cannot be combined: a silent message starts no turn")
	}

	switch m.Queue = message.Queue(o.queue); {
	case m.Queue != "" && m.Queue != message.Steer && m.Queue != message.Followup:
		return m, term.Usage(cmd, "--queue %q is unknown; allowed: %s, %s", o.queue, message.Steer, message.Followup)
	case m.Queue != "" && (o.as == "system" || o.silent):
		return m, term.Usage(cmd, "--queue cannot be combined with --as system or --silent")
	}

	m.Kind = message.Text
	if o.as == "system" || o.silent {
		m.Kind, m.Silent = message.System, o.silent
	}
	m.Text = strings.Join(args, " ")
	if m.Text == "" && len(o.files) == 0 || m.Text == "-" {
		if term.IsTerminal(c.In) && c.NoInput {
			return m, term.Usage(cmd, "TEXT is missing, and --no-input forbids a prompt for it")
		}
		var err error
		if m.Text, err = readStdin(c); err != nil {
			return m, err
		}
	}
	if len(o.files) == 0 {
		if err := notEmpty(cmd, m.Text); err != nil {
			return m, err
		}
	}

	var err error
	m.Files, err = attached(c, cmd, o.files)
	return m, err
}

// attached are the files that flags name. A path that is not UTF-8 cannot be said in JSON: the content goes along instead.
func attached(c *term.App, cmd *cobra.Command, paths []string) ([]control.File, error) {
	var files []control.File
	for _, p := range paths {
		if p == "" {
			return nil, term.Usage(cmd, "--file needs the name of a file")
		}
		abs, err := filepath.Abs(p)
		if err != nil {
			return nil, fmt.Errorf("attach %s: %w", p, err)
		}

		switch info, err := os.Stat(abs); {
		case errors.Is(err, os.ErrNotExist):
			return nil, term.NotFound("", "there is no file %s", p)
		case err != nil:
			return nil, fmt.Errorf("attach: %w", err)
		case !info.Mode().IsRegular():
			return nil, term.NotFound("attach a regular file", "%s is not a regular file", p)
		}

		one := control.File{Path: abs}
		if !utf8.ValidString(abs) {
			if one, err = carried(c, abs); err != nil {
				return nil, fmt.Errorf("attach %s: %w", p, err)
			}
		}
		files = append(files, one)
	}

	return files, nil
}

// carried is a file with its content.
func carried(c *term.App, path string) (control.File, error) {
	f, err := term.OpenInput(c, path)
	if err != nil {
		return control.File{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, control.MaxFileBytes+1)) // one more is refused as one file would be

	return control.File{Name: strings.ToValidUTF8(filepath.Base(path), "_"), Data: data}, err
}

// unsent says to whom a message was not sent, and which file it was that could not go along.
func unsent(err error, ref string, m control.Message) error {
	if bad, ok := errors.AsType[*control.APIError](err); ok {
		for i, f := range m.Files {
			if reason, ok := strings.CutPrefix(bad.Message, fmt.Sprintf("files[%d].path: ", i)); ok {
				named := *bad
				named.Message = fmt.Sprintf("attach %s: %s", f.Path, reason)
				return &named
			}
		}
	}

	return term.About(err, "send to", cmp.Or(ref, address.Own))
}

func send(ctx context.Context, c *term.App, ref string, m control.Message, o sendOptions) (err error) {
	at, err := c.MadePlace()
	if err != nil {
		return err
	}
	if m, err = withCommand(ctx, c, m); err != nil {
		return err
	}

	client, err := c.Dial(ctx, at)
	if errors.Is(err, control.ErrNotRunning) {
		if o.wait || o.dryRun {
			return &term.Problem{Code: fault.ExitNotRunning, Err: err,
				Do: "start it with: daycare start --background   (or leave the message without --wait and --dry-run)"}
		}
		return leaveLetter(ctx, c, at, ref, m)
	}
	if err != nil {
		return err
	}
	if o.dryRun {
		var a event.Agent
		if a, err = rehearse(ctx, client, ref); err != nil {
			return err
		}
		ref = a.ID
		if o.wait {
			defer func() { err = errors.Join(err, rehearsed(ctx, c, a)) }()
		} else {
			c.Note("dry run: a copy of the agent, %s, works on it; show what it changed with: daycare changes --agent %s",
				a.Handle, a.Handle)
		}
	}
	if ref, m, err = ownIfNew(ctx, client, ref, m); err != nil {
		return err
	}
	if o.wait {
		setup.WarnOfMissed(ctx, c, at, client)
		return sendAndWait(ctx, c, client, ref, m)
	}

	r, err := client.Send(ctx, ref, m)
	if err != nil {
		return unsent(err, ref, m)
	}

	return sent(c, sendResult{Agent: r.Agent, Item: r.Item, Seq: r.Seq, Duplicate: r.Duplicate})
}

// withCommand is a user's message with the text that a command of the workspace makes of it.
func withCommand(ctx context.Context, c *term.App, m control.Message) (control.Message, error) {
	if m.Kind != message.Text || !isCommand(m.Text) {
		return m, nil
	}
	client, err := c.Reader(ctx)
	if err != nil {
		return m, err
	}

	m.Text, err = expanded(ctx, client, m.Text)

	return m, err
}

// ownIfNew is the message as it must be sent so that the first one to "main", or to 0/
// in a workspace without agents, makes the user's own agent, as chat does.
func ownIfNew(ctx context.Context, client *control.Client, ref string, m control.Message) (string, control.Message, error) {
	if ref != address.Own && strings.TrimSuffix(ref, "/") != "0" {
		return ref, m, nil
	}
	_, err := client.Agent(ctx, ref)
	if !errors.Is(err, message.ErrUnknownAgent) {
		return ref, m, nil // it is there, or sending says what is wrong
	}
	if ref != address.Own {
		if all, err := client.Agents(ctx); err != nil || len(all) > 0 {
			return ref, m, err
		}
	}

	return "", Own(m), nil
}

// sendResult is where the message is now: in an inbox, or a letter that the next
// start will take.
type sendResult struct {
	Agent     string `json:"agent"`
	Item      string `json:"item"`
	Seq       int64  `json:"seq,omitempty"`
	Duplicate bool   `json:"duplicate"`
	Dropped   string `json:"letter,omitempty"`
}

func sent(c *term.App, r sendResult) error {
	if c.JSON {
		return c.PrintJSON(r)
	}
	c.Print("%s\n", r.Item)
	if r.Dropped != "" {
		c.Note("%s; the next start picks the message up from %s", fault.NotRunning.Text, r.Dropped)
	}

	return nil
}

// sendAndWait shows the turn that the message is worked on in.
func sendAndWait(ctx context.Context, c *term.App, client *control.Client, ref string, m control.Message) error {
	v := newView(c)
	var trouble error
	o, err := client.Stream(ctx, ref, m, func(e control.RawEvent) {
		if c.JSON {
			trouble = errors.Join(trouble, c.PrintJSON(e.Data))
			return
		}
		trouble = errors.Join(trouble, v.event(e))
	})
	v.newline()
	if err = errors.Join(err, trouble); err != nil {
		return unsent(err, ref, m)
	}
	if c.JSON {
		if err := c.PrintJSON(outcomeLine{"outcome", o}); err != nil {
			return err
		}
	} else {
		v.finish(o.Turn, o.Reason, o.Text)
	}

	return afterWait(ctx, client, o)
}

// afterWait is the exit of a command that waited for one item.
func afterWait(ctx context.Context, client *control.Client, o event.Outcome) error {
	asks, err := familyAsks(ctx, client, o.Agent)
	if err != nil {
		return err
	}
	if len(asks) > 0 && asksOn(o.Reason) {
		return needsApproval(asks[0])
	}

	return ending(o)
}
