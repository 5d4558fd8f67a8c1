package scripted

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"iter"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"daycare/agents/providers"
)

// Options say what to play.
type Options struct {
	ID     string // of the provider; "" is "scripted"
	Path   string // of the script
	Source []byte // the script itself, instead of Path; neither: the offline model
	Model  string // the name in Complete; "" takes the script's
	// Delay is waited before each piece of text, so that a user sees it
	// stream. 0 plays as fast as it can.
	Delay time.Duration
}

// A Provider plays one script, compiled once. It is safe for many goroutines.
type Provider struct {
	id, model string
	delay     time.Duration
	script    func() *script

	calls atomic.Int64

	mu    sync.Mutex
	fired map[firing]bool
}

// firing is one use of a rule that plays once for each agent.
type firing struct {
	agent string
	rule  int
}

//go:embed offline.yaml
var offlineScript []byte

// offlineModel is the name of its model.
const offlineModel = "offline"

// offline is read when it first answers, because to read it takes a fifth of a start.
var offline = sync.OnceValue(func() *script {
	s, err := parse("offline.yaml", offlineScript)
	if err != nil {
		panic(err) // the tests read it
	}
	return s
})

// New reads and checks the script. Errors name file and line.
func New(o Options) (*Provider, error) {
	p := &Provider{id: o.ID, model: o.Model, delay: o.Delay, script: offline, fired: map[firing]bool{}}
	if p.id == "" {
		p.id = "scripted"
	}
	named := offlineModel
	if o.Path != "" || o.Source != nil {
		s, err := read(o.Path, o.Source)
		if err != nil {
			return nil, err
		}
		p.script, named = func() *script { return s }, s.Model
	}
	p.model = cmp.Or(p.model, named, "scripted")

	return p, nil
}

// read reads the script at path, or source, which path names then.
func read(path string, source []byte) (*script, error) {
	if source == nil {
		var err error
		if source, err = os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("read script: %w", err)
		}
	}

	return parse(cmp.Or(path, "script"), source)
}

// ID is the provider's id in settings.
func (p *Provider) ID() string { return p.id }

// Wire is the provider's own: it sends nothing anywhere.
func (p *Provider) Wire() string { return "scripted" }

// Stream plays the answer to the last message of req.
func (p *Provider) Stream(ctx context.Context, req *providers.Request) iter.Seq[providers.Event] {
	return func(yield func(providers.Event) bool) {
		pl := &player{p: p, ctx: ctx, req: req, yield: yield, finish: providers.EndTurn}
		scenes := []scene{newScene(req)}
		script := p.script()
		if script.Each {
			scenes = script.parts(scenes[0])
		}

		for _, sc := range scenes {
			if !p.play(pl, sc) {
				return
			}
		}

		if script.Each && pl.finish == providers.EndTurn && pl.said == 0 && !pl.text("NO_MESSAGE", 0, 0) {
			return
		}

		pl.complete()
	}
}

// play plays the rule that fits. It reports whether the answer can continue.
func (p *Provider) play(pl *player, sc scene) bool {
	for i, r := range p.script().Rules {
		if view, ok := r.fits(sc); ok && (!r.Once || p.first(sc.req.Agent, i)) {
			pl.part++
			return pl.rule(r, view)
		}
	}

	return pl.fail(&providers.Failure{Kind: providers.Rejected, Provider: p.id,
		Message: fmt.Sprintf("no rule of %s fits the message %.60q", p.script().name, sc.last.text)})
}

// first reports whether the rule plays for the agent for the first time.
func (p *Provider) first(agent string, rule int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := firing{agent, rule}
	if p.fired[key] {
		return false
	}
	p.fired[key] = true

	return true
}
