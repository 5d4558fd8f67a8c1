package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"daycare/cmd/daycare/chaos/machines"
	"daycare/cmd/daycare/term"
	nats "daycare/engine/cluster/server"
	"daycare/engine/fault"
)

// long is the help.
const long = "Start this program in temporary workspaces, talk to it, kill it at every durable step, cut its power,\n" +
	"break its disk, and after each death compare its files with what the outside world saw. Your workspaces are not\n" +
	"touched. For a failing case, daycare keeps the folder and prints the flags that replay it.\n\n" +
	"--bugs shows that the checks can fail: it enables one deliberate defect after another and plays cases until one\n" +
	"catches it. --soak runs many agents in one workspace for as long as you like, and prints how memory and open files\n" +
	"develop.\n\n" +
	"--cluster plays three machines that share agents, with one NATS server and with three: machines and servers are\n" +
	"killed, stopped, cut off and wiped. With --upgrade, the machines start with another version of daycare and, while\n" +
	"users talk, change to this one, back, and to this one again. Only builds with the tag natsserver have it."

// Command plays cases in which daycare dies, and compares its files with the outside world.
func Command(c *term.App) *cobra.Command {
	var o Options
	var full, short, cluster bool
	cmd := &cobra.Command{
		Use:   "chaos",
		Short: "Kill daycare in every way, and show that nothing is lost",
		Long:  long,
		Example: "  daycare chaos --short\n" +
			"  daycare chaos --scenario tools --kill 'kill@#17:100'\n" +
			"  daycare chaos --full --way 'power cut'\n" +
			"  daycare chaos --bugs\n" +
			"  daycare chaos --soak 1h --csv soak.csv\n" +
			"  daycare chaos --cluster --short\n" +
			"  daycare chaos --cluster --upgrade ./daycare-before",
		Args: term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wrong := unplayable(cmd.Flags(), o); wrong != "" {
				return term.Usage(cmd, "%s", wrong)
			}
			switch {
			case full:
				o.Length = Full
			case short:
				o.Length = Short
			}
			if cluster {
				return runCluster(cmd.Context(), c, o)
			}
			return runChaos(cmd.Context(), c, o)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&full, "full", false, "each step, and each fault in each scenario: about 40 minutes")
	flags.BoolVar(&short, "short", false, "a sample: about a minute; with --bugs, the cases that catch each defect soon")
	flags.StringVar(&o.Scenario, "scenario", "", "play only the scenario `NAME`")
	flags.StringVar(&o.Way, "way", "", "play only this `WAY` to die, named as in the table")
	flags.StringVar(&o.Kill, "kill", "", "play only the case with these `DEATHS`, as printed for a failing case")
	flags.IntVar(&o.Random, "random", -1, "`N` deaths at random moments (default: 1000)")
	flags.IntVar(&o.Power, "power", -1, "`N` power cuts of each real file system (default: 100)")
	flags.DurationVar(&o.Soak, "soak", 0, "let 200 agents work for `DURATION`, killed every minute")
	flags.StringVar(&o.CSV, "csv", "", "with --soak, write memory and open files over time to `FILE`")
	flags.BoolVar(&o.Bugs, "bugs", false, "show that each deliberate defect is caught")
	flags.StringVar(&o.Bug, "bug", "", "with --bugs, check only the defect `NAME`")
	flags.BoolVar(&cluster, "cluster", false, "play machines that share agents instead")
	flags.StringVar(&o.Upgrade, "upgrade", "", "with --cluster, upgrade machines from the daycare in `FILE` to this one instead")
	flags.StringVar(&o.Dir, "dir", "", "keep the cases in `DIR` (default: in memory)")
	for _, name := range []string{"random", "power"} {
		flags.Lookup(name).DefValue = "0" // help shows what the text says, not the -1 that stands for it
	}
	_ = cmd.MarkFlagDirname("dir")
	_ = cmd.MarkFlagFilename("csv", "csv")
	_ = cmd.MarkFlagFilename("upgrade")

	return cmd
}

// unplayable says which flags do not go together; "": all do.
func unplayable(flags *pflag.FlagSet, o Options) string {
	given := func(names ...string) string {
		for _, one := range names {
			if flags.Changed(one) {
				return one
			}
		}
		return ""
	}
	switch other := given("scenario", "kill", "random", "power", "soak", "csv"); {
	case flags.Changed("cluster") && other != "":
		return "--" + other + " cannot be combined with --cluster"
	case o.Upgrade != "" && !flags.Changed("cluster"):
		return "--upgrade needs --cluster"
	case o.Upgrade != "" && (o.Bugs || o.Way != ""):
		return "--upgrade cannot be combined with --bugs or --way"
	case flags.Changed("full") && flags.Changed("short"):
		return "--full and --short cannot be combined"
	case o.Soak > 0 && (o.Bugs || given("full", "short", "scenario", "way") != ""):
		return "--soak can only be combined with --csv and --dir"
	case o.Way != "" && (o.Bugs || o.Kill != ""):
		return "--way cannot be combined with --bugs or --kill"
	case o.CSV != "" && o.Soak == 0:
		return "--csv needs --soak"
	case o.Bug != "" && !o.Bugs:
		return "--bug needs --bugs"
	}

	return ""
}

// runCluster plays machines that share agents.
func runCluster(ctx context.Context, c *term.App, o Options) error {
	binary, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if o.Bugs {
		folder, err := os.MkdirTemp(o.Dir, "daycare-seededbugs-")
		if err != nil {
			return fmt.Errorf("make a folder: %w", err)
		}
		defer os.RemoveAll(folder)
		binary = filepath.Join(folder, "daycare")
		if err := buildWith("seededbugs,natsserver")(ctx, binary); err != nil {
			return err
		}
	} else if !nats.Here {
		return &term.Problem{Code: fault.ExitFailure, Err: errors.New("this program has no NATS server"),
			Do: "go build -trimpath -tags natsserver ./cmd/daycare"}
	}
	play := machines.Options{Binary: binary, Dir: o.Dir, Length: machines.Length(o.Length), Way: o.Way, Bugs: o.Bugs, Bug: o.Bug,
		Upgrade: o.Upgrade}
	if !c.JSON {
		play.Progress = progress(c)
	}

	ctx, cancel := interruptible(ctx, c)
	defer cancel()
	r, runErr := machines.Run(ctx, play)
	if r == nil || runErr != nil && len(r.Rows) == 0 {
		return runErr
	}

	return outcome(ctx, c, r, runErr)
}

// interruptible ends with Ctrl-C, so that a run ends in order: file systems are given back, and daemons do not live on.
func interruptible(ctx context.Context, c *term.App) (context.Context, context.CancelFunc) {
	signals := c.TakeSignals()
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()

	return ctx, cancel
}

// A printer is a report of a run.
type printer interface {
	Print(w io.Writer) error
	PrintJSON(w io.Writer) error
	OK() bool
}

// outcome prints the report of a run, also of one that the harness could not complete, and says how the command ends.
func outcome(ctx context.Context, c *term.App, r printer, runErr error) (err error) {
	if c.JSON {
		err = r.PrintJSON(c.Out)
	} else {
		clearLine(c)
		err = r.Print(c.Out)
	}
	err = errors.Join(runErr, err)
	switch {
	case ctx.Err() != nil:
		return term.ErrInterrupted
	case err != nil:
		return err
	case !r.OK():
		return term.ErrSilent
	}

	return nil
}

func runChaos(ctx context.Context, c *term.App, o Options) error {
	var err error
	if o.Binary, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	o.Build, o.Log = buildWith("seededbugs"), c.Err
	if !c.JSON {
		o.Progress = progress(c)
	}

	ctx, cancel := interruptible(ctx, c)
	defer cancel()
	r, runErr := Run(ctx, o)
	if r == nil || runErr != nil && r.Total().Cases == 0 {
		return runErr
	}

	return outcome(ctx, c, r, runErr)
}

// progress draws a bar on a terminal and nothing elsewhere.
func progress(c *term.App) func(done, of int, what string) {
	if !term.IsTerminal(c.Err) {
		return nil
	}
	const width = 30
	return func(done, of int, what string) {
		filled := width * done / max(of, 1)
		fmt.Fprintf(c.Err, "\r\x1b[K%s%s %d/%d %s", strings.Repeat("█", filled), strings.Repeat("░", width-filled), done, of, what)
	}
}

func clearLine(c *term.App) {
	if term.IsTerminal(c.Err) {
		fmt.Fprint(c.Err, "\r\x1b[K")
	}
}

// buildWith returns what makes a daycare in which the seeded bugs can be switched on, and what else tags name, from
// the source around the current folder.
func buildWith(tags string) func(ctx context.Context, to string) error {
	return func(ctx context.Context, to string) error { return build(ctx, tags, to) }
}

func build(ctx context.Context, tags, to string) error {
	hint := func(err error) error {
		return &term.Problem{Code: fault.ExitFailure, Err: err,
			Do: "run it inside the source of daycare, with Go installed; people's binaries have no seeded bugs"}
	}
	tool, err := exec.LookPath("go")
	if err != nil {
		return hint(errors.New("seeded bugs have to be built in, and there is no go command here"))
	}

	module, err := exec.CommandContext(ctx, tool, "env", "GOMOD").Output()
	root := filepath.Dir(strings.TrimSpace(string(module)))
	if err != nil || !term.Exists(filepath.Join(root, "cmd", "daycare")) {
		return hint(errors.New("seeded bugs have to be built in, and the source of daycare is not here"))
	}

	building := exec.CommandContext(ctx, tool, "build", "-tags", tags, "-o", to, "./cmd/daycare")
	building.Dir = root
	if out, err := building.CombinedOutput(); err != nil {
		return hint(fmt.Errorf("build with seeded bugs: %w\n%s", err, out))
	}

	return nil
}
