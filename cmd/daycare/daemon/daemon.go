package daemon

import (
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"daycare/agents/budget"
	"daycare/cmd/daycare/logfile"
	"daycare/cmd/daycare/models"
	"daycare/cmd/daycare/peers"
	"daycare/cmd/daycare/tracing"
	"daycare/engine"
	"daycare/engine/address"
	"daycare/engine/apitoken"
	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/pairing"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/redact"
	"daycare/engine/schedule"
	"daycare/engine/unseen"
	"daycare/engine/watch"
	ws "daycare/engine/workspace"
	"daycare/tools"
	"daycare/tools/a2a"
	"daycare/tools/mcp"
	toolshell "daycare/tools/shell"
	"daycare/tools/skills"
)

// A Daemon is everything that is built for one workspace. With the lock it can run; without, it only looks at the
// files. The types that embed it show what it does, each with one purpose: factory, workbench, gate, budgets,
// authority, reloader, and those that the API and the connectors get.
type Daemon struct {
	place
	logging
	conf
	troubles
	people
	kit
	work
	life
	shown
}

// A place is where a workspace is, and who has it.
type place struct {
	at       ws.Place
	startAt  time.Time
	lock     *disk.Lock // nil: looking only
	vol      *disk.Volume
	machines *peers.Machines // nil: it works alone
}

// logging is the log and what it needs.
type logging struct {
	loud    slog.Level // what a user on the terminal sees at least
	log     *slog.Logger
	logFile *logfile.File
	meter   meter
	events  *event.Stream
	tracer  *tracing.Tracer // nil: nothing is traced
}

// conf is what the settings say now.
type conf struct {
	settings *config.Reloader
	// readAtStart is what the files of the settings had when they were read first, or before: see settingsText.
	readAtStart string
	reloading   sync.Mutex      // one at a time, so that the newest applies
	secrets     redact.Redactor // of what is written and sent
	hookSet     atomic.Pointer[hookSet]
	models      atomic.Pointer[models.Chain]
	provider    models.Maker                     // nil: as the settings say
	warn        func(format string, args ...any) // nil: broken settings are an error
}

// troubles are what is wrong with files now.
type troubles struct {
	problems *finding.Problems
	tasks    []string // files of tasks that something was wrong with when they were read last
	notes    []string // for the banner: what did not start
}

// users are who there is, and what each may do and see.
type people struct {
	index    *address.Index
	asks     *permission.Queue
	folders  *permission.Folders // that agents were given
	tokens   *apitoken.Store     // of the API on TCP
	texts    *unseen.Texts       // of prompts, as their owner saw them
	pairings *pairing.Book       // pending pairing codes
	voiced   voiced              // what users said aloud
	deciding sync.Mutex          // one such request is answered at a time
	admitted chan pairing.Request
	attached *record.Attached // which attachment belongs to whose conversation
	gists    record.Gists     // of their state.json
}

// A kit is what agents work with.
type kit struct {
	tools   *tools.Set // without those between agents
	toolset *toolsets
	skills  *skills.Set
	alone   bool            // agents reach no network
	jobs    *toolshell.Jobs // background processes; they end with the daemon
	mcp     *mcp.Pool
	remotes *a2a.Desk // tasks for agents of other programs; nil: the settings have none
	// services are programs that agents share, such as MCP servers; they end with the daemon, too.
	services *toolshell.Services
	files    *control.FileStore
	shared   atomic.Pointer[shared] // what was read last for all prompts
}

// work is what makes agents work: messages, connectors, clocks, budgets.
type work struct {
	system     *engine.System
	family     *engine.Family
	connectors *connectorSet
	clocks     *schedule.Scheduler
	fires      peers.Clocks // whether they fire here
	ledger     *budget.Ledger
	freed      chan struct{} // a limit may have room again
	watcher    *watch.Watcher
	quiet      *watch.Quiet // whether what all prompts share is as it was
	merging    sync.Mutex   // worktrees are merged one after the other
}

// life is how a daemon is reached and ended while it runs.
type life struct {
	handler   http.Handler
	inspector control.Inspector // nil: files are not looked at for the API
	rest      *time.Timer       // gives memory back when there was no work for a while
	calm      *calm
	stopOnce  sync.Once
	stopped   chan struct{} // closed: shut down
}

// System is the engine that the daemon runs.
func (r *Daemon) System() *engine.System { return r.system }

// Family is what ties its agents to each other.
func (r *Daemon) Family() *engine.Family { return r.family }

// Index is who its agents are.
func (r *Daemon) Index() *address.Index { return r.index }
