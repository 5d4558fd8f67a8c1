package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"daycare/engine/cuid"
	"daycare/engine/disk"
)

// Config is what a Node is made from.
type Config struct {
	Servers []string     // of NATS, such as nats://10.0.0.1:4222
	Access  Access       // to them
	Name    string       // of this machine, for users
	ID      string       // of this machine, for ever; it has no dot. "": it says no figures
	Copies  Copies       // of what is acknowledged
	Root    string       // the .daycare directory
	Volume  *disk.Volume // of Root; replicated by the node
	// Covers says which files of an agent's folder are replicated, by their names with slashes.
	Covers func(name string) bool
	Shared *Shared      // files that belong to all machines; nil: none do
	About  func() About // this machine, as it is now; nil: nothing is known
	// Lease is after how long a machine that does not report is replaced; 0: 3 seconds.
	Lease time.Duration
	Log   *slog.Logger
}

// An Access is how a machine shows the servers who it is, and how it knows them.
type Access struct {
	User, Password string
	CA             string // PEM file of who signs the certificates of the servers; "": those that this machine trusts
	Cert, Key      string // PEM files of this machine's own certificate; "": none
}

func (a Access) options() (list []nats.Option) {
	if a.User != "" {
		list = append(list, nats.UserInfo(a.User, a.Password))
	}
	if a.CA != "" {
		list = append(list, nats.RootCAs(a.CA))
	}
	if a.Cert != "" {
		list = append(list, nats.ClientCert(a.Cert, a.Key))
	}

	return list
}

// A Node is one machine of the cluster: the disk.Replica of its volume and the engine.Peers
// of its System.
type Node struct {
	workingCopy
	requests
	links
	leader
	presence *presence
	*cards
	attachments
	*figures

	life

	units
}

// links are to the rest of the cluster. Tests have others.
type links struct {
	store store
	dead  func(boot string) bool // a machine is known to be gone
}

// A life is how long a node lives.
type life struct {
	ctx     context.Context // ends with the node
	stop    context.CancelFunc
	silence context.CancelFunc // ends its reports
	trying  context.Context    // ends when servers that do not answer are not waited for any more
	giveUp  context.CancelFunc
	jobs    sync.WaitGroup
}

// units are those that this machine owns.
type units struct {
	mu       sync.Mutex
	owned    map[string]*unit
	claiming map[string]*sync.Mutex // one claim of an agent at a time
	doubts   map[string]bool        // agents that this machine may be noted for without having them
	lose     func(agent string)     // nil: nobody wants to know
}

// defaultLease is after how long a machine that does not report is replaced.
const defaultLease = 3 * time.Second

// Join connects to the cluster, makes in JetStream what is missing, and reports this machine
// until Close. It fails if no server answers before ctx ends.
func Join(ctx context.Context, c Config) (*Node, error) {
	n := &Node{workingCopy: workingCopy{root: c.Root, vol: c.Volume, covers: c.Covers, log: c.Log},
		units: units{owned: map[string]*unit{}, claiming: map[string]*sync.Mutex{}, doubts: map[string]bool{}}}
	conn, s, err := connect(ctx, c)
	if err != nil {
		return nil, err
	}
	lease := cmp.Or(c.Lease, defaultLease)
	n.requests = requests{boot: cuid.New(), conn: conn, work: &n.jobs, says: c.Log}
	n.presence = newPresence(n.boot, c.Name, lease, s, c.Log)
	n.presence.about = c.About
	conn.SetReconnectHandler(func(*nats.Conn) { n.presence.rejoin() })
	if c.Shared != nil {
		n.presence.files = newSharing(*c.Shared, c, s, n.presence.away)
		if err := n.presence.files.recover(); err != nil {
			conn.Close()
			return nil, err
		}
	}
	n.links, n.leader = links{store: s, dead: n.presence.dead}, leader{n.presence, n.presence.files}
	n.ctx, n.stop = context.WithCancel(context.WithoutCancel(ctx))
	n.trying, n.giveUp = context.WithCancel(n.ctx)
	n.cards = &cards{keep: s, own: c.ID, away: n.presence.away, until: n.ctx, notes: c.Log, known: map[string]card{},
		gone: map[string]uint64{}}
	n.presence.cards, n.attachments = n.cards, attachments{n.cards}
	n.figures = &figures{own: c.ID, keep: s, away: n.presence.away, notes: c.Log, early: map[string]Figure{}}
	n.presence.figures = n.figures
	if err := errors.Join(memory{n}.tell(), offers{n}.tell(), answered(ctx, askFor, n.presence.renew), answered(ctx, loadFor, n.cards.load),
		answered(ctx, loadFor, n.figures.load)); err != nil {
		conn.Close()
		return nil, fmt.Errorf("join the cluster: %w", err)
	}
	reporting, silence := context.WithCancel(n.ctx)
	n.silence = silence
	n.jobs.Go(func() { n.presence.run(reporting) })
	n.vol.Replicate(n, !n.syncedElsewhere(conn, Copies{s.replicated(), c.Copies.OwnDisk}, len(c.Servers), c.Log))

	return n, nil
}

// Bounds of how long a machine that joins waits for one answer, and for the list of all agents.
const (
	askFor  = 2 * time.Second
	loadFor = 10 * time.Second
)

// connect connects to the servers, and makes in JetStream what is missing.
func connect(ctx context.Context, c Config) (conn *nats.Conn, s *natsStore, err error) {
	err = answered(ctx, askFor, func(context.Context) error {
		conn, err = nats.Connect(strings.Join(c.Servers, ","), append(c.Access.options(), nats.Name("daycare "+c.Name),
			nats.Timeout(askFor), nats.MaxReconnects(-1), nats.ReconnectWait(200*time.Millisecond),
			nats.IgnoreDiscoveredServers(), // those that the settings name, and no others, are trusted
			nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
				c.Log.Debug("connection to the servers", "err", err)
			}),
			nats.ReconnectBufSize(-1))...) // what was published while away must not be sent later, blindly
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("join the cluster on %s: %w", strings.Join(c.Servers, ", "), err)
	}
	js, err := jetstream.New(conn)
	err = errors.Join(err, fits(conn))
	s = &natsStore{js: js, replicas: max(c.Copies.Servers, 1)}
	if err == nil { // servers that were just started elect a leader first
		s.handles, err = s.ensure(ctx, cmp.Or(c.Lease, defaultLease))
	}
	if err != nil {
		conn.Close()
		return nil, nil, fmt.Errorf("join the cluster on %s: %w", strings.Join(c.Servers, ", "), advised(err))
	}

	return conn, s, nil
}

// partFor bounds how long a machine that stops waits for servers that do not answer.
const partFor = 3 * time.Second

// Part prepares for Close: the machine is stopping. What the servers do not accept within a few seconds ends with
// disk.ErrAway and stays in the folders here, as after a crash.
func (l *life) Part() { time.AfterFunc(partFor, l.giveUp) }

// Close leaves the cluster. Agents that are still owned here are taken over by others after
// the lease; whoever waits for the cluster gets an error.
func (n *Node) Close() {
	n.silence()
	n.presence.leave()
	n.abandon()
}

// abandon ends the node without a word, as a crash does.
func (n *Node) abandon() {
	n.stop()
	n.conn.Close()
	n.jobs.Wait()
}

// of splits the path of a file into its agent and its name; ok is false where it belongs to
// no unit.
func (w *workingCopy) of(path string) (agent, name string, ok bool) {
	rel, err := filepath.Rel(filepath.Join(w.root, "agents"), path)
	if err != nil || !filepath.IsLocal(rel) {
		return "", "", false
	}
	agent, name, ok = strings.Cut(filepath.ToSlash(rel), "/")

	return agent, name, ok && w.covers(name)
}

// unit returns the unit that a file belongs to, if this machine owns it.
func (n *Node) unit(path string) (u *unit, name string, ok bool) {
	agent, name, ok := n.of(path)
	if !ok {
		return nil, "", false
	}
	n.units.mu.Lock()
	defer n.units.mu.Unlock()
	u, ok = n.owned[agent]

	return u, name, ok
}

// Covers is that of disk.Replica: it covers the folders of agents that are owned here.
func (n *Node) Covers(path string) (size int64, ok bool) {
	u, name, ok := n.unit(path)
	if !ok {
		return 0, false
	}

	return u.size(name), true
}

// Append is that of disk.Replica.
func (n *Node) Append(path string, at int64, p []byte) error {
	u, name, ok := n.unit(path)
	if !ok {
		return disk.ErrFenced // it was given up
	}
	for len(p) > 0 {
		k := min(len(p), appendMost)
		if err := u.commit(&commit{segments: []segment{content(opAppend, name, at, p[:k])}}); err != nil {
			return err
		}
		p, at = p[k:], at+int64(k)
	}

	return nil
}

// Put is that of disk.Replica. The files are of one unit.
func (n *Node) Put(files ...disk.Content) error {
	var owner *unit
	var segments []segment
	for _, f := range files {
		u, name, ok := n.unit(f.Path)
		if !ok {
			return disk.ErrFenced
		}
		if owner != nil && u != owner {
			return fmt.Errorf("%s belongs to another agent than %s", f.Path, files[0].Path)
		}
		owner, segments = u, append(segments, content(opPut, name, 0, f.Data))
	}

	return owner.commitLarge(segments)
}

// Remove is that of disk.Replica.
func (n *Node) Remove(path string) error {
	u, name, ok := n.unit(path)
	if !ok {
		return disk.ErrFenced
	}

	return u.commit(&commit{segments: []segment{{Op: opRemove, File: name}}})
}

// commitLarge commits segments whose contents may be large.
func (u *unit) commitLarge(segments []segment) error {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		fitting, err := fit(u.node.trying, u.node.store, segments)
		if err == nil {
			return u.commit(&commit{segments: fitting})
		}

		select {
		case <-time.After(pause):
		case <-u.node.trying.Done():
			return fmt.Errorf("%w: %w", disk.ErrAway, err)
		}
	}
}

func (n *Node) fit(segments []segment) ([]segment, error) { return fit(n.ctx, n.store, segments) }

// fit puts large contents into the object store. Nothing refers to an object before the
// message with its name is in a log. A snapshot that is still too long for a message becomes
// an object itself.
func fit(ctx context.Context, keep store, segments []segment) ([]segment, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	list := make([]segment, len(segments))
	size := 0
	for i, s := range segments {
		if s.Op == opPut && len(s.data) > inlineMost {
			if err := keep.put(ctx, s.SHA, s.data); err != nil {
				return nil, err
			}
			s.Object = true
		} else {
			size += len(s.data)
		}
		list[i], size = s, size+200
	}
	if size <= bodyMost || list[0].Op != opSnapshot {
		return list, nil
	}

	body := encode(list[1:])
	whole := content(opSnapshot, "", 0, body)
	whole.Object = true
	if err := keep.put(ctx, whole.SHA, body); err != nil {
		return nil, err
	}
	whole.data, whole.inner = nil, list[1:]

	return []segment{whole}, nil
}

// lost tells that another machine has taken an agent over, unless it was given up already.
func (n *Node) lost(u *unit) {
	n.units.mu.Lock()
	defer n.units.mu.Unlock()
	if lose := n.lose; lose != nil && n.owned[u.agent] == u {
		go lose(u.agent)
	}
}

// releaseFor bounds how long an agent that goes to sleep waits for the servers.
const releaseFor = 5 * time.Second

// Release is that of engine.Peers.
func (n *Node) Release(agent string, open bool) {
	n.units.mu.Lock()
	u := n.owned[agent]
	n.units.mu.Unlock()
	if u == nil {
		return
	}

	if err := n.release(u, open); err != nil && !errors.Is(err, disk.ErrFenced) {
		// The hint stays, so it is looked after.
		n.log.Info("agent not given up in order; another machine takes it over after the lease", "agent", agent, "err", err)
	}
	n.units.mu.Lock()
	defer n.units.mu.Unlock()
	if n.owned[agent] == u {
		delete(n.owned, agent)
	}
}

// release replicates the rest of a folder, which nobody writes to any more, and says in the
// log that nobody owns it.
func (n *Node) release(u *unit, open bool) error {
	if n.Away() {
		return disk.ErrAway
	}
	dir := n.folder(u.agent)
	if !disk.Exists(dir) {
		return fmt.Errorf("%s was taken away by hand; the cluster has what was in it", dir)
	}
	found, err := n.list(dir)
	if err != nil {
		return err
	}
	u.mu.Lock()
	segments := differences(u.files, found)
	u.mu.Unlock()
	if segments, err = n.fit(segments); err == nil && len(encode(segments)) > bodyMost {
		segments, err = n.fit(append([]segment{{Op: opSnapshot}}, all(found)...)) // much was edited by hand
	}
	if err != nil {
		return err
	}
	segments = append(segments, segment{Op: opRelease, Open: open})
	select {
	case err = <-u.begin(&commit{segments: segments, ending: ending{released: true}}):
	case <-time.After(releaseFor):
		err = disk.ErrAway // it is written when the servers are back, if nobody was quicker
	}
	if err != nil {
		return err
	}

	u.mu.Lock()
	at, files := u.place, u.files
	u.mu.Unlock()
	if err := n.sync(dir, slices.Collect(maps.Keys(files))); err != nil {
		return err
	}
	n.writeMark(u.agent, mark{Seq: at.last, N: at.n, Files: stamps(files)})
	return n.presence.gaveUp(n.ctx, u.agent, open)
}

// Retire is that of engine.Peers.
func (n *Node) Retire(agent string) error {
	n.units.mu.Lock()
	u := n.owned[agent]
	n.units.mu.Unlock()
	if u == nil {
		return disk.ErrFenced
	}
	if n.Away() {
		return disk.ErrAway
	}
	unmarked := n.unmark(agent)
	if err := u.commit(&commit{segments: []segment{{Op: opSnapshot}}, ending: ending{released: true, retired: true}}); err != nil {
		return err
	}
	u.mu.Lock()
	below := u.last
	u.mu.Unlock()
	u.purge(below)

	n.units.mu.Lock()
	if n.owned[agent] == u {
		delete(n.owned, agent)
	}
	n.units.mu.Unlock()

	return errors.Join(unmarked, n.presence.gaveUp(n.ctx, agent, false), n.cards.withdraw(agent))
}

// Edited is that of engine.Peers.
func (u *units) Edited(agent string, names ...string) error {
	u.mu.Lock()
	one := u.owned[agent]
	u.mu.Unlock()
	if one == nil {
		return nil // whoever opens it next sees it
	}
	for _, name := range names {
		if err := one.follow(name); err != nil {
			return err
		}
	}

	return nil
}

// Away is that of disk.Replica.
func (n *Node) Away() bool { return n.presence.away() }
