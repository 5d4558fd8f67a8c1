package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nrednav/cuid2"
	"github.com/oklog/run"

	"daycare/agents/budget"
	"daycare/engine"
	"daycare/engine/address"
	"daycare/engine/apitoken"
	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/redact"
	"daycare/engine/schedule"
	"daycare/engine/unseen"
	"daycare/engine/watch"
	"daycare/tools"
	"daycare/tools/files"
	toolshell "daycare/tools/shell"
	"daycare/tools/skills"
)

// shutdownGrace bounds how long answers under way may take to leave at the end.
const shutdownGrace = 5 * time.Second

// runtimeParts is everything that is built for one workspace. With the lock it
// can run; without, it only looks at the files.
type runtimeParts struct {
	root      string // the .daycare directory
	workspace string
	loud      slog.Level // what a person on the terminal sees at least
	log       *slog.Logger
	logFile   *logFile
	settings  *config.Reloader
	reloading sync.Mutex      // one at a time, so that what counts is the newest
	secrets   redact.Redactor // of what is written and sent
	meter     meter
	startAt   time.Time

	lock     *disk.Lock  // nil: looking only
	rest     *time.Timer // gives memory back when there was no work for a while
	vol      *disk.Volume
	index    *address.Index
	asks     *permission.Queue
	folders  *permission.Folders // that agents were given
	texts    *unseen.Texts       // of prompts, as their owner saw them
	events   *event.Stream
	board    *finding.Board // what is wrong with files now
	tasks    []string       // files of tasks that something was wrong with when they were read last
	watcher  *watch.Watcher
	tokens   *apitoken.Store // of the API on TCP
	system   *engine.System
	family   *engine.Family
	tools    *tools.Set // without those between agents
	toolset  *toolsets
	shelf    *skills.Shelf
	ledger   *budget.Ledger
	freed    chan struct{} // a limit may have room again
	plugs    *plugs
	clocks   *schedule.Scheduler
	jobs     *toolshell.Jobs // background processes; they end with the runtime
	models   atomic.Pointer[chain]
	files    *control.FileStore
	attached *record.Attached // which of them belong to whose conversation
	handler  http.Handler
	notes    []string                         // for the banner: what did not start
	warn     func(format string, args ...any) // nil: broken settings are an error

	stopOnce sync.Once
	stopped  chan struct{} // closed: shut down
}

// openRuntime takes the lock of a workspace and builds everything. Nothing runs
// before run. Errors: disk.ErrLocked, disk.ErrFailed, findings of bad settings.
func openRuntime(ctx context.Context, workspace string, loud slog.Level) (*runtimeParts, error) {
	r := newParts(workspace, loud)
	var err error
	if r.lock, _, err = disk.TryLock(lockPath(workspace), disk.Holder{
		PID: os.Getpid(), StartedAt: disk.StampOf(r.startAt), Socket: filepath.Join(r.root, control.SocketName)}); err != nil {
		return nil, err
	}
	r.vol = disk.NewVolume(r.root)
	if err := errors.Join(r.open(ctx), r.keepFolders()); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// openFiles builds what is needed to look at a workspace, whoever runs it. Broken
// settings are told to warn, and the defaults hold.
func openFiles(ctx context.Context, workspace string, warn func(format string, args ...any)) (*runtimeParts, error) {
	r := newParts(workspace, slog.LevelError)
	r.warn = warn
	if err := r.open(ctx); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// newParts is a runtime of which nothing is open. What is logged goes to the
// terminal from loud on.
func newParts(workspace string, loud slog.Level) *runtimeParts {
	return &runtimeParts{root: filepath.Join(workspace, home), workspace: workspace, loud: loud,
		log: slog.New(slog.DiscardHandler), attached: record.NewAttached(),
		startAt: time.Now(), stopped: make(chan struct{}), freed: make(chan struct{}, 1)}
}

func (r *runtimeParts) open(ctx context.Context) (err error) {
	var found []finding.Finding
	if r.settings, found, err = config.NewReloader(r.root, os.LookupEnv, connectorTypes...); err != nil {
		if r.warn == nil {
			return err
		}
		r.warn("%v\nthis is shown with the default settings; correct the file, or ask daycare doctor", err)
		r.settings = config.NewDefaults(r.root, os.LookupEnv, connectorTypes...)
	}
	r.hideSecrets()
	if r.lock != nil {
		if err := r.openLog(); err != nil {
			return err
		}
	}
	r.events = event.NewStream(cuid2.Generate()[:8])
	r.board = engine.NewBoard(r.log, r.events)
	r.readSettings(found)
	r.tokens = apitoken.Open(r.root, r.vol, r.readShared)
	if r.lock != nil {
		if err := r.vol.Reserve(); err != nil {
			return fmt.Errorf("keep space back: %w", err)
		}
	}
	c := r.settings.Current()
	if err := r.openAgents(c); err != nil {
		return err
	}
	if r.folders, err = permission.OpenFolders(r.vol, r.workspace, r.readFolder); err != nil {
		return err
	}
	if r.texts, err = unseen.Open(r.vol, r.workspace); err != nil {
		return err
	}
	r.watcher = watch.New(r.log)
	models, err := newChain(ctx, c, r.workspace, r.keyOf)
	if err != nil {
		return err
	}
	r.models.Store(models)
	if r.lock != nil {
		if err := models.checkAll(); err != nil {
			return err
		}
	}
	if r.files, err = control.NewFileStore(r.root, r.vol, r.folders); err == nil && r.lock != nil {
		err = r.files.Recover()
	}
	if err != nil {
		return err
	}
	r.clocks = r.newSchedule(r.gate)
	if r.lock != nil {
		if err := r.lookAtTasks(); err != nil {
			return err
		}
	}
	r.shelf = r.newShelf()
	if r.tools, r.jobs, err = r.newTools(c); err != nil {
		return err
	}
	return r.build(c)
}

// openAgents reads who there is and what waits for a person. Without the lock it is read
// for looking, and most commands look at one agent only.
func (r *runtimeParts) openAgents(c *config.Config) error {
	load, openQueue := address.Look, permission.ReadQueue
	if r.lock != nil {
		load = func(root string, log *slog.Logger) (*address.Index, []finding.Finding, error) {
			return address.Load(r.vol, root, log)
		}
		openQueue = permission.OpenQueue
	}

	index, found, err := load(r.root, r.log)
	if err != nil {
		return fmt.Errorf("read agents: %w", err)
	}
	r.index = index
	engine.NoteAgents(r.board, r.root, found)

	if r.asks, found, err = openQueue(r.vol, r.root, crash.Now, c.Permissions.Expiry); err != nil {
		return fmt.Errorf("read permission requests: %w", err)
	}
	r.board.Tell("", found...)
	return nil
}

// build makes the system with its connectors, and the API before it.
func (r *runtimeParts) build(c *config.Config) (err error) {
	r.plugs = newPlugs(r.settings.Current, r.chatHost(), r.log)
	connectors, troubles := r.plugs.fit()
	r.board.Tell("", troubles...)
	for _, f := range troubles {
		r.notes = append(r.notes, f.Reason)
	}
	r.system, err = engine.New(engine.Options{
		Root: r.root, Volume: r.vol, Index: r.index, Events: r.events, Asks: r.asks, Connectors: connectors,
		Board: r.board, Watcher: r.watcher, Log: r.log, NewState: r.newState, Model: r.models.Load().first().Model,
		Window: r.room, Grace: shutdownGrace,
		Redact:    &r.secrets,
		Folders:   r.folders,
		Queue:     r.queueOf,
		Enclose:   r.enclose,
		Awake:     func() int { return r.settings.Current().Agents.MaxAwake },
		Owns:      r.owns,
		Foreign:   r.foreign,
		PerMinute: func() int { return r.settings.Current().Agents.PerMinute },
	})
	if err != nil {
		return err
	}
	r.family = engine.NewFamily(r.system, r.limits)
	r.ledger = r.newLedger()
	if r.toolset, err = newToolsets(r.root, r.tools, r.sendFile(), r.family, r.events, r.readShared); err != nil {
		return err
	}
	r.toolset.plans = r.plansFirst
	b := &backend{System: r.system, parts: r}
	r.handler = control.Handler(control.Backend{Agents: b, Permissions: b, Daemon: b, Files: r.files, Events: r.events, Folders: hands{b},
		Grants: kin{r}, SubAgents: kin{r}, Offers: offers{r}, Costs: costs{r},
		Schedules: schedules{r.clocks, r.lock != nil}},
		control.Options{Log: r.log})
	return nil
}

// run runs until ctx ends, the API is asked to shut down, or storage fails. The
// parts end in the order in which they are added: connectors stop taking, agents
// suspend or end their turns and still send, the watcher and the API go last.
func (r *runtimeParts) run(ctx context.Context, connect bool, listen string, ready func()) error {
	defer r.close()
	if err := r.system.TakeLetters(ctx); err != nil {
		return err
	}
	listeners, err := r.listen(listen)
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
		add(&g, r.clocks.Run)
	}
	add(&g, r.family.Run)
	add(&g, func(ctx context.Context) error { return r.system.Run(ctx, r.start) })
	add(&g, r.watchBudgets)
	add(&g, r.watchSettings)
	add(&g, r.watchPlace)
	add(&g, r.keepJournal)
	add(&g, r.watcher.Run)
	add(&g, func(ctx context.Context) error { return control.Serve(ctx, r.handler, r.log, listeners...) })
	ready()
	saveMemory()
	r.rest = time.AfterFunc(restAfter, giveBack) // what the start needed
	defer r.rest.Stop()
	return g.Run()
}

func (r *runtimeParts) listen(addr string) ([]*control.Listener, error) {
	l, err := control.ListenUnix(r.root, r.log)
	if err != nil {
		return nil, fmt.Errorf("open the API: %w", err)
	}
	c := r.settings.Current().Control
	if addr == "" {
		addr = c.Listen
	}
	if addr == "" {
		return []*control.Listener{l}, nil
	}
	tcp, err := control.ListenTCP(control.TCP{Addr: addr, Token: c.Token.Reveal(),
		Cert: inWorkspace(r.workspace, c.TLSCert), Key: inWorkspace(r.workspace, c.TLSKey),
		Tokens: r.tokens, Log: r.log})
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("open the API: %w", err)
	}
	return []*control.Listener{l, tcp}, nil
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
func (r *runtimeParts) shutdown() { r.stopOnce.Do(func() { close(r.stopped) }) }

func (r *runtimeParts) close() {
	var errs []error
	if r.jobs != nil {
		r.jobs.Close()
	}
	if r.asks != nil {
		errs = append(errs, r.asks.Close())
	}
	if r.index != nil {
		errs = append(errs, r.index.Close())
	}
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

// sendFile is the tool that sends a file to the chat of an agent.
func (r *runtimeParts) sendFile() tools.Tool {
	return files.NewSend(r.fileOptions(),
		func(ctx context.Context, call tools.Call, text string, f message.File) error {
			return r.family.Say(ctx, call.Agent, "", call.Route, call.ID, text, f)
		})
}

// keep stores a picture that an agent read, or a file that it sends.
func (r *runtimeParts) keep(name, _ string, data []byte) (message.File, error) {
	return r.files.Put(name, bytes.NewReader(data))
}

// client is this process as a client of itself.
func (r *runtimeParts) client() *control.Client {
	h := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		caller := control.Caller{Name: engine.Terminal().UserID, Local: true, Rights: apitoken.Everything}
		r.handler.ServeHTTP(w, req.WithContext(control.WithCaller(req.Context(), caller)))
	})
	return control.NewClient(control.Local(h))
}
