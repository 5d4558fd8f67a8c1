package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"daycare/agents/providers"
	"daycare/agents/providers/cassette"
	"daycare/agents/providers/scripted"
	"daycare/agents/trial"
	"daycare/cmd/daycare/models"
	"daycare/cmd/daycare/plugins"
	"daycare/cmd/daycare/term"
	"daycare/engine/beneath"
	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/record"
)

// A laboratory knows the workspace whose agents are tested.
type laboratory struct {
	suite  *suite
	conf   *config.Config
	chain  *models.Chain
	client *control.Client // of that workspace, for reading

	mu   sync.Mutex
	made map[string]providers.Provider // by id and model; tests that run at once share its limit
}

func newLaboratory(ctx context.Context, s *suite) (*laboratory, error) {
	home := s.at.Data
	conf, _, err := config.Load(home, os.LookupEnv, plugins.ConnectorChecks...)
	if err != nil {
		return nil, err
	}
	key := func(p config.Provider) func() string { return p.APIKey.Reveal }
	chain, err := models.New(ctx, conf, s.at, key, nil)
	if err != nil {
		return nil, err
	}
	client, err := s.app.Reader(ctx)
	if err != nil {
		return nil, err
	}

	return &laboratory{suite: s, conf: conf, chain: chain, client: client, made: map[string]providers.Provider{}}, nil
}

// How a model answers in a run.
const (
	live     = "live"
	recorded = "recorded" // live, and kept
	replayed = "replayed"
	script   = "scripted"
)

// trying is one run to be made: a test with a model.
type trying struct {
	test     trial.Test
	subject  subject
	n        int // from 1, of Times
	provider config.Provider
	how      string
	tape     string // path of the cassette, where there can be one
	trouble  error  // why it cannot be made
}

// model is how reports name the model.
func (t trying) model() string {
	if t.how == script {
		return script
	}
	return strings.TrimSuffix(t.provider.ID+"/"+t.provider.Model, "/")
}

// cases are the runs of a test.
func (l *laboratory) cases(ctx context.Context, t trial.Test) (all []trying, err error) {
	who, err := l.subject(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.suite.shown(t.File), err)
	}
	wanted := l.suite.options.models
	if len(wanted) == 0 || t.Script != nil {
		wanted = []string{t.Model}
	}

	for _, typed := range wanted {
		p, err := l.provider(t, who, typed)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.suite.shown(t.File), err)
		}
		one := trying{test: t, subject: who, provider: p, tape: tapeOf(t.File, p)}
		one.how, one.trouble = l.how(one)
		for n := range l.suite.options.times {
			one.n = n + 1
			all = append(all, one)
		}
	}

	return all, nil
}

// provider is the model of a test: what was typed, else that of the agent, else the first.
func (l *laboratory) provider(t trial.Test, who subject, typed string) (config.Provider, error) {
	if t.Script != nil {
		return config.Provider{ID: script, Type: script, Model: script}, nil
	}
	choice := who.model
	if typed != "" {
		var err error
		if choice, err = l.chain.Choose(record.Model{}, typed); err != nil {
			return config.Provider{}, err
		}
	}

	p, err := l.chain.CheckChoice(choice)
	p.Model = cmp.Or(choice.Model, p.Model)

	return p, err
}

// how decides where the answers of a run come from: never from a model that costs money unless
// that was asked for.
func (l *laboratory) how(t trying) (string, error) {
	switch {
	case t.provider.Type == script:
		return script, nil
	case l.suite.options.record:
		return recorded, nil
	case l.suite.options.live:
		return live, nil
	case term.Exists(t.tape):
		return replayed, nil
	}

	others, _ := disk.Glob(filepath.Dir(t.tape), escaped(baseOf(t.test.File))+".*.jsonl") // to help; there may be none
	remedy := fmt.Sprintf("record one with: daycare test --record %s   (or ask the model each time: --live)", l.suite.shown(t.test.File))
	if len(others) > 0 {
		for i := range others {
			others[i] = filepath.Base(others[i])
		}
		remedy = "there are " + strings.Join(others, ", ") + "; " + remedy
	}

	return replayed, fmt.Errorf("%w for %s\n%s", errNoCassette, t.model(), remedy)
}

func escaped(name string) string {
	return regexp.MustCompile(`[\[\]*?\\]`).ReplaceAllString(name, `\$0`)
}

func baseOf(file string) string { return strings.TrimSuffix(filepath.Base(file), trial.Suffix) }

// tapeOf is where the cassette of a test with a model is: in cassettes, beside the test.
func tapeOf(file string, p config.Provider) string {
	plain := strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == ':' || r <= ' ' {
			return '_'
		}
		return r
	}, cmp.Or(p.Model, "default"))

	return filepath.Join(filepath.Dir(file), "cassettes", baseOf(file)+"."+p.ID+"."+plain+".jsonl")
}

// ask makes what answers in a run. tape is nil where nothing is recorded or played.
func (l *laboratory) ask(t trying, b cassette.Blur) (p providers.Provider, tape *cassette.Tape, err error) {
	if t.test.Script != nil {
		p, err := l.scripted(t.test)
		return p, nil, err
	}

	head := cassette.Head{Provider: t.provider.ID, Model: t.provider.Model}
	if t.how == replayed {
		return l.played(t, head, b)
	}
	if p, err = l.real(t.provider); err != nil || t.how != recorded {
		return p, nil, err
	}

	head.Wire = p.Wire()
	tape = cassette.New(head, b)

	return tape.Record(p), tape, nil
}

// played is the cassette of a run, unless it is of another provider, format or model.
func (l *laboratory) played(t trying, now cassette.Head, b cassette.Blur) (providers.Provider, *cassette.Tape, error) {
	data, _, err := beneath.Own(t.tape, maxTape)
	if err != nil {
		return nil, nil, fmt.Errorf("read cassette: %w", err)
	}
	tape, err := cassette.Parse(l.suite.shown(t.tape), data, b)
	if err != nil {
		return nil, nil, fmt.Errorf("%w\nrecord it again: daycare test --record %s", err, l.suite.shown(t.test.File))
	}

	p, err := l.real(t.provider)
	if err != nil {
		return nil, nil, err
	}
	now.Wire = p.Wire()
	var differs []string
	for _, f := range []struct{ what, was, now string }{{"provider", tape.Head().Provider, now.Provider},
		{"wire format", tape.Head().Wire, now.Wire}, {"model", tape.Head().Model, now.Model}} {
		if f.was != f.now {
			differs = append(differs, fmt.Sprintf("%s: recorded %q, now %q", f.what, f.was, f.now))
		}
	}
	if len(differs) > 0 {
		return nil, nil, fmt.Errorf("%s is of another model\n%s\nrecord it again: daycare test --record %s", l.suite.shown(t.tape),
			strings.Join(differs, "\n"), l.suite.shown(t.test.File))
	}

	return tape.Play(), tape, nil
}

// maxTape bounds the file of a cassette.
const maxTape = 256 << 20

// real is the provider of the settings, made once for each model.
func (l *laboratory) real(s config.Provider) (providers.Provider, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := s.ID + "\x00" + s.Model
	if p := l.made[key]; p != nil {
		return p, nil
	}
	p, err := plugins.NewProvider(l.suite.at, s, s.APIKey.Reveal)
	if err != nil {
		return nil, err
	}
	if s.Type != script {
		p = providers.Limit(p, s.Concurrency)
	}
	l.made[key] = p

	return p, nil
}

// scripted plays the script of a test: each run begins at its beginning.
func (l *laboratory) scripted(t trial.Test) (providers.Provider, error) {
	var path string
	if json.Unmarshal(t.Script, &path) != nil {
		p, err := scripted.New(scripted.Options{ID: script, Path: l.suite.shown(t.File) + " (script)", Source: t.Script})
		if err != nil {
			return nil, err
		}
		return p, nil
	}

	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(t.File), path)
	}
	p, err := scripted.New(scripted.Options{ID: script, Path: path})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("script: there is no file %s", l.suite.shown(path))
	}
	if err != nil {
		return nil, err
	}

	return p, nil
}
