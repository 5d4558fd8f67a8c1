package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/doctor"
	"daycare/cmd/daycare/machine"
	"daycare/cmd/daycare/plugins"
	"daycare/cmd/daycare/term"
	"daycare/engine/config"
	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/workspace"
)

// The files that init makes. None is needed: an empty .daycare works as well.
const (
	settingsText = `# Settings of this workspace: the folder that holds .daycare. Every line here is
# a comment; a setting that is not set has its default. A running daemon applies
# changes when the file is saved, and reports mistakes with their line.

# Model services, in order: if one fails, the next is tried. Without this list,
# the first key found in the environment decides: ANTHROPIC_API_KEY,
# OPENAI_API_KEY, OPENROUTER_API_KEY, GEMINI_API_KEY; then an Ollama on this
# machine; then the offline model, which needs no key and has few abilities.
#providers:
#  - id: claude
#    type: anthropic          # anthropic | openai | gemini | scripted
#    apiKeyEnv: ANTHROPIC_API_KEY
#  - id: local
#    type: openai             # any server that speaks the OpenAI format
#    baseURL: http://127.0.0.1:11434/v1
#    model: qwen3

# Chat platforms. Nobody can message an agent until you add them to allow.
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
#  expiry: 24h                # how long an approval request stays open
#  defaults: { web: false, exec: sandbox }   # exec: sandbox | ask | deny

#budget:
#  perDay: { usd: 5 }         # at its limit an agent pauses and asks you to raise it

#log:
#  level: info                # debug | info | warn | error
`
	readmeText = `# .daycare

Everything that daycare knows about this folder, as plain files. Read them, edit
them, copy them, commit them; a valid edit takes effect with the next turn.

| file | contents |
|---|---|
| settings.yaml | configuration; every key is optional |
| auth.json | secrets by id, if they are not in the environment |
| tokens.json | hashes of API tokens, created by daycare auth token |
| SOUL.md USER.md AGENTS.md | persona, facts about you, house rules; optional, part of every prompt |
| agents/ID/ | one folder per agent: descriptor.json, state.json, inbox.jsonl, history.jsonl |
| cron/NAME/TASK.md heartbeat/NAME.md | scheduled tasks and heartbeat items |
| subagents/NAME.md skills/NAME/SKILL.md | kinds of sub-agents, and skills |
| drop/ | the drop folder: a file AGENT__anything.md moved here is a message to that agent |
| permissions/ | pending approvals, and answered ones |
| logs/ trash/ usage/ | the log, removed agents, spending |

    daycare status          show the status, with the daemon running or not
    daycare chat            chat with your agent
    daycare help            list all commands
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
		Short: "Create .daycare and set up a model service",
		Long: "Create .daycare with commented settings, and set up a model service. On a terminal it\n" +
			"asks for the service, its key and a model, then tests the model with a one-word request.\n" +
			"Use --provider and the other flags to answer in advance.\n" +
			"You can run it again: existing files and providers are kept.",
		Example: "  daycare init\n" +
			"  daycare init --workspace ~/notes --data ~/.local/share/notes\n" +
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
	dir, err := filepath.Abs(cmp.Or(c.Workspace, "."))
	if err != nil {
		return fmt.Errorf("find workspace: %w", err)
	}
	at := workspace.At(dir)
	if c.Data != "" {
		if at, err = c.Place(); err != nil {
			return err
		}
	}

	done, err := makeHome(c, at)
	if err != nil {
		return err
	}
	doctor.CautionHome(c, at.Dir)
	if !c.JSON {
		for _, name := range done.Created {
			c.Print("created  %s\n", at.Shown(filepath.Join(at.Data, name)))
		}
		for _, name := range done.Kept {
			c.Print("kept     %s\n", at.Shown(filepath.Join(at.Data, name)))
		}
	}
	if err := setUp(ctx, c, at, s, &done); err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(done)
	}
	if client, err := c.Dial(ctx, at); err == nil {
		WarnOfMissed(ctx, c, at, client)
	}

	c.Note("Next: daycare chat hello")
	return nil
}

// setUp sees to where answers come from, if there is anything to see to.
func setUp(ctx context.Context, c *term.App, at workspace.Place, s *plan, done *initResult) error {
	conf, _, err := config.Load(done.Dir, os.LookupEnv, plugins.ConnectorChecks...)
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}

	switch {
	case len(conf.Providers) > 0:
		p := conf.Providers[0]
		done.Provider, done.Model = p.ID, p.Model
		if ch, ok := s.choice(); ok && ch.name != p.ID && ch.name != choiceOffline {
			return &term.Problem{Code: fault.ExitFailure, Err: fmt.Errorf("the settings already have providers: %s (%s)", p.ID, p.Why),
				Do: "nothing was changed; edit " + at.Shown(filepath.Join(at.Data, config.Name))}
		}
		if !c.JSON {
			c.Print("kept     provider %s, model %s\n", p.ID, p.Model)
			c.Note("Test it: daycare providers test")
		}
		return nil
	case s.provider != "":
		if s.keyStdin {
			if s.key, err = readSecret(c, s.provider); err != nil {
				return err
			}
		}
		if done.Check, err = apply(ctx, c, at, conf, s); err != nil {
			return err
		}
	case c.Asks() && !c.JSON:
		c.Say("\n")
		if s, done.Check, err = ask(ctx, c, at, conf); err != nil || s.provider == choiceOffline {
			return err // a key that is set later is found later
		}
	default:
		return nil
	}

	p := s.asProvider(conf)
	done.Provider, done.Model = p.ID, p.Model
	if !c.JSON {
		setUpDone(c, at, s, p, done.Check)
	}

	return nil
}

func setUpDone(c *term.App, at workspace.Place, s *plan, p config.Provider, t *trial) {
	if t != nil {
		c.Print("works    it answered %q after %d ms\n", t.Answer, t.MS)
	}
	c.Print("wrote    provider %s to %s\n", term.Join(", model ", p.ID, p.Model), at.Shown(filepath.Join(at.Data, config.Name)))
	if !s.key.IsZero() {
		c.Print("saved    its key in %s\n", at.Shown(filepath.Join(at.Data, config.AuthName)))
	}
}

// makeHome makes the folder of daycare's own files with the first ones, keeping what is there. One that is outside of its
// workspace says which that is, and is found from there.
func makeHome(c *term.App, at workspace.Place) (initResult, error) {
	done := initResult{Dir: at.Data, Created: []string{}, Kept: []string{}}
	if err := at.Encodable(); err != nil {
		return done, err
	}
	if err := makeFolders(done.Dir); err != nil {
		return done, fmt.Errorf("make %s: %w", done.Dir, err)
	}

	files := []struct{ name, text string }{
		{"settings.yaml", settingsText},
		{config.IgnoreName, config.IgnoreText},
		{"README.md", readmeText},
	}
	if at.Elsewhere() {
		files = append(files, struct{ name, text string }{workspace.FileName, string(at.Record())})
		if err := machine.Note(at, time.Now()); err != nil {
			c.Warn("name the data folder with --data: %v", err)
		}
	}
	for _, f := range files {
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

// makeFolders makes a folder and those above it, durably: what a daemon will keep in it lasts as long as all their names.
// Where Volume.MkdirAll would fail the volume, as on a read-only file system, it is no more than an error here.
func makeFolders(dir string) error {
	var made []string
	for d := dir; !term.Exists(d); d = filepath.Dir(d) {
		made = append(made, d)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}

	vol := disk.NewVolume(dir)
	for _, d := range made {
		// A folder in which names can be made, but not read, cannot be synced.
		if err := vol.SyncDir("home.dirsync", filepath.Dir(d)); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}

	return nil
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
func EnsureHome(c *term.App, at workspace.Place) error {
	made := term.Exists(at.Data)
	if made && (!at.Elsewhere() || term.Exists(filepath.Join(at.Data, workspace.FileName))) {
		return nil
	}
	if _, err := makeHome(c, at); err != nil {
		return err
	}
	if !made {
		c.Note("created %s", at.Data)
	}

	return nil
}
