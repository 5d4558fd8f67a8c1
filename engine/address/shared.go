package address

// A Registry settles among several machines what is unique in all of them.
type Registry interface {
	// Claim gives an address to an agent unless another one has it, and returns the id of who
	// has it now. address is not for users to read.
	Claim(address, id string) (owner string, err error)
	// Number gives a handle to an agent for ever, and returns the one that the agent has: it
	// may have another already. "": another agent has this one.
	Number(handle, id string) (given string, err error)
}

// Share has the index settle new ids and handles with other machines. It is called before
// the index is used.
func (x *Index) Share(r Registry) {
	x.maker.shared, x.scan.handles.shared = r, r
}

// claim is the id that a new agent gets. That of one which another machine is making at this
// moment is the same agent: whoever opens it first has made it.
func (k *folderMaker) claim(d Descriptor, id string) (string, error) {
	if k.shared == nil || d.Key() == "" {
		return id, nil
	}
	return k.shared.Claim(d.Key(), id)
}

// Met makes an agent known that another machine made or changed. It needs no folder here.
func (x *Index) Met(m Meta) (added bool) {
	x.scan.handles.mu.Lock()
	if x.scan.handles.byID[m.ID] == "" {
		x.scan.handles.put(handle{Handle: m.Handle, ID: m.ID, Parent: m.Descriptor.ParentAgentID})
	}
	x.scan.handles.mu.Unlock()

	x.known.mu.Lock()
	defer x.known.mu.Unlock()
	x.scan.met[m.ID] = true
	old, known := x.known.meta(m.ID)
	if known && old.Descriptor == m.Descriptor && old.Handle == m.Handle {
		return false
	}
	x.known.put(m.ID, m.Descriptor, m.Handle)

	return !known
}
