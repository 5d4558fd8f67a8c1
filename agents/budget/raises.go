package budget

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/permission"
)

// raisesFile keeps what limits were raised by once. Without it they are as the settings
// say.
const raisesFile = "raises.json"

// A raise lifts one limit, once: a day's for that day. It applies as long
// as the limit is written as it was then: who writes another one means that.
type raise struct {
	At     disk.Stamp `json:"at"`
	Token  string     `json:"token"` // of the request that was answered
	By     string     `json:"by"`
	Scope  string     `json:"scope"`
	Day    string     `json:"day,omitempty"`
	Agent  string     `json:"agent,omitempty"` // whose spending the limit bounds
	Unit   string     `json:"unit"`
	Amount float64    `json:"amount"`
	Of     float64    `json:"of"` // the limit as it was written then
}

type raises struct {
	Raises []raise `json:"raises"`
}

func (o Options) loadRaises() []raise {
	list, _, err := o.readRaises()
	if err != nil {
		o.Log.Warn("cannot read one-time budget raises; they do not apply",
			"file", filepath.Join(o.Dir, raisesFile), "err", err)
	}

	return list
}

// readRaises is what the file says; data is its content, also if it cannot be parsed.
func (o Options) readRaises() (list []raise, data []byte, err error) {
	data, err = beneath.Whole(filepath.Join(o.Dir, raisesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}

	var r raises
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, data, err
	}

	return r.Raises, data, nil
}

// standing are the raises to which another one is added: those of the file, which a user
// may have changed since the start. A file that cannot be parsed is kept under another name
// before it is replaced; one that cannot be read is not replaced.
func (o Options) standing() ([]raise, error) {
	list, data, err := o.readRaises()
	if err == nil || data == nil {
		return list, err
	}
	kept := raisesFile + ".conflict-" + o.Now().UTC().Format("20060102T150405.000Z")
	if err := o.Volume.WriteFile("raises", filepath.Join(o.Dir, kept), data); err != nil {
		return nil, fmt.Errorf("set the unreadable file aside: %w", err)
	}

	o.Log.Error(raisesFile+" cannot be parsed and is rewritten; a copy of its old content is next to it. "+
		"To apply the old entries, copy them to "+raisesFile+" and restart",
		"file", filepath.Join(o.Dir, raisesFile), "kept", kept, "err", err)

	return nil, nil
}

// Raise lifts a limit that an agent has reached, once, durably. The same
// token raises it one time.
func (l *Ledger) Raise(agent string, b permission.Budget, token, by string) error {
	_, limits, err := l.limits(agent)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(limits, func(m limit) bool { return m.scope == b.Scope })
	if i < 0 {
		return nil // it is not a limit of that agent any more
	}

	one := raise{At: disk.StampOf(l.o.Now()), Token: token, By: by, Scope: b.Scope, Day: b.Day, Agent: limits[i].agent,
		Unit: b.Unit, Amount: b.More, Of: limits[i].amount.in(b.Unit)}
	l.file.Lock()
	defer l.file.Unlock()
	list, err := l.o.standing()
	if err != nil {
		return fmt.Errorf("raise budget: %w", err)
	}

	l.mu.Lock()
	day := l.calendar.Day
	l.mu.Unlock()
	if slices.ContainsFunc(list, func(r raise) bool { return r.Token == token }) {
		return nil
	}

	list = append(slices.DeleteFunc(list, func(r raise) bool { return r.Day != "" && r.Day < day }), one)
	data, err := json.MarshalIndent(raises{list}, "", "  ")
	if err != nil {
		return fmt.Errorf("raise budget: %w", err)
	}
	if err := l.o.Volume.MkdirAll(l.o.Dir); err != nil {
		return fmt.Errorf("raise budget: %w", err)
	}
	if err := l.o.Volume.WriteFile("raises", filepath.Join(l.o.Dir, raisesFile), append(data, '\n')); err != nil {
		return fmt.Errorf("raise budget: %w", err)
	}

	l.mu.Lock()
	l.raises = list
	l.mu.Unlock()
	return nil
}

// raised is a limit with what it was raised by. l.mu is held.
func (l *Ledger) raised(m limit) Amount {
	a := m.amount
	for _, r := range l.raises {
		if r.Scope != m.scope || r.Agent != m.agent || m.scope == permission.BudgetPerDay && r.Day != l.calendar.Day {
			continue
		}
		switch {
		case r.Of == 0 || r.Of != m.amount.in(r.Unit):
		case r.Unit == permission.USD:
			a.USD += r.Amount
		case r.Unit == permission.Tokens:
			a.Tokens += int64(r.Amount)
		}
	}

	return a
}

// Freed reports whether a limit that an agent had reached is another one by now: it was
// raised or lifted, or its day is over.
func (l *Ledger) Freed(agent string, b permission.Budget) bool {
	_, limits, err := l.limits(agent)
	if err != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn()
	if b.Scope == permission.BudgetPerDay && b.Day != l.calendar.Day {
		return true
	}

	for _, m := range limits {
		if m.scope != b.Scope {
			continue
		}
		limit := l.raised(m).in(b.Unit)
		return limit == 0 || limit > b.Limit
	}

	return true
}
