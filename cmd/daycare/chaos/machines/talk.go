package machines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"daycare/engine/control"
	"daycare/engine/workspace"
)

const (
	// patience bounds one try to have a message accepted.
	patience = 5 * time.Second
	// acceptedFor bounds how long a message is offered until a machine accepts it; acceptedInAHunt while a bug may be why none does.
	acceptedFor, acceptedInAHunt = 3 * time.Minute, 45 * time.Second
	// readFor bounds one look at a history. An agent that cannot be opened says why after 10 seconds.
	readFor = 20 * time.Second
	// shownFor bounds how long what was accepted takes to be in the histories; a hunt does not wait that long for
	// what is missing.
	shownFor, hunted = time.Minute, 15 * time.Second
)

// A talk is conversations that are held over all machines at once.
type talk struct {
	w     *world
	name  string
	chats int

	accepted atomic.Int64
	ends     chan struct{}
	talking  sync.WaitGroup

	mu      sync.Mutex
	sent    map[int][]string // chat -> messages that were accepted
	agents  map[int]string   // chat -> its agent
	longest time.Duration    // until one was
	failed  error
}

// begin begins to talk.
func (w *world) begin(ctx context.Context, name string, chats int) *talk {
	t := &talk{w: w, name: name, chats: chats, ends: make(chan struct{}), sent: map[int][]string{}, agents: map[int]string{}}
	for chat := range chats {
		t.talking.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				select {
				case <-t.ends:
					return
				default:
				}
				if err := t.say(ctx, chat, n); err != nil {
					t.mu.Lock()
					t.failed = errors.Join(t.failed, err)
					t.mu.Unlock()
					return
				}
			}
		})
	}

	return t
}

// word is the nth message of a chat.
func (t *talk) word(chat, n int) string {
	what := []string{"hello", "act", "think", "act"}[n%4]
	return fmt.Sprintf("%s-%d-%d %s", t.name, chat, n, what)
}

func (t *talk) channel(chat int) string { return fmt.Sprintf("%s-%d", t.name, chat) }

// say sends a message until some machine accepts it, as a client does that repeats what was not
// acknowledged. Each fourth one is dropped into the folder of a machine, which passes it on.
func (t *talk) say(ctx context.Context, chat, n int) error {
	text, began := t.word(chat, n), time.Now()
	t.mu.Lock()
	agent := t.agents[chat]
	t.mu.Unlock()
	dropped := ""
	if n%4 == 3 && agent != "" {
		var err error
		if dropped, err = t.w.machines[rand.IntN(len(t.w.machines))].drop(agent, text); err != nil {
			return err
		}
	}
	patient, refusal := acceptedFor, errors.New("no machine took it")
	if t.w.bug != "" {
		patient = acceptedInAHunt
	}
	for machine := rand.IntN(len(t.w.machines)); time.Since(began) < patient && ctx.Err() == nil; machine++ {
		done, err := false, error(nil)
		if dropped != "" {
			done, err = claimed(dropped)
		} else {
			agent, err = t.send(ctx, machine, chat, text)
			done = err == nil
		}
		if errors.Is(err, errRefused) {
			return err
		}
		if done && err == nil {
			t.took(chat, text, agent, time.Since(began))
			return nil
		}
		if err != nil {
			refusal = err
		}
		time.Sleep(20 * time.Millisecond)
	}

	return fmt.Errorf("%q was never accepted: %w", text, errors.Join(ctx.Err(), refusal))
}

// send offers a message to the nth machine, and returns its agent.
func (t *talk) send(ctx context.Context, machine, chat int, text string) (agent string, err error) {
	client, err := t.w.client(machine)
	if err != nil {
		return "", err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := client.Send(ctx, "", control.Message{Connector: "api", ChannelID: t.channel(chat), UserID: "u", Text: text, Dedupe: text})

	return r.Agent, err
}

// took notes a message that was accepted.
func (t *talk) took(chat int, text, agent string, after time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent[chat] = append(t.sent[chat], text)
	t.agents[chat] = agent
	t.longest = max(t.longest, after)
	t.accepted.Add(1)
}

// drop puts a message into the drop folder of a machine, whether it runs or not.
func (m *machine) drop(agent, text string) (path string, err error) {
	data, err := json.Marshal(map[string]string{"text": text, "dedupe": text, "as": "user"})
	if err != nil {
		return "", err
	}
	folder := filepath.Join(workspace.At(m.workspace).Data, "drop")
	path = filepath.Join(folder, agent+"__"+strings.ReplaceAll(text, " ", "-")+".json")
	part := filepath.Join(filepath.Dir(folder), filepath.Base(path)+"~")

	return path, errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(part, data, 0o600), os.Rename(part, path))
}

var errRefused = errors.New("a dropped message was refused")

// claimed reports whether a dropped message is an item of its agent.
func claimed(path string) (bool, error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if reason, err := os.ReadFile(filepath.Join(filepath.Dir(path), "bad", filepath.Base(path)+".reason.txt")); err == nil {
		return false, fmt.Errorf("%w: %s: %s", errRefused, filepath.Base(path), reason)
	}
	taken, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".taken", "*"+filepath.Base(path)+"*"))

	return len(taken) == 0, err
}

// more waits until n more messages were accepted.
func (t *talk) more(ctx context.Context, n int) error {
	before := t.accepted.Load()
	for end := time.Now().Add(acceptedFor); t.accepted.Load() < before+int64(n); time.Sleep(5 * time.Millisecond) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d of %d messages were accepted in %v", t.accepted.Load()-before, n, acceptedFor)
		}
	}

	return nil
}

// stop ends the conversations.
func (t *talk) stop() error {
	close(t.ends)
	t.talking.Wait()

	return t.failed
}

// check compares what the histories have with what was accepted.
func (t *talk) check(ctx context.Context, r *Row) error {
	end := time.Now().Add(shownFor)
	if t.w.bug != "" {
		end = time.Now().Add(hunted)
	}
	for chat := range t.chats {
		want := t.sent[chat]
		got, err := t.w.texts(ctx, chat, "api:"+t.channel(chat))
		for ctx.Err() == nil && time.Now().Before(end) && (err != nil || missing(want, got) > 0) {
			time.Sleep(100 * time.Millisecond)
			got, err = t.w.texts(ctx, chat, "api:"+t.channel(chat))
		}
		if err != nil {
			return fmt.Errorf("read chat %s: %w", t.channel(chat), err)
		}
		r.compare(t.channel(chat), want, got)
	}
	effects, err := os.ReadFile(t.w.effects)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	times := map[string]int{}
	for _, key := range strings.Fields(string(effects)) {
		if strings.HasPrefix(key, t.name+"-") {
			times[key]++
			r.Effects++
		}
	}
	for key, n := range times {
		if n > 1 {
			r.Repeated++
			r.violate("repeated: the effect of %s came %d times", key, n)
		}
	}

	return nil
}

// missing is how many of some messages are not there.
func missing(want, got []string) (n int) {
	for _, text := range want {
		if !slices.Contains(got, text) {
			n++
		}
	}

	return n
}

// compare counts what is wrong with one conversation.
func (r *Row) compare(chat string, want, got []string) {
	r.Messages += len(want)
	place := map[string]int{}
	for i, text := range want {
		place[text] = i
	}
	times, newest := map[string]int{}, ""
	for _, text := range got {
		if times[text]++; times[text] > 1 {
			continue
		}
		if _, said := place[text]; !said {
			r.violate("strange: chat %s has %q, which was not accepted", chat, text)
			continue
		}
		if newest != "" && place[text] < place[newest] {
			r.Disordered++
			r.violate("out of order: %q comes after %q", text, newest)
		}
		newest = text
	}
	for _, text := range want {
		if times[text] == 0 {
			r.Lost++
			r.violate("lost: %q", text)
		}
		if times[text] > 1 {
			r.Doubled++
			r.violate("doubled: %q is there %d times", text, times[text])
		}
	}
}

// texts are the messages that an agent has read, as a machine shows them.
func (w *world) texts(ctx context.Context, machine int, ref string) (list []string, err error) {
	client, err := w.client(machine)
	if err != nil {
		return nil, err
	}
	defer client.Close()

	return Texts(ctx, client, ref)
}

// Texts are the messages that an agent has read, oldest first.
func Texts(ctx context.Context, client *control.Client, ref string) (list []string, err error) {
	for before := int64(0); ; {
		asking, cancel := context.WithTimeout(ctx, readFor)
		page, err := client.History(asking, ref, before, 200)
		cancel()
		if err != nil {
			return nil, err
		}
		for _, r := range slices.Backward(page.Records) {
			var rec struct{ Type, Text string }
			if err := json.Unmarshal(r, &rec); err != nil {
				return nil, err
			}
			if rec.Type == "user_message" {
				list = append(list, rec.Text)
			}
		}
		if page.Before == nil {
			slices.Reverse(list)
			return list, nil
		}
		before = *page.Before
	}
}
