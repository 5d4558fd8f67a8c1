package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"time"

	"daycare/agents/budget"
	"daycare/engine/address"
	"daycare/engine/beneath"
	"daycare/engine/cluster"
	"daycare/engine/cuid"
	"daycare/engine/disk"
)

// spending has limits bound what all machines spend: each says its sums to all others.
type spending struct{ ledger *budget.Machines }

// lastFor bounds how long a machine that ends says what it has spent.
const lastFor = 2 * time.Second

// Count has a ledger count what other machines spend, and tells them what is spent here.
func (m *Machines) Count(l *budget.Ledger) {
	if m == nil {
		return
	}
	m.ledger = &budget.Machines{Ledger: l}
	m.node.Listen(figures{*m.ledger})
}

// tellSpending says what is spent here until ctx ends.
func (m *Machines) tellSpending(ctx context.Context) error {
	if m.ledger != nil {
		m.ledger.Tell(ctx, m.node.Say)
	}
	return nil
}

// tellLast says what was spent since.
func (m *Machines) tellLast() {
	if m.ledger == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastFor)
	defer cancel()
	m.ledger.TellNow(ctx, m.node.Say)
}

// today says what a machine has spent today, for users; "": nothing.
func (m *Machines) today(one cluster.Machine) string {
	if m.ledger == nil {
		return ""
	}
	a := m.ledger.Today(one.ID)
	if a.USD == 0 {
		return ""
	}

	return fmt.Sprintf(", $%.2f today", a.USD)
}

// identity is the id of this machine for ever. It is where its sums are: who removes these begins as another one.
func identity(home string, vol *disk.Volume) (string, error) {
	path := filepath.Join(home, "usage", "machine.json")
	var one struct {
		ID string `json:"id"`
	}
	data, _, err := beneath.Own(path, 4<<10)
	if err == nil {
		if err = json.Unmarshal(data, &one); err == nil && !address.ValidID(one.ID) {
			err = errors.New("it has no id")
		}
		if err != nil {
			return "", fmt.Errorf("read %s: %w\n"+
				"without the file this machine counts as a new one, and what it has spent counts twice", path, err)
		}
		return one.ID, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}

	one.ID = cuid.New()
	if data, err = json.Marshal(one); err != nil {
		return "", err
	}
	if err := vol.MkdirAll(filepath.Dir(path)); err != nil {
		return "", err
	}

	return one.ID, vol.WriteFile("machine", path, append(data, '\n'))
}

// figures are what machines have spent, for the cluster.
type figures struct{ budget.Machines }

func (f figures) Join(own string, there iter.Seq[cluster.Figure]) {
	f.Machines.Join(own, func(yield func(budget.Says) bool) {
		for one := range there {
			if !yield(budget.Says(one)) {
				return
			}
		}
	})
}

func (f figures) Heard(one cluster.Figure) { f.Machines.Heard(budget.Says(one)) }

func (f figures) All() iter.Seq[cluster.Figure] {
	return func(yield func(cluster.Figure) bool) {
		for one := range f.Says() {
			if !yield(cluster.Figure(one)) {
				return
			}
		}
	}
}
