package agents

import (
	"time"
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

// due fires when the postponed items are to be tried again; nil: none.
func (p *postponed) due() <-chan time.Time {
	if len(p.items) == 0 {
		return nil
	}
	return time.After(time.Until(p.next))
}

// soon has them tried at once: what stood in their way may be gone.
func (p *postponed) soon() { p.next, p.pause = time.Time{}, storeFirst }
