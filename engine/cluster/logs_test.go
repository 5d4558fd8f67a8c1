package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"daycare/engine/cluster/clustertest"
)

// streamsOf reaches a server without being a machine.
func streamsOf(t *testing.T, s *server.Server) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}

	return js
}

// With one replica logs are in several streams, each in the same one for every machine and after each start, and
// a version that knows one stream alone writes nothing.
func TestLogsAreInSeveralStreams(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	one, other := a.presence.store.handles.logs, b.presence.store.handles.logs
	if len(one) != parts || len(other) != parts {
		t.Fatalf("there are %d and %d streams, want %d", len(one), len(other), parts)
	}

	used := map[string]bool{}
	for i := range 100 {
		unit := fmt.Sprintf("agent%d", i)
		in, subject := one.of(unit)
		there, same := other.of(unit)
		name := in.CachedInfo().Config.Name
		if subject != same || name != there.CachedInfo().Config.Name || !strings.HasSuffix(subject, "."+unit) {
			t.Errorf("%s is %s of %s here, and %s elsewhere", unit, subject, name, same)
		}
		used[name] = true
	}
	if len(used) != parts {
		t.Errorf("100 logs are in %d streams", len(used))
	}

	a.make("one")
	a.own("one")
	l := a.open("one", "history.jsonl")
	add(t, l, "1", "2")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	in, subject := one.of("one")
	if m, err := in.GetLastMsgForSubject(t.Context(), subject); err != nil || m.Subject != subject {
		t.Errorf("its log ends with %v, %v", m, err)
	}
	if ack, err := a.presence.store.js.Publish(t.Context(), logSubject+"one", []byte("of an older version")); err == nil {
		t.Errorf("an older version wrote %+v", ack)
	}
}

// A cluster that was made with one stream keeps it, as one with several replicas has it; of one whose number of
// streams cannot be read nothing is opened.
func TestLogsInOneStream(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	js := streamsOf(t, s)
	if _, err := js.CreateStream(t.Context(), logStream(streamName, logSubject, 1)); err != nil {
		t.Fatal(err)
	}
	h := newHost(t, s)
	if in, subject := h.presence.store.handles.logs.of("one"); in.CachedInfo().Config.Name != streamName || subject != logSubject+"one" {
		t.Errorf("its log is %s of %s", subject, in.CachedInfo().Config.Name)
	}
	h.make("one")
	h.own("one")
	add(t, h.open("one", "history.jsonl"), "1")

	bad := streamsOf(t, clustertest.Serve(t, clustertest.Store(t), 0))
	for _, n := range []string{"0", "many"} {
		c := logStream(streamName, logSubject, 1)
		c.Metadata = map[string]string{partsKey: n}
		if _, err := bad.CreateOrUpdateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if l, err := openLogs(t.Context(), bad, 1); err == nil || !strings.Contains(err.Error(), partsKey) {
			t.Errorf("%q: %d streams, %v", n, len(l), err)
		}
	}
	if _, err := bad.Stream(t.Context(), streamName+"-0"); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("its first stream: %v", err)
	}
}

// The logs of a hundred agents are spread over all sixteen streams that clusters of users have.
func TestLogsAreSpread(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for i := range 100 {
		_, subject := make(logs, partsOfUsers).of(fmt.Sprintf("agent%d", i))
		used[strings.Split(subject, ".")[2]] = true
	}
	if len(used) != 16 {
		t.Errorf("they are in %d streams", len(used))
	}
}
