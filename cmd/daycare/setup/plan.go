package setup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/models"
	"daycare/cmd/daycare/term"
	"daycare/engine/config"
	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/workspace"
)

// A choice is where answers may come from, as init offers it.
type choice struct {
	name    string // of --provider, and the provider's id
	label   string // for users
	kind    string // type in the settings
	keyEnv  string
	baseURL string // of vendors that speak another's format, and a guess for "server"
	model   string
}

const (
	choiceServer  = "server"
	choiceOffline = "offline"
)

// choices are what init offers, in order.
func choices() []choice {
	return []choice{
		{name: "anthropic", label: "Anthropic", kind: "anthropic", keyEnv: "ANTHROPIC_API_KEY", model: config.DefaultAnthropicModel},
		{name: "openai", label: "OpenAI", kind: "openai", keyEnv: "OPENAI_API_KEY", model: config.DefaultOpenAIModel},
		{name: "openrouter", label: "OpenRouter", kind: "openai", keyEnv: "OPENROUTER_API_KEY",
			baseURL: config.OpenRouterURL, model: config.DefaultOpenRouterModel},
		{name: "gemini", label: "Gemini", kind: "gemini", keyEnv: "GEMINI_API_KEY", model: config.DefaultGeminiModel},
		{name: "ollama", label: "Ollama on this machine", kind: "openai", baseURL: config.OllamaURL},
		{name: choiceServer, label: "another server that speaks the OpenAI format (llama.cpp, vLLM, LM Studio, …)",
			kind: "openai", baseURL: "http://127.0.0.1:8080/v1"},
		{name: choiceOffline, label: "none for now: the offline model, which needs no key and has few abilities"},
	}
}

// local reports a server that may need no key.
func (c choice) local() bool { return c.name == "ollama" || c.name == choiceServer }

// note is what speaks for a choice on this machine: a key in the environment, a server that runs.
func (c choice) note(conf *config.Config, found config.Provider) string {
	switch {
	case c.keyEnv != "" && !conf.SecretEnv(c.keyEnv).IsZero():
		return c.keyEnv + " is set"
	case c.name == "ollama" && found.ID == "ollama":
		return "running, with " + found.Model
	}

	return ""
}

// A plan is what the user told init to do, by flags or answers.
type plan struct {
	provider string // name of a choice; "": not told
	model    string
	baseURL  string
	keyStdin bool
	noCheck  bool

	key config.Secret // given now, to be kept in auth.json
}

func (s *plan) flags(cmd *cobra.Command) {
	names := choiceNames()
	flags := cmd.Flags()
	flags.StringVar(&s.provider, "provider", "", "the model service: "+strings.Join(names, ", "))
	flags.StringVar(&s.model, "model", "", "the model (default: the vendor's default, or the server's first)")
	flags.StringVar(&s.baseURL, "base-url", "", "the address of the server, such as http://127.0.0.1:8080/v1")
	flags.BoolVar(&s.keyStdin, "key-stdin", false, "read the key from stdin and save it in auth.json")
	flags.BoolVar(&s.noCheck, "no-check", false, "save without testing the model")
	_ = cmd.RegisterFlagCompletionFunc("provider", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

// choiceNames returns the values of --provider.
func choiceNames() []string {
	var names []string
	for _, c := range choices() {
		names = append(names, c.name)
	}

	return names
}

// told checks that the flags fit together.
func (s *plan) told(cmd *cobra.Command) error {
	if s.provider != "" {
		if _, ok := s.choice(); !ok {
			return term.Usage(cmd, "--provider %q is unknown; allowed: %s", s.provider, strings.Join(choiceNames(), ", "))
		}
		if s.provider == choiceServer && s.baseURL == "" {
			return term.Usage(cmd, "--provider server needs --base-url, such as http://127.0.0.1:8080/v1")
		}
		if s.provider == choiceOffline && (s.model != "" || s.baseURL != "" || s.keyStdin) {
			return term.Usage(cmd, "--provider offline does not accept a model, address or key")
		}
		return nil
	}

	for _, name := range []string{"model", "base-url", "key-stdin", "no-check"} {
		if cmd.Flag(name).Changed {
			return term.Usage(cmd, "--%s needs --provider", name)
		}
	}

	return nil
}

func (s *plan) choice() (choice, bool) {
	all := choices()
	i := slices.IndexFunc(all, func(c choice) bool { return c.name == s.provider })
	if i < 0 {
		return choice{}, false
	}

	return all[i], true
}

// asProvider is the setup as an entry of the settings, with the key that would be used.
func (s *plan) asProvider(conf *config.Config) config.Provider {
	c, _ := s.choice()
	p := config.Provider{ID: c.name, Type: c.kind, BaseURL: cmp.Or(s.baseURL, c.baseURL),
		Model: cmp.Or(s.model, c.model), Concurrency: 1, APIKey: s.key}
	if p.APIKey.IsZero() && c.keyEnv != "" && s.baseURL == "" {
		p.APIKey = conf.SecretEnv(c.keyEnv)
	}
	if p.APIKey.IsZero() {
		p.APIKey = conf.Secret(p.ID)
	}

	return p
}

// entry is the provider as text of settings.yaml.
func (s *plan) entry() string {
	c, _ := s.choice()
	if c.name == choiceOffline {
		return "id: offline\ntype: scripted\n"
	}
	text := "id: " + c.name + "\ntype: " + c.kind + "\n"
	if url := cmp.Or(s.baseURL, c.baseURL); url != "" {
		text += "baseURL: " + strconv.Quote(url) + "\n"
	}
	if model := cmp.Or(s.model, c.model); model != "" {
		text += "model: " + strconv.Quote(model) + "\n"
	}

	return text
}

// complete fills in what a server is asked for: its first model. Then it looks whether
// the model is known.
func (s *plan) complete(ctx context.Context, conf *config.Config) error {
	c, _ := s.choice()
	p := s.asProvider(conf)
	if c.local() && p.Model == "" {
		names, err := serverModels(ctx, p)
		if err != nil || len(names) == 0 {
			return &term.Problem{Code: fault.ExitFailure,
				Err: fmt.Errorf("%s lists no models: %w", config.HideLogin(p.BaseURL), orError(err, "its list is empty")),
				Do:  "start the server, or name the model with --model"}
		}
		s.model = names[0]
		return nil
	}
	if err := models.Check(models.Catalogue(conf, ""), p, p.Model); err != nil {
		return &term.Problem{Code: fault.ExitFailure, Err: err}
	}

	return nil
}

func orError(err error, text string) error {
	if err != nil {
		return err
	}
	return errors.New(text)
}

// serverWait bounds how long a server may take to list its models.
const serverWait = 10 * time.Second

// serverModels asks a server that speaks the OpenAI format for the names of its models.
func serverModels(ctx context.Context, p config.Provider) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, serverWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(p.BaseURL, "/")+"/models", nil)
	if err != nil {
		return nil, err
	}
	if !p.APIKey.IsZero() {
		req.Header.Set("Authorization", "Bearer "+p.APIKey.Reveal())
	}

	client := http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", req.URL, resp.Status)
	}

	var list struct{ Data []struct{ ID string } }
	if err := json.NewDecoder(http.MaxBytesReader(nil, resp.Body, 4<<20)).Decode(&list); err != nil {
		return nil, fmt.Errorf("GET %s: %w", req.URL, err)
	}
	var names []string
	for _, m := range list.Data {
		names = append(names, m.ID)
	}

	return names, nil
}

// apply checks the setup against the service and writes it down: the key to auth.json,
// the entry to settings.yaml, which has none yet.
func apply(ctx context.Context, c *term.App, at workspace.Place, conf *config.Config, s *plan) (*trial, error) {
	if s.provider != choiceOffline {
		if err := s.complete(ctx, conf); err != nil {
			return nil, err
		}
	}

	var t *trial
	if p := s.asProvider(conf); s.provider != choiceOffline && !s.noCheck {
		if ch, _ := s.choice(); p.APIKey.IsZero() && ch.keyEnv != "" && s.baseURL == "" {
			return nil, &term.Problem{Code: fault.ExitFailure, Err: fmt.Errorf("the key for %s is missing", s.provider),
				Do: "set " + ch.keyEnv + ", or pipe it in with --key-stdin"}
		}
		c.Note("testing %s …", cmp.Or(p.Model, p.ID))
		done := try(ctx, models.Catalogue(conf, ""), at, p, 60*time.Second)
		if t = &done; !t.OK {
			return t, &term.Problem{Code: fault.ExitFailure,
				Err: fmt.Errorf("%s does not answer: %s", term.Join(", model ", t.ID, t.Model),
					strings.TrimPrefix(t.Error, t.ID+": ")), Do: t.Remedy}
		}
	}

	home := at.Data
	if !s.key.IsZero() {
		if err := config.SetSecret(home, s.provider, s.key); err != nil {
			return t, fmt.Errorf("save the key: %w", err)
		}
	}

	return t, writeProvider(home, s.entry())
}

// writeProvider adds an entry to the list of providers.
func writeProvider(home, entry string) error {
	before, err := config.Text(home)
	if err != nil {
		return err
	}
	after, err := config.Append(before, entry, "providers")
	if err != nil {
		return err
	}

	return config.Replace(disk.NewVolume(home), home, after, before)
}
