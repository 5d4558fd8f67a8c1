package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"daycare/cmd/daycare/models"
	"daycare/engine/config"
)

// ask asks a person where answers are to come from, until what they say works or they
// keep it all the same. Without an answer (end of input) nothing is set up.
func (c *cli) ask(ctx context.Context, root string, conf *config.Config) (*setup, *trial, error) {
	for {
		s, err := c.askSetup(ctx, conf)
		if err != nil {
			return nil, nil, err
		}
		if s.provider == choiceOffline {
			return s, nil, nil
		}
		t, err := c.apply(ctx, root, conf, s)
		if err == nil {
			return s, t, nil
		}
		if ctx.Err() != nil {
			return nil, nil, err
		}
		c.report(err)
		if !c.agrees("Write it down all the same?") {
			fmt.Fprintln(c.stderr)
			continue
		}
		s.noCheck = true
		t, err = c.apply(ctx, root, conf, s)
		return s, t, err
	}
}

// askSetup asks the questions.
func (c *cli) askSetup(ctx context.Context, conf *config.Config) (*setup, error) {
	all := choices()
	usual := len(all) // the offline model
	found := conf.Choose(ctx, config.Ollama)[0]
	fmt.Fprintln(c.stderr, c.talk().bold("Where do answers come from?"))
	for i, ch := range all {
		note := ""
		switch {
		case ch.keyEnv != "" && !conf.SecretEnv(ch.keyEnv).IsZero():
			note = "  " + ch.keyEnv + " is set"
		case ch.name == "ollama" && found.ID == "ollama":
			note = "  it runs and has " + found.Model
		}
		if ch.name == found.ID {
			usual = i + 1
		}
		fmt.Fprintf(c.stderr, "  %d  %s%s\n", i+1, ch.label, c.talk().dim(note))
	}
	s := &setup{}
	for s.provider == "" {
		line, err := c.answer("Number", strconv.Itoa(usual))
		if err != nil {
			return nil, err
		}
		n, err := strconv.Atoi(line)
		if err != nil || n < 1 || n > len(all) {
			c.warn("%q is no number from 1 to %d", line, len(all))
			continue
		}
		s.provider = all[n-1].name
	}
	if s.provider == choiceOffline {
		return s, nil
	}
	return s, c.askDetails(ctx, conf, s, all)
}

func (c *cli) askDetails(ctx context.Context, conf *config.Config, s *setup, all []choice) (err error) {
	ch, _ := s.choice()
	if s.provider == choiceServer {
		for {
			if s.baseURL, err = c.answer("Its address", ch.baseURL); err != nil {
				return err
			}
			if strings.HasPrefix(s.baseURL, "http://") || strings.HasPrefix(s.baseURL, "https://") {
				break
			}
			c.warn("an address begins with http:// or https://, and mostly ends with /v1")
		}
	}
	if s.asProvider(conf).APIKey.IsZero() && s.provider != "ollama" {
		prompt := "Key (not shown; it is kept in auth.json)"
		if ch.local() {
			prompt = "Key, if it wants one (not shown; Enter: none)"
		}
		if s.key, err = c.askKey(prompt, ch.local()); err != nil {
			return err
		}
	}
	usual := ch.model
	if ch.local() {
		names, err := serverModels(ctx, s.asProvider(conf))
		switch {
		case err != nil:
			c.warn("it does not say which models it has: %v", err)
		case len(names) > 0:
			usual = names[0]
			c.note("it has %s", oneLine(strings.Join(names, ", "), 300))
		}
	}
	for s.model == "" {
		if s.model, err = c.answer("Model", usual); err != nil {
			return err
		}
		if s.model == "" {
			continue
		}
		if err := models.Check(models.Catalogue(conf, ""), s.asProvider(conf), s.model); err != nil {
			c.report(&problem{code: exitFailure, err: err})
			s.model = ""
		}
	}
	return nil
}

// answer asks for a line; an empty one is the usual answer.
func (c *cli) answer(question, usual string) (string, error) {
	fmt.Fprint(c.stderr, question)
	if usual != "" {
		fmt.Fprintf(c.stderr, " [%s]", usual)
	}
	fmt.Fprint(c.stderr, ": ")
	line, err := readLine(c.stdin)
	if err != nil {
		fmt.Fprintln(c.stderr)
		return "", errInterrupted
	}
	return cmp.Or(strings.TrimSpace(line), usual), nil
}

// readLine reads no byte beyond the line, so that a secret may be asked for next.
func readLine(r io.Reader) (string, error) {
	var line []byte
	for one := make([]byte, 1); ; {
		n, err := r.Read(one)
		switch {
		case n > 0 && one[0] == '\n':
			return string(line), nil
		case n > 0:
			line = append(line, one[0])
		case err != nil:
			return "", err
		}
	}
}

// askKey asks for a key without showing it.
func (c *cli) askKey(prompt string, optional bool) (config.Secret, error) {
	for {
		text, err := c.hidden(prompt)
		if err != nil {
			return config.Secret{}, err
		}
		key, err := asSecret(text)
		if err == nil || optional && strings.TrimSpace(text) == "" {
			return key, nil
		}
		c.warn("%v", err)
	}
}
