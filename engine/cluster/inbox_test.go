package cluster

import (
	"bytes"
	"testing"
	"time"

	"daycare/engine/cluster/clustertest"
	"daycare/engine/inbox"
	"daycare/engine/inbox/inboxtest"
)

// An inbox keeps its contract when each life of its agent is on another machine, with what the one before it had
// appended to the log and no more.
func TestMailbox(t *testing.T) {
	const agent = "a"
	last := map[string]*host{} // by the folder that the suite has the mailbox in
	inboxtest.Run(t, func(t *testing.T, dir string) inbox.Mailbox {
		before := last[dir]
		var m *host
		if before == nil {
			m = newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
			m.make(agent)
		} else {
			before.die()
			m = newHost(t, before.server)
			m.links.dead = func(boot string) bool { return boot == before.boot } // without waiting for its lease
		}
		last[dir] = m
		m.own(agent)
		box, found, err := inbox.Open(m.vol, m.path(agent, "."), inbox.NewQuota(0), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) > 0 {
			t.Errorf("findings in an inbox that was taken over: %v", found)
		}
		t.Cleanup(func() {
			if last[dir] == m {
				m.same(agent)
			}
		})

		return box
	})
}

// same checks that the log of an agent, whose files are closed, makes what is in its folder.
func (m *host) same(agent string) {
	m.t.Helper()
	m.Release(agent, false)
	files, err := m.newest(m.ctx, m.store, agent, damagedIn)
	if err != nil {
		m.t.Fatal(err)
	}
	found, err := m.list(m.folder(agent))
	if err != nil {
		m.t.Fatal(err)
	}
	for name, data := range found {
		there, err := files[name].bytes(m.ctx, m.store)
		if err != nil || !bytes.Equal(there, data) {
			m.t.Errorf("%s has %d bytes, and %d in the log, %v", name, len(data), len(there), err)
		}
	}
	if len(files) != len(found) {
		m.t.Errorf("%d files are in the log, and %d in the folder", len(files), len(found))
	}
}
