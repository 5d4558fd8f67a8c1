package peers

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"daycare/engine/cluster"
	"daycare/engine/control"
)

// A watch is a stream of events in which those of all machines are. Each machine numbers its own, so that the id after which a
// client continues is known to one of them; all others tell of a gap. What an agent does comes from the machine that it is on,
// and after a move from the next one.
type watch struct {
	turnout
	*joint
	newest map[string]string // boot id of a machine -> id of its newest event that was passed on
}

const (
	// openFor bounds how long a watch waits for the other machines before it begins. Those that are later tell of a gap.
	openFor = time.Second
	// lookAgain is how often a watch looks for machines that it does not have.
	lookAgain = 3 * time.Second
)

// watch leads who watches to all machines.
func (t turnout) watch() {
	query := t.req.URL.Query()
	if ref := query.Get("agent"); ref != "" {
		id, err := t.Index.Resolve(ref)
		if err != nil {
			t.local(t.w) // which says what is wrong
			return
		}
		query.Set("agent", id)
		t.req.URL.RawQuery = query.Encode()
	}

	w := &watch{turnout: t, joint: &joint{ResponseWriter: t.w, began: make(chan struct{})}, newest: map[string]string{}}
	ctx, cancel := context.WithCancel(t.req.Context())
	var others sync.WaitGroup
	opened := make(chan struct{})
	others.Go(func() { w.others(ctx, opened) })
	select {
	case <-opened:
	case <-time.After(openFor):
	case <-ctx.Done():
	}
	t.local(w.joint)
	cancel()
	others.Wait() // nothing is written after the end
}

// others passes on what the other machines tell, until ctx ends. It closes opened when it has a stream of each, or cannot.
func (w *watch) others(ctx context.Context, opened chan struct{}) {
	var all, first sync.WaitGroup
	defer all.Wait()
	has, ended := map[string]context.CancelFunc{}, make(chan string)
	begin := func(m cluster.Machine, ready func()) {
		alive, cancel := context.WithCancel(ctx)
		has[m.Boot] = cancel
		all.Go(func() {
			defer cancel()
			if err := w.follow(ctx, alive, m.Boot, ready); err != nil && ctx.Err() == nil {
				w.Log.Info("the events of another machine may be missing in a stream", "machine", m.Name, "err", err)
			}
			select {
			case ended <- m.Boot:
			case <-ctx.Done():
			}
		})
	}
	for _, m := range w.elsewhere() {
		first.Add(1)
		begin(m, sync.OnceFunc(first.Done))
	}
	all.Go(func() { first.Wait(); close(opened) })

	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			there := w.elsewhere()
			for boot, cancel := range has {
				if !slices.ContainsFunc(there, func(m cluster.Machine) bool { return m.Boot == boot }) {
					cancel() // it is gone, and would be waited for
				}
			}
			for _, m := range there {
				if has[m.Boot] == nil {
					begin(m, func() {})
				}
			}
		case boot := <-ended:
			delete(has, boot)
		case <-ctx.Done():
			return
		}
	}
}

// elsewhere are the other machines.
func (w *watch) elsewhere() (list []cluster.Machine) {
	for _, m := range w.node.Machines() {
		if m.Boot != w.node.Boot() {
			list = append(list, m)
		}
	}

	return list
}

// follow passes on what one machine tells until ctx ends, or its stream, or alive: then it tells of a gap. It calls ready when
// the machine has begun to, or cannot.
func (w *watch) follow(ctx, alive context.Context, boot string, ready func()) error {
	defer ready()
	req := w.req.Clone(alive)
	after := w.last(boot)
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	resp, err := w.ask(boot, req, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close() // its end is known
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}

	select {
	case <-w.began: // what it told between was missed
		if after == "" {
			err = w.gap(boot)
		}
	default:
		ready()
		select {
		case <-w.began:
		case <-alive.Done():
			return nil
		}
	}
	if err == nil {
		err = control.Relay(resp.Body, func(id string, event []byte) error { return w.pass(boot, id, event) })
	}
	if ctx.Err() != nil {
		return nil
	}

	return errors.Join(err, w.gap(boot))
}

// pass passes an event on.
func (w *watch) pass(boot, id string, event []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id != "" {
		w.newest[boot] = id
	}
	if _, err := w.ResponseWriter.Write(event); err != nil {
		return err
	}

	return w.flush()
}

// last is the id of the newest event of a machine that the client has; "": it asks for what comes from now on.
func (w *watch) last(boot string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return cmp.Or(w.newest[boot], w.req.Header.Get("Last-Event-ID"), w.req.URL.Query().Get("after"))
}

// gap tells that events of a machine are missing, up to those that follow.
func (w *watch) gap(boot string) error {
	gap, err := control.Gap{From: w.last(boot)}.Event()
	if err != nil {
		return err
	}

	return w.pass(boot, "", gap)
}

// A joint is an answer that several write to, each whole events.
type joint struct {
	http.ResponseWriter
	began chan struct{} // closed when the head was written
	mu    sync.Mutex
}

// WriteHeader begins the stream, unless it is another answer.
func (j *joint) WriteHeader(status int) {
	j.ResponseWriter.WriteHeader(status)
	if status == http.StatusOK {
		close(j.began)
	}
}

func (j *joint) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ResponseWriter.Write(p)
}

// FlushError is that of http.ResponseController.
func (j *joint) FlushError() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.flush()
}

func (j *joint) flush() error { return http.NewResponseController(j.ResponseWriter).Flush() }

// Unwrap is for http.ResponseController.
func (j *joint) Unwrap() http.ResponseWriter { return j.ResponseWriter }
