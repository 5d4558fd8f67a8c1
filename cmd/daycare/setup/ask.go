package setup

import (
	"context"
	"strconv"
	"strings"

	"daycare/cmd/daycare/models"
	"daycare/cmd/daycare/term"
	"daycare/engine/config"
	"daycare/engine/fault"
	"daycare/engine/workspace"
)

// ask asks a user where answers are to come from, until what they say works or they
// keep it all the same. Without an answer (end of input) nothing is set up.
func ask(ctx context.Context, c *term.App, at workspace.Place, conf *config.Config) (*plan, *trial, error) {
	for {
		s, err := askSetup(ctx, c, conf)
		if err != nil {
			return nil, nil, err
		}
		if s.provider == choiceOffline {
			return s, nil, nil
		}

		t, err := apply(ctx, c, at, conf, s)
		if err == nil {
			return s, t, nil
		}
		if ctx.Err() != nil {
			return nil, nil, err
		}

		c.Report(err)
		if !c.Agrees("Save it anyway?") {
			c.Say("\n")
			continue
		}

		s.noCheck = true
		t, err = apply(ctx, c, at, conf, s)
		return s, t, err
	}
}

// askSetup asks the questions.
func askSetup(ctx context.Context, c *term.App, conf *config.Config) (*plan, error) {
	all := choices()
	usual := len(all) // the offline model
	found := conf.Choose(ctx, config.Ollama)[0]
	c.Say("%s\n", c.ErrStyle().Bold("Which model service do you want to use?"))

	for i, ch := range all {
		if ch.name == found.ID {
			usual = i + 1
		}
		c.Say("  %d  %s%s\n", i+1, ch.label, c.ErrStyle().Dim(strings.TrimRight("  "+ch.note(conf, found), " ")))
	}

	s := &plan{}
	for s.provider == "" {
		line, err := c.Answer("Number", strconv.Itoa(usual))
		if err != nil {
			return nil, err
		}
		n, err := strconv.Atoi(line)
		if err != nil || n < 1 || n > len(all) {
			c.Warn("%q is not a number from 1 to %d", line, len(all))
			continue
		}

		s.provider = all[n-1].name
	}

	if s.provider == choiceOffline {
		return s, nil
	}

	return s, askDetails(ctx, c, conf, s, all)
}

func askDetails(ctx context.Context, c *term.App, conf *config.Config, s *plan, all []choice) (err error) {
	ch, _ := s.choice()
	if s.provider == choiceServer {
		for {
			if s.baseURL, err = c.Answer("Server address", ch.baseURL); err != nil {
				return err
			}
			if strings.HasPrefix(s.baseURL, "http://") || strings.HasPrefix(s.baseURL, "https://") {
				break
			}
			c.Warn("an address starts with http:// or https://, and usually ends with /v1")
		}
	}
	if s.asProvider(conf).APIKey.IsZero() && s.provider != "ollama" {
		prompt := "Key (not shown; saved in auth.json)"
		if ch.local() {
			prompt = "Key, if the server needs one (not shown; Enter for none)"
		}
		if s.key, err = askKey(c, prompt, ch.local()); err != nil {
			return err
		}
	}

	usual := ch.model
	if ch.local() {
		names, err := serverModels(ctx, s.asProvider(conf))
		switch {
		case err != nil:
			c.Warn("the server lists no models: %v", err)
		case len(names) > 0:
			usual = names[0]
			c.Note("available: %s", term.OneLine(strings.Join(names, ", "), 300))
		}
	}

	for s.model == "" {
		if s.model, err = c.Answer("Model", usual); err != nil {
			return err
		}
		if s.model == "" {
			continue
		}
		if err := models.Check(models.Catalogue(conf, ""), s.asProvider(conf), s.model); err != nil {
			c.Report(&term.Problem{Code: fault.ExitFailure, Err: err})
			s.model = ""
		}
	}

	return nil
}

// askKey asks for a key without showing it.
func askKey(c *term.App, prompt string, optional bool) (config.Secret, error) {
	for {
		text, err := c.Hidden(prompt)
		if err != nil {
			return config.Secret{}, err
		}
		key, err := asSecret(text)
		if err == nil || optional && strings.TrimSpace(text) == "" {
			return key, nil
		}
		c.Warn("%v", err)
	}
}
