package xmpp

import (
	"encoding/json"
	"sync"
	"time"
)

// A mark is what is told to a server when what was read is durable.
type mark struct {
	flow    *flow // nil: nothing is counted
	n       uint32
	archive string // "": it has no place in an archive
	at      position
	then    func() // called when it is durable; nil: nothing
}

// A position is a place in an archive.
type position struct {
	ID string    `json:"id"`
	At time.Time `json:"at"` // of the message, should the archive forget it
}

// marks are of stanzas that were read, in their order. Those of messages wait until the
// message is durable; others until those before them are.
type marks struct {
	mu      sync.Mutex
	waiting []mark
	queued  []bool   // of each, whether it is of a message
	after   []func() // to be called for what is durable
	reached map[string]position
	changed bool // since it was saved
}

// add notes a message that goes into the queue.
func (m *marks) add(k mark) { m.append(k, true) }

// free notes what needs no place in the queue.
func (m *marks) free(k mark) { m.append(k, false) }

func (m *marks) append(k mark, queued bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting, m.queued = append(m.waiting, k), append(m.queued, queued)
	m.advance()
}

// forget takes back the newest mark: its message did not get into the queue.
func (m *marks) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.waiting); n > 0 && m.queued[n-1] {
		m.waiting, m.queued = m.waiting[:n-1], m.queued[:n-1]
	}
}

// due are the calls of what became durable.
func (m *marks) due() []func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	calls := m.after
	m.after = nil
	return calls
}

// taken notes that the oldest message of the queue is durable.
func (m *marks) taken() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, q := range m.queued {
		if q {
			m.queued[i] = false
			break
		}
	}
	m.advance()
}

// advance applies what no message holds up. mu is held.
func (m *marks) advance() {
	for len(m.waiting) > 0 && !m.queued[0] {
		k := m.waiting[0]
		m.waiting, m.queued = m.waiting[1:], m.queued[1:]
		if k.flow != nil {
			k.flow.handled(k.n)
		}
		if k.archive != "" && k.at.ID != "" {
			m.reached[k.archive], m.changed = k.at, true
		}
		if k.then != nil {
			m.after = append(m.after, k.then)
		}
	}
}

// place is how far an archive was read.
func (m *marks) place(archive string) (position, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.reached[archive]
	return p, ok
}

// start notes how far an archive counts as read, if nothing of it was.
func (m *marks) start(archive string, at position) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.reached[archive]; !ok {
		m.reached[archive], m.changed = at, true
	}
}

// archivesFile is where the places in archives are kept, as a JSON object by the address
// of the archive.
const archivesFile = "archives.json"

// load reads the places of the process before.
func (m *marks) load(data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return json.Unmarshal(data, &m.reached)
}

// unsaved are the places as a file, if they have changed since the last call.
func (m *marks) unsaved() (data []byte, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.changed {
		return nil, nil
	}
	m.changed = false
	data, err = json.MarshalIndent(m.reached, "", "  ")

	return append(data, '\n'), err
}

// again has the next call of unsaved return the places, which could not be saved.
func (m *marks) again() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changed = true
}
