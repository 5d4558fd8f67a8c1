package setup

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"daycare/cmd/daycare/plugins"
	"daycare/cmd/daycare/term"
	"daycare/engine/config"
	"daycare/engine/fault"
	"daycare/engine/workspace"
)

// What follows is init for a user interface that asks the questions itself.

// An Offer is one place where answers may come from.
type Offer struct {
	Name, Label, Note string
	Server            bool   // it may have any models and may need no key
	Address           string // suggested; asked for if AskAddress is set
	AskAddress        bool
	KeyEnv            string // the variable of this shell that holds the key; "" if none does
	AskKey            bool
	Model             string // suggested; "" where no model is asked for
}

// Answers are what a user chose.
type Answers struct {
	Name, Address, Key, Model string
	Unchecked                 bool
}

// Offers lists where answers may come from, and which of them is the usual choice. It is
// an error if the settings name providers already.
func Offers(ctx context.Context, at workspace.Place) (offers []Offer, usual int, err error) {
	conf, err := unsetConfig(at)
	if err != nil {
		return nil, 0, err
	}
	found := conf.Choose(ctx, config.Ollama)[0]
	for i, ch := range choices() {
		o := Offer{Name: ch.name, Label: ch.label, Server: ch.local(), Address: ch.baseURL, Model: ch.model,
			AskAddress: ch.name == choiceServer, AskKey: ch.keyEnv != "" || ch.name == choiceServer, Note: ch.note(conf, found)}
		if ch.keyEnv != "" && !conf.SecretEnv(ch.keyEnv).IsZero() {
			o.KeyEnv = ch.keyEnv
		}
		if ch.name == found.ID {
			usual = i
		}
		offers = append(offers, o)
	}

	return offers, usual, nil
}

// ServerModels lists the models that the server of the answers says it has.
func ServerModels(ctx context.Context, at workspace.Place, a Answers) ([]string, error) {
	conf, err := unsetConfig(at)
	if err != nil {
		return nil, err
	}
	s, err := a.plan(conf)
	if err != nil {
		return nil, err
	}

	return serverModels(ctx, s.asProvider(conf))
}

// Apply asks the model for a word, unless the answers are to stay unchecked, and writes
// them into the settings. It returns what the model said.
func Apply(ctx context.Context, at workspace.Place, a Answers) (said string, err error) {
	conf, err := unsetConfig(at)
	if err != nil {
		return "", err
	}
	s, err := a.plan(conf)
	if err != nil {
		return "", err
	}

	quiet := &term.App{Streams: term.Streams{Out: io.Discard, Err: io.Discard}}
	t, err := apply(ctx, quiet, at, conf, s)
	if err != nil {
		if _, do := term.Explain(err); do != "" {
			return "", fmt.Errorf("%w\n%s", err, do)
		}
		return "", err
	}
	if t == nil {
		return "", nil
	}

	return t.Answer, nil
}

// plan is the answers as init has them. A key of this shell is kept with them: a daemon
// that runs already has another environment.
func (a Answers) plan(conf *config.Config) (*plan, error) {
	s := &plan{provider: a.Name, model: a.Model, noCheck: a.Unchecked}
	ch, ok := s.choice()
	if !ok {
		return nil, fmt.Errorf("there is no service %q", a.Name)
	}
	if a.Address != ch.baseURL || ch.name == choiceServer {
		s.baseURL = a.Address
	}
	if a.Key == "" {
		s.key = conf.SecretEnv(ch.keyEnv)
		return s, nil
	}

	var err error
	s.key, err = asSecret(a.Key)
	return s, err
}

// unsetConfig reads the settings of a workspace that name no provider yet.
func unsetConfig(at workspace.Place) (*config.Config, error) {
	home := at.Data
	conf, _, err := config.Load(home, os.LookupEnv, plugins.ConnectorChecks...)
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	if len(conf.Providers) > 0 {
		p := conf.Providers[0]
		return nil, &term.Problem{Code: fault.ExitFailure, Err: fmt.Errorf("the settings already have providers: %s (%s)", p.ID, p.Why),
			Do: "edit " + at.Shown(filepath.Join(at.Data, config.Name))}
	}

	return conf, nil
}
