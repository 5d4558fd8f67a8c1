package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"daycare/engine/address"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/redact"
	"daycare/engine/watch"
)

// Options are what a System is built from.
type Options struct {
	Root       string       // the .daycare directory
	Volume     *disk.Volume // nil: for looking at the files only, never Run
	Index      *address.Index
	Events     *event.Stream
	Asks       *permission.Queue
	Connectors []Connector
	Board      *finding.Board // what is wrong with files; nil: one of its own
	Watcher    *watch.Watcher // running beside; nil: letters are taken at start only
	Log        *slog.Logger
	// NewState is the state.json of a new agent.
	NewState func(d address.Descriptor) ([]byte, error)
	// PerMinute is how many messages one sender of a connector may write in a
	// minute, 0 any number; nil: any number.
	PerMinute func() int
	// Model names the model of agents whose state names none.
	Model string
	// Window is how many tokens of context there is room for with a model, 0: not
	// known. nil is not known of any.
	Window func(choice record.Model) int
	// Queue is how agents of a connector, "" of none, take what comes while they work,
	// if their own state does not say; nil: not known of any.
	Queue func(connector string) string
	// Owns reports whether the person of a user's agent is an owner, who answers for what
	// works for the house. nil: everybody is.
	Owns func(d address.Descriptor) bool
	// Foreign says whose message it is that does not speak for the owner ("the guest Bob");
	// "" if it does. nil: everybody's does.
	Foreign func(from message.Address, sender string) string
	// Redact takes secrets out of what is accepted, before it is written anywhere. nil:
	// none are known.
	Redact *redact.Redactor
	// Folders are the folders that agents were given; nil: as they are now.
	Folders *permission.Folders
	// Enclose keeps a copy of the nth file of a letter, which becomes the item with
	// that id. The same file of the same letter is kept once, however often it is asked
	// for. nil: letters have no files.
	Enclose func(item string, n int, e inbox.Enclosure) (message.File, error)
	// Awake is how many agents may be awake at a time, 0 any number; nil: any number. It
	// is never more than there are file descriptors for.
	Awake func() int
	// Grace bounds how long answers under way may take to leave at shutdown.
	Grace time.Duration
}

// A System is all agents of one .daycare directory.
type System struct {
	root     string
	vol      *disk.Volume
	index    *address.Index
	events   *event.Stream
	asks     *permission.Queue
	slot     *inbox.Slot
	links    *links
	quota    *inbox.Quota
	senders  *senders
	waker    *waker
	watcher  *watch.Watcher
	board    *finding.Board
	log      *slog.Logger
	newState func(address.Descriptor) ([]byte, error)
	model    string
	window   func(record.Model) int
	queue    func(string) string
	owns     func(address.Descriptor) bool
	foreign  func(message.Address, string) string
	grace    time.Duration
	redact   *redact.Redactor
	enclose  func(item string, n int, e inbox.Enclosure) (message.File, error)
	folders  *permission.Folders

	start  atomic.Pointer[StartFunc]
	actors context.Context // ends when agents are to suspend
	stop   context.CancelCauseFunc
	wg     sync.WaitGroup

	mu        sync.Mutex
	entries   map[string]*entry
	subagents map[string]*entry // of entries, those of subagents
	edits     *edits
	recent    *recent
	spent     sync.Map // by id: what agents that have ended have cost
}

// New makes a System. Messages may be delivered at once; agents work while Run
// runs.
func New(o Options) (*System, error) {
	var slot *inbox.Slot
	if o.Volume != nil {
		var err error
		if slot, err = inbox.OpenSlot(o.Volume, filepath.Join(o.Root, "drop")); err != nil {
			return nil, fmt.Errorf("open letter slot: %w", err)
		}
	}
	s := &System{
		root: o.Root, vol: o.Volume, index: o.Index, events: o.Events, asks: o.Asks, slot: slot,
		quota:   inbox.NewQuota(inbox.MaxBytesTotal),
		watcher: o.Watcher, log: o.Log, newState: o.NewState, model: o.Model, window: o.Window, queue: o.Queue,
		owns: o.Owns, foreign: o.Foreign,
		grace: o.Grace, redact: o.Redact, enclose: o.Enclose, folders: o.Folders,
		entries: map[string]*entry{}, subagents: map[string]*entry{}, edits: newEdits(), board: o.Board,
	}
	s.recent = newRecent(s)
	if s.folders == nil {
		s.folders = permission.NewFolders(filepath.Dir(o.Root))
	}
	if s.board == nil {
		s.board = NewBoard(o.Log, o.Events)
	}
	s.links = newLinks(newPace(s.Deliver, o.PerMinute).deliver, func(id string, err error, again time.Duration) {
		s.log.Error("connector failed", "connector", id, "err", err, "again", again)
	})
	if err := s.links.set(o.Connectors); err != nil {
		return nil, err
	}
	if o.Volume != nil {
		o.Volume.OnKept(s.copyKept)
	}
	s.actors, s.stop = context.WithCancelCause(context.Background())
	s.waker = newWaker(func() int {
		if o.Awake == nil {
			return awakeLimit(0)
		}
		return awakeLimit(o.Awake())
	}, s.rouse, s.wg.Go, o.Log)
	s.senders = newSenders(func(id string) (Connector, bool) {
		if id == message.ToAgent {
			return parents{s}, true
		}
		return s.links.get(id)
	}, o.Events, o.Log)
	return s, nil
}

// Run wakes every agent that has something to do and lets agents work until ctx
// ends. Then turns under way are suspended, answers under way may still leave for
// a while, and Run returns when everything has stopped.
func (s *System) Run(ctx context.Context, start StartFunc) error {
	s.start.Store(&start)
	defer s.shutdown()
	if err := s.Rouse(ctx); err != nil {
		return err
	}
	if s.watcher != nil {
		inner, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		wg.Go(func() { s.watchLetters(inner, s.watcher) })
		wg.Go(func() { s.watchAsks(inner, s.watcher) })
		wg.Go(func() { s.watchFolders(inner, s.watcher) })
		wg.Go(func() { s.watchEdits(inner) })
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

func (s *System) shutdown() {
	s.stop(errors.New("daycare stops"))
	s.waker.close()
	// Agents write down what becomes of their answers, so the two end together.
	s.senders.close(s.grace)
	s.wg.Wait()
	if s.vol.Err() == nil {
		s.recordLate()
	}
	s.mu.Lock()
	left := slices.Collect(maps.Values(s.entries))
	s.mu.Unlock()
	for _, e := range left {
		e.mu.Lock()
		e.sleep()
		e.mu.Unlock()
	}
}

// Rouse wakes the agents whose files do not prove that they have nothing to do. An
// agent that wakes repairs what a crash or a hand left in its files.
func (s *System) Rouse(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2 * runtime.GOMAXPROCS(0))
	for _, meta := range s.index.All() {
		group.Go(func() error {
			if ctx.Err() != nil || s.settled(meta.ID) {
				return nil
			}
			s.rouse(meta.ID)
			return nil
		})
	}
	return group.Wait()
}

// Terminal is the address of the terminal's own agent: that of the person whose
// machine this is.
func Terminal() message.Address {
	name := "user"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return message.Address{Connector: "terminal", ChannelID: "default", UserID: name}
}

// settled reports whether an agent's files prove that it has nothing to do.
func (s *System) settled(id string) bool {
	dir := s.folder(id)
	box, err := inbox.Settled(dir)
	if err != nil {
		s.log.Error("inbox cannot be looked at", "agent", id, "err", err)
	}
	history, herr := record.Settled(dir)
	if herr != nil {
		s.log.Error("history cannot be looked at", "agent", id, "err", herr)
	}
	return box && history && err == nil && herr == nil
}

// rouse starts an agent that has work in its files. An entry that goes to sleep at this
// moment (a delivery found it, and not yet whom to start) is looked up again.
func (s *System) rouse(id string) {
	for {
		e, err := s.entry(id)
		if err != nil {
			return
		}
		if e.rouse() {
			return
		}
	}
}

func (s *System) folder(id string) string { return filepath.Join(s.root, "agents", id) }

// answers reports whether answers to an address are promised.
func (s *System) answers(to message.Address) bool {
	c, ok := s.links.get(to.Connector)
	if !ok {
		return false
	}
	if a, ok := c.(Answerer); ok {
		return a.Answers(to)
	}
	return true
}
