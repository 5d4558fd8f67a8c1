// Package setup is the commands that set a workspace up: init, auth, providers, models,
// connectors and service.
package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/doctor"
	"daycare/cmd/daycare/plugins"
	"daycare/cmd/daycare/term"
	"daycare/engine/config"
	"daycare/engine/fault"
	"daycare/engine/finding"
	"daycare/engine/workspace"
)

// The files that init makes. None is needed: an empty .daycare works as well.
const (
	settingsText = `# Settings of this workspace: the folder that holds .daycare. Every line here is
# a comment; a setting that is not set has its default. A running daemon takes a
# change over when the file is saved; what is wrong is reported with its line.

# Where answers come from, in order: the next is tried when one fails. Without
# this, the first key found in the environment decides: ANTHROPIC_API_KEY,
# OPENAI_API_KEY, OPENROUTER_API_KEY, GEMINI_API_KEY; then an Ollama on this
# machine; then an offline model that needs nothing, and can little.
#providers:
#  - id: claude
#    type: anthropic          # anthropic | openai | gemini | scripted
#    apiKeyEnv: ANTHROPIC_API_KEY
#  - id: local
#    type: openai             # every server that speaks the OpenAI format
#    baseURL: http://127.0.0.1:11434/v1
#    model: qwen3

# Where people write from. An empty allow list means nobody.
#connectors:
#  - id: telegram
#    type: telegram
#    allow: ["5550001"]

#agents:
#  toolRounds: { foreground: 20, background: 15 }
#  queue: steer               # steer | followup | collect | interrupt

#tools:
#  exec: { sandbox: auto, timeout: 2m }   # auto | bwrap | landlock | seatbelt | off

#permissions:
#  expiry: 24h                # how long a question waits for its answer
#  defaults: { web: false, exec: sandbox }   # exec: sandbox | ask | deny

#budget:
#  perDay: { usd: 5 }         # at a limit an agent pauses and asks whether to raise it

#log:
#  level: info                # debug | info | warn | error
`
	readmeText = `# .daycare

Everything that daycare knows about this folder, as plain files. Read them, edit
them, copy them, commit them; a valid edit counts from the next turn on.

| here | is |
|---|---|
| settings.yaml | configuration; every key is optional |
| auth.json | secrets by id, if they are not in the environment |
| tokens.json | tokens of the API, as hashes, made by daycare auth token |
| SOUL.md USER.md AGENTS.md | persona, facts about you, house rules; optional, part of every prompt |
| agents/ID/ | one folder an agent: descriptor.json, state.json, inbox.jsonl, history.jsonl |
| cron/NAME/TASK.md heartbeat/NAME.md | what runs by the clock |
| subagents/NAME.md skills/NAME/SKILL.md | what agents can be asked to be, and to know |
| drop/ | the letter slot: a file AGENT__anything.md put here is a message to that agent |
| permissions/ | questions that wait for an answer, and what was answered |
| logs/ trash/ usage/ | the log, removed agents, what was spent |

    daycare status          how things stand, with the daemon running or not
    daycare chat            talk to your own agent
    daycare help            everything else
`
)

// An initResult is what init did.
type initResult struct {
	Dir      string   `json:"dir"`
	Created  []string `json:"created"` // relative to Dir
	Kept     []string `json:"kept"`
	Provider string   `json:"provider,omitempty"` // that was set up, or is
	Model    string   `json:"model,omitempty"`
	Check    *trial   `json:"check,omitempty"`
}

// Init makes .daycare and sets up the first provider that it finds, or asks for.
func Init(c *term.App) *cobra.Command {
	var s plan
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make .daycare, and set up where answers come from",
		Long: "Make .daycare with commented settings, and set up where answers come from. On a\n" +
			"terminal it asks: which service, its key, which model; then the model is asked for a\n" +
			"word, so that you see that it works. --provider and its flags answer in advance.\n" +
			"It can be run again: files and providers that are there are kept.",
		Example: "  daycare init\n" +
			"  daycare init --workspace ~/notes --provider anthropic\n" +
			"  daycare init --provider server --base-url http://127.0.0.1:8080/v1 --model qwen3\n" +
			"  pass show openai | daycare init --provider openai --key-stdin",
		Args: term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.told(cmd); err != nil {
				return err
			}
			return setUpHere(cmd.Context(), c, &s)
		},
	}
	s.flags(cmd)
	return cmd
}

// setUpHere sets up exactly the named or current folder: unlike other commands it
// does not look upwards.
func setUpHere(ctx context.Context, c *term.App, s *plan) error {
	dir := c.Workspace
	if dir == "" {
		dir = "."
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("find workspace: %w", err)
	}
	done, err := makeHome(dir)
	if err != nil {
		return err
	}
	doctor.CautionHome(c, dir)
	if !c.JSON {
		for _, name := range done.Created {
			c.Print("created  %s\n", filepath.Join(workspace.Home, name))
		}
		for _, name := range done.Kept {
			c.Print("kept     %s\n", filepath.Join(workspace.Home, name))
		}
	}
	if err := setUp(ctx, c, dir, s, &done); err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(done)
	}
	if client, err := c.Dial(ctx, dir); err == nil {
		WarnOfMissed(ctx, c, dir, client)
	}
	c.Note("Next: daycare chat hello")
	return nil
}

// setUp sees to where answers come from, if there is anything to see to.
func setUp(ctx context.Context, c *term.App, dir string, s *plan, done *initResult) error {
	conf, found, err := config.Load(done.Dir, os.LookupEnv, plugins.ConnectorTypes...)
	if err != nil {
		return fmt.Errorf("read settings: %w", errors.Join(finding.Join(found), err))
	}
	switch {
	case len(conf.Providers) > 0:
		p := conf.Providers[0]
		done.Provider, done.Model = p.ID, p.Model
		if ch, ok := s.choice(); ok && ch.name != p.ID && ch.name != choiceOffline {
			return &term.Problem{Code: fault.ExitFailure, Err: fmt.Errorf("the settings have providers already: %s (%s)", p.ID, p.Why),
				Do: "nothing was changed; edit " + filepath.Join(workspace.Home, config.Name)}
		}
		if !c.JSON {
			c.Print("kept     provider %s, model %s\n", p.ID, p.Model)
			c.Note("does it work? daycare providers test")
		}
		return nil
	case s.provider != "":
		if s.keyStdin {
			if s.key, err = readSecret(c, s.provider); err != nil {
				return err
			}
		}
		if done.Check, err = apply(ctx, c, dir, conf, s); err != nil {
			return err
		}
	case c.Asks() && !c.JSON:
		fmt.Fprintln(c.Err)
		if s, done.Check, err = ask(ctx, c, dir, conf); err != nil || s.provider == choiceOffline {
			return err // a key that is set later is found later
		}
	default:
		return nil
	}
	p := s.asProvider(conf)
	done.Provider, done.Model = p.ID, p.Model
	if !c.JSON {
		setUpDone(c, s, p, done.Check)
	}
	return nil
}

func setUpDone(c *term.App, s *plan, p config.Provider, t *trial) {
	if t != nil {
		c.Print("works    it said %q after %d ms\n", term.Clean(t.Answer), t.MS)
	}
	c.Print("wrote    provider %s to %s\n", term.Join(", model ", p.ID, p.Model), filepath.Join(workspace.Home, config.Name))
	if !s.key.IsZero() {
		c.Print("kept     its key in %s\n", filepath.Join(workspace.Home, config.AuthName))
	}
}

// makeHome makes .daycare in root with its first files, keeping what is there.
func makeHome(root string) (initResult, error) {
	done := initResult{Dir: filepath.Join(root, workspace.Home), Created: []string{}, Kept: []string{}}
	if err := os.MkdirAll(done.Dir, 0o700); err != nil {
		return done, fmt.Errorf("make %s: %w", done.Dir, err)
	}
	for _, f := range []struct{ name, text string }{
		{"settings.yaml", settingsText},
		{config.IgnoreName, config.IgnoreText},
		{"README.md", readmeText},
	} {
		switch err := writeNew(filepath.Join(done.Dir, f.name), f.text); {
		case errors.Is(err, fs.ErrExist):
			done.Kept = append(done.Kept, f.name)
		case err != nil:
			return done, fmt.Errorf("write %s: %w", f.name, err)
		default:
			done.Created = append(done.Created, f.name)
		}
	}
	return done, nil
}

// writeNew writes a file that must not exist. It is not synced: init can be run
// again.
func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// EnsureHome makes .daycare where it is missing, and says so.
func EnsureHome(c *term.App, root string) error {
	if term.Exists(filepath.Join(root, workspace.Home)) {
		return nil
	}
	if _, err := makeHome(root); err != nil {
		return err
	}
	c.Note("made %s", filepath.Join(root, workspace.Home))
	return nil
}
