package talk

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"daycare/cmd/daycare/term"
	"daycare/engine/address"
	"daycare/engine/changes"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/engine/permission"
)

// rehearse makes an agent that works on a copy of its folder: one that continues the conversation of
// another, or a new one where there is none. ref "" is the terminal's own agent.
func rehearse(ctx context.Context, client *control.Client, ref string) (event.Agent, error) {
	a, err := client.Agent(ctx, ref)
	if ref == "" {
		a, err = client.Agent(ctx, address.Own)
	}
	var made event.Agent
	switch {
	case errors.Is(err, message.ErrUnknownAgent) && ref == "":
		made, err = client.Create(ctx, control.NewAgent{Name: "dry run"})
	case err != nil:
		return made, term.About(err, "find agent", ref)
	default:
		made, err = client.Folders().Fork(ctx, a.ID, 0, "dry run of "+a.Handle)
		if errors.Is(err, control.ErrNoRecord) { // it has not said anything yet
			made, err = client.Create(ctx, control.NewAgent{Name: "dry run of " + a.Handle})
		}
	}
	if err != nil {
		return made, fmt.Errorf("begin dry run: %w", err)
	}
	if err := client.Grant(ctx, made.ID, control.Granting{Profile: string(permission.DryRun)}); err != nil {
		_, rerr := client.Remove(ctx, made.ID, true)
		return made, errors.Join(err, rerr)
	}

	return made, nil
}

// rehearsed says what a dry run has changed so far.
func rehearsed(ctx context.Context, c *term.App, a event.Agent) error {
	at, err := c.Place()
	if err != nil {
		return err
	}
	shelf, err := changes.List(at)
	if err != nil {
		return err
	}
	copies := shelf.Copies
	i := slices.IndexFunc(copies, func(one changes.Copy) bool { return one.Agent == a.ID })
	if i < 0 {
		return nil // dropped meanwhile
	}
	list, err := copies[i].Changes(ctx)
	if err != nil {
		return err
	}
	c.Note("dry run: %s in the copy of agent %s; show them with: daycare changes --agent %s   (then: daycare changes apply, "+
		"or daycare changes drop)", term.Plural(len(list), "file differs", "files differ"), a.Handle, a.Handle)

	return nil
}
