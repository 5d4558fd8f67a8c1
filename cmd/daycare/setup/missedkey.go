package setup

import (
	"cmp"
	"context"
	"os"
	"time"

	"daycare/cmd/daycare/plugins"
	"daycare/cmd/daycare/term"
	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/workspace"
)

// Missed says what the models of a running daemon lack and this shell has: a daemon keeps
// the environment that it was started with, so a key that is set later never reaches it.
// do is the remedy; both are empty where nothing is missed.
func Missed(ctx context.Context, at workspace.Place, theirs []event.Service) (what, do string) {
	if len(theirs) == 0 || theirs[0].State == "off" { // no daemon runs
		return "", ""
	}
	conf, _, err := config.Load(at.Data, os.LookupEnv, plugins.ConnectorChecks...)
	if err != nil {
		return "", "" // whoever needs the settings reports it
	}

	return missed(conf.Choose(ctx, config.Ollama), theirs)
}

// missed compares the providers that this shell would choose with those of the daemon.
func missed(mine []config.Provider, theirs []event.Service) (what, do string) {
	if first := mine[0]; event.NoModel(theirs) && first.Type != "scripted" {
		do = "Restart it from this shell: daycare restart"
		if !first.APIKey.IsZero() {
			do += "\nOr save the key for it: daycare auth set " + first.ID
		}
		return "the daemon answers with the offline model; started from this shell it would use " + first.ID +
			" (" + first.Why + ")", do
	}

	for _, p := range mine {
		for _, t := range theirs {
			if t.ID == p.ID && !t.Key && !p.APIKey.IsZero() {
				return "the daemon has no key for " + p.ID + "; this shell has one (" + cmp.Or(p.KeyEnv(), p.ID) + ")",
					"Restart it from this shell: daycare restart\nOr save the key for it: daycare auth set " + p.ID
			}
		}
	}

	return "", ""
}

// missedWait is how long a command that joins a daemon waits for its list of providers.
const missedWait = 2 * time.Second

// WarnOfMissed warns where the daemon that a command joins lacks a key that its shell has.
func WarnOfMissed(ctx context.Context, c *term.App, at workspace.Place, client *control.Client) {
	asking, cancel := context.WithTimeout(ctx, missedWait)
	defer cancel()
	theirs, err := client.Providers(asking)
	if err != nil {
		return // whatever is asked next fails as well, and says why
	}
	if what, do := Missed(ctx, at, theirs); what != "" {
		c.Warn("warning: %s\n%s", what, do)
	}
}
