package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"daycare/engine/address"
	"daycare/engine/disk"
	"daycare/engine/message"
)

// A presence knows which machines are alive, and which agents have to be looked after.
//
// A machine that is alive renews its key three times in a lease. Keys are watched, and their
// age is measured by the clock of who watches, so that nobody's clock matters. When the
// servers pause (an election takes longer than a lease) all keys seem old at once: therefore
// nobody is declared dead before this machine has heard its own key for a whole lease without
// a gap.
type presence struct {
	boot, name string
	lease      time.Duration
	store      *natsStore
	log        *slog.Logger
	about      func() About // nil: nothing is known
	beside

	mu     sync.Mutex
	seen   map[string]time.Time // boot -> when its key was last renewed
	says   map[string]machine   // boot -> what it says of itself
	heard  time.Time            // since when this machine hears its own key without a gap; zero: it does not
	owners map[string]owner     // agent -> who looks after it
}

// About is what machines compare, because all should have the same.
type About struct {
	Program  string            `json:"program,omitempty"`  // its version
	Settings map[string]string `json:"settings,omitempty"` // section -> hash
}

// beside is what is watched with the machines and the owners.
type beside struct {
	cards    *cards
	files    *sharing // nil: machines share no files
	figures  *figures
	rejoined chan struct{} // the connection to the servers was lost, and is back
	refusals
}

// refusals are what servers say that do not take what they are sent. The lock of the presence guards them.
type refusals struct {
	refusal error
	full    time.Time // when they last had no room
}

// fullFor is how long servers count as full after they said so. Meanwhile what waits is offered to them again.
const fullFor = 2 * time.Second

// refused notes why servers did not take something; nil: they did. Where none answers, none says why.
func (p *presence) refused(err error) {
	if _, said := errors.AsType[*jetstream.APIError](err); !said {
		err = nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusal = err
	if !noRoom(err) {
		return
	}
	if time.Since(p.full) > 10*fullFor {
		p.log.Warn("the servers of the cluster are out of space; nothing is accepted until they have some", "err", err)
	}
	p.full = time.Now()
}

// Trouble is why this machine accepts nothing at the moment; nil: it does, or no server says why.
func (n leader) Trouble() error {
	n.p.mu.Lock()
	defer n.p.mu.Unlock()
	return n.p.refusal
}

// An owner is who has an agent awake, or who has left it with work.
type owner struct {
	Boot string `json:"boot"`
	Left bool   `json:"left,omitempty"` // it was given up, with work
}

// A machine is what it says of itself.
type machine struct {
	Name    string `json:"name"`
	ID      string `json:"id,omitempty"` // for ever
	Version int    `json:"v"`            // of the format of the log
	About
	skew time.Duration // how far its clock is ahead of that of the servers; known of this machine alone
}

func newPresence(boot, name string, lease time.Duration, s *natsStore, log *slog.Logger) *presence {
	return &presence{boot: boot, name: name, lease: lease, store: s, log: log, beside: beside{rejoined: make(chan struct{}, 1)},
		seen: map[string]time.Time{boot: time.Now()}, says: map[string]machine{}, owners: map[string]owner{}}
}

// renew says that this machine is alive.
func (p *presence) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.lease/2)
	defer cancel()
	says := machine{Name: p.name, ID: p.figures.own, Version: version}
	if p.about != nil {
		says.About = p.about()
	}
	if _, err := p.store.handles.nodes.Put(ctx, p.boot, jsonOf(says)); err != nil {
		return fmt.Errorf("renew the lease: %w", err)
	}

	return nil
}

// leave says that this machine ends.
func (p *presence) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), p.lease/2)
	defer cancel()
	if err := p.store.handles.nodes.Delete(ctx, p.boot); err != nil {
		p.log.Debug("the cluster was left without notice", "err", err)
	}
}

// rejoin has all watches begin anew: the servers that are back may have been wiped, and what another machine made
// there again has lower numbers than an older watch waits for.
func (p *presence) rejoin() {
	select {
	case p.rejoined <- struct{}{}:
	default:
	}
}

// run renews the lease and watches those of the others until ctx ends. What is missing in
// JetStream is made again: the store may have been wiped.
func (p *presence) run(ctx context.Context) {
	for ctx.Err() == nil {
		watching, cancel := context.WithCancel(ctx)
		var watches sync.WaitGroup
		watches.Go(func() { p.watch(watching, p.store.handles.nodes, nil, p.noteNode) })
		watches.Go(func() { p.watch(watching, p.store.handles.owners, nil, p.noteOwner) })
		watches.Go(func() { p.watch(watching, p.store.handles.agents, p.cards.anew, p.cards.note) })
		watches.Go(func() { p.watch(watching, p.store.handles.figures, nil, p.figures.note) })
		if p.files != nil {
			watches.Go(func() { p.files.watch(watching) })
		}

		p.keepUp(ctx)
		cancel()
		watches.Wait()
		p.mend(ctx)
		restoring, cancel := context.WithTimeout(ctx, p.lease)
		p.cards.restore(restoring)
		p.figures.restore(restoring)
		cancel()
	}
}

// keepUp renews the lease until that fails thrice in a row, the connection was lost, or ctx ends.
func (p *presence) keepUp(ctx context.Context) {
	for failed := 0; failed < 3; {
		select {
		case <-time.After(p.lease / 3):
		case <-p.rejoined:
			return
		case <-ctx.Done():
			return
		}
		failed++
		err := p.renew(ctx)
		if err == nil {
			failed = 0
		} else {
			p.log.Debug("lease not renewed", "err", err)
		}
		p.refused(err)
	}
}

// mend makes what is missing in JetStream, and waits until it is there.
func (p *presence) mend(ctx context.Context) {
	for ctx.Err() == nil {
		if _, err := p.store.ensure(ctx, p.lease); err == nil {
			return
		}

		select {
		case <-time.After(p.lease / 10):
		case <-ctx.Done():
		}
	}
}

// watch calls note with each change of a bucket, those that are there first. begins, if it is not nil, is called before that.
func (p *presence) watch(ctx context.Context, kv jetstream.KeyValue, begins func(), note func(jetstream.KeyValueEntry)) {
	for ctx.Err() == nil {
		if begins != nil {
			begins()
		}
		w, err := kv.WatchAll(ctx)
		if err != nil {
			select {
			case <-time.After(p.lease / 10):
			case <-ctx.Done():
			}
			continue
		}
		follow(ctx, w, note)
	}
}

// follow calls note until the watch or ctx ends.
func follow(ctx context.Context, w jetstream.KeyWatcher, note func(jetstream.KeyValueEntry)) {
	defer w.Stop() // it has ended, or the connection has
	for {
		select {
		case e, ok := <-w.Updates():
			if !ok {
				return
			}
			if e != nil { // nil: all that were there have come
				note(e)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (p *presence) noteNode(e jetstream.KeyValueEntry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	boot, now := e.Key(), time.Now()
	if e.Operation() != jetstream.KeyValuePut {
		if boot != p.boot {
			delete(p.seen, boot)
			delete(p.says, boot)
		}
		return
	}
	if boot == p.boot && (p.heard.IsZero() || now.Sub(p.seen[boot]) >= p.lease) {
		p.heard = now
	}
	p.seen[boot] = now
	var m machine
	if err := json.Unmarshal(e.Value(), &m); err == nil { // else it is newer, and says something else
		if boot == p.boot {
			m.skew = now.Sub(e.Created())
		}
		p.says[boot] = m
	}
}

// A Machine is one that works on the agents.
type Machine struct {
	Boot   string // the id of its process
	Name   string // for users
	ID     string // Config.ID
	Format int    // the newest version of the log that it knows
	Awake  int    // agents that it has awake, as far as is known
	About
	Skew time.Duration // how far the clock of this machine is ahead of that of the servers; 0 for others
}

// Machines are those that are alive as this one sees it, this one among them.
func (n leader) Machines() (list []Machine) {
	p := n.p
	p.mu.Lock()
	defer p.mu.Unlock()
	awake := map[string]int{}
	for _, o := range p.owners {
		if !o.Left {
			awake[o.Boot]++
		}
	}
	for boot, m := range p.says {
		if boot == p.boot || time.Since(p.seen[boot]) < p.lease {
			list = append(list, Machine{boot, m.Name, m.ID, m.Version, awake[boot], m.About, m.skew})
		}
	}
	slices.SortFunc(list, func(a, b Machine) int { return strings.Compare(a.Name+" "+a.Boot, b.Name+" "+b.Boot) })

	return list
}

// mayWork returns nil if this machine may work on an agent. Errors: *message.Elsewhere for the only one that may; disk.ErrAway
// while that one does not report.
func (n leader) mayWork(agent string) error {
	p := n.p
	only := p.cards.machine(agent)
	if only == "" || only == p.name {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for boot, m := range p.says {
		if m.Name == only && time.Since(p.seen[boot]) < p.lease {
			return &message.Elsewhere{Node: boot}
		}
	}

	return fmt.Errorf("%w: %s works on machine %s alone, as its descriptor says, and that one does not report", disk.ErrAway, agent, only)
}

// Owner is the machine that has an agent awake, as far as is known; "": none has.
func (n leader) Owner(agent string) string {
	n.p.mu.Lock()
	defer n.p.mu.Unlock()
	o := n.p.owners[agent]
	if o.Left {
		return ""
	}

	return o.Boot
}

func (p *presence) noteOwner(e jetstream.KeyValueEntry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var o owner
	if e.Operation() != jetstream.KeyValuePut || json.Unmarshal(e.Value(), &o) != nil {
		delete(p.owners, e.Key())
		return
	}
	p.owners[e.Key()] = o
}

// away reports whether this machine has not heard its own key for a lease: then others may
// have replaced it, and nothing can be appended. So it is while the servers have no room.
func (p *presence) away() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.seen[p.boot]) >= p.lease || time.Since(p.full) < fullFor
}

// dead reports whether a machine is known to be gone.
func (p *presence) dead(boot string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isDead(boot)
}

// sure reports whether this machine knows which ones are alive.
func (p *presence) sure() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hears(time.Now())
}

// hears is sure with the lock held: else the watch is too young, or deaf.
func (p *presence) hears(now time.Time) bool {
	own, ok := p.seen[p.boot]
	return ok && now.Sub(own) < p.lease && !p.heard.IsZero() && now.Sub(p.heard) >= p.lease
}

// isDead is dead with the lock held.
func (p *presence) isDead(boot string) bool {
	now := time.Now()
	seen, ok := p.seen[boot]

	return p.hears(now) && (!ok || now.Sub(seen) >= p.lease)
}

// orphans are the agents with work that nobody alive looks after, and that are this machine's
// to take over.
func (p *presence) orphans() (list []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for agent, o := range p.owners {
		if (o.Left || p.isDead(o.Boot)) && p.first(agent) {
			list = append(list, agent)
		}
	}

	return list
}

// first reports whether this machine is the one of those alive that an agent falls to: of those that know
// the newest format, in which its log may be. All machines come to the same answer, as a rule; where they do not, the log
// decides. The lock is held.
func (p *presence) first(agent string) bool {
	only := p.cards.machine(agent)
	if only != "" && only != p.name {
		return false
	}
	mine := weight(agent, p.boot)
	for boot, seen := range p.seen {
		if boot == p.boot || time.Since(seen) >= p.lease || only != "" && p.says[boot].Name != only {
			continue
		}
		if knows := p.says[boot].Version; knows > version || knows == version && weight(agent, boot) > mine {
			return false
		}
	}

	return true
}

// weight is that of rendezvous hashing.
func weight(agent, boot string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(agent + "/" + boot))
	return h.Sum64()
}

// Watch is that of engine.Peers.
func (n *Node) Watch(ctx context.Context, adopt, lose func(agent string), met func(m address.Meta, ended bool),
	parted func(agent string)) {
	n.units.mu.Lock()
	n.lose = lose
	n.units.mu.Unlock()
	n.cards.listen(func(a Agent) { met(a.Meta, a.Ended) }, func(id string) {
		n.part(id)
		parted(id)
	})
	tick := time.NewTicker(n.presence.lease / 3)
	defer tick.Stop()

	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		takeOver(ctx, append(n.presence.orphans(), n.allInDoubt()...), adopt)
	}
}

// adoptedAtOnce is how many agents are taken over beside each other: each waits for the servers and for the disk.
const adoptedAtOnce = 16

// takeOver adopts agents.
func takeOver(ctx context.Context, orphans []string, adopt func(agent string)) {
	var adopting sync.WaitGroup
	slots := make(chan struct{}, adoptedAtOnce)
	for _, agent := range orphans {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		adopting.Go(func() {
			defer func() { <-slots }()
			adopt(agent)
		})
	}
	adopting.Wait()
}
