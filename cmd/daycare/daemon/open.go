package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"daycare/agents/budget"
	"daycare/cmd/daycare/models"
	"daycare/cmd/daycare/peers"
	"daycare/cmd/daycare/plugins"
	"daycare/cmd/daycare/version"
	"daycare/connectors/web"
	"daycare/engine"
	"daycare/engine/address"
	"daycare/engine/apitoken"
	"daycare/engine/cluster"
	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/crash"
	"daycare/engine/cuid"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/pairing"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/unseen"
	"daycare/engine/watch"
	ws "daycare/engine/workspace"
)

// shutdownGrace bounds how long answers in progress may take to leave at the end.
const shutdownGrace = 5 * time.Second

// Open takes the lock of a workspace and builds everything. Nothing runs
// before run. Errors: disk.ErrLocked, disk.ErrFailed, findings of bad settings.
func Open(ctx context.Context, o Options, loud slog.Level) (*Daemon, error) {
	if err := o.Place.Check(); err != nil {
		return nil, err
	}
	r := newParts(o.Place, loud)
	r.inspector, r.provider, r.alone = o.Inspector, o.Provider, o.Alone
	var err error
	if r.lock, _, err = disk.TryLock(o.Place.Lock(), disk.Holder{
		PID: os.Getpid(), StartedAt: disk.StampOf(r.startAt), Listen: o.Listen,
		Socket: filepath.Join(r.at.Data, control.SocketName)}); err != nil {
		return nil, err
	}
	r.vol = disk.NewVolume(r.at.Data)
	if err := r.open(ctx, o.Join); err != nil {
		r.close()
		return nil, err
	}

	return r, nil
}

// openFiles builds what is needed to look at a workspace, whoever runs it. Broken
// settings are reported to warn, and the defaults apply.
func openFiles(ctx context.Context, at ws.Place, warn func(format string, args ...any)) (*Daemon, error) {
	r := newParts(at, slog.LevelError)
	r.warn = warn
	if err := r.open(ctx, nil); err != nil {
		r.close()
		return nil, err
	}
	r.toolset.all() // to report definitions that are broken
	return r, nil
}

// newParts is a runtime of which nothing is open. What is logged goes to the
// terminal from loud on.
func newParts(at ws.Place, loud slog.Level) *Daemon {
	return &Daemon{
		place:   place{at: at, startAt: time.Now()},
		logging: logging{loud: loud, log: slog.New(slog.DiscardHandler)},
		people:  people{attached: record.NewAttached(), admitted: make(chan pairing.Request, pairing.Most)},
		work:    work{freed: make(chan struct{}, 1), quiet: watch.NewQuiet()},
		life:    life{stopped: make(chan struct{}), calm: newCalm()},
		shown:   shown{later: make(chan *control.Listener)},
	}
}

func (r *Daemon) open(ctx context.Context, join []string) (err error) {
	if err := openSettings(r); err != nil {
		return err
	}

	r.tokens = apitoken.Open(r.at.Data, r.vol, r.readShared)
	if r.lock != nil {
		if err := r.prepareFolders(); err != nil {
			return err
		}
	}
	r.pairings = pairing.Open(r.at.Data, r.vol)
	c := r.settings.Current()
	if err := r.openAgents(ctx, c, join); err != nil {
		return err
	}
	if r.folders, err = permission.OpenFolders(r.vol, r.at, r.readFolder); err != nil {
		return err
	}
	if r.texts, err = unseen.Open(r.vol, r.at); err != nil {
		return err
	}

	r.watcher = watch.New(r.log)
	chain, err := models.New(ctx, c, r.at, r.keyOf, r.provider)
	if err != nil {
		return err
	}
	r.models.Store(chain)
	if r.lock != nil {
		if err := chain.CheckAll(); err != nil {
			return err
		}
	}
	if err := openStore(r); err != nil {
		return err
	}

	r.fires.Machines = r.machines
	r.clocks = r.newSchedule(r.fires.Gates(gate{r}.run))
	if r.lock != nil {
		if err := r.lookAtTasks(); err != nil {
			return err
		}
	}

	r.skills = workbench{r}.newSkills()
	if r.tools, r.jobs, err = (workbench{r}).newTools(ctx, c); err != nil {
		return err
	}
	if r.lock != nil && c.Tracing.Endpoint != "" {
		r.tracer = newTracer(ctx, r, c)
	}

	return r.build(c)
}

// openSettings reads the settings and opens what reports their mistakes: the log, the events, the list of problems.
func openSettings(r *Daemon) (err error) {
	var found []finding.Finding
	r.readAtStart = reloader{r}.settingsText()
	if r.settings, found, err = config.NewReloader(r.at.Data, os.LookupEnv, plugins.ConnectorChecks...); err != nil {
		if r.warn == nil {
			return err
		}
		r.warn("%v\nshowing the workspace with default settings; correct the file, or run daycare doctor", err)
		r.settings = config.NewDefaults(r.at.Data, os.LookupEnv, plugins.ConnectorChecks...)
	}
	r.hideSecrets()
	if r.lock != nil {
		if err := r.openLog(); err != nil {
			return err
		}
	}
	r.events = event.NewStream(cuid.New()[:8])
	r.problems = engine.NewProblems(r.log, r.events)
	reloader{r}.readSettings(found)

	return nil
}

// openStore opens the store of attachments.
func openStore(r *Daemon) (err error) {
	if r.files, err = control.NewFileStore(r.at.Data, r.vol, r.folders); err != nil {
		return err
	}
	r.files.Share(r.machines.Copies())
	if r.lock == nil {
		return nil
	}

	return r.files.Recover()
}

// openAgents reads who there is and what waits for a user, and joins the machines of a cluster. Without the lock it is read
// for looking, and most commands look at one agent only.
func (r *Daemon) openAgents(ctx context.Context, c *config.Config, join []string) error {
	load, openQueue := address.Look, permission.ReadQueue
	if r.lock != nil {
		load = func(root string, log *slog.Logger) (*address.Index, []finding.Finding, error) {
			return address.Load(r.vol, root, log)
		}
		openQueue = permission.OpenQueue
	}

	index, found, err := load(r.at.Data, r.log)
	if err != nil {
		return fmt.Errorf("read agents: %w", err)
	}
	r.index = index
	engine.NoteAgents(r.problems, r.at.Data, found)

	if r.asks, found, err = openQueue(r.vol, r.at.Data, crash.Now, c.Permissions.Expiry); err != nil {
		return fmt.Errorf("read approval requests: %w", err)
	}
	r.problems.Report("", found...)
	if r.lock != nil {
		p := peers.Place{Workspace: r.at, Volume: r.vol, Index: r.index, Asks: r.asks,
			Events: r.events, About: (&abouts{settings: r.settings, log: r.log}).now, Log: r.log,
			Raised: func() { budget.Machines{Ledger: r.ledger}.Reread(); budgets{r}.roomAgain() }}
		r.machines, err = peers.Join(ctx, p, c.Cluster, join)
	}

	return err
}

// abouts says what machines of a cluster compare. Settings are hashed once, until they change.
type abouts struct {
	settings *config.Reloader
	log      *slog.Logger

	mu    sync.Mutex
	of    *config.Config
	about cluster.About
}

func (a *abouts) now() cluster.About {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.settings.Current(); c != a.of {
		digest, err := c.Digest()
		if err != nil {
			a.log.Warn("settings cannot be compared with those of other machines", "err", err)
		}
		a.of, a.about = c, cluster.About{Program: version.Number, Settings: digest}
	}

	return a.about
}

// build makes the system with its connectors, and the API before it.
func (r *Daemon) build(c *config.Config) (err error) {
	r.connectors = newConnectorSet(r.settings.Current, r.chatHost(), r.log)
	connectors, troubles := r.connectors.build()
	r.problems.Report("", troubles...)
	for _, f := range troubles {
		r.notes = append(r.notes, f.Reason)
	}
	r.system, err = engine.New(engine.Options{
		Files: engine.Files{Root: r.at.Data, Volume: r.vol, Index: r.index, Watcher: r.watcher, Folders: r.folders,
			Peers: r.machines.Engine()},
		Reports: engine.Reports{Events: r.events, Problems: r.problems, Log: r.log},
		AgentDefaults: engine.AgentDefaults{NewState: factory{r}.newState, Answers: r.answers, Budget: r.budgetOf,
			Queue: r.queueOf},
		Asks:       r.asks,
		Connectors: connectors,
		Outlet:     outlet{r}.all(),
		Redact:     &r.secrets,
		Enclose:    workbench{r}.enclose,
		Awake:      func() int { return r.settings.Current().Agents.MaxAwake },
		Owns:       authority{r}.owns,
		Foreign:    authority{r}.foreign,
		PerMinute:  func() int { return r.settings.Current().Agents.PerMinute },
	})
	if err != nil {
		return err
	}
	r.family = engine.NewFamily(r.system, r.limits)
	r.ledger = budgets{r}.newLedger()
	r.machines.Count(r.ledger)
	if r.toolset, err = newToolsets(r.at.Data, r.tools, (workbench{r}).sendFile(), r.family, r.events, r.readShared); err != nil {
		return err
	}
	r.toolset.mcp = r.mcp
	r.toolset.registry.Trust(r.quiet)
	r.shown.door = webPage{r}.newDoor()
	b := &backend{System: r.system, parts: r}
	r.handler = control.Handler(control.Backend{Agents: b, Permissions: b, Daemon: b, Files: r.files, Events: r.events, Folders: folders{b},
		Grants: grants{r}, Pairings: admission{r}, SubAgents: grants{r}, Catalog: choices{r}, Hooks: hooked{r},
		Costs: costs{r}, Backups: backups{r}, Schedules: schedules{r.clocks}, Translator: r.connectors.translator,
		Browsers: r.shown.door, Inspector: r.inspector, HTML: web.HTML, Offline: r.lock == nil},
		control.Options{Log: r.log, Version: version.Number, Lead: r.machines.Lead})
	r.handler = r.machines.Before(r.handler, r.system, r.files)
	r.handler = mcpServer{r}.beside(r.connectors.besideA2A(r.handler))
	return nil
}
