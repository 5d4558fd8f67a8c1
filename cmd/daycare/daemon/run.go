package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/oklog/run"

	"daycare/cmd/daycare/models"
	"daycare/cmd/daycare/version"
	door "daycare/connectors/mcp"
	"daycare/engine"
	"daycare/engine/apitoken"
	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/schedule"
	ws "daycare/engine/workspace"
)

// Options are the flags of start.
type Options struct {
	Place  ws.Place // of the workspace
	Listen string   // address of the TCP listener; "": as in settings
	// Join are the servers of the cluster to join, if not those of the settings.
	Join []string
	// Inspector looks at files for the API, as commands do; nil: nothing does.
	Inspector control.Inspector
	// Provider makes the model services, if not plugins.NewProvider does: for tests of agents.
	Provider models.Maker
	// Alone: agents reach no network, whatever they are allowed, and the clocks run also without connectors.
	Alone bool
}

// A Banner is what start says once it runs.
type Banner struct {
	Socket     string
	Settings   string // path of the settings file; "" if there is none
	Listen     string // where else the API answers
	Agents     int
	Waiting    int      // items found in inboxes
	Connectors []string // ids
	Provider   string
	Model      string
	Why        string // why that provider: a setting, a key found in the environment, …
	Notes      []string
}

// Run runs the daemon in the foreground until ctx ends. ready is called once it runs, beside it, and its context ends with
// the daemon.
func Run(ctx context.Context, o Options, ready func(context.Context, Banner)) error {
	r, err := Open(ctx, o, slog.LevelWarn)
	if err != nil {
		return err
	}
	var told sync.WaitGroup // the banner counts what waits, which the API does not wait for
	defer told.Wait()
	running, ended := context.WithCancel(ctx)
	defer ended()
	return r.Run(ctx, true, o.Listen, func() { told.Go(func() { ready(running, r.banner(o.Listen)) }) })
}

func (r *Daemon) banner(listen string) Banner {
	c := r.settings.Current()
	if listen == "" {
		listen = c.Control.Listen
	}
	first := r.models.Load().First()
	b := Banner{Socket: filepath.Join(r.at.Data, control.SocketName), Listen: listen,
		Provider: first.ID, Model: first.Model, Why: first.Why, Notes: r.notes}
	if path := filepath.Join(r.at.Data, config.Name); disk.Exists(path) {
		b.Settings = path
	}
	for _, k := range c.Connectors {
		b.Connectors = append(b.Connectors, k.ID)
	}
	b.Agents, _, b.Waiting = r.system.Counts()
	return b
}

// Look serves the API from the files, with nothing running.
func Look(at ws.Place, warn func(format string, args ...any)) (*control.Client, error) {
	r, err := openFiles(context.Background(), at, warn)
	if err != nil {
		return nil, err
	}

	return r.client(), nil
}

// Inside runs the engine in this process, with the socket, so that other
// commands join it, but without receiving from connectors: that is the daemon's.
func Inside(ctx context.Context, at ws.Place) (*control.Client, func() error, error) {
	return InsideWith(ctx, Options{Place: at})
}

// InsideWith is Inside with options; Listen has no effect.
func InsideWith(ctx context.Context, o Options) (*control.Client, func() error, error) {
	r, stop, err := inside(ctx, o)
	if err != nil {
		return nil, nil, err
	}

	return r.client(), stop, nil
}

// Watched is InsideWith for who moves the clock. settled reports whether the clocks have seen this moment, and how many of
// their runs are in progress.
func Watched(ctx context.Context, o Options) (c *control.Client, settled func() (seen bool, running int), stop func() error, err error) {
	r, stop, err := inside(ctx, o)
	if err != nil {
		return nil, nil, nil, err
	}

	return r.client(), r.clocks.Settled, stop, nil
}

func inside(ctx context.Context, o Options) (*Daemon, func() error, error) {
	SaveMemory()
	r, err := Open(ctx, o, slog.LevelError)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- r.Run(ctx, false, "", func() { close(ready) }) }()
	stop := func() error {
		cancel()
		return <-done
	}
	select {
	case <-ready:
		return r, stop, nil
	case err := <-done:
		cancel()
		return nil, nil, fmt.Errorf("start the engine: %w", err)
	}
}

// Run runs until ctx ends, the API is asked to shut down, or storage fails. The
// parts end in the order in which they are added: connectors stop taking, agents
// suspend or end their turns and still send, the watcher and the API go last.
func (r *Daemon) Run(ctx context.Context, connect bool, listen string, ready func()) (err error) {
	defer r.close()
	defer func() {
		if err != nil && r.lock != nil && r.lock.Lost() {
			err = reloader{r}.lost() // whatever else failed followed from it
		}
	}()
	if err := r.system.TakeDropped(ctx); err != nil {
		return err
	}
	listeners, err := r.listen(listen, connect)
	if err != nil {
		return err
	}
	var g run.Group
	add(&g, func(inner context.Context) error {
		select {
		case <-ctx.Done():
		case <-r.stopped:
		case <-inner.Done():
		}
		return nil
	})
	if connect {
		add(&g, r.system.Receive)
	}
	if connect || r.alone {
		add(&g, r.clocks.Run)
	}
	add(&g, r.family.Run)
	if r.machines != nil {
		add(&g, r.machines.Run)
		add(&g, func(ctx context.Context) error { return r.fires.Run(ctx, schedule.Lead{Scheduler: r.clocks}.Passed) })
	}
	if r.remotes != nil {
		add(&g, r.remotes.Run)
	}
	add(&g, func(ctx context.Context) error { return r.system.Run(ctx, factory{r}.start) })
	add(&g, func(ctx context.Context) error { return r.restOnceLooked(ctx, r.system.Looked()) })
	add(&g, r.toolset.readAhead)
	add(&g, budgets{r}.watchBudgets)
	add(&g, admission{r}.welcome)
	add(&g, reloader{r}.watchSettings)
	add(&g, reloader{r}.watchPlace)
	add(&g, r.keepEventLog)
	if r.tracer != nil {
		add(&g, r.tracer.Run)
	}
	add(&g, r.watcher.Run)
	add(&g, func(ctx context.Context) error {
		return control.ServeLater(ctx, restAfterStreams(r.handler, r.life.rested), r.log, r.shown.later, listeners...)
	})
	ready()
	disk.LendProcessors()
	r.rest = time.AfterFunc(restAfter, giveBack) // what the start needed
	defer r.rest.Stop()
	return g.Run()
}

// listen opens the ways in: what the settings or addr say, for a daemon the page that browsers
// still show, and last the socket: who can connect to it may expect all others to be open.
func (r *Daemon) listen(addr string, page bool) (all []*control.Listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range all {
				l.Close()
			}
			all, err = nil, fmt.Errorf("open the API: %w", err)
		}
	}()
	c := r.settings.Current()
	if addr == "" {
		addr = c.Control.Listen
	}
	if addr != "" {
		o := control.TCP{Addr: addr, Token: c.Control.Token.Reveal(), Hosts: c.Web.Hosts,
			Cert: r.at.Resolve(c.Control.TLSCert), Key: r.at.Resolve(c.Control.TLSKey),
			Tokens: r.tokens, Log: r.log}
		if c.Web.Listen == "" {
			o.Page = r.shown.door
		}
		tcp, err := control.ListenTCP(o)
		if err != nil {
			return all, err
		}
		if o.Page != nil {
			r.shown.address = tcp.URL
		}
		all = append(all, tcp)
	}

	if page {
		if l := (webPage{r}).atStart(); l != nil {
			all = append(all, l)
		}
	}
	l, err := control.ListenUnix(r.at.Data, r.log)
	if err != nil {
		return all, err
	}

	return append(all, l), nil
}

// add adds a part whose interrupt waits until it has ended, so that the parts end
// one after the other.
func add(g *run.Group, part func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	g.Add(func() error {
		defer close(done)
		return part(ctx)
	}, func(error) {
		cancel()
		<-done
	})
}

// shutdown asks run to end.
func (r *Daemon) shutdown() { r.stopOnce.Do(func() { close(r.stopped) }) }

func (r *Daemon) close() {
	var errs []error
	if r.jobs != nil {
		r.jobs.Close()
	}
	if r.mcp != nil {
		r.mcp.Close()
	}
	r.machines.Close()
	if r.asks != nil {
		errs = append(errs, r.asks.Close())
	}
	if r.index != nil {
		errs = append(errs, r.index.Close())
	}
	r.quiet.Close()
	if r.logFile != nil {
		errs = append(errs, r.logFile.Close())
	}
	if r.lock != nil {
		errs = append(errs, r.lock.Release())
	}
	if err := errors.Join(errs...); err != nil {
		r.log.Error("not closed cleanly", "err", err)
	}
}

// client is this process as a client of itself.
func (r *Daemon) client() *control.Client {
	h := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		caller := control.Caller{Name: engine.Terminal().UserID, Local: true, Rights: apitoken.Everything}
		r.handler.ServeHTTP(w, req.WithContext(control.WithCaller(req.Context(), caller)))
	})
	return control.NewClient(control.Local(h))
}

// mcpPath is where MCP clients connect.
const mcpPath = "/mcp"

// An mcpServer lets MCP clients in.
type mcpServer struct{ *Daemon }

// beside serves MCP clients beside the API, while the settings offer agents. Until the first
// client comes there is nothing.
func (r mcpServer) beside(api http.Handler) http.Handler {
	open := sync.OnceValue(func() http.Handler {
		d := door.New(door.Options{Version: version.Number, Home: r.at.Data, Log: r.log, Offer: r.offer})
		return d.Handler(func(req *http.Request) door.Peer {
			caller := control.CallerOf(req.Context())
			name := caller.Name
			caller.Via, caller.Local = door.Connector, false
			return door.Peer{Name: name, API: control.NewClient(control.LocalAs(api, caller)), Some: caller.Rights.Restricted()}
		})
	})

	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch {
		case strings.TrimSuffix(req.URL.Path, "/") != mcpPath:
			api.ServeHTTP(w, req)
		case len(r.offer().Agents) == 0:
			refuseMCP(w)
		default:
			open().ServeHTTP(w, req)
		}
	})
}

// offer is what the settings let MCP clients reach now.
func (r mcpServer) offer() door.Offer {
	s := r.settings.Current().MCP.Serve
	return door.Offer{Agents: s.Agents, Memory: s.Memory}
}

func refuseMCP(w http.ResponseWriter) {
	code, status := fault.NoRoute.Wire()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(control.ErrorBody{Error: &control.APIError{Code: code,
		Message: "no agents are offered to MCP clients", Hint: "name them in mcp.serve.agents of settings.yaml"}})
}
