package connectortest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"daycare/connectors/chat"
	"daycare/engine"
	"daycare/engine/cuid"
	"daycare/engine/disk"
	"daycare/engine/disk/disktest"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// A Message is one that the platform has for the connector.
type Message struct {
	Key  string // the platform's own id of it
	Text string
}

// A Sent is one answer as the platform received it.
type Sent struct {
	Key  string // the idempotency key it came with; "" where the platform has none
	Text string
}

// A Fault is how the platform misbehaves towards one Send.
type Fault string

const (
	None   Fault = ""
	Broken Fault = "broken" // takes nothing, answers like a 500
	Busy   Fault = "busy"   // takes nothing, answers like a 429 that says 7 seconds
	Gone   Fault = "gone"   // takes nothing, the chat is not there any more
	Stall  Fault = "stall"  // never answers
	Drop   Fault = "drop"   // takes it, and the answer is lost on the way
	Forget Fault = "forget" // takes nothing, and answers as if it had, without an id
	Hide   Fault = "hide"   // hands over characters that who wrote them did not see
)

// BusyFor is what the platform asks for with the fault Busy.
const BusyFor = 7 * time.Second

// A Harness is a connector and a fake of its platform. The fake outlives the
// connectors made of it, as the real one does; its functions may be called from
// any goroutine. It should poll and retry within milliseconds.
type Harness struct {
	// New makes a connector on the platform, without running it; the platform
	// turns to the newest one.
	New func(t *testing.T, log *slog.Logger) engine.Connector
	// Offer has the platform hand over messages of one chat of an allowed
	// person, in this order, and tells of each whether the platform was told
	// "received". It returns when all were, when the platform heard no, or when
	// ctx ends. A connector that asks its platform may be offered a refused
	// message again in the same call.
	Offer func(ctx context.Context, messages ...Message) []bool
	// Other has the platform deliver a message from another allowed user, in addition to those of Offer, and
	// returns when the connector is done with it or ctx ends.
	Other func(ctx context.Context, m Message)
	// Forge offers a message from a sender who is not permitted: not on the allow list, or
	// with a wrong signature. It returns when the connector is done with it.
	Forge func(ctx context.Context, m Message)
	// Strangers are users who are not on the allow list; nil: nobody talks over this platform.
	Strangers *Strangers
	// To are chats that can be answered, at least one.
	To []message.Address
	// Sent is what the platform took so far, oldest first. nil: there is no way
	// out, and Send is not tested.
	Sent func() []Sent
	// Shown are the texts that users see now, as edits left them, oldest first, without notices to
	// strangers. nil: messages of this platform cannot be edited.
	Shown func() []string
	// Fault makes the platform misbehave until the next call, towards new messages and edits.
	Fault func(f Fault)
	// Revoke has the platform accept the connector's secret no more, and end its connections, or
	// (false) accept it again. nil: the platform has none, or a connector is not told.
	Revoke func(revoked bool)
	// Unable lists faults that this platform cannot have.
	Unable []Fault
	// Secrets are the canaries that must not be seen in any error or log line.
	Secrets []string
}

// Strangers is how a platform has them.
type Strangers struct {
	// Host is what New gives the next connector.
	Host *chat.Host
	// Write has one of them, always the same, write alone, and returns when the connector is
	// done with it.
	Write func(ctx context.Context, m Message)
	// Told is all that the platform took so far, notices included.
	Told func() []Sent
}

// Run is the suite.
func Run(t *testing.T, harness func(t *testing.T) Harness) {
	checks := []struct {
		name string
		test func(t *testing.T, p *platform)
	}{
		{"receives", receives},
		{"says that it is connected", connected},
		{"in order", inOrder},
		{"nothing invisible is delivered", invisible},
		{"received only when durable", receivedOnlyWhenDurable},
		{"refused is not lost", refusedIsNotLost},
		{"a refused sender holds up nobody", refusedHoldsUpNobody},
		{"what waits outlives the process", waitsOverRestart},
		{"offered twice has one key", offeredTwice},
		{"forged is not delivered", forged},
		{"a stranger gets a code and is not read", strangers},
		{"a panic stops one message", panics},
		{"restart in the middle", restart},
		{"ends with its context", ends},
		{"sends while not running", sends},
		{"sends to many at once", sendsAtOnce},
		{"says whether to try again", retries},
		{"a lost answer is tried with the same key", lostAnswer},
		{"a long answer arrives whole", longWhole},
		{"an answer is shown while it is written", streams},
		{"a revoked secret is told", revoked},
		{"a night offline", night},
	}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			// Registered first, so that it looks when all else is cleaned up.
			before := goleak.IgnoreCurrent()
			t.Cleanup(func() {
				if err := goleak.Find(before); err != nil {
					t.Errorf("goroutines are left behind; wait for what was started: %v", err)
				}
			})

			p := &platform{Harness: harness(t)}
			t.Cleanup(func() { p.noSecrets(t) })
			c.test(t, p)
		})
	}
}

// patience is how long anything in the suite may take, on a machine that is busy with other things.
const patience = 30 * time.Second

// platform is a Harness under test, with all that the connectors said.
type platform struct {
	Harness
	said transcript
	ups  atomic.Int32 // how often a connector said that it is connected
}

// A Keeper is a chat.Keeper in memory, for the fake of a platform to outlive its
// connectors. Its zero value works.
type Keeper struct {
	mu    sync.Mutex
	files map[string][]byte
}

// Load returns what was saved.
func (k *Keeper) Load(connector, name string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	data, ok := k.files[connector+"/"+name]
	if !ok {
		return nil, fs.ErrNotExist
	}

	return data, nil
}

// Save keeps data.
func (k *Keeper) Save(connector, name string, data []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.files == nil {
		k.files = map[string][]byte{}
	}
	k.files[connector+"/"+name] = data

	return nil
}

// transcript collects log lines and errors.
type transcript struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *transcript) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(b)
}

// heard notes an error, in all the ways that one is printed.
func (p *platform) heard(err error) {
	if err != nil {
		fmt.Fprintf(&p.said, "%v\n%+v\n%#v\n", err, err, err)
	}
}

func (p *platform) new(t *testing.T) engine.Connector {
	return p.New(t, slog.New(slog.NewTextHandler(&p.said, &slog.HandlerOptions{Level: slog.LevelDebug})))
}

// noSecrets looks for the canaries in whatever spelling they might have.
func (p *platform) noSecrets(t *testing.T) {
	p.said.mu.Lock()
	defer p.said.mu.Unlock()
	for _, secret := range p.Secrets {
		for _, spelling := range []string{
			secret, url.QueryEscape(secret), url.PathEscape(secret), hex.EncodeToString([]byte(secret)),
			base64.StdEncoding.EncodeToString([]byte(secret)), fmt.Sprint([]byte(secret)),
		} {
			if strings.Contains(p.said.buf.String(), spelling) {
				t.Errorf("a secret is in an error or log line:\n%s", p.said.buf.String())
				return
			}
		}
	}
}

// run runs a connector until the function it returns is called, or the test ends.
func (p *platform) run(t *testing.T, c engine.Connector, deliver message.Deliver) (stop func()) {
	t.Helper()
	// Not the test's context, which ends before its clean-up begins.
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	up := message.WithUp(ctx, func() { p.ups.Add(1) })
	go func() { done <- c.Run(up, deliver) }()
	stop = sync.OnceFunc(func() {
		t.Helper()
		select {
		case err := <-done:
			p.heard(err)
			t.Errorf("Run ended by itself: %v", err)
			cancel()
			return
		default:
		}

		cancel()
		select {
		case err := <-done:
			p.heard(err)
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("Run = %v after its context ended, want nil or the context's error", err)
			}
		case <-time.After(2 * patience):
			t.Error("Run did not return after its context ended")
		}
	})
	t.Cleanup(stop)

	return stop
}

// runAgain runs a connector, again whenever that ends, as the engine does, until the function it
// returns is called, or the test ends. ended gets what each Run returned.
func (p *platform) runAgain(t *testing.T, c engine.Connector, deliver message.Deliver, ended func(error)) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			err := c.Run(ctx, deliver)
			p.heard(err)
			ended(err)
			time.Sleep(time.Millisecond)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(stop)

	return stop
}

// engineDouble stands for the engine: it keeps what is delivered and drops what
// it has seen.
type engineDouble struct {
	boxes [2]inbox.Mailbox // on local files, and on a volume with a replica: each has all

	mu      sync.Mutex
	taken   []message.Incoming
	calls   int
	before  func(ctx context.Context, in message.Incoming) error // asked first; nil: nothing
	entered chan struct{}                                        // a call began
}

func newEngine(t *testing.T) *engineDouble {
	t.Helper()
	e := &engineDouble{entered: make(chan struct{}, 1000)}
	for i := range e.boxes {
		dir := t.TempDir()
		vol := disk.NewVolume(dir)
		replica := disktest.New(dir, func(name string) bool { return name == inbox.FileName }, nil)
		if i > 0 {
			vol.Replicate(replica, false)
		}
		box, _, err := inbox.Open(vol, dir, inbox.NewQuota(0), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		e.boxes[i] = box
		t.Cleanup(func() {
			here, err := os.ReadFile(filepath.Join(dir, inbox.FileName))
			if there := replica.Files()[inbox.FileName]; i > 0 && string(here) != there {
				t.Errorf("the inbox is %q, %v\nand its replica %q", here, err, there)
			}
			if err := box.Close(); err != nil {
				t.Error(err)
			}
		})
	}

	return e
}

func (e *engineDouble) deliver(ctx context.Context, in message.Incoming) (message.Receipt, error) {
	e.entered <- struct{}{}
	e.mu.Lock()
	e.calls++
	before := e.before
	e.mu.Unlock()
	if before != nil {
		if err := before(ctx, in); err != nil {
			return message.Receipt{}, err
		}
	}

	e.mu.Lock()
	defer e.mu.Unlock()
	r, err := e.accept(ctx, inbox.Item{ID: cuid.New(), Kind: message.Text, Text: in.Text, Dedupe: in.Dedupe, Context: in.Context})
	if err == nil && !r.Duplicate {
		e.taken = append(e.taken, in)
	}

	return r, err
}

// accept has both inboxes accept an item, which they have to agree on. The lock is held.
func (e *engineDouble) accept(ctx context.Context, it inbox.Item) (r message.Receipt, err error) {
	for i, box := range e.boxes {
		before := r
		if r, err = box.Accept(ctx, it); err != nil {
			return r, err
		}
		if r.Agent = "agent"; i > 0 && r != before {
			return r, fmt.Errorf("the receipt is %+v on local files, and %+v on a volume with a replica", before, r)
		}
	}

	return r, nil
}

// interpose has f asked before anything is taken from now on.
func (e *engineDouble) interpose(f func(ctx context.Context, in message.Incoming) error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.before = f
}

func (e *engineDouble) messages() []message.Incoming {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]message.Incoming(nil), e.taken...)
}

// until waits until so many messages were taken.
func (e *engineDouble) until(t *testing.T, n int, what string) {
	t.Helper()
	for end := time.Now().Add(patience); len(e.messages()) < n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: %d messages, want %d", what, len(e.messages()), n)
		}
	}
}

func (e *engineDouble) texts() []string {
	var all []string
	for _, in := range e.messages() {
		all = append(all, in.Text)
	}

	return all
}

// offer offers messages until all are received, as every platform does that wants
// them to arrive.
func (p *platform) offer(t *testing.T, messages ...Message) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for len(messages) > 0 {
		for _, received := range p.Offer(ctx, messages...) {
			if !received {
				break
			}
			messages = messages[1:]
		}
		if ctx.Err() != nil {
			t.Fatalf("the platform was not told that %q was received", messages[0].Key)
		}
	}
}
