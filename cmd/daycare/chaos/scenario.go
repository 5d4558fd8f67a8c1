package chaos

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"daycare/engine/control"
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
	// Command is what a user calls while no daemon runs, again and again until it
	// succeeds. It is what dies; then the daemon starts, and lives.
	Command *invocation
	Settings
	Selection
	Platform
	// After is done to the files after each death, as a user would.
	After func(u *user) error
	// Check looks at the end for what only this scenario promises.
	Check func(u *user, v view) error
}

// Settings are what settings.yaml of a scenario says.
type Settings struct {
	Hooks []string // names of the webhooks; empty: one, "a"
	Asks  bool     // commands need the approval of a user
	Chat  string   // the name of a chat platform that is connected beside the webhooks; "": none
}

// A Selection limits the ways to die, and the failpoints, that a scenario is played with.
type Selection struct {
	Clocked bool // it is about what is due by the clock, so clocks are not changed
	Crowd   bool // it has more agents than a process with few descriptors can keep awake
	// Only are the prefixes of the failpoints that are worth dying at each time they are
	// passed; empty: all. The default length dies at the first passing of any.
	Only []string
}

// A Platform is how the chat platforms of a scenario fail.
type Platform struct {
	Refuse int  // number of answers that are refused after they were accepted
	Fails  bool // a third of the calls fail, half of them after the answer was accepted
	// Hangs is how long the platform of a hook takes to confirm an answer, by hook.
	Hangs map[string]time.Duration
	// HangsUntil reports that no platform hangs any more; nil: each hangs for its time.
	HangsUntil func(w *world) bool
}

// A step is something that a user or platform does. It returns when it is done,
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

// idle waits for d, and for as long as this machine makes daemons late in that time, but not for ever.
func idle(d time.Duration) step {
	return func(ctx context.Context, u *user) error {
		began := time.Now()
		return until(ctx, func() bool {
			now := time.Now()
			return now.Sub(began) >= min(d+u.stalls.between(began, now), mostIdle)
		})
	}
}

const mostIdle = 8 * time.Second

// noted waits until history has the delivery of each answer that its platform took. A call in progress is no reason to put
// that off: where it is, it is late.
func noted(ctx context.Context, u *user) error {
	began, life, missing := time.Now(), -1, ""
	err := until(ctx, func() bool {
		now, n := time.Now(), u.newestLife()
		if n != life { // each has its own time
			began, life = now, n
		}
		out, err := u.unnoted()
		missing = out
		return err == nil && (out == "" || now.Sub(began) > latestNote+u.stalls.between(began, now))
	})
	if err == nil && missing != "" {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.overdue = fmt.Sprintf("answer %s arrived, and its delivery was not recorded within %s, while a call was in progress",
			missing, latestNote)
	}

	return err
}

// ended ends the call that lasts as long as the user wants.
func ended(_ context.Context, u *user) error { return os.WriteFile(enough(u.effects), nil, 0o600) }

// calm waits until the logs say that nothing is left to do, also once the daemon has answered: while the power is cut, files
// are missing in which something is left.
func calm(ctx context.Context, u *user) error {
	f := newFollower(u.root, nil)
	nothing := func() bool {
		rest, _, err := f.rest()
		return rest == "" && err == nil
	}

	return until(ctx, func() bool {
		if !nothing() {
			return false
		}
		err := u.ask(ctx, func(c *control.Client) error {
			_, err := c.Permissions(ctx)
			return err
		})
		return err == nil && nothing()
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
