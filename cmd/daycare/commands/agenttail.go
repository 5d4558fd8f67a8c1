package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/follow"
	"daycare/cmd/daycare/show"
	"daycare/cmd/daycare/term"
	"daycare/engine/record"
)

// agentsTail prints the end of an agent's history, and follows it.
func agentsTail(c *term.App) *cobra.Command {
	var n int
	var following, all bool
	cmd := &cobra.Command{
		Use:   "tail ID | --all",
		Short: "Show the newest history of an agent, or of all",
		Long: "Show the newest history records of an agent, or of all agents. daycare reads them from the history\n" +
			"files, so the output is complete and the same whether the daemon runs or not.\n" +
			"The number before a record is its SEQ, for `agents rewind` and `agents fork`.",
		Example: "  daycare agents tail 0/ -n 50 -f\n  daycare agents tail --all -f",
		Args:    term.Words(1), ValidArgsFunction: c.Refs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case all == (len(args) == 1):
				return term.Usage(cmd, "daycare agents tail needs the ID of an agent, or --all")
			case all:
				return tailAll(cmd.Context(), c, n, following)
			}

			return tail(cmd.Context(), c, args[0], n, following)
		},
	}
	cmd.Flags().IntVarP(&n, "lines", "n", 20, "number of records")
	cmd.Flags().BoolVarP(&following, "follow", "f", false, "keep printing new records")
	cmd.Flags().BoolVar(&all, "all", false, "records of all agents")

	return cmd
}

func tail(ctx context.Context, c *term.App, ref string, n int, following bool) error {
	client, err := c.Reader(ctx)
	if err != nil {
		return err
	}
	a, err := client.Agent(ctx, ref)
	if err != nil {
		return term.About(err, "find agent", ref)
	}

	var f *follow.Folders
	if following { // before anything is read: what is added meanwhile is seen, too
		f = follow.Watch(ctx)
		defer f.Close()
		if err := errors.Join(followAgent(c, f, a.ID), followOthers(ctx, f, client)); err != nil {
			return err
		}
	}
	records, err := show.Newest(ctx, client, a.ID, n)
	if err != nil {
		return err
	}
	seen := int64(0)
	if n == 0 && following {
		last, err := show.Newest(ctx, client, a.ID, 1)
		if err != nil {
			return err
		}
		seen = maxSeq(last)
	}
	if !following {
		return showRecords(c, records)
	}

	for {
		if err := showRecords(c, records); err != nil {
			return err
		}
		seen = max(seen, maxSeq(records))
		if _, err := f.Next(ctx); err != nil {
			return err
		}
		if records, err = after(ctx, c, a.ID, seen); err != nil {
			return err
		}
	}
}

// after reads the records that were added since seq. The client is made again each
// time, because the daemon may start or end in between.
func after(ctx context.Context, c *term.App, id string, seq int64) ([]json.RawMessage, error) {
	client, err := c.Reader(ctx)
	if err != nil {
		return nil, err
	}
	var found []json.RawMessage
	for n := 20; ; n *= 4 {
		if found, err = show.Newest(ctx, client, id, n); err != nil {
			return nil, err
		}
		if len(found) < n || minSeq(found) <= seq {
			break
		}
	}

	return slices.DeleteFunc(found, func(r json.RawMessage) bool { return seqOf(r) <= seq }), nil
}

func seqOf(line json.RawMessage) int64 {
	var head struct {
		Seq int64 `json:"seq"`
	}
	if json.Unmarshal(line, &head) != nil {
		return 0
	}

	return head.Seq
}

func maxSeq(records []json.RawMessage) (seq int64) {
	for _, r := range records {
		seq = max(seq, seqOf(r))
	}
	return seq
}

// minSeq is of the records that have one; a line written by hand may not.
func minSeq(records []json.RawMessage) int64 {
	low := maxSeq(records)
	for _, r := range records {
		if seq := seqOf(r); seq > 0 {
			low = min(low, seq)
		}
	}

	return low
}

// showRecords prints records as text, or with --json as their lines stand on disk.
func showRecords(c *term.App, records []json.RawMessage) error {
	for _, line := range records {
		if c.JSON {
			if err := c.PrintLine(line); err != nil {
				return err
			}
			continue
		}

		entry, err := record.Decode(line)
		if err != nil {
			c.Warn("skipped a line: %v", err)
			continue
		}

		text := show.Record(entry, c.OutStyle())
		if text == "" {
			continue
		}
		if err := term.Printf(c.Out, "%s\n", text); err != nil {
			return fmt.Errorf("write output: %w", err)
		}
	}

	return nil
}
