package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// logs are the streams that have the logs of all units. A unit is in one of them for ever.
//
// A server that keeps one copy syncs each message of a stream by itself, one after the other: 64 writers
// wait for each other. Messages of several streams share the commits of the file system. Servers that
// keep several copies agree on the messages of a stream in batches, and gain nothing by more of them.
type logs []jetstream.Stream

const (
	// streamName is the stream of all logs or, where there are several, the one that says how many. Its
	// size of messages is 1 then, so that a version that knows one stream alone writes nothing to it.
	streamName = "daycare"
	logSubject = "dc.log."
	// partSubject and the number of its stream begin the subjects of the logs in one of several.
	partSubject = "dc.part."
	// partsKey is where the metadata of the stream say how many there are; without it: it is the only one.
	partsKey = "daycare.parts"
)

// parts is how many streams a new cluster gets where servers keep one copy. The tests of this package, which make
// hundreds of clusters, change it.
var parts = 16

// openLogs makes the streams that are missing. How many there are was decided when the first was made.
func openLogs(ctx context.Context, js jetstream.JetStream, replicas int) (logs, error) {
	head := logStream(streamName, logSubject, replicas)
	if replicas == 1 {
		head.Metadata, head.MaxMsgSize = map[string]string{partsKey: strconv.Itoa(parts)}, 1
	}
	first, err := stream(ctx, js, head)
	if err != nil {
		return nil, err
	}
	made := first.CachedInfo().Config
	said, several := made.Metadata[partsKey]
	if !several {
		return logs{first}, nil
	}
	n, err := strconv.Atoi(said)
	if err != nil || n < 1 {
		return nil, fmt.Errorf("open stream %s: its metadata say %s: %q, and a number is needed", streamName, partsKey, said)
	}

	all, failed := make(logs, n), make([]error, n)
	var each sync.WaitGroup
	for i := range all {
		part := logStream(fmt.Sprintf("%s-%d", streamName, i), fmt.Sprintf("%s%d.", partSubject, i), made.Replicas)
		each.Go(func() { all[i], failed[i] = stream(ctx, js, part) })
	}
	each.Wait()
	if err := cmp.Or(failed...); err != nil {
		return nil, err
	}

	return all, nil
}

// firstSeq is the first sequence of a stream that is made now: the time in microseconds. Who appends names the sequence of the newest
// message that it knows. A stream that is made again, because servers have lost all, must never come to sequences that the one before
// it had: a writer that was cut off would take another one's message for its own.
func firstSeq() uint64 { return uint64(time.Now().UnixMicro()) }

func logStream(name, subject string, replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{FirstSeq: firstSeq(), Name: name, Subjects: []string{subject + ">"}, Retention: jetstream.LimitsPolicy,
		Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage, Replicas: replicas, AllowDirect: true, MaxConsumers: 100_000}
}

// stream opens a stream, as it is, or makes it.
func stream(ctx context.Context, js jetstream.JetStream, as jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := js.Stream(ctx, as.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if s, err = js.CreateStream(ctx, as); errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another machine was quicker
			s, err = js.Stream(ctx, as.Name)
			err = justMade(err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open stream %s: %w", as.Name, err)
	}

	return s, nil
}

// justMade is an error about something that was made a moment ago. That it is not found is the answer of a server
// which does not know of it yet: it is asked again, as one that does not answer.
func justMade(err error) error {
	if errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrBucketNotFound) {
		return fmt.Errorf("%w: %w", jetstream.ErrNoStreamResponse, err)
	}
	return err
}

// of is where the log of a unit is.
func (l logs) of(unit string) (in jetstream.Stream, subject string) {
	if len(l) == 1 {
		return l[0], logSubject + unit
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(unit))
	i := int(h.Sum32() % uint32(len(l)))

	return l[i], fmt.Sprintf("%s%d.%s", partSubject, i, unit)
}
