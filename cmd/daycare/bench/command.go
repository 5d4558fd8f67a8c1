package bench

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/daemon"
	"daycare/cmd/daycare/term"
	nats "daycare/engine/cluster/server"
	"daycare/engine/disk"
	"daycare/engine/fault"
)

// Command measures daycare on this machine; its subcommands measure one thing each.
func Command(c *term.App) *cobra.Command {
	s := Suite{}
	var quick bool
	var table string
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure daycare on this machine, next to what the disk itself can do",
		Long: "Measure daycare in a temporary folder on this disk. Each rate is shown with the limit measured in the\n" +
			"same run, so that you can compare machines. It takes a few minutes, with --quick half a minute; other work\n" +
			"on the machine affects the results.",
		Example: "  daycare bench --dir /var/tmp --csv cost.csv",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if s.Binary, err = program(""); err != nil {
				return err
			}
			if s.Dir == "" {
				s.Dir = "."
			}

			asDaemon()
			s.Agents = []int{0, 10, 1000, 10_000, 100_000}
			if quick {
				s.Span, s.Agents = 500*time.Millisecond, []int{0, 10, 1000}
			}

			s.Progress = func(what string) { c.Note("%s", what) }
			rows, curves, err := s.Run(cmd.Context())
			if perr := printRows(c, rows); err == nil {
				err = perr
			}
			if err != nil || table == "" {
				return err
			}

			return writeCurves(table, curves.Ready, curves.RSS, curves.Restore, curves.Overhead)
		},
	}
	cmd.Flags().StringVar(&s.Dir, "dir", "", "measure the disk that `DIR` is on (default: the current directory)")
	cmd.Flags().DurationVar(&s.Span, "span", 2*time.Second, "how long each timed part takes")
	cmd.Flags().BoolVar(&quick, "quick", false, "shorter parts, at most 1,000 agents")
	cmd.Flags().StringVar(&table, "csv", "", "also write how the cost grows to `FILE`, as CSV")
	cmd.AddCommand(besideCommand(c), clusterCommand(c), floodCommand(c), soakCommand(c), talkCommand(c))

	return cmd
}

// asDaemon makes this process use memory and processors as a daemon does: agents are measured in it.
func asDaemon() {
	daemon.SaveMemory()
	disk.LendProcessors()
}

// program is the daycare that is measured, "" being this one.
func program(file string) (string, error) {
	if file != "" {
		return file, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this binary: %w", err)
	}

	return self, nil
}

func besideCommand(c *term.App) *cobra.Command {
	b := Beside{}
	cmd := &cobra.Command{
		Use:   "beside",
		Short: "Measure what one agent costs among many others",
		Long: "Start a separate daemon on a workspace with many agents, and measure a turn of one\n" +
			"agent, a new agent and a chat's first message. The figures should not grow with the\n" +
			"number of agents. --binary compares another version of daycare on the same machine.",
		Example: "  daycare bench beside\n  daycare bench beside --agents 10,100000 --binary ./daycare-before",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if b.Binary, err = program(b.Binary); err != nil {
				return err
			}
			if b.Each < 1 || len(b.Others) == 0 || slices.Min(b.Others) < 0 {
				return term.Usage(cmd, "--times must be at least 1, and --agents must not be negative")
			}

			b.Progress = func(what string) { c.Note("%s", what) }
			rows, err := b.Run(cmd.Context())

			return errors.Join(printRows(c, rows), err)
		},
	}
	cmd.Flags().StringVar(&b.Dir, "dir", "", "where to put the daemon's files (default: the system's folder for temporary files)")
	cmd.Flags().StringVar(&b.Binary, "binary", "", "measure the daycare in `FILE` instead of this one")
	cmd.Flags().IntSliceVar(&b.Others, "agents", []int{10, 1000, 10_000}, "how many other agents there are, one `N` after the other")
	cmd.Flags().IntVar(&b.Each, "times", 50, "how often to do each thing")

	return cmd
}

func clusterCommand(c *term.App) *cobra.Command {
	b := Cluster{}
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Measure what it costs to run agents in a cluster",
		Long: "Measure agents on local files, with one NATS server, with three, and with one server alone (ownDisk:\n" +
			"never), in turn, all on this machine: messages, turns, how soon another machine takes over the agents of a\n" +
			"killed one, and idle daemons. It takes a few minutes. Only builds with the tag natsserver have this\n" +
			"command.",
		Example: "  daycare bench cluster --dir /var/tmp\n  daycare bench cluster --agents 100000",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if b.Rounds < 1 || b.Awake < 1 || b.Agents < 0 {
				return term.Usage(cmd, "--rounds and --awake must be at least 1, and --agents must not be negative")
			}
			if !nats.Here {
				return &term.Problem{Code: fault.ExitFailure, Err: errors.New("this program has no NATS server"),
					Do: "go build -trimpath -tags natsserver ./cmd/daycare"}
			}
			if b.Binary, err = program(""); err != nil {
				return err
			}

			asDaemon()
			b.Progress = func(what string) { c.Note("%s", what) }
			rows, err := b.Run(cmd.Context())

			return errors.Join(printRows(c, rows), err)
		},
	}
	cmd.Flags().StringVar(&b.Dir, "dir", "", "where all files are (default: the system's folder for temporary files)")
	cmd.Flags().DurationVar(&b.Span, "span", 2*time.Second, "how long each timed part takes")
	cmd.Flags().IntVar(&b.Rounds, "rounds", 3, "measure everything `N` times, and print medians")
	cmd.Flags().IntVar(&b.Awake, "awake", 300, "how many agents (`N`) are awake on the machine that is killed")
	cmd.Flags().IntVar(&b.Agents, "agents", 0, "also create `N` agents on three servers")

	return cmd
}

func talkCommand(c *term.App) *cobra.Command {
	t := Talk{}
	cmd := &cobra.Command{
		Use:   "talk",
		Short: "Measure conversations with a daemon and a local model that streams",
		Long: "Start a separate daemon with a model on loopback that streams its answer in 20 pieces, and\n" +
			"hold several conversations at once over the API, as a page or a program does.\n" +
			"--binary compares another version of daycare on the same machine.",
		Example: "  daycare bench talk\n  daycare bench talk --conversations 64 --binary ./daycare-before",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if t.Binary, err = program(t.Binary); err != nil {
				return err
			}
			if t.Turns < 1 || len(t.Conversations) == 0 || slices.Min(t.Conversations) < 1 {
				return term.Usage(cmd, "--turns and --conversations must be at least 1")
			}

			t.Progress = func(what string) { c.Note("%s", what) }
			rows, err := t.Run(cmd.Context())

			return errors.Join(printRows(c, rows), err)
		},
	}
	cmd.Flags().StringVar(&t.Dir, "dir", "", "where to put the daemon's files (default: the system's folder for temporary files)")
	cmd.Flags().StringVar(&t.Binary, "binary", "", "measure the daycare in `FILE` instead of this one")
	cmd.Flags().IntSliceVar(&t.Conversations, "conversations", []int{1, 8, 64}, "how many are held at once, one `N` after the other")
	cmd.Flags().IntVar(&t.Turns, "turns", 50, "how many turns each conversation has")

	return cmd
}

func floodCommand(c *term.App) *cobra.Command {
	f := Flood{}
	cmd := &cobra.Command{
		Use:   "flood",
		Short: "Send a daemon far more than it can process, and check that nothing is lost",
		Long: "Start a separate daemon and flood it: a thousand senders at once, all of them to one slow agent, a tool\n" +
			"that prints ten gigabytes, a model that does not stop. The table shows what was accepted, refused and\n" +
			"missing, and how much memory it took. The exit code is 1 if a message is lost or accepted twice, or if\n" +
			"anything is left over at the end. It takes a few minutes.",
		Example: "  daycare bench flood\n  daycare bench flood --senders 100 --messages 20 --tool-bytes 100000000",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if f.Binary, err = program(""); err != nil {
				return err
			}
			if f.Senders < 1 || f.Each < 1 || f.ToolBytes < 0 {
				return term.Usage(cmd, "--senders and --messages are at least 1")
			}

			f.Progress = func(what string) { c.Note("%s", what) }
			rows, err := f.Run(cmd.Context())

			return errors.Join(printRows(c, rows), err)
		},
	}
	cmd.Flags().StringVar(&f.Dir, "dir", "", "where to put the daemon's files (default: the system's folder for temporary files)")
	cmd.Flags().IntVar(&f.Senders, "senders", 1000, "how many senders write at once")
	cmd.Flags().IntVar(&f.Each, "messages", 100, "how many messages each sender writes")
	cmd.Flags().Int64Var(&f.ToolBytes, "tool-bytes", 10_000_000_000, "how much the tool prints")

	return cmd
}

func soakCommand(c *term.App) *cobra.Command {
	s := Soak{}
	var table string
	cmd := &cobra.Command{
		Use:   "soak",
		Short: "Keep a daemon busy for a long time, and check that nothing grows or gets lost",
		Long: "Start a separate daemon and talk to its agents without a pause. The table shows memory, descriptors and\n" +
			"goroutines before, in the middle, at the end and afterwards. The exit code is 1 if a message is lost or\n" +
			"accepted twice, an answer is wrong, or descriptors or goroutines are left over.",
		Example: "  daycare bench soak --for 10m --csv soak.csv",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if s.Binary, err = program(""); err != nil {
				return err
			}
			if s.For < time.Second || s.Agents < 1 {
				return term.Usage(cmd, "--for is at least 1s, --agents at least 1")
			}

			s.Progress = func(what string) { c.Note("%s", what) }
			rows, curves, err := s.Run(cmd.Context())
			err = errors.Join(printRows(c, rows), err)
			if table == "" || len(curves) == 0 {
				return err
			}

			return errors.Join(err, writeCurves(table, curves...))
		},
	}
	cmd.Flags().StringVar(&s.Dir, "dir", "", "where to put the daemon's files (default: the system's folder for temporary files)")
	cmd.Flags().DurationVar(&s.For, "for", 10*time.Minute, "how long")
	cmd.Flags().IntVar(&s.Agents, "agents", 32, "how many agents to talk to at once")
	cmd.Flags().StringVar(&table, "csv", "", "also write the daemon's memory, descriptors and goroutines over time to `FILE`, as CSV")

	return cmd
}

// writeCurves makes a CSV file of curves.
func writeCurves(path string, curves ...Series) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write the curves: %w", err)
	}

	return errors.Join(WriteCSV(f, curves...), f.Close())
}

func printRows(c *term.App, rows []Row) error {
	if c.JSON {
		return PrintJSON(c.Out, rows)
	}
	return Print(c.Out, rows)
}
