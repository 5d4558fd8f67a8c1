package address

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"daycare/engine/finding"
)

// keptFile is a copy of the last good descriptor, beside it. Agents that an address
// maps to are found by their descriptor alone: without the copy a typing error that
// is read at a start would make the address free, and its next message would make a
// second agent. It is a cache, written without a barrier: a person may remove it.
const keptFile = ".descriptor.json"

// kept reports whether agents like d need a copy. Others are found by their id, which
// is the name of their folder.
func (d Descriptor) kept() bool { return d.Type == User || d.Type == Heartbeat }

// keepAll copies the descriptors of readings that are in force.
func (x *Index) keepAll(good []reading) {
	if x.vol == nil {
		return
	}
	var group errgroup.Group
	group.SetLimit(4 * runtime.GOMAXPROCS(0))
	for _, r := range good {
		group.Go(func() error {
			x.keep(r.id, r.d)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		x.log.Error("descriptors not copied", "err", err)
	}
}

// keep copies a good descriptor. The copy has the time of its original, so that a look
// tells whether there is anything to do. What goes wrong is only logged.
func (x *Index) keep(id string, d Descriptor) {
	if !d.kept() {
		return
	}
	path, copied := filepath.Join(x.dir, id, descriptorFile), filepath.Join(x.dir, id, keptFile)
	now, err := os.Stat(path)
	if err != nil {
		return // moved away this instant
	}
	if before, err := os.Stat(copied); err == nil && before.ModTime().Equal(now.ModTime()) {
		return
	}
	data, err := Encode(d)
	if err == nil {
		err = x.vol.WriteDraft("descriptor.kept", copied, data)
	}
	if err == nil {
		err = os.Chtimes(copied, time.Time{}, now.ModTime())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		x.log.Warn("the copy of a descriptor is not written", "agent", id, "err", err)
	}
}

// lastGood is the descriptor that was in force before the one that stands there now.
func (x *Index) lastGood(id string) (Descriptor, bool) {
	path := filepath.Join(x.dir, id, keptFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return Descriptor{}, false
	}
	d, found := Decode(path, data)
	return d, finding.Join(found) == nil && d.kept() && (d.ID == "" || d.ID == id)
}

// fallBack puts the last good descriptor into a reading whose own is broken, if no
// version of the agent is in force yet. x.mu is held.
func (x *Index) fallBack(r *reading) bool {
	if _, known := x.byID[r.id]; known {
		return false
	}
	d, ok := x.lastGood(r.id)
	if !ok {
		return false
	}
	if other, taken := x.byKey[d.key()]; taken && other != r.id {
		return false
	}
	r.d, r.stamp = d, stamp{} // no stamp: the file is looked at again each time
	return true
}
