package cluster

import (
	"context"
	"log/slog"

	"github.com/nats-io/nats.go"
)

// SyncedSubject is where servers say that they sync each message before they acknowledge it.
const SyncedSubject = "dc.sync"

// allSync reports whether all servers say that they sync each message, and warns if none does. A server of nats.io does not
// say so, whether it does it or not.
func allSync(ctx context.Context, conn *nats.Conn, servers int, log *slog.Logger) bool {
	said := saySync(ctx, conn, servers)
	switch {
	case said == 0:
		log.Warn("the servers do not report that they sync each message; without that, a power cut can lose accepted messages\n" +
			"run them with daycare cluster server, or set sync_interval: always in the jetstream settings of each")
	case said < servers:
		log.Info("not all servers say that they sync each message; this machine waits for its own disk, too",
			"servers", servers, "say so", said)
	}

	return said >= servers
}

// saySync counts the servers that say so, until that are enough or no more do.
func saySync(ctx context.Context, conn *nats.Conn, enough int) (n int) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	reply := conn.NewInbox()
	sub, err := conn.SubscribeSync(reply)
	if err != nil {
		return 0
	}
	defer unsubscribed(sub)
	if err := conn.PublishRequest(SyncedSubject, reply, nil); err != nil {
		return 0
	}

	for ; n < enough; n++ {
		if _, err := sub.NextMsgWithContext(ctx); err != nil {
			break
		}
	}

	return n
}

// Copies are where everything is that was acknowledged.
type Copies struct {
	Servers int     // that keep it in JetStream; 0: 1
	OwnDisk OwnDisk // whether the disk of its owner is waited for, too; "": Auto
}

// An OwnDisk says when an owner waits for its own disk before it acknowledges anything. It always does if a server does not say
// that it syncs. What a power cut takes of a file there is in the log of the unit.
type OwnDisk string

const (
	Auto   OwnDisk = "auto"   // where fewer than syncedBySeveral servers keep it
	Always OwnDisk = "always" // everywhere
	Never  OwnDisk = "never"  // not even where one server keeps it: that one's disk has all there is
)

// syncedBySeveral is how many copies the servers keep where most of them have synced what they acknowledge.
const syncedBySeveral = 3

// syncedElsewhere reports whether the servers have what they acknowledge on their disks, and that is enough.
func (l *life) syncedElsewhere(conn *nats.Conn, want Copies, servers int, log *slog.Logger) bool {
	if want.OwnDisk == Always || want.OwnDisk != Never && want.Servers < syncedBySeveral {
		l.jobs.Go(func() { allSync(l.ctx, conn, 1, log) })
		return false
	}

	return allSync(l.ctx, conn, max(want.Servers, servers), log)
}
