package chaos

import (
	"context"
	"fmt"

	"daycare/engine/control"
)

// mark names a place in the conversation. Naming it again where nothing was said in
// between is the same.
func mark(name string) step {
	return func(ctx context.Context, u *user) error {
		return u.ask(ctx, func(c *control.Client) error {
			_, err := c.Mark(ctx, "0/", name)
			return err
		})
	}
}

// rewind takes what came after a mark out of the context. To do it again changes
// nothing.
func rewind(to string) step {
	return func(ctx context.Context, u *user) error {
		return u.ask(ctx, func(c *control.Client) error {
			_, err := c.Rewind(ctx, "0/", to)
			return err
		})
	}
}

// rewound: the model counted the turns that it was shown, and the one that was taken
// out is not among them.
func rewound(_ *user, v view) error {
	const want = "this is turn 3" // the one before the case, m1, m3
	for _, a := range v.agents {
		for _, l := range a.history {
			if l.Type == "assistant_message" && len(l.Text) >= 12 && l.Text[:12] == want[:12] && l.Text != want {
				return fmt.Errorf("after the rewind the model answered %q; it should have seen three turns", l.Text)
			}
		}
	}
	return nil
}
