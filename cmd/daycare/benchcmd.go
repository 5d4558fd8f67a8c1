package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/bench"
)

func (c *cli) benchCommand() *cobra.Command {
	s := bench.Suite{}
	var quick bool
	var plot string
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure daycare on this machine, beside what the disk itself can do",
		Long: "Measure daycare in a folder of its own on this disk. Rates stand beside the limit\n" +
			"that was measured in the same run, so that they can be compared over machines.\n" +
			"It takes about a minute; other work on the machine shows in the figures.",
		Example: "  daycare bench --dir /var/tmp --plot cost.svg",
		Args:    words(0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if s.Binary, err = os.Executable(); err != nil {
				return fmt.Errorf("find this binary: %w", err)
			}
			if s.Dir == "" {
				s.Dir = "."
			}
			saveMemory() // as the daemon does
			s.Agents = []int{0, 10, 1000, 10_000}
			if quick {
				s.Span, s.Agents = 500*time.Millisecond, []int{0, 10, 1000}
			}
			s.Tell = func(what string) { c.note("%s", what) }
			rows, curves, err := s.Run(cmd.Context())
			if perr := c.printRows(rows); err == nil {
				err = perr
			}
			if err != nil || plot == "" {
				return err
			}
			f, err := os.Create(plot)
			if err != nil {
				return fmt.Errorf("draw plot: %w", err)
			}
			defer f.Close()
			return curves.Draw(f)
		},
	}
	cmd.Flags().StringVar(&s.Dir, "dir", "", "measure the disk that `DIR` is on (default: the current directory)")
	cmd.Flags().DurationVar(&s.Span, "span", 2*time.Second, "how long each timed part takes")
	cmd.Flags().BoolVar(&quick, "quick", false, "shorter parts, at most 1,000 agents")
	cmd.Flags().StringVar(&plot, "plot", "", "also draw how the cost grows, as SVG, into `FILE`")
	return cmd
}

func (c *cli) printRows(rows []bench.Row) error {
	if c.json {
		return bench.PrintJSON(c.stdout, rows)
	}
	return bench.Print(c.stdout, rows)
}
