package chaos

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A Scenario is a conversation and the conditions in which it is held. A feature
// adds its own to the list in scenarios.go.
type Scenario struct {
	Name string
	// Before is played once and outlived in peace: cases begin with what it left.
	Before []step
	// Age changes what Before left, once for all cases: what takes long belongs here.
	Age func(root string) error
	// Prepare changes the files once more before a case begins.
	Prepare func(u *user) error
	Steps   []step
	// Command is what a person calls while no daemon runs, again and again until it
	// succeeds. It is what dies; then the daemon starts, and lives.
	Command *invocation
	// Hooks are the names of the webhooks; none: one.
	Hooks []string
	// Asks: commands need the approval of a person.
	Asks bool
	// Bot: a chat platform is connected beside the webhooks.
	Bot bool
	// Clocked: it is about what is due by the clock.
	Clocked bool
	// Crowd: it has more agents than a process with few descriptors can have awake.
	Crowd bool
	// Only: the points, by their beginning, that are worth dying at where they are passed
	// once more; none: all. The default length dies at the first passing of any.
	Only []string
	// After is done to the files after each death, as a person would.
	After func(u *user) error
	// Refuse: so many answers are refused by the platform after it took them.
	Refuse int
	// Fails: the platform fails a third of its calls, half of them after it took the answer.
	Fails bool
	// Hangs is how long the platform of a hook takes to say that it has an answer.
	Hangs map[string]time.Duration
	// Check looks at the end for what only this scenario promises.
	Check func(u *user, v view) error
}

// A step is something that a person or platform does. It returns when it is done,
// however often the daemon dies meanwhile.
type step func(ctx context.Context, u *user) error

func (s *Scenario) hooks() []string {
	if len(s.Hooks) == 0 {
		return []string{"a"}
	}
	return s.Hooks
}

// say posts a message: the key is its first word.
func say(hook, key, text string) step {
	return func(ctx context.Context, u *user) error { return u.say(ctx, hook, key, text) }
}

// burst posts n messages one right after the other.
func burst(hook, key, text string, n int) step {
	return func(ctx context.Context, u *user) error {
		for i := range n {
			if err := u.say(ctx, hook, fmt.Sprintf("%s%d", key, i), text); err != nil {
				return err
			}
		}

		return nil
	}
}

// together plays steps at the same time.
func together(steps ...step) step {
	return func(ctx context.Context, u *user) error {
		var wg sync.WaitGroup
		errs := make([]error, len(steps))
		for i, s := range steps {
			wg.Go(func() { errs[i] = s(ctx, u) })
		}

		wg.Wait()

		for _, err := range errs {
			if err != nil {
				return err
			}
		}

		return nil
	}
}

// happened waits for an effect.
func happened(key string) step { return happenedAfter(0, key) }

// happenedAfter waits for an effect of what was said after n answers had come.
func happenedAfter(n int, key string) step {
	return func(ctx context.Context, u *user) error { return u.happened(ctx, n, key) }
}

// answered waits until n answers have come.
func answered(n int) step {
	return func(ctx context.Context, u *user) error { return u.answers(ctx, n) }
}

// pause waits for d.
func pause(d time.Duration) step {
	return func(ctx context.Context, _ *user) error {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(d):
			return nil
		}
	}
}

// calm waits until the logs say that nothing is left to do.
func calm(ctx context.Context, u *user) error {
	f := newFollower(u.root)
	return until(ctx, func() bool {
		rest, _, err := f.rest()
		return rest == "" && err == nil
	})
}

func playAll(ctx context.Context, u *user, steps []step) error {
	for _, s := range steps {
		if err := s(ctx, u); err != nil {
			return err
		}
	}

	return nil
}
