package mcp

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"daycare/tools"
)

// A Pool is the servers of a workspace. Its methods may be called from any goroutine.
type Pool struct {
	options   Options
	questions *ledger
	ctx       context.Context // ends with Close
	cancel    context.CancelFunc
	wait      sync.WaitGroup
	meets     chan struct{} // a place for each server that is started to be seen for the first time

	mu      sync.Mutex
	servers map[string]*server
	version int // counts changes of what agents have
	budget  int // of tokens, when it was looked at last
	closed  bool
}

// NewPool makes a pool without servers.
func NewPool(ctx context.Context, o Options) *Pool {
	p := &Pool{options: o, questions: newLedger(o), servers: map[string]*server{}, meets: make(chan struct{}, meetAtOnce)}
	p.ctx, p.cancel = context.WithCancel(ctx)
	return p
}

// Configure has the pool have these servers. One whose settings changed ends and starts anew
// at the next call; those that stay go on.
func (p *Pool) Configure(list []Server) {
	p.mu.Lock()
	var gone []*server
	now := map[string]*server{}
	for _, s := range list {
		old := p.servers[s.ID]
		if old != nil && old.conf == s {
			now[s.ID] = old
			continue
		}
		now[s.ID] = newServer(p, s)
	}
	for id, old := range p.servers {
		if now[id] != old {
			gone = append(gone, old)
		}
	}
	budget := p.budget
	if p.options.Budget != nil {
		budget = p.options.Budget()
	}
	if len(gone) > 0 || len(now) != len(p.servers) || budget != p.budget {
		p.version++
	}
	p.servers, p.budget = now, budget
	p.mu.Unlock()
	for _, s := range gone {
		p.wait.Go(s.close)
	}
}

// Empty reports whether there is no server.
func (p *Pool) Empty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.servers) == 0
}

// all are the servers by id.
func (p *Pool) all() []*server {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []*server
	for _, id := range slices.Sorted(maps.Keys(p.servers)) {
		list = append(list, p.servers[id])
	}

	return list
}

// find is a server by its id; nil: there is none.
func (p *Pool) find(id string) *server {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.servers[id]
}

// Offered is what agents have of the servers.
type Offered struct {
	Tools   []tools.Tool
	Servers []tools.Family // the tools of each server
	Small   bool           // together they cost at most the budget, so that an agent of a chat is told of them with every call
	Rare    []tools.Family // what comes with servers and is rarely needed
	Version int            // changes when the tools do
}

// Offered are the tools that agents have now. A server that was never seen is started in the
// background, so that its tools are there at a later turn.
func (p *Pool) Offered() (o Offered) {
	taken := map[string]bool{}
	cost := 0
	for _, s := range p.all() {
		family := tools.Family{Name: "MCP server " + s.conf.ID}
		for _, d := range s.offered() {
			if d.usable() == nil {
				t := newTool(p, s.conf, d, taken)
				o.Tools, family.Tools = append(o.Tools, t), append(family.Tools, t.name)
				cost += t.tokens()
			}
		}
		o.Servers = append(o.Servers, family)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	o.Small = p.options.Budget == nil || cost <= p.options.Budget()
	if len(p.servers) > 0 {
		o.Tools = append(o.Tools, &answerer{p}, &reader{p}, &prompter{p})
		o.Rare = []tools.Family{{Name: "questions, resources and prompts of MCP servers",
			Tools: []string{AnswerTool, resourceTool, promptTool}}}
	}
	o.Version = p.version
	return o
}

// tool is a tool that agents have now; nil: there is none.
func (p *Pool) tool(server, name string) *tool {
	s := p.find(server)
	if s == nil {
		return nil
	}
	for _, d := range s.offered() {
		if d.Name == name && d.usable() == nil {
			return newTool(p, s.conf, d, map[string]bool{})
		}
	}

	return nil
}

// changed says that agents have other tools from now on.
func (p *Pool) changed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version++
}

// Version is that of the tools, once each server looked whether its file changed.
func (p *Pool) Version() int {
	for _, s := range p.all() {
		s.look()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version
}

// begin runs something in the background until it ends by itself or by the end of the pool's
// context. It reports false when the pool is closed.
func (p *Pool) begin(run func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.wait.Go(run)
	return true
}

// Close ends all servers and waits for it.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	for _, s := range p.all() {
		p.wait.Go(s.close)
	}
	p.wait.Wait()
}

// Try starts a server and returns the tools that it says it has, and the end of its log. What
// is pinned stays as it is.
func (p *Pool) Try(ctx context.Context, id string) (list []Definition, log string, err error) {
	s := p.find(id)
	if s == nil {
		return nil, "", fmt.Errorf("there is no MCP server %q in the settings", id)
	}
	got, done, err := s.use(ctx)
	if err == nil {
		defer done()
		list, err = s.ask(ctx, got)
	}

	return list, s.log.String(), err
}

// A State is how a server is.
type State struct {
	ID      string
	Command string
	URL     string
	State   string // idle, starting, running, failed
	Error   string // of the last start or end that failed
	Tools   int    // that agents have
	Pending int    // tools that wait for their owner's trust
}

// States are all servers, by id.
func (p *Pool) States() (list []State) {
	for _, s := range p.all() {
		list = append(list, s.state())
	}
	return list
}
