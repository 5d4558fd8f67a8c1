package agents

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/inbox"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// Pauses between tries to store a decision.
const (
	storeFirst = time.Second
	storeLast  = time.Minute
)

// postponed are decisions that could not be stored in state.json: it is broken, or the
// disk refuses it. Their items stay open, so that no crash loses them, and all else goes
// on meanwhile. A right that was taken away is not used from the moment in which its
// item arrived (see access).
type postponed struct {
	items map[string]bool // ids of open items; empty: none
	pause time.Duration   // before the next try
	next  time.Time       // when it is due
}

// waits reports whether an item is not to be taken up yet.
func (p *postponed) waits(id string) bool { return p.items[id] && time.Now().Before(p.next) }

// due fires when the postponed items are to be tried again; nil: there are none.
func (p *postponed) due() <-chan time.Time {
	if len(p.items) == 0 {
		return nil
	}
	return time.After(time.Until(p.next))
}

// soon has them tried at once: what stood in their way may be gone.
func (p *postponed) soon() { p.next, p.pause = time.Time{}, storeFirst }

// postpone leaves a decision open that could not be stored, and reports that once.
func (a *agent) postpone(it inbox.Item, err error) error {
	if errors.Is(err, disk.ErrFailed) || errors.Is(err, record.ErrGone) {
		return err
	}
	p := &a.postponed
	known := p.items[it.ID]
	if !known && p.items == nil {
		p.items = map[string]bool{}
	}
	if len(p.items) == 0 {
		p.pause = storeFirst
	}
	p.items[it.ID] = true
	p.next = time.Now().Add(p.pause)
	p.pause = min(2*p.pause, storeLast)
	a.Inbox.Untake(it.ID)
	if known {
		return nil
	}
	file := filepath.Join(a.Dir, "state.json")
	what := "the right " + it.Tag + " was given for good and does not apply yet"
	if it.Decision == string(permission.Revoked) {
		what = "the right " + it.Tag + " was taken away; it is not used any more, but still stands in the file"
	}
	if b, ok := permission.BudgetOf(it.Tag); ok {
		what = "the answer to " + b.String() + " does not apply yet"
		if b.Setting() {
			file = filepath.Join(filepath.Dir(filepath.Dir(a.Dir)), "settings.yaml")
		}
	}
	a.Board.Tell(a.ID, finding.Finding{ID: "decision-not-stored", Severity: finding.Error, File: file,
		Reason: fmt.Sprintf("%s, because the file could not be changed: %v", what, err),
		Remedy: "Repair the file or make room on the disk; daycare keeps trying."})
	return nil
}

// stored forgets a decision that was postponed.
func (a *agent) stored(it inbox.Item) { delete(a.postponed.items, it.ID) }
