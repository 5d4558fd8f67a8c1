package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"daycare/engine/address"
	"daycare/engine/crash"
	"daycare/engine/cuid"
	"daycare/engine/disk"
)

// A Damage is an agent whose log the servers have lost or damaged.
type Damage struct {
	address.Meta
	Reason string // what is wrong with its log
	From   string // the name of the machine that has most of it; "": the servers have
	UpTo   uint64 // the number of the newest message that is known to be there
	Of     uint64 // and of the newest one that anybody knows
	Kept   string // a file with what the servers had; "": it is not mended
	Err    error  // why it cannot be mended
}

// A Repair looks for damaged logs, and mends them.
type Repair struct {
	Only  []string     // ids of agents; none: all
	Write bool         // mend them
	Found func(Damage) // called for each, from one goroutine at a time
	// HoleFor is for how long a log has a hole that is one: servers may be behind. 0: 5 seconds.
	HoleFor time.Duration

	conn  *nats.Conn
	store *natsStore
	conf  Config
	nodes map[string]string // boot id -> name, of all machines
}

const (
	// repairsAtOnce is how many agents are looked at at a time.
	repairsAtOnce = 8
	// mendIn is HoleFor, unless it is said.
	mendIn = 5 * time.Second
)

// Run looks at all agents of a cluster. c.Root is where it keeps what it replaces, in away/. It returns how many agents there are.
func (r Repair) Run(ctx context.Context, c Config) (n int, err error) {
	r.conf = c
	if r.conn, r.store, err = connect(ctx, c); err != nil {
		return 0, err
	}
	defer r.conn.Close()
	all, err := readCards(ctx, r.store, c.Log)
	if err != nil {
		return 0, err
	}
	if err := r.meet(ctx); err != nil {
		return 0, err
	}
	known := all.Agents()
	ids := r.Only
	if len(ids) == 0 {
		for id := range known {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)

	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(repairsAtOnce)
	damages := make(chan Damage)
	told := make(chan struct{})
	go func() {
		defer close(told)
		for d := range damages {
			r.Found(d)
		}
	}()
	for _, id := range ids {
		g.Go(func() error {
			d, err := r.agent(ctx, known[id].Meta)
			if d.Reason != "" {
				damages <- d
			}
			return err
		})
	}
	err = g.Wait()
	close(damages)
	<-told

	return len(ids), err
}

// meet lists the machines: all that report within a lease. Servers that were just started do not know them yet.
func (r *Repair) meet(ctx context.Context) error {
	over := time.After(cmp.Or(r.conf.Lease, defaultLease))
	r.nodes = map[string]string{}
	w, err := r.store.handles.nodes.WatchAll(ctx)
	if err != nil {
		return fmt.Errorf("list the machines: %w", err)
	}
	defer w.Stop() // nothing more is needed of it
	for {
		select {
		case e, ok := <-w.Updates():
			if !ok {
				return fmt.Errorf("list the machines: %w", disk.ErrAway)
			}
			if e == nil {
				continue // all that were there have come
			}
			if e.Operation() != jetstream.KeyValuePut {
				delete(r.nodes, e.Key())
				continue
			}
			var m machine
			if err := json.Unmarshal(e.Value(), &m); err != nil {
				return fmt.Errorf("%w: a machine says %q of itself", errVersion, e.Value())
			}
			r.nodes[e.Key()] = cmp.Or(m.Name, e.Key())
		case <-over:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("list the machines: %w", ctx.Err())
		}
	}
}

// An examined agent is what was found of it.
type examined struct {
	log   []found
	best  state  // what the log has
	from  string // boot id of the machine that has most; "": the log has
	awake bool   // on that machine
}

// agent looks at one agent, and mends it.
func (r *Repair) agent(ctx context.Context, m address.Meta) (Damage, error) {
	for again := true; ; again = false {
		d, e, err := r.examine(ctx, m)
		if err != nil || d.Reason == "" {
			return Damage{}, err
		}
		if again && len(e.log) > 0 { // it may have been in the middle of a change
			continue
		}
		if d.UpTo == 0 && d.Err == nil {
			d.Err = errors.New("no running machine has its folder: start the others, and repair again")
		}
		if d.Err == nil && r.Write {
			d.Kept, d.Err = r.mend(ctx, m.ID, e, d.Of)
		}
		return d, nil
	}
}

// examine says what is wrong with the log of an agent, and who has most of it.
func (r *Repair) examine(ctx context.Context, m address.Meta) (d Damage, e examined, err error) {
	d.Meta = m
	if d.Reason, err = r.wrong(ctx, m.ID); err != nil {
		return d, e, err
	}
	e.log, err = r.store.leniently(ctx, m.ID)
	if errors.Is(err, errVersion) {
		d.Reason, d.Err = "its log cannot be read", err
		return d, e, nil
	}
	if err != nil || len(e.log) > 0 && e.log[len(e.log)-1].retired {
		return Damage{}, e, err
	}
	for _, f := range e.log {
		d.Of = max(d.Of, f.n)
	}
	e.best = state{files: map[string]file{}, exact: true}
	e.best.follow(ctx, r.store, e.log, r.conf.Covers)
	d.UpTo = e.best.n

	quick := d.Reason == ""
	for boot := range r.nodes {
		o, err := r.ask(ctx, boot, demand{Agent: m.ID, Quick: quick}, offerFor)
		if err != nil {
			d.Err = errors.Join(d.Err, err)
			continue
		}
		if d.Of = max(d.Of, o.N); o.Folder && (o.N > d.UpTo || o.Awake) {
			e.from, e.awake, d.From, d.UpTo = boot, o.Awake, o.Machine, o.N
		}
		if o.Awake {
			break
		}
	}
	if quick && !e.awake && d.UpTo > e.best.n {
		d.Reason = fmt.Sprintf("its log ends with message %d, and had %d", e.best.n, d.UpTo)
	}

	return d, e, nil
}

// wrong says what is wrong with the log of an agent; "": nothing that is seen in it.
func (r *Repair) wrong(ctx context.Context, agent string) (string, error) {
	w := &workingCopy{covers: r.conf.Covers}
	files, err := w.newest(ctx, r.store, agent, cmp.Or(r.HoleFor, mendIn))
	switch {
	case ctx.Err() != nil, unanswered(err):
		return "", err
	case errors.Is(err, errLost):
		return "the servers have lost its log", nil
	case err != nil:
		return err.Error(), nil
	}
	for name, f := range files {
		if _, err := f.bytes(ctx, r.store); err != nil && ctx.Err() == nil {
			return fmt.Sprintf("%s: %v", name, err), nil
		}
	}

	return "", ctx.Err()
}

// ask asks a machine.
func (r *Repair) ask(ctx context.Context, boot string, d demand, within time.Duration) (o offer, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	m, err := r.conn.RequestWithContext(ctx, offerSubject+boot, jsonOf(d))
	if err == nil {
		err = json.Unmarshal(m.Data, &o)
	}
	if err == nil && o.Error != "" {
		err = errors.New(o.Error)
	}
	if err != nil {
		err = fmt.Errorf("machine %s does not say what it has: %w", r.nodes[boot], err)
	}

	return o, err
}

// mend keeps what the servers have of a log in a file, and has it written again by the machine that has most, or by this process.
func (r *Repair) mend(ctx context.Context, agent string, e examined, above uint64) (kept string, err error) {
	d := demand{Agent: agent, Write: true, Above: above}
	if len(e.log) > 0 {
		d.Last = e.log[len(e.log)-1].raw.Sequence
	}
	if kept, err = r.keep(agent, e.log); err != nil {
		return "", err
	}
	var o offer
	if e.from != "" {
		if o, err = r.ask(ctx, e.from, d, writeFor); err != nil {
			return kept, err
		}
	} else if err := (links{store: r.store}).write(ctx, d, e.best, cuid.New()); err != nil {
		return kept, err
	}
	if o.Awake {
		return kept, nil
	}

	_, err = r.store.noteOwner(ctx, agent, owner{Left: true}) // some machine looks whether it has work

	return kept, err
}

// keep writes messages of a log to a file in away/, one a line.
func (r *Repair) keep(agent string, log []found) (string, error) {
	path := filepath.Join(r.conf.Root, "away", agent+".log-"+crash.Now().UTC().Format("20060102T150405.000Z")+".jsonl")
	var lines strings.Builder
	for _, f := range log {
		line := jsonOf(struct {
			Sequence uint64      `json:"seq"`
			At       disk.Stamp  `json:"at"`
			Header   nats.Header `json:"header"`
			Body     []byte      `json:"body"`
		}{f.raw.Sequence, disk.StampOf(f.raw.Time), f.raw.Header, f.raw.Data})
		lines.Write(append(line, '\n'))
	}
	err := r.conf.Volume.MkdirAll(filepath.Dir(path))
	if err == nil {
		err = r.conf.Volume.WriteFile("repair", path, []byte(lines.String()))
	}

	return path, err
}
