package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os/user"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"daycare/engine/address"
	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/folders"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/redact"
	"daycare/engine/watch"
	"daycare/engine/workspace"
)

// Options are what a System is built from.
type Options struct {
	Files
	Reports
	AgentDefaults
	Asks       *permission.Queue
	Connectors []Connector
	// PerMinute returns how many messages one sender of a connector can send in a
	// minute; 0, or a nil function: any number.
	PerMinute func() int
	// Owns reports whether the user of a user's agent is an owner, who answers the requests of
	// agents that belong to nobody. nil: every user is.
	Owns func(d address.Descriptor) bool
	// Foreign names the sender of a message that does not speak for the owner ("the guest Bob");
	// "" if it does. nil: every message does.
	Foreign func(from message.Address, sender string) string
	// Redact removes secrets from what is accepted, before it is written anywhere. nil:
	// no secrets are known.
	Redact *redact.Redactor
	// Enclose keeps a copy of the nth file of a dropped message, which becomes the item with
	// that id. It may be called again for the same file, of which it must keep one copy. nil:
	// dropped messages carry no files.
	Enclose func(item string, n int, e inbox.Enclosure) (message.File, error)
	// Awake returns how many agents can be awake at a time; 0, or a nil function: any number.
	// It is never more than there are file descriptors for.
	Awake func() int
	Outlet
}

// Outlet is how answers leave.
type Outlet struct {
	// Grace is how long deliveries may still run at shutdown.
	Grace time.Duration
	// Keep stores a text as a file under the id of an answer, so that it can be sent as one. It
	// may be called again for the same id, of which it must keep one copy. nil: long answers are
	// sent in parts only.
	Keep func(id, name string, content []byte) (message.File, error)
	// Speak returns an answer as sound, to be sent with it. It may be called again for the same
	// answer. false, or a nil function: it is not spoken.
	Speak func(ctx context.Context, out message.Outgoing) (message.File, bool)
	// Quiet returns until when a chat must not get unrequested messages; the zero time, or a nil function: it can
	// get them now.
	Quiet func(to message.Address) time.Time
}

// Files are the files that a System works on.
type Files struct {
	Root    string       // the .daycare directory
	Volume  *disk.Volume // nil: the files are only read, and Run must not be called
	Index   *address.Index
	Watcher *watch.Watcher // nil: drop/ is read only at start
	// Folders are the folders that agents were granted; nil: as they are now.
	Folders *permission.Folders
	Peers   Peers // nil: no other machine works on these agents
}

// Reports are where a System reports what happens.
type Reports struct {
	Events   *event.Stream
	Problems *finding.Problems // of files; nil: a new list
	Log      *slog.Logger
}

// AgentDefaults are what applies to an agent whose own state.json does not say.
type AgentDefaults struct {
	// NewState returns the state.json of a new agent.
	NewState func(d address.Descriptor) ([]byte, error)
	// Answers returns the model that answers for agents of a type with a choice, and the size
	// of its context window in tokens, 0: unknown. nil: no model is known.
	Answers func(t address.Type, choice record.Model) (model string, window int)
	// Budget returns how many US dollars an agent can cost over its life, together with those
	// it started; 0: no limit. own is the budget in its state.json. nil: no limit.
	Budget func(d address.Descriptor, own *record.Budget) float64
	// Queue returns how agents of a connector ("": of none) handle messages that arrive while
	// they work. nil: unknown.
	Queue func(connector string) string
}

// A System is all agents of one .daycare directory. Each part has a task and the state
// that it needs.
type System struct {
	place
	*mailroom
	*drops
	*approvals
	*folderWatch
	*lifecycle
	*directory
	*archive
	*actors
	*descriptors
	life
	recent *recent
}

// A life is how far a System is between its start and its end.
type life struct {
	looked  context.Context // ends when Run has looked at all agents and at what was done to them meanwhile
	seenAll context.CancelFunc
	grace   time.Duration // for deliveries at the end
}

// A place is where the agents of one .daycare directory are, and where events are reported.
type place struct {
	root     string
	vol      *disk.Volume // nil: files are only looked at
	peers    Peers        // nil: all agents are owned here
	index    *address.Index
	events   *event.Stream
	problems *finding.Problems
	watcher  *watch.Watcher // nil: nothing is watched
	log      *slog.Logger
}

// places is how many agents can be awake at a time.
func (o Options) places() int {
	if o.Awake == nil {
		return awakeLimit(0)
	}
	return awakeLimit(o.Awake())
}

// New makes a System. Messages may be delivered at once; agents work while Run
// runs.
func New(o Options) (*System, error) {
	var dropFolder *inbox.DropFolder
	if o.Volume != nil {
		var err error
		if dropFolder, err = inbox.OpenDropFolder(o.Volume, filepath.Join(o.Root, "drop")); err != nil {
			return nil, fmt.Errorf("open drop folder: %w", err)
		}
	}
	if o.Folders == nil {
		o.Folders = permission.NewFolders(workspace.OfData(o.Root).Dir)
	}
	if o.Problems == nil {
		o.Problems = NewProblems(o.Log, o.Events)
	}
	p := place{root: o.Root, vol: o.Volume, index: o.Index, events: o.Events, problems: o.Problems, watcher: o.Watcher,
		peers: o.Peers, log: o.Log}

	a := &actors{place: p, quota: inbox.NewQuota(inbox.MaxBytesTotal),
		memory: memory{entries: map[string]*entry{}, subagents: map[string]*entry{}, saved: newEdits()}}
	a.ctx, a.stop = context.WithCancelCause(context.Background())
	last := &recent{place: p, owns: o.Owns, ended: a.ended}
	a.descriptors = &descriptors{place: p, recent: last, edits: newEdits()}
	if o.Volume != nil {
		o.Volume.OnKept(a.descriptors.copyKept)
	}

	reg := &registrar{place: p, recent: last, newState: o.NewState, introduce: a.introduce}
	mail := &mailroom{place: p, actors: a, recent: last, registrar: reg, foreign: o.Foreign, redact: o.Redact,
		folders: o.Folders}
	a.connectors = newConnectors(newRateLimit(mail.Deliver, o.PerMinute).deliver, func(id string, err error, again time.Duration) {
		o.Log.Error("connector failed", "connector", id, "err", err, "again", again)
	}, o.Events)
	a.connectors.peers = o.Peers
	if err := a.connectors.set(o.Connectors); err != nil {
		return nil, err
	}
	a.waker = newWaker(o.places, a.wake, a.wg.Go, o.Log)
	a.senders = newSenders(func(id string) (Connector, bool) {
		if id == message.ToAgent {
			return parentConnector{mail}, true
		}
		return a.connectors.get(id)
	}, a.rest, o.Outlet, o.Events, o.Log)

	dir := &directory{place: p, actors: a, asks: o.Asks, answers: o.Answers, budget: o.Budget, queue: o.Queue}
	asks := &approvals{place: p, asks: o.Asks, actors: a, mailroom: mail}
	news := &folderWatch{place: p, actors: a, descriptors: a.descriptors, recent: last}
	since := life{grace: o.Grace}
	since.looked, since.seenAll = context.WithCancel(context.Background())
	return &System{place: p, life: since, mailroom: mail, approvals: asks, folderWatch: news, directory: dir,
		drops:     &drops{place: p, mailroom: mail, dropFolder: dropFolder, enclose: o.Enclose},
		lifecycle: &lifecycle{place: p, actors: a, recent: last, registrar: reg, directory: dir, approvals: asks},
		archive: &archive{place: p, actors: a, directory: dir, folderWatch: news, descriptors: a.descriptors,
			folders: &folders.Folders{Root: o.Root, Volume: o.Volume, Index: o.Index, Log: o.Log, User: Terminal().UserID,
				Make: reg.createFresh}},
		actors: a, descriptors: a.descriptors, recent: last}, nil
}

// Run wakes every agent that has something to do and lets agents work until ctx
// ends. Then turns in progress are suspended, answers in progress may still leave for
// a while, and Run returns when everything has stopped.
func (s *System) Run(ctx context.Context, start StartFunc) error {
	s.actors.start.Store(&start)
	defer s.shutdown()
	s.actors.WakeAll(ctx)
	s.index.SaveKnown()
	if s.peers != nil {
		inner, cancel := context.WithCancel(ctx)
		var watching sync.WaitGroup
		watching.Go(func() { s.watchPeers(inner) })
		watching.Go(func() { s.passOn(inner) })
		defer watching.Wait()
		defer cancel()
	}
	if s.watcher != nil {
		inner, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		wg.Go(func() { s.drops.watchDrops(inner, s.watcher) })
		wg.Go(func() { s.approvals.watchAsks(inner, s.watcher) })
		wg.Go(func() { s.folderWatch.watchFolders(inner, s.watcher, s.seenAll) })
		wg.Go(func() { s.descriptors.watchEdits(inner) })
		defer wg.Wait()
		defer cancel()
	}
	select {
	case <-ctx.Done():
		return nil
	case <-s.vol.Failed():
		return s.vol.Err()
	}
}

// Looked is closed when Run has looked at all agents, woken those with something to do, and found
// what was done to folders meanwhile. Without a Watcher it stays open.
func (s *System) Looked() <-chan struct{} { return s.looked.Done() }

func (s *System) shutdown() {
	s.actors.stop(errors.New("daycare is stopping"))
	s.actors.waker.close()
	// Agents write down what becomes of their answers, so the two end together.
	s.actors.senders.close(s.grace)
	s.actors.wg.Wait()
	if s.vol.Err() == nil {
		s.actors.recordLate()
	}
	s.actors.mu.Lock()
	left := slices.Collect(maps.Keys(s.actors.entries))
	s.actors.mu.Unlock()
	for _, id := range left {
		s.actors.rest(id)
	}
}

// Here reports whether a connector serves the user at this machine, as the terminal and editors do. No connector
// in the settings can have such an id.
func Here(connector string) bool { return connector == "terminal" || connector == "acp" }

// Terminal is the address of the terminal's own agent: that of the user whose
// machine this is.
func Terminal() message.Address {
	name := "user"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}

	return message.Address{Connector: "terminal", ChannelID: "default", UserID: name}
}

// settled reports whether an agent's files prove that it has nothing to do.
func (p place) settled(id string) bool {
	box, err := p.emptyInbox(id)
	if err != nil {
		p.log.Error("cannot read inbox", "agent", id, "err", err)
	}
	history, herr := p.proves(id, address.HistoryProof, "history.jsonl", record.Settled)
	if herr != nil {
		p.log.Error("cannot read history", "agent", id, "err", herr)
	}

	return box && history && err == nil && herr == nil
}

// emptyInbox reports whether an agent's inbox proves that it holds nothing.
func (p place) emptyInbox(id string) (bool, error) {
	return p.proves(id, address.InboxProof, inbox.FileName, inbox.Settled)
}

// proves reports whether a file of an agent proves that there is nothing to do. A file that
// did is not read again while it is as it was.
func (p place) proves(id string, which address.Proof, name string, read func(dir string) (bool, error)) (bool, error) {
	looked := time.Now()
	now, err := beneath.StampAt(filepath.Join(p.root, "agents", id, name))
	if err == nil && p.index.Proved(id, which, now) {
		return true, nil
	}
	settled, rerr := read(p.folder(id))
	if err == nil && settled {
		p.index.Prove(id, which, now, looked)
	}

	return settled, rerr
}

func (p place) folder(id string) string { return filepath.Join(p.root, "agents", id) }
