package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"daycare/engine/disk"
	"daycare/engine/message"
)

// Servers that were wiped have no log of an agent that sleeps. Several machines may have a folder of
// it, each as it was when that machine had it last. A log is numbered, and a folder has the number
// up to which it is complete: so machines tell which of them had the agent last, and that one begins the log
// anew.

// hadSubject is where all machines are asked what they had of an agent.
const hadSubject = "dc.had"

// had is what a machine had of an agent last: the number of a message of its log; 0: nothing.
type had struct {
	Boot string `json:"boot"`
	N    uint64 `json:"n"`
}

// A memory is what machines had.
type memory struct{ *Node }

// had is what this machine had of an agent last, or has.
func (n memory) had(agent string) (had, error) {
	n.units.mu.Lock()
	u := n.owned[agent]
	n.units.mu.Unlock()
	if u != nil {
		u.mu.Lock()
		defer u.mu.Unlock()
		return had{n.boot, u.n}, nil
	}
	m, err := readMark(n.folder(agent))

	return had{n.boot, m.N}, err
}

// tell answers who asks what this machine had.
func (n memory) tell() error {
	_, err := n.conn.Subscribe(hadSubject, func(m *nats.Msg) {
		agent := string(m.Data)
		if badID(agent) {
			return
		}
		h, err := n.had(agent)
		if err == nil {
			err = m.Respond(jsonOf(h))
		}
		if err != nil {
			n.says.Info("could not report what this machine had of an agent", "agent", agent, "err", err)
		}
	})
	if err != nil {
		return fmt.Errorf("answer the other machines: %w", err)
	}

	return nil
}

const (
	// hadFor bounds how long all machines take to answer.
	hadFor = 2 * time.Second
	// goneAfter is for how long a machine that does not report may be one that only is slow: longer than a lease,
	// because nothing can be had back that it had and another one begins without.
	goneAfter = time.Minute
)

// check makes sure that of the machines that were there lately none had an agent after this one, which had best. Errors:
// *message.Elsewhere for the one that had, disk.ErrAway while that is not known.
func (n memory) check(ctx context.Context, agent string, best had) error {
	if best.N == 0 && disk.Exists(n.folder(agent)) && !n.cards.knows(agent) {
		return nil // the agent is new to the cluster
	}
	if !n.presence.sure() {
		return fmt.Errorf("%w: which machine had %s last is not known yet", disk.ErrAway, agent)
	}
	answers, err := n.conn.SubscribeSync(n.conn.NewInbox())
	if err == nil {
		defer unsubscribed(answers) // it is over
		err = n.conn.PublishRequest(hadSubject, answers.Subject, []byte(agent))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", disk.ErrAway, err)
	}

	ctx, cancel := context.WithTimeout(ctx, hadFor)
	defer cancel()
	for range n.lately(goneAfter) { // this one answers, too
		m, err := answers.NextMsgWithContext(ctx)
		if err != nil {
			return fmt.Errorf("%w: a machine does not say what it had of %s: %w", disk.ErrAway, agent, err)
		}
		var one had
		if err := json.Unmarshal(m.Data, &one); err != nil {
			return fmt.Errorf("what a machine had of %s: %w", agent, err)
		}
		if one.N > best.N {
			best = one
		}
	}
	if best.Boot != n.boot {
		return &message.Elsewhere{Node: best.Boot}
	}

	return nil
}

// lately is how many machines have reported within some time, and have not left. One that was started again counts once: it
// has the folders of the process before.
func (n memory) lately(within time.Duration) (count int) {
	p := n.presence
	p.mu.Lock()
	defer p.mu.Unlock()
	alive := map[string]bool{}
	for boot, m := range p.says {
		if m.ID != "" && time.Since(p.seen[boot]) < p.lease {
			alive[m.ID] = true
		}
	}
	for boot, seen := range p.seen {
		old := time.Since(seen)
		if old < p.lease || old < within && !alive[p.says[boot].ID] {
			count++
		}
	}

	return count
}
