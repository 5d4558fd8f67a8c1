package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"daycare/engine/event"
	"daycare/engine/message"
)

// A post is senders with connectors that the test plays, and what was reported.
type post struct {
	*senders
	mu      sync.Mutex
	known   map[string]Connector
	results map[string][]message.Result // by the id of the answer
}

func newPost(known map[string]Connector) *post {
	p := &post{known: known, results: map[string][]message.Result{}}
	p.senders = newSenders(func(id string) (Connector, bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		c, ok := p.known[id]
		return c, ok
	}, func(string) {}, Outlet{}, event.NewStream("t"), slog.New(slog.DiscardHandler))

	return p
}

// promise queues an answer of an agent for the room.
func (p *post) promise(agent, id, text string, done map[int]bool) {
	p.send(message.Promise{Agent: agent, Since: time.Now(), Done: done,
		Outgoing: message.Outgoing{ID: id, Text: text, To: toRoom},
		Report: func(f message.Result) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.results[f.Out] = append(p.results[f.Out], f)
		}})
}

// only is the one result of an answer.
func (p *post) only(t *testing.T, id string) message.Result {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.results[id]) != 1 {
		t.Errorf("%s has the results %+v, want one", id, p.results[id])
		return message.Result{}
	}

	return p.results[id][0]
}

// What an agent that is removed had promised is not sent; what others promised to the
// same chat is, in its order.
func TestDroppedPromisesLeaveTheOthersOfTheirChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := newSlowRoom()
		p := newPost(map[string]Connector{"room": room})
		for _, id := range []string{"gone1", "stays1", "gone2", "stays2"} {
			p.promise(id[:4], id, "x", nil)
		}
		synctest.Wait() // the first one is on its way
		p.drop("gone")
		p.drop("nobody")
		for range 2 {
			room.let <- nil
		}

		synctest.Wait()
		if sent := room.all(); !slices.Equal(sent, []string{"stays1", "stays2"}) {
			t.Errorf("sent %v, want those of the other agent in their order", sent)
		}

		for id, kept := range map[string]bool{"gone1": true, "gone2": true, "stays1": false, "stays2": false} {
			if f := p.only(t, id); f.Kept != kept || f.Delivered() == kept {
				t.Errorf("%s: %+v, want that it is kept: %v", id, f, kept)
			}
		}
		if left := p.left("stay"); left {
			t.Error("an agent whose answers have left owes something")
		}

		p.close(time.Second)
		p.promise("late", "late", "x", nil)
		if f := p.only(t, "late"); !f.Kept {
			t.Errorf("after the end: %+v, want it kept for the next start", f)
		}
	})
}

// An answer whose connector was removed while it waited in line is given up with the
// reason, and the shutdown does not wait for it.
func TestAnswersInLineForARemovedConnectorAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := newSlowRoom()
		p := newPost(map[string]Connector{"room": room})
		p.promise("a", "first", "x", nil)
		p.promise("a", "second", "x", nil)
		p.promise("a", "begun", "1122", map[int]bool{0: true})
		synctest.Wait()
		p.mu.Lock()
		clear(p.known)
		p.mu.Unlock()
		room.let <- nil
		synctest.Wait()
		for _, id := range []string{"second", "begun"} {
			if f := p.only(t, id); !f.Final || f.Delivered() || f.Error != "connector room was removed" || f.Parts != 1 {
				t.Errorf("%s: %+v, want it given up because its connector was removed", id, f)
			}
		}
		if f := p.only(t, "first"); !f.Delivered() {
			t.Errorf("what was on its way: %+v", f)
		}

		p.close(time.Hour)
	})
}

// A promise that is older than a day is given up at its next failure, with the error; a
// younger one is tried again after pauses that grow and end at a minute.
func TestHowOftenAnAnswerIsTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := &chatRoom{}
		p := newPost(map[string]Connector{"room": room})
		for range 10_000 {
			room.fail = append(room.fail, errors.New("no network"))
		}
		p.promise("a", "answer", "", map[int]bool{})
		p.promise("a", "text", "x", nil)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		p.mu.Lock()
		first := len(p.results["text"])
		p.mu.Unlock()

		// 1, 2, 4, … 32 s take about a minute, then one try a minute, up to a fifth later.
		if first < 13 || first > 17 {
			t.Errorf("%d tries in ten minutes, want about 15", first)
		}
		time.Sleep(25 * time.Hour)
		synctest.Wait()
		p.mu.Lock()
		all := p.results["text"]
		p.mu.Unlock()

		for i, f := range all {
			if f.Delivered() || f.Error != "no network" || f.Final != (i == len(all)-1) || f.Retry != (i > 0) {
				t.Fatalf("try %d of %d: %+v", i, len(all), f)
			}
		}
		if n := len(all); n < 1200 || n > 24*60+20 {
			t.Errorf("given up after %d tries, want about one a minute for a day", n)
		}

		p.close(time.Second)
	})
}

// A promise of which nothing is left to send, or that has no text, ends.
func TestPromisesWithNothingToSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := &chatRoom{}
		p := newPost(map[string]Connector{"room": room})
		p.promise("a", "done", "1122", map[int]bool{0: true, 1: true})
		p.promise("a", "empty", "", nil)
		p.send(message.Promise{Agent: "a", Since: time.Now(),
			Report:   func(f message.Result) { p.results[f.Out] = append(p.results[f.Out], f) },
			Outgoing: message.Outgoing{ID: "file", To: toRoom, Files: []message.File{{Name: "a.txt"}}}})
		synctest.Wait()
		if f := p.only(t, "done"); !f.Delivered() || f.Part != 1 || f.Parts != 2 {
			t.Errorf("all parts of it had arrived: %+v", f)
		}
		if f := p.only(t, "empty"); !f.Delivered() || f.Part != 0 || f.Parts != 1 {
			t.Errorf("it is empty: %+v", f)
		}
		if f := p.only(t, "file"); !f.Delivered() || len(room.sent) != 1 {
			t.Errorf("a file without a text: %+v, sent %v", f, room.sent)
		}

		p.close(time.Second)
	})
}

// A limit that is changed applies to who wrote before, too.
func TestAChangedLimitAppliesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := 2
		p := newRateLimit(func(context.Context, message.Incoming) (message.Receipt, error) { return message.Receipt{}, nil },
			func() int { return limit })
		write := func() error {
			_, err := p.deliver(t.Context(), from("one", "x"))
			return err
		}
		for _, tt := range []struct{ limit, in int }{{2, 2}, {60, 60}, {1, 1}} {
			limit = tt.limit
			write() // the new limit is known from here
			time.Sleep(10 * time.Minute)
			n := 0
			for write() == nil {
				n++
			}

			if n != tt.in {
				t.Errorf("at %d a minute %d were taken at once", tt.limit, n)
			}
			var fast *message.TooFast
			if err := write(); !errors.As(err, &fast) || fast.After > time.Minute/time.Duration(tt.limit)+time.Second {
				t.Errorf("at %d a minute: %v", tt.limit, err)
			}
		}
	})
}

// However many write, only so many senders are remembered; who has just written too fast is not
// forgotten as long as there are others who have been quiet.
func TestManySendersAreForgottenTheQuietFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newRateLimit(func(context.Context, message.Incoming) (message.Receipt, error) { return message.Receipt{}, nil },
			func() int { return 60 })
		write := func(user string) error {
			_, err := p.deliver(t.Context(), from(user, "x"))
			return err
		}
		for n := range maxLimited - 1 {
			if err := write(fmt.Sprint("quiet", n)); err != nil {
				t.Fatal(err)
			}
		}

		time.Sleep(2 * time.Second) // after which they may write as much as before
		for range 60 {
			if err := write("fast"); err != nil {
				t.Fatal(err)
			}
		}

		if err := write("new"); err != nil {
			t.Fatal(err)
		}
		if n := len(p.senders); n != 2 {
			t.Errorf("%d senders are remembered, want those two who wrote just now", n)
		}
		if err := write("fast"); !errors.As(err, new(*message.TooFast)) {
			t.Errorf("who wrote too fast was forgotten: %v", err)
		}

		for n := range maxLimited + 5 {
			if err := write(fmt.Sprint("busy", n)); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(p.senders); n != maxLimited {
			t.Errorf("%d senders are remembered, want %d", n, maxLimited)
		}
	})
}

// A partedRoom is a slowRoom in which every answer has two parts.
type partedRoom struct{ *slowRoom }

func (partedRoom) Split(text string) []string { return []string{text, text} }

// An answer whose first part is on its way at the end is kept whole, and reported so once.
func TestAnAnswerOfPartsAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := partedRoom{newSlowRoom()}
		p := newPost(map[string]Connector{"room": room})
		p.promise("a", "answer", "x", nil)
		synctest.Wait()
		p.close(time.Second)
		if f := p.only(t, "answer"); !f.Kept || len(room.tries) != 1 {
			t.Errorf("%+v after %d tries, want it kept after one", f, len(room.tries))
		}
	})
}

// An answer whose first part is refused for good is given up whole.
func TestAnAnswerOfPartsThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := partedRoom{newSlowRoom()}
		p := newPost(map[string]Connector{"room": room})
		p.promise("a", "answer", "x", nil)
		room.let <- &message.NotSent{Final: true, Err: errors.New("blocked")}
		synctest.Wait()
		if f := p.only(t, "answer"); !f.Final || len(room.tries) != 1 {
			t.Errorf("%+v after %d tries, want it given up after one", f, len(room.tries))
		}
		p.close(time.Second)
	})
}
