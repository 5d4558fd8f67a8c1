package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/fault"
)

// testOptions are the flags of test.
type testOptions struct {
	models   []string
	times    int
	parallel int
	only     string
	live     bool
	record   bool
	watch    bool
	keep     bool
	junit    string
}

// Test runs tests of agents.
func Test(c *term.App) *cobra.Command {
	var o testOptions
	cmd := &cobra.Command{
		Use: "test [PATH…]", Short: "Test agents: what they answer, call, write and cost",
		Long: "Run tests of agents (NAME.test.yaml), each in a throwaway workspace with its own engine. PATH is a test\n" +
			"or a folder; the default is all tests in .daycare/tests and in the folders of agents. The agents of this\n" +
			"workspace are not touched.\n\n" +
			"The model's answers come from the test's cassette; --record makes it by asking the model once. Tests with\n" +
			"a script or the offline model need no cassette. --live asks the model without recording.\n\n" +
			"The exit code is 0 if all runs passed, 1 if one failed or a test is flaky, 2 if a test file has\n" +
			"mistakes (then nothing runs), 3 if there is no test, 130 if it was interrupted.",
		Example: "  daycare test\n" +
			"  daycare test --record .daycare/tests/prices.test.yaml\n" +
			"  daycare test --live --models claude,local/qwen3 --times 5 --junit report.xml",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			s, err := newSuite(cmd.Context(), c, o, args)
			if err != nil {
				return err
			}
			ctx, cancel := interruptible(cmd.Context(), c)
			defer cancel()
			if o.watch {
				return s.watch(ctx)
			}

			return s.once(ctx)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.models, "models", nil, "run each test with each `MODEL`: PROVIDER, PROVIDER/MODEL or a model")
	flags.IntVar(&o.times, "times", 1, "run each test `N` times; one that passes only sometimes is flaky")
	flags.IntVar(&o.parallel, "parallel", 4, "run `N` tests at a time")
	flags.StringVar(&o.only, "run", "", "only tests whose name matches the `REGEX`")
	flags.BoolVar(&o.live, "live", false, "ask the models instead of using cassettes; this costs money")
	flags.BoolVar(&o.record, "record", false, "ask the models once and keep their answers in cassettes beside the tests")
	flags.BoolVar(&o.watch, "watch", false, "run again when a test, a prompt or a setting changes")
	flags.BoolVar(&o.keep, "keep", false, "keep the workspaces of runs that failed, and print where they are")
	flags.StringVar(&o.junit, "junit", "", "also write a JUnit report to `FILE`")
	_ = cmd.MarkFlagFilename("junit", "xml")

	return cmd
}

func (o testOptions) check(cmd *cobra.Command) error {
	_, err := regexp.Compile(o.only)
	switch {
	case err != nil:
		return term.Usage(cmd, "--run: %v", err)
	case o.times < 1 || o.parallel < 1:
		return term.Usage(cmd, "--times and --parallel must be at least 1")
	case o.live && o.record:
		return term.Usage(cmd, "--live and --record cannot be combined: --record asks the models, too")
	case o.record && o.times > 1:
		return term.Usage(cmd, "--record and --times cannot be combined: a cassette has one run")
	case o.watch && (o.record || o.live):
		return term.Usage(cmd, "--watch cannot be combined with --live or --record: each change would cost money")
	case o.watch && o.junit != "":
		return term.Usage(cmd, "--watch and --junit cannot be combined: the report of one round would be replaced by the next")
	}

	return nil
}

// interruptible ends a context when the user presses Ctrl-C, so that what was begun is
// taken away.
func interruptible(ctx context.Context, c *term.App) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals, done := c.TakeSignals(), make(chan struct{})
	go func() {
		select {
		case <-signals:
			cancel(term.ErrInterrupted)
		case <-done:
		}
	}()

	return ctx, func() { close(done) }
}

// outcome is the error that a round of tests ends with; nil: all passed.
func (r report) outcome() error {
	if r.Failed+r.Flaky == 0 {
		return nil
	}
	return &term.Problem{Code: fault.ExitFailure, Err: term.ErrSilent}
}

// once runs the tests one time.
func (s *suite) once(ctx context.Context) error {
	r, err := s.run(ctx)
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	if err := s.publish(r); err != nil {
		return err
	}

	return r.outcome()
}

// publish prints the end of a round, and writes the report that was asked for.
func (s *suite) publish(r report) error {
	var err error
	if s.options.junit != "" {
		if err = writeJUnit(s.options.junit, r); err != nil {
			err = fmt.Errorf("write JUnit report: %w", err)
		}
	}
	if s.app.JSON {
		return errors.Join(err, s.app.PrintJSON(r))
	}
	s.summary(r)

	return err
}
