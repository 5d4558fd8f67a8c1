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
		log.Warn("the servers do not say that they sync each message; those that do not may lose accepted ones in a power cut\n" +
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

// syncedBySeveral is how many copies the servers keep where most of them have synced what they acknowledge. Then a log is
// not synced on the disk of its owner, too, if each server says that it syncs: what a power cut takes of it there is in the
// log of the unit.
const syncedBySeveral = 3

// syncedElsewhere reports whether several servers have what they acknowledge on their disks.
func (l *life) syncedElsewhere(conn *nats.Conn, copies, servers int, log *slog.Logger) bool {
	if copies < syncedBySeveral {
		l.jobs.Go(func() { allSync(l.ctx, conn, 1, log) })
		return false
	}
	return allSync(l.ctx, conn, max(copies, servers), log)
}
