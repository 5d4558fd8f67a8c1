package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"daycare/cmd/daycare/chaos/platforms"
)

// A world is what is outside of daycare in one case: what was offered to it, what
// it said it had accepted, what its tools did, what it answered. It lives in this
// process, which does not die.
type world struct {
	id      string             // names it in callbacks
	effects string             // file to which tools append, one line for each effect
	chat    platforms.Platform // nil: there are only webhooks
	broken  bool               // its disk fails once
	stalls  *stallClock

	mu  sync.Mutex // held to use what follows, settings apart
	log io.Writer
	exchanged
	lives
	platform platform

	settings sync.Mutex // held while settings.yaml is written
}

// What was exchanged is everything that the world said to daycare and heard from it.
type exchanged struct {
	said      []*saying
	byKey     map[string]*saying
	replies   []reply
	decisions []*decision
	overdue   string // what a step waited for in vain
}

// lives are the processes of the case, as the world saw them.
type lives struct {
	deaths int
	life   int               // number of the newest, from 0
	ended  map[int]time.Time // when each died, by its number
}

// A saying is one message, known by the first word of its text.
type saying struct {
	key      string
	hook     string            // ordered among those of one hook; "": came by another door
	kind     string            // of its record in history
	texts    []string          // what may stand there: as it was offered, and as a user changed it later; none: not judged
	sender   string            // as the record must name them
	files    map[string]string // attached, by name
	item     string            // as the daemon named it, when it accepted it
	accepted bool
	at       time.Time // when it was accepted
	life     int       // and in which life
	removed  bool      // a user took its turn out of the file
	// again offers it once more, as a platform does days later; nil: its platform does not.
	again func(ctx context.Context) (item string, ok bool)
}

// A reply is one callback as it arrived.
type reply struct {
	out  string
	chat string // to which it came
	text string
	life int // that sent it
	at   time.Time
	told time.Time // when the platform said that it has it; zero: it said that it has not
}

// A decision is a user's answer to a request, or a right taken back.
type decision struct {
	token, what string
	before      int // effects of approved calls when it was made
	accepted    bool
}

// A platform is how the other side of callbacks behaves.
type platform struct {
	refuse     int                      // number of callbacks that still fail, after they were recorded
	hangs      map[string]time.Duration // how long it takes to answer, by chat
	hangsUntil func(w *world) bool      // ends that early; nil: nothing does
	// fails says whether it answers the call that brings out, the id of an answer, with an error, and whether it
	// took it all the same; nil: it never fails.
	fails func(out string) (fails, took bool)
}

// newWorld makes a world whose files are in dir. platform names its chat platform; "": none.
func newWorld(dir, id, platform string) (*world, error) {
	log, err := os.OpenFile(filepath.Join(dir, "world.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	w := &world{id: id, effects: filepath.Join(dir, "effects"), log: log,
		exchanged: exchanged{byKey: map[string]*saying{}}, lives: lives{ended: map[int]time.Time{}}}
	if platform != "" {
		w.chat, err = platforms.New(platform)
	}

	return w, err
}

// close ends what the world does by itself.
func (w *world) close() {
	if w.chat != nil {
		w.chat.Close()
	}
}

// note writes one line of the world's own log, for users who look at a failure.
// One write a line, so that it does not tear.
func (w *world) note(what string, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		data = []byte(`"?"`)
	}
	fmt.Fprintf(w.log, "{\"at\":%q,%q:%s}\n", time.Now().Format("15:04:05.000000"), what, data)
}

// offer notes that a message is about to be offered; one with its key that was offered
// before is the same.
func (w *world) offer(s saying) *saying {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known := w.byKey[s.key]; known != nil {
		return known
	}
	w.said, w.byKey[s.key] = append(w.said, &s), &s
	w.note("offered", s.key)

	return &s
}

func (w *world) accept(s *saying, item string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !s.accepted {
		s.at, s.life = time.Now(), w.life
	}
	s.accepted, s.item = true, item
	w.note("accepted", s.key)
}

// acceptances is how many messages were accepted so far.
func (w *world) acceptances() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.said {
		if s.accepted {
			n++
		}
	}

	return n
}

func (w *world) begins(life int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.life = life
}

func (w *world) died(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deaths++
	w.ended[w.life] = at
	w.note("died", w.deaths)
}

func (w *world) livesLost() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.deaths
}

// sayings are a copy of what was offered.
func (w *world) sayings() []saying {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]saying, len(w.said))
	for i, s := range w.said {
		all[i] = *s
	}

	return all
}

func (w *world) received() []reply {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]reply(nil), w.replies...)
}

// distinct is how many different answers came.
func (w *world) distinct() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := map[string]bool{}
	for _, r := range w.replies {
		ids[r.out] = true
	}

	return len(ids)
}

// An effect is one thing that a tool did outside.
type effect struct{ call, key string }

func (w *world) done() ([]effect, error) {
	data, err := os.ReadFile(w.effects)
	if err != nil {
		if os.IsNotExist(err) {
			return nil, nil
		}
		return nil, err
	}

	var all []effect
	for line := range strings.Lines(string(data)) {
		call, key, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			return nil, fmt.Errorf("effect %q is not a call and a key", line)
		}
		all = append(all, effect{call, key})
	}

	return all, nil
}

// approved is how many effects there are of calls that a user has to allow.
func (w *world) approved() (n int, err error) {
	all, err := w.done()
	for _, e := range all {
		if e.key == approvedKey {
			n++
		}
	}

	return n, err
}

// revoked is the decision to take back all that was allowed for always.
const revoked = "revoked"

// approvedKey is what a call that a user allowed writes.
const approvedKey = "approved"

// poll is how soon something that only files or attempts show is looked for again; after
// a while that comes to nothing, four times as long.
const poll = 2 * time.Millisecond

// until waits for a condition.
func until(ctx context.Context, ok func() bool) error {
	for wait := poll; !ok(); wait = min(wait+poll/4, 4*poll) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}

	return nil
}
