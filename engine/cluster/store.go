package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"daycare/engine/crash"
	"daycare/engine/disk"
)

// A store has the logs of all units, and the large contents that they name.
type store interface {
	// last returns the newest message of a unit, as some server knows it: it may be behind.
	// One with seq 0: there is none.
	last(ctx context.Context, unit string) (logged, error)
	// read returns the messages of a unit, the oldest first. It may be behind, too.
	read(ctx context.Context, unit string) ([]logged, error)
	// publish appends a message if the newest one of the unit is expect (0: none). Errors:
	// *wrongSequence; after any other the message may have been appended or not.
	publish(ctx context.Context, unit string, expect uint64, m logged) (seq uint64, err error)
	// purge removes the messages of a unit below seq.
	purge(ctx context.Context, unit string, seq uint64) error
	// put keeps a content under its SHA-256; get returns it.
	put(ctx context.Context, sha string, data []byte) error
	get(ctx context.Context, sha string) ([]byte, error)
}

// A wrongSequence refuses a message because the newest one is another than its writer
// expected, or because another one is on its way.
type wrongSequence struct {
	known bool   // last is what the server that decides says
	last  uint64 // the newest message; 0: there is none
}

func (e *wrongSequence) Error() string { return fmt.Sprintf("the newest message is %d", e.last) }

// Names in JetStream.
const (
	callSubject  = "dc.rpc."
	itemSubject  = "dc.item."
	stateSubject = "dc.state."
	askSubject   = "dc.api."
	nodesBucket  = "dc-nodes"
	ownersBucket = "dc-owners"
	agentsBucket = "dc-agents"
	leasesBucket = "dc-leases"
	filesBucket  = "dc-files"
	figureBucket = "dc-figures"
	usedBucket   = "dc-used"
	objectBucket = "dc-objects"
)

// A natsStore is a store on JetStream.
type natsStore struct {
	js       jetstream.JetStream
	replicas int
	handles  handles
}

// handles are what is in JetStream. They are names: what was made again under one is found.
type handles struct {
	logs    logs
	objects jetstream.ObjectStore
	chunks  jetstream.Stream // that the objects are in
	nodes   jetstream.KeyValue
	owners  jetstream.KeyValue
	agents  jetstream.KeyValue
	leases  jetstream.KeyValue
	files   jetstream.KeyValue
	used    jetstream.KeyValue
	figures jetstream.KeyValue
}

// ensure makes the streams and the buckets that are missing. Those that are there keep the
// settings that an operator gave them. Each is asked for until it is answered, beside the others: from far away, or of
// servers with a lot to do, all answers together take long.
func (s *natsStore) ensure(ctx context.Context, lease time.Duration) (h handles, err error) {
	steps := []func(ctx context.Context) error{
		func(ctx context.Context) (err error) {
			h.logs, err = openLogs(ctx, s.js, s.replicas)
			return err
		},
		func(ctx context.Context) (err error) {
			h.objects, h.chunks, err = s.objectStore(ctx)
			return err
		},
	}
	for _, b := range []struct {
		handle *jetstream.KeyValue
		name   string
		ttl    time.Duration // 0: for ever
	}{{&h.nodes, nodesBucket, lease}, {&h.owners, ownersBucket, 0}, {&h.agents, agentsBucket, 0}, {&h.files, filesBucket, 0},
		{&h.figures, figureBucket, 0}, {&h.used, usedBucket, usedFor}, {&h.leases, leasesBucket, lease}} {
		steps = append(steps, func(ctx context.Context) (err error) {
			*b.handle, err = s.bucket(ctx, b.name, b.ttl)
			return err
		})
	}

	failed := make([]error, len(steps))
	var all sync.WaitGroup
	for i, step := range steps {
		all.Go(func() { failed[i] = answered(ctx, askFor, step) })
	}
	all.Wait()

	return h, cmp.Or(failed...)
}

// objectStore opens the bucket of attachments, and the stream that it is in.
func (s *natsStore) objectStore(ctx context.Context) (objects jetstream.ObjectStore, chunks jetstream.Stream, err error) {
	objects, err = s.js.ObjectStore(ctx, objectBucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		objects, err = s.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: objectBucket, Replicas: s.replicas})
	}
	if err == nil {
		chunks, err = s.js.Stream(ctx, "OBJ_"+objectBucket)
		err = justMade(err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("open bucket %s: %w", objectBucket, err)
	}

	return objects, chunks, nil
}

// replicated is how many copies the servers keep of logs.
func (s *natsStore) replicated() int { return s.handles.logs[0].CachedInfo().Config.Replicas }

func (s *natsStore) bucket(ctx context.Context, name string, ttl time.Duration) (jetstream.KeyValue, error) {
	kv, err := s.js.KeyValue(ctx, name)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		if _, err = stream(ctx, s.js, bucketStream(name, ttl, s.replicas)); err == nil {
			kv, err = s.js.KeyValue(ctx, name)
			err = justMade(err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", name, err)
	}

	return kv, nil
}

// bucketStream describes the stream of a bucket as ADR-8 of NATS does, and as jetstream.CreateKeyValue makes it, which takes no first
// sequence.
func bucketStream(name string, ttl time.Duration, replicas int) jetstream.StreamConfig {
	duplicates := 2 * time.Minute // for how long the server remembers ids of messages: not longer than it keeps messages
	if ttl > 0 {
		duplicates = min(duplicates, ttl)
	}
	return jetstream.StreamConfig{FirstSeq: firstSeq(), Name: "KV_" + name, Subjects: []string{"$KV." + name + ".>"}, MaxMsgsPerSubject: 1,
		MaxAge: ttl, Duplicates: duplicates, Replicas: replicas, Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew,
		AllowRollup: true, DenyDelete: true, AllowDirect: true, MaxMsgs: -1, MaxBytes: -1, MaxMsgSize: -1, MaxConsumers: -1}
}

// eachThere calls take with each entry that a bucket has when its watch begins. A watch that ends before all have come is
// nats.ErrConnectionClosed: a part must not pass as all.
func eachThere(ctx context.Context, w jetstream.KeyWatcher, take func(jetstream.KeyValueEntry)) error {
	for {
		select {
		case e, ok := <-w.Updates():
			if !ok {
				return nats.ErrConnectionClosed
			}
			if e == nil { // all have come
				return nil
			}
			take(e)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// answered does something until servers answer it or ctx ends; then the error is a disk.ErrAway. One try takes at
// most as long as each: what is asked while there is no leader is not answered when there is one. The error of a try that ctx ended
// says less than that of the try before it.
func answered(ctx context.Context, each time.Duration, do func(ctx context.Context) error) error {
	var why error
	for {
		once, cancel := context.WithTimeout(ctx, each)
		err := do(once)
		cancel()
		if err == nil || ctx.Err() == nil && !unanswered(err) {
			return err
		}
		if ctx.Err() == nil || why == nil {
			why = err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", disk.ErrAway, why)
		}
	}
}

// unanswered reports whether an error is that of servers which do not answer at the moment: they are
// gone, or elect a leader because one of them is.
func unanswered(err error) bool {
	if e, ok := errors.AsType[*jetstream.APIError](err); ok && e.Code == http.StatusServiceUnavailable {
		return true
	}
	return slices.ContainsFunc([]error{jetstream.ErrNoStreamResponse, nats.ErrNoResponders, nats.ErrTimeout, nats.ErrConnectionClosed,
		nats.ErrDisconnected, nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded, context.DeadlineExceeded,
		os.ErrDeadlineExceeded},
		func(one error) bool { return errors.Is(err, one) })
}

// Codes of servers that have no room: in their store, that of the account, or the stream.
const (
	codeNoResources jetstream.ErrorCode = 10023
	codeNoStorage   jetstream.ErrorCode = 10047
	codeStreamFull  jetstream.ErrorCode = 10077
)

// noRoom reports whether an error is that of servers which are full.
func noRoom(err error) bool {
	e, ok := errors.AsType[*jetstream.APIError](err)
	return ok && slices.Contains([]jetstream.ErrorCode{codeNoResources, codeNoStorage, codeStreamFull}, e.ErrorCode)
}

// leastPayload is how large a message of a log may be, in bytes.
const leastPayload = 1 << 20

// fits returns an error if the servers do not take what a machine has to send.
func fits(conn *nats.Conn) error {
	if most := conn.MaxPayload(); most < leastPayload {
		return fmt.Errorf("the servers accept messages of up to %d bytes, but %d are needed\n"+
			"set max_payload: 8MB in the settings of each server, and restart it", most, leastPayload)
	}

	return nil
}

// advised adds to the error of a first request what to do about it.
func advised(err error) error {
	e, _ := errors.AsType[*jetstream.APIError](err)
	switch {
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrJetStreamNotEnabled):
		return fmt.Errorf("%w\nthe servers have no JetStream, or no leader yet: enable JetStream (docs/cluster.md has the "+
			"settings), and start a majority of the servers", err)
	case noRoom(err):
		return fmt.Errorf("%w\nthe servers are out of space: give JetStream more, or remove other data from it", err)
	case e != nil && strings.Contains(e.Description, "replicas > 1"):
		return fmt.Errorf("%w\nthere is only one server, but cluster.replicas requires several: start the others, or set it to 1", err)
	}

	return err
}

func (s *natsStore) last(ctx context.Context, unit string) (logged, error) {
	stream, subject := s.handles.logs.of(unit)
	m, err := stream.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return logged{}, nil
	}
	if err != nil {
		return logged{}, fmt.Errorf("read the newest message of %s: %w", unit, err)
	}

	return received(m.Sequence, m.Header, m.Data)
}

// readAtOnce is how many messages are asked for at a time.
const readAtOnce = 500

func (s *natsStore) read(ctx context.Context, unit string) (list []logged, err error) {
	err = s.each(ctx, unit, func(m *jetstream.RawStreamMsg) error {
		l, err := received(m.Sequence, m.Header, m.Data)
		list = append(list, l)
		return err
	})
	if err != nil {
		return nil, err
	}

	return list, nil
}

// A found message is one of a log, whether it can be read or not.
type found struct {
	logged
	segments []segment
	raw      *jetstream.RawStreamMsg
	err      error // why it cannot be read
}

// leniently reads a log with what is damaged in it.
func (s *natsStore) leniently(ctx context.Context, unit string) (list []found, err error) {
	err = s.each(ctx, unit, func(m *jetstream.RawStreamMsg) error {
		f := found{raw: m}
		f.logged, f.err = received(m.Sequence, m.Header, m.Data)
		if f.err == nil {
			f.segments, f.err = decode(m.Data)
		}
		list = append(list, f)
		if errors.Is(f.err, errVersion) {
			return f.err
		}
		return nil
	})

	return list, err
}

// each calls do with the messages of a log, the oldest first, until it fails.
func (s *natsStore) each(ctx context.Context, unit string, do func(*jetstream.RawStreamMsg) error) error {
	stream, subject := s.handles.logs.of(unit)
	for from := uint64(1); ; {
		batch, err := jetstreamext.GetBatch(ctx, s.js, stream.CachedInfo().Config.Name, readAtOnce,
			jetstreamext.GetBatchSubject(subject), jetstreamext.GetBatchSeq(from))
		if err != nil {
			return fmt.Errorf("read the log of %s: %w", unit, err)
		}

		got := 0
		for m, err := range batch {
			if errors.Is(err, jetstreamext.ErrNoMessages) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("read the log of %s: %w", unit, err)
			}
			if err := do(m); err != nil {
				return err
			}
			from, got = m.Sequence+1, got+1
		}
		if got == 0 {
			return nil
		}
	}
}

func (s *natsStore) publish(ctx context.Context, unit string, expect uint64, m logged) (uint64, error) {
	_, subject := s.handles.logs.of(unit)
	msg := &nats.Msg{Subject: subject, Header: m.header(), Data: m.body}
	opts := []jetstream.PublishOpt{jetstream.WithExpectLastSequencePerSubject(expect), jetstream.WithRetryAttempts(0)}
	if crash.Bug("nocas") {
		opts = opts[1:]
	}
	ack, err := s.js.PublishMsg(ctx, msg, opts...)
	if err == nil {
		return ack.Sequence, nil
	}

	refused, ok := errors.AsType[*jetstream.APIError](err)
	switch {
	case !ok:
	case refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence:
		e := &wrongSequence{}
		_, err := fmt.Sscanf(refused.Description, "wrong last sequence: %d", &e.last)
		e.known = err == nil
		return 0, e
	case refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant:
		return 0, &wrongSequence{}
	}

	return 0, fmt.Errorf("append to the log of %s: %w", unit, err)
}

func (s *natsStore) purge(ctx context.Context, unit string, seq uint64) error {
	stream, subject := s.handles.logs.of(unit)
	if err := stream.Purge(ctx, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(seq)); err != nil {
		return fmt.Errorf("shorten the log of %s: %w", unit, err)
	}

	return nil
}

// complete reports whether an object is there with all of its chunks: servers may have accepted its name, and refused those.
func (s *natsStore) complete(ctx context.Context, name string) (bool, error) {
	info, err := s.handles.objects.GetInfo(ctx, name)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	subject := "$O." + objectBucket + ".C." + info.NUID
	there, err := s.handles.chunks.Info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil {
		return false, err
	}

	return there.State.Subjects[subject] == uint64(info.Chunks), nil
}

func (s *natsStore) put(ctx context.Context, sha string, data []byte) error {
	if there, err := s.complete(ctx, sha); err == nil && there {
		return nil
	}
	if _, err := s.handles.objects.PutBytes(ctx, sha, data); err != nil {
		return fmt.Errorf("keep object %s: %w", sha, err)
	}

	return nil
}

func (s *natsStore) get(ctx context.Context, sha string) ([]byte, error) {
	data, err := s.handles.objects.GetBytes(ctx, sha)
	if err != nil {
		return nil, fmt.Errorf("read object %s: %w", sha, err)
	}
	if sum(data) != sha {
		return nil, fmt.Errorf("%w: object %s has another checksum", errDamaged, sha)
	}

	return data, nil
}
