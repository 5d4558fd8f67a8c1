package chaos

import (
	"context"
	"fmt"
	"strings"

	"daycare/engine/control"
)

// mark names a place in the conversation. Naming it again where nothing was said in
// between is the same.
func mark(name string) step {
	return func(ctx context.Context, u *user) error {
		return u.ask(ctx, func(c *control.Client) error {
			_, err := c.Folders().Mark(ctx, "0/", name)
			return err
		})
	}
}

// rewind takes what came after a mark out of the context. To do it again changes
// nothing.
func rewind(to string) step {
	return func(ctx context.Context, u *user) error {
		return u.ask(ctx, func(c *control.Client) error {
			_, err := c.Folders().Rewind(ctx, "0/", to)
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

const edited = "hello, as a person put it later"

// edit changes the text of a message in the history by the API, as an editor in the
// browser or $EDITOR does.
func edit(key string) step {
	from, to := `"text":"`+key+` hello"`, `"text":"`+key+` `+edited+`"`
	return func(ctx context.Context, u *user) error {
		u.reworded(key, key+" "+edited)
		return u.ask(ctx, func(c *control.Client) error {
			text, hash, err := c.Folders().ReadFile(ctx, "0/", "history.jsonl")
			if err != nil || strings.Contains(string(text), to) {
				return err
			}
			return c.Folders().WriteFile(ctx, "0/", "history.jsonl", []byte(strings.Replace(string(text), from, to, 1)), hash)
		})
	}
}

// reworded notes that a user is about to change what stands of a message.
func (w *world) reworded(key, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byKey[key].texts = append(w.byKey[key].texts, text)
}

// editStands: what a user put is what stands there.
func editStands(_ *user, v view) error {
	n := 0
	for _, a := range v.agents {
		for _, l := range a.history {
			if l.Type == "user_message" && strings.HasSuffix(l.Text, edited) {
				n++
			}
		}
	}

	if n != 1 {
		return fmt.Errorf("the text that a person put into the history stands there %d times, want once", n)
	}

	return nil
}
