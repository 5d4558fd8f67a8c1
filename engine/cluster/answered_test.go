package cluster

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"daycare/engine/disk"
	"daycare/engine/message"
)

// What servers do not answer while they elect a leader is asked again, also where they let an
// asker wait; what they refuse is refused at once.
func TestServersThatDoNotAnswerAreAskedAgain(t *testing.T) {
	t.Parallel()
	elsewhere := &message.Elsewhere{Node: "b"}
	tries := 0
	for _, test := range []struct {
		name  string
		says  error // of the first two tries
		want  error
		tries int
	}{
		{"no stream", fmt.Errorf("x: %w", jetstream.ErrNoStreamResponse), nil, 3},
		{"unavailable", &jetstream.APIError{Code: 503}, nil, 3},
		{"no responders", nats.ErrNoResponders, nil, 3},
		{"too late", context.DeadlineExceeded, nil, 3},
		{"no connection", nats.ErrReconnectBufExceeded, nil, 3},
		{"refused", &jetstream.APIError{Code: 400}, &jetstream.APIError{}, 1},
		{"owned", elsewhere, elsewhere, 1},
	} {
		tries = 0
		err := answered(t.Context(), time.Minute, func(context.Context) error {
			if tries++; tries < 3 {
				return test.says
			}
			return nil
		})
		if (err == nil) != (test.want == nil) || tries != test.tries {
			t.Errorf("%s: %v after %d tries, want %v after %d", test.name, err, tries, test.want, test.tries)
		}
	}

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	tries = 0
	err := answered(ctx, 20*time.Millisecond, func(once context.Context) error {
		tries++
		<-once.Done()
		return once.Err()
	})
	if !errors.Is(err, disk.ErrAway) || tries < 2 {
		t.Errorf("servers that never answer: %v after %d tries", err, tries)
	}
}

// What servers said before the time was over is the reason, and not that it was over.
func TestTheReasonIsWhatServersSaid(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tries := 0
	err := answered(ctx, time.Minute, func(once context.Context) error {
		if tries++; tries == 1 {
			return nats.ErrNoResponders
		}
		cancel()
		return once.Err()
	})
	if tries != 2 || !errors.Is(err, disk.ErrAway) || !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("after %d tries: %v, want the first error", tries, err)
	}
}

// entries is a watch that was given some entries.
type entries struct {
	jetstream.KeyWatcher
	updates chan jetstream.KeyValueEntry
}

func (e entries) Updates() <-chan jetstream.KeyValueEntry { return e.updates }

// A watch that ends in the middle has not shown all that a bucket has.
func TestAPartOfABucketIsNotAll(t *testing.T) {
	t.Parallel()
	type entry struct{ jetstream.KeyValueEntry }
	for _, whole := range []bool{true, false} {
		w := entries{updates: make(chan jetstream.KeyValueEntry, 2)}
		w.updates <- entry{}
		if whole {
			w.updates <- nil
		}
		close(w.updates)
		n := 0
		err := eachThere(t.Context(), w, func(jetstream.KeyValueEntry) { n++ })
		if n != 1 || (err == nil) != whole || !whole && !unanswered(err) {
			t.Errorf("whole %v: %d entries, %v", whole, n, err)
		}
	}
}

// What was made a moment ago and is not found is asked for again; any other error is what it is.
func TestWhatWasJustMade(t *testing.T) {
	for err, again := range map[error]bool{jetstream.ErrStreamNotFound: true, jetstream.ErrBucketNotFound: true,
		jetstream.ErrStreamNameAlreadyInUse: false, nats.ErrAuthorization: false} {
		if got := justMade(err); unanswered(got) != again || !errors.Is(got, err) {
			t.Errorf("%v becomes %v, again: %v, want %v", err, got, unanswered(got), again)
		}
	}
	if err := justMade(nil); err != nil {
		t.Error(err)
	}
}
