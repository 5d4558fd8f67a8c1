package address

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/permission"
	"daycare/engine/watch"
)

// IndexFile is the name of the file in .daycare from which a start knows what stood in the files of agents. It is
// a cache of them, never trusted over them: of each file it has the size, the times and the number, and a file of
// which one is different is read. A start that had to read many agents writes it, without a barrier. If you remove
// it, the next start reads all agents.
const IndexFile = "agents.index"

// indexFormat begins the index file.
const indexFormat = "daycare agents 3\n"

const (
	// fewest is how many agents there are at least before there is an index file.
	fewest = 32
	// maxIndex bounds what is read of it, bytes.
	maxIndex = 1 << 30
)

// A Proof is a file in the folder of an agent that may prove that the agent has nothing to do.
type Proof int

// The proofs.
const (
	InboxProof Proof = iota
	HistoryProof
	proofs
)

// indexed is what the index file has of one agent.
type indexed struct {
	descriptor beneath.Stamp // zero: it is not known
	text       packed
}

// An indexFile is what is known of the files of agents, as of an earlier start and of this one.
type indexFile struct {
	path   string
	origin string // of what a file must be of that counts; "": none does

	mu     sync.RWMutex
	agents map[string]indexed               // of an earlier start; nil once the descriptors are read
	proved map[string][proofs]beneath.Stamp // files that were seen to prove it
	fresh  map[string]bool                  // agents of which something was read that the file does not have
}

// origin names what the file depends on beside the agents: a start of the machine, after which
// files may be other than they were written, this program, and the folder of the agents.
// "" where one of them cannot be told, or where another machine changes files and this one
// may see an old stamp.
func origin(agents string) string {
	if watch.Remote(agents) != "" {
		return ""
	}
	boot := permission.BootID()
	program, err := os.Executable()
	self, serr := os.Stat(program)
	folder, ferr := os.Stat(agents)
	if errors.Join(err, serr, ferr) != nil || boot == "" {
		return ""
	}

	now := beneath.StampOf(self)
	return fmt.Sprintf("%s %d %d %d %d %s", boot, beneath.StampOf(folder).Ino, now.Ino, now.Changed, now.Size, agents)
}

func newIndexFile(root string) *indexFile {
	return &indexFile{path: filepath.Join(root, IndexFile), proved: map[string][proofs]beneath.Stamp{}, fresh: map[string]bool{}}
}

// open reads the file. One that is missing, torn or of another origin is as an empty one.
func (f *indexFile) open() {
	if f.origin = origin(filepath.Join(filepath.Dir(f.path), "agents")); f.origin == "" {
		return
	}
	info, err := os.Stat(f.path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxIndex {
		return
	}
	data, err := os.ReadFile(f.path)
	if err != nil || !f.read(data) {
		f.agents, f.proved = nil, map[string][proofs]beneath.Stamp{}
	}
}

// read takes in the content of the file; false: it cannot be used.
func (f *indexFile) read(data []byte) bool {
	body := len(data) - crc32.Size
	if body < 0 || crc32.Checksum(data[:body], disk.Castagnoli()) != binary.LittleEndian.Uint32(data[body:]) {
		return false
	}
	rest, ok := bytes.CutPrefix(data[:body], []byte(indexFormat)) // of another one nothing counts in the end
	text := func() (s string) {
		n, size := binary.Uvarint(rest)
		if size <= 0 || n > uint64(len(rest)-size) {
			ok = false
			return ""
		}
		s, rest = string(rest[size:size+int(n)]), rest[size+int(n):]
		return s
	}
	look := func() (s beneath.Stamp) {
		if len(rest) < stampSize {
			ok = false
			return s
		}
		s, rest = readStamp(rest), rest[stampSize:]
		return s
	}

	if text() != f.origin {
		return false
	}
	n, size := binary.Uvarint(rest)
	if size <= 0 || n > uint64(len(rest)) {
		return false
	}
	rest = rest[size:]
	f.agents, f.proved = make(map[string]indexed, n), make(map[string][proofs]beneath.Stamp, n)
	for ok && len(rest) > 0 {
		id := text()
		f.agents[id] = indexed{descriptor: look(), text: packed(text())}
		f.proved[id] = [proofs]beneath.Stamp{look(), look()}
	}

	return ok && uint64(len(f.agents)) == n
}

// descriptor returns the descriptor of an agent whose file looks so.
func (f *indexFile) descriptor(id string, now beneath.Stamp) (Descriptor, bool) {
	f.mu.RLock()
	known, ok := f.agents[id]
	f.mu.RUnlock()
	if !ok || known.descriptor == (beneath.Stamp{}) || known.descriptor != now {
		return Descriptor{}, false
	}

	return known.text.unpack()
}

// has reports whether the file has an agent.
func (f *indexFile) has(id string) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	_, ok := f.agents[id]
	return ok
}

// forget lets go of an agent.
func (f *indexFile) forget(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.proved, id)
	delete(f.fresh, id)
}

// renewed notes that something of an agent was read.
func (f *indexFile) renewed(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fresh[id] = true
}

// release lets go of what only the first reading of all descriptors needs.
func (f *indexFile) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.agents = nil
}

// Proved reports whether a file of an agent, as it looks now, was seen to prove that there is
// nothing to do.
func (x *Index) Proved(id string, which Proof, now beneath.Stamp) bool {
	x.file.mu.RLock()
	defer x.file.mu.RUnlock()
	known := x.file.proved[id][which]
	return known != (beneath.Stamp{}) && known == now
}

// Prove keeps that a file of an agent proves it. s is how it looked at the time looked, before it was read.
func (x *Index) Prove(id string, which Proof, s beneath.Stamp, looked time.Time) {
	if x.file.origin == "" || !s.Lasts(looked) {
		return
	}
	x.file.mu.Lock()
	defer x.file.mu.Unlock()
	all := x.file.proved[id]
	all[which] = s
	x.file.proved[id], x.file.fresh[id] = all, true
}

// SaveKnown writes the index file, if this start read much that it does not have. It is called
// when a start has looked at all agents. What goes wrong is only logged: the file is a cache.
func (x *Index) SaveKnown() {
	if x.file.origin == "" { // who only looks has none, too
		return
	}
	x.file.mu.Lock()
	fresh := len(x.file.fresh)
	x.file.fresh = map[string]bool{}
	x.file.mu.Unlock()
	x.known.mu.RLock()
	all := len(x.known.byID)
	x.known.mu.RUnlock()
	if all < fewest || fresh*8 < all {
		return
	}

	if err := x.vol.WriteDraft("agents.index", x.file.path, encode(x)); err != nil {
		x.scan.log.Warn("index of agents not written", "err", err)
	}
}

// encode writes what is known of all agents as the index file.
func encode(x *Index) []byte {
	x.known.mu.RLock()
	defer x.known.mu.RUnlock()
	x.file.mu.RLock()
	defer x.file.mu.RUnlock()
	buf := make([]byte, 0, len(indexFormat)+len(x.file.origin)+200*len(x.known.byID))
	text := func(s string) { buf = append(binary.AppendUvarint(buf, uint64(len(s))), s...) }
	buf = append(buf, indexFormat...)
	text(x.file.origin)
	buf = binary.AppendUvarint(buf, uint64(len(x.known.byID)))
	for id, known := range x.known.byID {
		text(id)
		descriptor := known.descriptor
		seen := x.scan.seen[id]
		if !seen.sound {
			seen.Stamp, descriptor = beneath.Stamp{}, ""
		}
		buf = appendStamp(buf, seen.Stamp)
		text(string(descriptor))
		for _, s := range x.file.proved[id] {
			buf = appendStamp(buf, s)
		}
	}

	return binary.LittleEndian.AppendUint32(buf, crc32.Checksum(buf, disk.Castagnoli()))
}
