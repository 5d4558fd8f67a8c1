package commands

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/follow"
	"daycare/cmd/daycare/logfile"
	"daycare/cmd/daycare/term"
	"daycare/engine/address"
	"daycare/engine/config"
	"daycare/engine/control"
)

// Logs prints the log of the daemon, and follows it.
func Logs(c *term.App) *cobra.Command {
	var q logQuery
	var since, level string
	cmd := &cobra.Command{
		Use:   "logs [AGENT]",
		Short: "Show the log of the daemon",
		Long: "Show the log of the daemon: formatted on a terminal, else the raw JSON lines of\n" +
			"logs/daycare.jsonl and its rotated files. Works with the daemon running or not.",
		Example: "  daycare logs -f\n  daycare logs 0/ --level warn --since 2h",
		Args:    term.Words(1), ValidArgsFunction: c.AgentRefs,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if len(args) > 0 {
				q.agent = args[0]
			}
			if q.since, err = term.SinceTime(cmd, since, time.Now()); err != nil {
				return err
			}
			if err := q.level.UnmarshalText([]byte(level)); err != nil {
				return term.Usage(cmd, "--level %q is unknown; allowed: debug, info, warn, error", level)
			}

			return logs(cmd.Context(), c, q)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&q.follow, "follow", "f", false, "keep printing new lines")
	flags.StringVar(&q.agent, "agent", "", "only lines about the agent `ID`; the same as AGENT")
	flags.StringVar(&level, "level", "debug", "only this `LEVEL` and above: debug, info, warn, error")
	flags.IntVarP(&q.lines, "lines", "n", 200, "maximum number of lines; 0 means all")
	term.SinceFlag(cmd, &since)
	_ = cmd.RegisterFlagCompletionFunc("level",
		cobra.FixedCompletions([]cobra.Completion{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("agent", c.AgentRefs)

	return cmd
}

// A logQuery is what is wanted of the log.
type logQuery struct {
	agent  string // what was typed, then the id
	level  slog.Level
	since  time.Time
	lines  int
	follow bool

	name func(id string) string // its handle; "": none
}

func logs(ctx context.Context, c *term.App, q logQuery) error {
	at, err := c.MadePlace()
	if err != nil {
		return err
	}
	conf, err := c.Config()
	if err != nil {
		return err
	}

	if client, err := c.Dial(ctx, at); err == nil && q.agent != "" { // it may be on another machine of a cluster
		if a, err := client.Agent(ctx, q.agent); err == nil {
			q.agent = a.ID
		}
		client.Close()
	}
	show := func(raw []byte) error { return showLog(c, &q, raw) }
	return readLog(ctx, at.Data, conf, &q, show)
}

// ReadLog calls show with the lines of the log that q asks for: those that are there, and with
// Follow those that are added until ctx ends.
func ReadLog(ctx context.Context, home string, conf *config.Config, q control.LogQuery, show func(raw []byte) error) error {
	own := logQuery{agent: q.Agent, since: q.Since, lines: q.Lines, follow: q.Follow}
	if err := own.level.UnmarshalText([]byte(q.Level)); err != nil {
		return &control.Invalid{Field: "level", Reason: err.Error()}
	}

	return readLog(ctx, home, conf, &own, show)
}

func readLog(ctx context.Context, home string, conf *config.Config, q *logQuery, show func(raw []byte) error) error {
	path := logfile.Path(home, conf)
	if path == "" {
		return term.NotFound("set log.file in the settings", "the settings disable the log file")
	}
	if err := q.resolve(home); err != nil {
		return err
	}

	t := follow.Open(path)
	defer t.Close()
	if err := showNewest(q, t, show); err != nil || !q.follow {
		return err
	}

	return followLog(ctx, q, t, show)
}

// showNewest prints what the files hold now. The newest is opened first and read
// last, so that a rotation in between neither hides nor doubles a line, and
// following continues where this ends.
func showNewest(q *logQuery, t *follow.File, show func(raw []byte) error) error {
	var newest [][]byte
	keep := func(line []byte) error {
		if q.fits(line) {
			newest = append(newest, bytes.Clone(line))
		}
		if q.lines > 0 && len(newest) > 2*q.lines {
			newest = append(newest[:0], newest[len(newest)-q.lines:]...)
		}

		return nil
	}
	if err := t.Open(); err != nil {
		return fmt.Errorf("read log: %w", err)
	}

	for n := logfile.Kept - 1; n > 0; n-- {
		err := eachLine(logfile.Numbered(t.Path, n), t.Is, keep)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("read log: %w", err)
		}
	}

	if err := t.Read(keep); err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	if q.lines > 0 && len(newest) > q.lines {
		newest = newest[len(newest)-q.lines:]
	}

	for _, line := range newest {
		if err := show(line); err != nil {
			return err
		}
	}

	return nil
}

// resolve finds the agent that was named, and the handles of all.
func (q *logQuery) resolve(home string) error {
	index, _, err := address.Look(home, slog.New(slog.DiscardHandler))
	if err != nil {
		return fmt.Errorf("read agents: %w", err)
	}
	q.name = index.Handle
	if q.agent == "" {
		return nil
	}

	id, err := index.Resolve(q.agent)
	if err != nil && address.ValidID(q.agent) { // one that is gone may be in the log still
		id, err = q.agent, nil
	}
	if err != nil {
		return term.NotFound("list agents with: daycare agents ls", "no agent %q", q.agent)
	}

	q.agent = id
	return nil
}

// eachLine calls fn for the whole lines of a file, unless it is one to be skipped.
func eachLine(path string, skip func(*os.File) bool, fn func([]byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if skip(f) {
		return nil
	}

	return follow.Lines(f, fn)
}

// A logLine is the part of a line that is asked for.
type logLine struct {
	Time  time.Time  `json:"time"`
	Level slog.Level `json:"level"`
	Msg   string     `json:"msg"`
	Agent string     `json:"agent"`
}

func (q *logQuery) fits(raw []byte) bool {
	var l logLine
	if json.Unmarshal(raw, &l) != nil {
		return false // a line that a crash cut says nothing
	}

	return l.Level >= q.level && !l.Time.Before(q.since) && (q.agent == "" || l.Agent == q.agent)
}

// showLog prints a line: as it is, or for a user.
func showLog(c *term.App, q *logQuery, raw []byte) error {
	if !term.IsTerminal(c.Out) || c.JSON {
		return c.PrintLine(raw)
	}
	if err := term.Printf(c.Out, "%s\n", prettyLog(raw, q.name, c.OutStyle())); err != nil {
		return fmt.Errorf("write output: %w", err)
	}

	return nil
}

// prettyLog is a line for users: when, how bad, what, and the data behind it.
func prettyLog(raw []byte, name func(id string) string, s term.Style) term.Styled {
	var l logLine
	var rest map[string]any
	if json.Unmarshal(raw, &l) != nil || json.Unmarshal(raw, &rest) != nil {
		return term.Plain(string(raw))
	}

	for _, key := range []string{"time", "level", "msg"} {
		delete(rest, key)
	}

	colour := term.Plain
	switch {
	case l.Level >= slog.LevelError:
		colour = s.Red
	case l.Level >= slog.LevelWarn:
		colour = s.Yellow
	}

	line := s.Dim(l.Time.Local().Format("01-02 15:04:05")) + " " + colour(fmt.Sprintf("%-5s", l.Level)) + " " + term.Plain(l.Msg)
	for n, key := range slices.Sorted(maps.Keys(rest)) {
		value := fmt.Sprint(rest[key])
		if key == "agent" {
			value = cmp.Or(name(value), value)
		}
		if strings.ContainsAny(value, " \t\n\"") || value == "" {
			value = fmt.Sprintf("%q", value)
		}
		if n == 0 {
			line += " "
		}
		line += " " + s.Dim(key+"=") + term.Plain(value)
	}

	return line
}

// followLog prints what is added to the log until ctx ends, over rotations.
func followLog(ctx context.Context, q *logQuery, t *follow.File, show func(raw []byte) error) error {
	f := follow.Watch(ctx)
	defer f.Close()
	f.Add(t.Dir())
	for {
		err := t.Read(func(line []byte) error {
			if !q.fits(line) {
				return nil
			}
			return show(line)
		})
		if err != nil {
			return err
		}
		if _, err := f.Next(ctx); err != nil {
			return err
		}
	}
}
