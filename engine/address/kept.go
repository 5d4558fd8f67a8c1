package address

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"daycare/engine/beneath"
	"daycare/engine/finding"
)

// keptFile is a copy of the last good descriptor, beside it. Agents that an address
// maps to are found by their descriptor alone: without the copy a typing error that
// is read at a start would make the address free, and its next message would make a
// second agent. It is a cache, written without a barrier: a user may remove it.
const keptFile = ".descriptor.json"

// kept reports whether agents like d need a copy. Others are found by their id, which
// is the name of their folder.
func (d Descriptor) kept() bool { return d.Type == User || d.Type == Heartbeat }

// Keep copies the descriptor of an agent, as it is active. It is called when an agent
// is made, wakes or was edited, so that a start reads no more than the descriptors. The
// copy has the time of its original: a look tells whether there is anything to do. What
// goes wrong is only logged: the descriptor itself is good.
func (x *Index) Keep(id string) {
	m, ok := x.Get(id)
	if !ok || !m.Descriptor.kept() || x.vol == nil {
		return
	}
	path, copied := filepath.Join(x.scan.dir, id, descriptorFile), filepath.Join(x.scan.dir, id, keptFile)
	now, err := os.Stat(path)
	if err != nil {
		return // moved away this instant
	}
	if before, err := os.Stat(copied); err == nil && before.ModTime().Equal(now.ModTime()) {
		return
	}
	if d, ok := current(path); !ok || d != m.Descriptor {
		return // what stands there is not active
	}

	data, err := Encode(m.Descriptor)
	if err == nil {
		err = x.vol.WriteDraftOf("descriptor.kept", copied, data, now.ModTime())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		x.scan.log.Warn("copy of a descriptor not written", "agent", id, "err", err)
	}
}

// current returns the descriptor in a file.
func current(path string) (Descriptor, bool) {
	data, err := beneath.Whole(path)
	if err != nil {
		return Descriptor{}, false
	}
	d, found := Decode(path, data)

	return d, finding.Join(found) == nil
}

// lastGood is the descriptor that was active before the one that stands there now;
// nil: it is not known.
func (s *scan) lastGood(id string) *Descriptor {
	d, ok := current(filepath.Join(s.dir, id, keptFile))
	if !ok || !d.kept() || d.ID != "" && d.ID != id {
		return nil
	}

	return &d
}
