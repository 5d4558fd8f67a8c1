package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"daycare/engine/cluster/clustertest"
	"daycare/engine/crash"
	"daycare/engine/disk"
)

// messages makes a log of which each message has one segment.
func messages(segments ...segment) (log []logged) {
	for i, s := range segments {
		log = append(log, logged{seq: uint64(10 * (i + 1)), n: uint64(i + 1), body: encode([]segment{s})})
	}
	return log
}

// A log from which a message is missing is not taken for a whole one.
func TestFoldSeesHoles(t *testing.T) {
	t.Parallel()
	log := messages(content(opPut, "state.json", 0, []byte("1")), content(opPut, "inbox.jsonl", 0, []byte("x")),
		content(opPut, "state.json", 0, []byte("2")), content(opAppend, "inbox.jsonl", 1, []byte("y")))
	files, err := fold(t.Context(), nil, log, covered)
	if err != nil || string(files["inbox.jsonl"].tail) != "xy" || string(files["state.json"].tail) != "2" {
		t.Fatalf("files %v, %v", files, err)
	}
	for i := range len(log) - 1 {
		if _, err := fold(t.Context(), nil, slices.Delete(slices.Clone(log), i, i+1), covered); !errors.Is(err, errHole) {
			t.Errorf("without message %d: %v, want a hole", i+1, err)
		}
	}

	// A message that was put in the place of another one.
	log[3] = logged{seq: 40, n: 4, body: encode([]segment{content(opAppend, "inbox.jsonl", 2, []byte("y"))})}
	if _, err := fold(t.Context(), nil, log, covered); !errors.Is(err, errHole) {
		t.Errorf("appended behind the end: %v", err)
	}
}

// What a newer version wrote is not read as far as it is understood.
func TestNewerVersions(t *testing.T) {
	t.Parallel()
	m := logged{n: 1, owner: "o", id: "i"}
	h := m.header()
	if _, err := received(1, h, nil); err != nil {
		t.Error(err)
	}
	h.Set("D-V", "2")
	if _, err := received(1, h, nil); !errors.Is(err, errVersion) {
		t.Errorf("version 2: %v", err)
	}
	for key, values := range map[string][]string{"D-V": {"", "x"}, "D-N": {"", "x", "0", "-1"}} {
		for _, value := range values {
			h := m.header()
			h.Set(key, value)
			if l, err := received(1, h, nil); !errors.Is(err, errDamaged) {
				t.Errorf("%s %q: %+v, %v", key, value, l, err)
			}
		}
	}
	if _, err := decode([]byte(`{"op":"rename"}` + "\n")); !errors.Is(err, errVersion) {
		t.Errorf("an unknown operation: %v", err)
	}
}

// An agent whose log was continued by a newer version is left to machines that know it: an older one neither claims
// it nor keeps them from taking it over.
func TestNewerLogsAreNotClaimed(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	a.make("one")
	a.own("one")
	add(t, a.open("one", "history.jsonl"), "line")
	a.Release("one", true)

	newest, err := a.store.last(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	m := logged{n: newest.n + 1, owner: "newer", id: "newer", ending: ending{released: true}}
	h := m.header()
	h.Set("D-V", strconv.Itoa(version+1))
	in, subject := a.presence.store.handles.logs.of("one")
	ack, err := a.presence.store.js.PublishMsg(t.Context(), &nats.Msg{Subject: subject, Header: h})
	if err != nil {
		t.Fatal(err)
	}
	err = b.Acquire("one")
	if !errors.Is(err, errVersion) || !strings.Contains(err.Error(), fmt.Sprintf("version %d", version+1)) {
		t.Errorf("claimed: %v, want what version it needs", err)
	}
	raw, err := in.GetLastMsgForSubject(t.Context(), subject)
	if err != nil || raw.Sequence != ack.Sequence {
		t.Errorf("the log ends with message %v, %v, want %d", raw, err, ack.Sequence)
	}
}

// silent is a store that appends and does not answer, at first.
type silent struct {
	store
	left int
}

func (s *silent) publish(ctx context.Context, unit string, expect uint64, m logged) (uint64, error) {
	seq, err := s.store.publish(ctx, unit, expect, m)
	if s.left > 0 {
		s.left--
		return 0, errors.New("no answer")
	}
	return seq, err
}

// An answer that was lost is not taken for another machine, and nothing is there twice.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	a.make("one")
	a.store = &silent{store: a.store, left: 1}
	a.own("one")
	l := a.open("one", "history.jsonl")
	var want []string
	for _, line := range []string{"1", "2", "3", "4"} {
		a.store.(*silent).left = 1
		add(t, l, line)
		want = append(want, line)
	}

	log, err := a.store.read(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	files, err := fold(t.Context(), a.store, log, covered)
	if err != nil || string(files["history.jsonl"].tail) != "1\n2\n3\n4\n" {
		t.Errorf("the log has %q, want %q (%v)", files["history.jsonl"].tail, want, err)
	}
}

// An append that would leave a hole is refused, and the log stays readable.
func TestNoHoleIsWritten(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	a.make("one")
	a.own("one")
	path := a.path("one", "history.jsonl")
	if err := a.Append(path, 5, []byte("x\n")); err == nil || errors.Is(err, disk.ErrFenced) {
		t.Errorf("appended at 5 of 0 bytes: %v", err)
	}
	if err := a.Append(path, 0, []byte("x\n")); err != nil {
		t.Error(err)
	}
}

// A folder that is given up is durable before its mark says what is in it: what a power cut took of it would be taken for
// an edit by hand, which the log gets.
func TestAReleasedFolderIsDurableBeforeItsMark(t *testing.T) {
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	a.make("one")
	a.own("one")
	l := a.open("one", "history.jsonl")
	add(t, l, "acknowledged")
	if _, err := l.Append([]byte("lazy\n")); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	synced := 0
	crash.Meanwhile(t, "claim.sync", func(int) {
		synced++
		if m, err := readMark(a.folder("one")); err != nil || m.N > 0 && !m.Owned {
			t.Errorf("the mark is there before the file is synced: %+v, %v", m, err)
		}
	})
	a.Release("one", false)
	m, err := readMark(a.folder("one"))
	if err != nil || m.N == 0 || m.Owned || m.Files["history.jsonl"].Size != int64(len("acknowledged\nlazy\n")) || synced != 1 {
		t.Errorf("%d syncs; mark %+v, %v", synced, m, err)
	}
}

// lagging is a server that does not know a log yet, at first.
type lagging struct {
	store
	left int
}

func (b *lagging) last(ctx context.Context, unit string) (logged, error) {
	if b.left > 0 {
		b.left--
		return logged{}, nil
	}
	return b.store.last(ctx, unit)
}

// A server that is behind is not one that has lost a log: an agent is claimed also by a machine that does not know yet
// which others are there.
func TestAServerThatIsBehindHoldsUpNoClaim(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	a.make("one")
	a.own("one")
	add(t, a.open("one", "history.jsonl"), "1")
	a.Release("one", false)
	a.presence.mu.Lock()
	a.presence.heard = time.Now() // as just after it has joined
	a.presence.mu.Unlock()

	a.store = &lagging{store: a.store, left: 3}
	if err := a.Acquire("one"); err != nil {
		t.Error(err)
	}
}
