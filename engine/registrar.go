package engine

import (
	"fmt"

	"daycare/engine/address"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/folders"
)

// A registrar makes agents.
type registrar struct {
	place
	recent   *recent
	newState func(address.Descriptor) ([]byte, error)
	// introduce tells other machines of a new agent.
	introduce func(id string) error
}

// create makes an agent, or finds the one that another first message just made.
func (r *registrar) create(d address.Descriptor) (address.Meta, error) {
	if r.vol.Full() {
		return address.Meta{}, disk.ErrFull
	}
	state, err := r.newState(d)
	if err != nil {
		return address.Meta{}, err
	}

	_, known := r.index.Get(d.ID)
	meta, err := r.index.Create(d, state)
	if err != nil {
		return meta, fmt.Errorf("create agent: %w", err)
	}
	if known {
		return meta, nil // a call that a crash cut short is made again
	}

	r.events.Emit(event.Event{Type: event.AgentCreated, Agent: meta.ID})
	return meta, r.introduce(meta.ID)
}

// createNext makes the agent of the next free serial number.
func (r *registrar) createNext(d address.Descriptor) (address.Meta, error) {
	if r.vol.Full() {
		return address.Meta{}, disk.ErrFull
	}
	state, err := r.newState(d)
	if err != nil {
		return address.Meta{}, err
	}

	return r.createFresh(d, state, func(string) error { return nil })
}

// createFresh makes an agent that was not there before: where the next serial number
// is taken by someone else at this instant, it takes the one after.
func (r *registrar) createFresh(d address.Descriptor, state []byte, fill func(dir string) error) (address.Meta, error) {
	own := d.Type == address.User && d.ChannelID == ""
	for range 100 {
		if own {
			d.ChannelID = r.index.NextSerial()
		}
		made := false
		meta, err := r.index.CreateWith(d, state, func(dir string) error {
			made = true
			return fill(dir)
		})
		if err != nil {
			return meta, err
		}
		if made {
			r.recent.look(meta.ID)
			r.events.Emit(event.Event{Type: event.AgentCreated, Agent: meta.ID})
			return meta, r.introduce(meta.ID)
		}
		if !own {
			return meta, fmt.Errorf("%w: %s %s has its id or address", folders.ErrTaken, meta.Handle, meta.ID)
		}
	}

	return address.Meta{}, fmt.Errorf("%w: all serial numbers are in use", folders.ErrTaken)
}
