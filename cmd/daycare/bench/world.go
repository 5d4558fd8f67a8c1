package bench

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"daycare/agents"
	"daycare/agents/providers"
	"daycare/engine"
	"daycare/engine/address"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/workspace"
	"daycare/tools"
)

// A World is the real engine with real files and a given model: what is measured
// is all that daycare does beside the model.
type World struct {
	Root     string
	System   *engine.System
	Events   *event.Stream
	Volume   *disk.Volume
	Asks     *permission.Queue
	index    *address.Index
	problems *finding.Problems
	model    agents.Model
	tools    *tools.Set
	queue    agents.Queue
	course
}

// A course is that of a world.
type course struct {
	stop    context.CancelFunc
	stopped sync.WaitGroup
	leave   func() // the cluster
}

// A Join makes a world one machine of a cluster, before its volume is used. leave is called when its agents have ended.
type Join func(root string, vol *disk.Volume) (peers engine.Peers, leave func(), err error)

// NewWorld opens the engine on the workspace dir. model answers every request.
func NewWorld(dir string, model providers.Provider, queue agents.Queue, connectors ...engine.Connector) (*World, error) {
	return NewWorldWith(dir, nil, model, queue, connectors...)
}

// NewWorldWith is NewWorld of a machine of a cluster; join nil: of none.
func NewWorldWith(dir string, join Join, model providers.Provider, queue agents.Queue, connectors ...engine.Connector) (*World, error) {
	w := &World{Root: workspace.At(dir).Data, Events: event.NewStream("bench"),
		model: &providers.Caller{Chain: []providers.Provider{model}}, queue: queue}
	if err := os.MkdirAll(w.Root, 0o700); err != nil {
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	w.Volume = disk.NewVolume(w.Root)
	w.problems = engine.NewProblems(log, w.Events)
	var err error
	var peers engine.Peers
	if w.leave = func() {}; join != nil {
		if peers, w.leave, err = join(w.Root, w.Volume); err != nil {
			return nil, err
		}
	}
	if w.index, _, err = address.Load(w.Volume, w.Root, log); err != nil {
		return nil, err
	}
	if w.Asks, _, err = permission.OpenQueue(w.Volume, w.Root, time.Now, time.Hour); err != nil {
		return nil, err
	}
	if w.tools, err = tools.NewSet(); err != nil {
		return nil, err
	}
	w.System, err = engine.New(engine.Options{
		Files:   engine.Files{Root: w.Root, Volume: w.Volume, Index: w.index, Peers: peers},
		Reports: engine.Reports{Events: w.Events, Problems: w.problems, Log: log},
		AgentDefaults: engine.AgentDefaults{NewState: func(address.Descriptor) ([]byte, error) {
			return record.EncodeState(workspace.At(dir), record.State{Permissions: permission.Default(dir),
				CreatedAt: disk.StampOf(time.Now())})
		}},
		Asks: w.Asks, Connectors: connectors, Outlet: engine.Outlet{Grace: time.Second}})
	return w, err
}

// Run lets the agents work until Close.
func (w *World) Run() { w.runWith(w.start) }

// Hold keeps agents awake without letting them work: what is delivered stays.
func (w *World) Hold() {
	w.runWith(func(ctx context.Context, _ engine.Runtime) error {
		<-ctx.Done()
		return nil
	})
}

// runWith lets start play the agents until Close.
func (w *World) runWith(start engine.StartFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	w.stop = cancel
	w.stopped.Go(func() { w.System.Run(ctx, start) })
}

func (w *World) start(ctx context.Context, rt engine.Runtime) error {
	return agents.Run(ctx, w.options(rt))
}

// options are what an agent is run with.
func (w *World) options(rt engine.Runtime) *agents.Options {
	s := &agentRuntime{w, rt}
	return &agents.Options{
		Place: agents.Place{ID: rt.Meta.ID, Dir: rt.Dir, Inbox: rt.Inbox, Volume: w.Volume, Events: w.Events,
			Problems: w.problems, Log: slog.New(slog.DiscardHandler)},
		Identity: s, Models: s, Costs: s, Briefing: s, Jobs: s, Outbox: &s.rt, Stage: &s.rt, Deciders: agents.Deciders{Permits: w.Asks},
	}
}

// Close ends the agents and lets go of the files.
func (w *World) Close() error {
	if w.stop != nil {
		w.stop()
		w.stopped.Wait()
	}
	w.leave()
	if err := w.Asks.Close(); err != nil {
		return err
	}

	return w.index.Close()
}

// Agents makes n agents, as first messages would.
func (w *World) Agents(ctx context.Context, n int) ([]string, error) {
	ids := make([]string, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	slots := make(chan struct{}, 64)
	for i := range ids {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			a, err := w.System.Create(ctx,
				address.Descriptor{Type: address.User, Connector: "bench", ChannelID: fmt.Sprint(i), UserID: "u"})
			ids[i], errs[i] = a.ID, err
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}

	return ids, nil
}

// Say delivers a message and returns its item.
func (w *World) Say(ctx context.Context, agent, text string) (string, error) {
	r, err := w.System.Deliver(ctx, message.Incoming{Agent: agent, Text: text})
	return r.Item, err
}

// Ask delivers a message and waits for its answer.
func (w *World) Ask(ctx context.Context, agent, text string) (event.Outcome, error) {
	item, err := w.Say(ctx, agent, text)
	if err != nil {
		return event.Outcome{}, err
	}

	return w.System.Await(ctx, agent, item)
}
