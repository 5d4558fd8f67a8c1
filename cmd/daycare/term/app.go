package term

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/fit"
	"daycare/engine/control"
	"daycare/engine/fault"
	"daycare/engine/workspace"
)

// App is what all commands share: the streams, the global flags, and what they need of the
// engine and cannot ask of a running daemon.
type App struct {
	// Offline serves the control API from the files of a workspace, with no daemon;
	// what would change something is control.ErrNotRunning.
	Offline func(at workspace.Place, warn func(format string, args ...any)) (*control.Client, error)
	// InProcess runs the engine inside this process. It has the lock until stop
	// returned; stop ends or suspends what is in progress.
	InProcess func(ctx context.Context, at workspace.Place) (client *control.Client, stop func() error, err error)

	Streams
	Workspace string // --workspace
	Data      string // --data

	versionSaid sync.Once // that the daemon has another version
	silenceSaid sync.Once // that it does not answer
	signalling
}

// Streams are where a command reads and prints, and in which form.
type Streams struct {
	In      io.Reader
	Out     io.Writer // data
	Err     io.Writer // everything else: notes, questions, errors
	JSON    bool      // --json
	NoInput bool      // --no-input
}

// signalling is what the app does with signals.
type signalling struct {
	signals      chan os.Signal
	signalsMade  sync.Once
	signalsTaken atomic.Bool
	leaving      atomic.Pointer[func()] // to be called before a signal ends the program
}

// Attach gives a root command the streams of the app and the flags that all commands have.
func (c *App) Attach(root *cobra.Command) {
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetIn(c.In)
	root.SetOut(c.Out)
	root.SetErr(c.Err)
	root.SetFlagErrorFunc(badFlag)
	root.PersistentPreRunE = notNegative
	root.SetHelpFunc(c.fitting(root.HelpFunc()))

	flags := root.PersistentFlags()
	flags.StringVarP(&c.Workspace, "workspace", "C", "",
		"the `DIR` with .daycare (default: the nearest parent that has one, else the current one)")
	flags.StringVar(&c.Data, "data", "",
		"keep daycare's own files in `DIR`, outside the workspace (default: .daycare in the workspace)")
	flags.BoolVar(&c.JSON, "json", false, "print JSON: one object, or one per line for streams")
	flags.BoolVar(&c.NoInput, "no-input", false, "never prompt")

	// Flags named like files or folders complete as such.
	_ = root.MarkPersistentFlagDirname("workspace")
	_ = root.MarkPersistentFlagDirname("data")
}

// fitting is help that is laid out for the width of the terminal, if it is shown on one.
func (c *App) fitting(help func(*cobra.Command, []string)) func(*cobra.Command, []string) {
	return func(cmd *cobra.Command, args []string) {
		width := 0
		if f, ok := c.Out.(*os.File); ok {
			width = fit.Width(f)
		}
		var text strings.Builder
		cmd.SetOut(&text)
		help(cmd, args)
		cmd.SetOut(c.Out)
		fmt.Fprint(c.Out, fit.Help(text.String(), width))
	}
}

// Group is a command that only holds others.
func Group(use, short, example string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example,
		Args: NoSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(subs...)

	return cmd
}

// NoSuchCommand is the Args of commands that take none: a word there is a
// command that does not exist.
func NoSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	do := "see: " + cmd.CommandPath() + " --help"
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && near(args[0], sub.Name()) {
			names = append(names, sub.Name())
		}
	}

	if len(names) > 0 {
		do = "did you mean " + strings.Join(names, ", ") + "?"
	}

	return &Problem{Code: fault.ExitUsage, Err: fmt.Errorf("%s has no command %q", cmd.CommandPath(), args[0]), Do: do}
}

// near reports whether a name begins as typed, or one slip away from it: another letter, one
// too many, one missing, or two in the wrong order.
func near(typed, name string) bool {
	if strings.HasPrefix(name, typed) {
		return true
	}
	same := 0
	for same < min(len(typed), len(name)) && typed[same] == name[same] {
		same++
	}

	t, n := typed[same:], name[same:]
	switch {
	case t == "" || n == "":
		return len(t)+len(n) <= 1
	case t[1:] == n[1:] || t[1:] == n || t == n[1:]:
		return true
	}

	return len(t) > 1 && len(n) > 1 && t[0] == n[1] && t[1] == n[0] && t[2:] == n[2:]
}

// Words checks the positional arguments: the names of those that must be there,
// and how many more there may be (-1: any number).
func Words(extra int, must ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(must):
			return Usage(cmd, "%s needs %s", cmd.CommandPath(), must[len(args)])
		case extra >= 0 && len(args) > len(must)+extra:
			return unexpected(cmd, args[len(must)+extra])
		}

		return nil
	}
}

// unexpected is the error of an argument that is one too many. It names the flag that was perhaps meant.
func unexpected(cmd *cobra.Command, arg string) error {
	meant := ""
	switch {
	case cmd.LocalFlags().Lookup("name") != nil:
		meant = "; use --name NAME for a name"
	case strings.ContainsRune(arg, filepath.Separator) || arg == "." || arg == "..":
		meant = "; use -C DIR for a workspace"
	}

	return Usage(cmd, "%s: unexpected argument %q%s", cmd.CommandPath(), arg, meant)
}
