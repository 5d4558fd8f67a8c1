package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"daycare/engine/cluster"
	"daycare/engine/cluster/clustertest"
	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
)

// A machine is a house in a cluster.
type machine struct {
	*house
	node *cluster.Node
}

func newMachine(t *testing.T, url, root string, start StartFunc) *machine {
	t.Helper()
	return newMachineWith(t, url, root, start, func(node *cluster.Node) Peers { return node })
}

// newMachineWith is newMachine with peers that tests changed.
func newMachineWith(t *testing.T, url, root string, start StartFunc, peers func(*cluster.Node) Peers) *machine {
	t.Helper()
	vol := disk.NewVolume(root)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	node, err := cluster.Join(ctx, cluster.Config{Servers: []string{url}, Name: filepath.Base(root), Root: root, Volume: vol,
		Covers: func(name string) bool {
			return slices.Contains([]string{"descriptor.json", "state.json", "inbox.jsonl", "history.jsonl"}, name)
		},
		Lease: 1500 * time.Millisecond, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{node: node, house: newHouseWith(t, root, start, Options{Files: Files{Volume: vol, Peers: peers(node)}})}
	serving, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		states := make(chan error)
		go func() { states <- node.ServeStates(serving, m.StateHere) }()
		err := node.Serve(serving, m.Posted)
		served <- errors.Join(err, <-states)
	}()
	end := m.end
	m.end = sync.OnceValue(func() error {
		err := end()
		stop()
		<-served // its error is that of a connection which may have ended before
		node.Close()

		return err
	})
	t.Cleanup(func() {
		if err := m.end(); err != nil {
			t.Error(err)
		}
	})

	return m
}

// Two machines work on one agent: a message is accepted on either, wherever the agent is, and
// none is lost when the machine that has it is cut off in the middle.
func TestTwoMachines(t *testing.T) {
	var mu sync.Mutex
	handled := map[string]int{}
	start := echo(func(_ string, it inbox.Item) {
		mu.Lock()
		handled[it.Text]++
		mu.Unlock()
		time.Sleep(time.Millisecond)
	})
	url := clustertest.Serve(t, clustertest.Store(t), 0).ClientURL()
	roots := []string{t.TempDir(), t.TempDir()}
	first := newHouse(t, roots[0], start)
	agent := first.deliver(from("one", "made")).Agent
	until(t, "the agent sleeps", func() bool { _, awake := first.awake(agent); return !awake })
	if err := first.end(); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(roots[1], "agents", agent), os.DirFS(filepath.Join(roots[0], "agents", agent))); err != nil {
		t.Fatal(err)
	}

	machines := []*machine{newMachine(t, url, roots[0], start), newMachine(t, url, roots[1], start)}
	const senders, each = 4, 50
	var accepted atomic.Int32
	var sending sync.WaitGroup
	for s := range senders {
		sending.Go(func() {
			for i := range each {
				in := message.Incoming{Agent: agent, Text: fmt.Sprintf("%d.%d", s, i), Dedupe: fmt.Sprintf("key:%d.%d", s, i)}
				offer(t, machines, i%2, in)
				accepted.Add(1)
			}
		})
	}
	// The machine that has the agent is cut off: nobody hears of it, and it hears of nobody.
	until(t, "a part of the messages is accepted", func() bool { return accepted.Load() >= senders*each/4 })
	owner := 0
	if _, awake := machines[1].awake(agent); awake {
		owner = 1
	}
	machines[owner].node.Close()
	if n := accepted.Load(); n >= senders*each {
		t.Errorf("all %d messages were accepted before the cut", n)
	}
	sending.Wait()

	for s := range senders {
		for i := range each {
			text := fmt.Sprintf("%d.%d", s, i)
			until(t, text+" is handled", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return handled[text] > 0
			})
		}
	}
}

// offer delivers a message to one of the machines, and to the others in turn until one takes
// it, as a load balancer does.
func offer(t *testing.T, machines []*machine, at int, in message.Incoming) {
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); at++ {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_, err := machines[at%len(machines)].Deliver(ctx, in)
		cancel()
		if err == nil {
			return
		}
		if !errors.Is(err, disk.ErrAway) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, disk.ErrFenced) {
			t.Errorf("%s: %v", in.Text, err)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%s is never accepted", in.Text)
}

// cutOff are peers whose servers are not reached when an agent is retired, once.
type cutOff struct {
	*cluster.Node
	done bool
}

func (c *cutOff) Retire(agent string) error {
	if !c.done {
		c.done = true
		return disk.ErrAway
	}
	return c.Node.Retire(agent)
}

// A removal of which the other machines did not hear is made again by the same command.
func TestFailedRemovalIsRepeated(t *testing.T) {
	url := clustertest.Serve(t, clustertest.Store(t), 0).ClientURL()
	m := newMachineWith(t, url, t.TempDir(), echo(func(string, inbox.Item) {}), func(n *cluster.Node) Peers { return &cutOff{Node: n} })
	agent := m.deliver(from("one", "made")).Agent
	if _, err := m.Remove(t.Context(), agent, true); !errors.Is(err, disk.ErrAway) {
		t.Fatalf("removed without the servers: %v", err)
	}
	if _, err := m.Remove(t.Context(), agent, true); err != nil {
		t.Errorf("removed again: %v", err)
	}
	waitFor(t, "the cluster forgets it", func() bool { return len(m.node.Agents()) == 0 })
	if _, err := m.Remove(t.Context(), agent, true); !errors.Is(err, message.ErrUnknownAgent) {
		t.Errorf("removed a third time: %v", err)
	}
}

// The answers of an agent that rests are sent by one machine alone: it keeps the agent until they have left.
func TestAnswersOnTheirWayAreSentByOneMachine(t *testing.T) {
	url := clustertest.Serve(t, clustertest.Store(t), 0).ClientURL()
	start := func(_ context.Context, rt Runtime) error {
		if results := rt.Results.Take(); len(results) > 0 {
			return record.AppendApart(rt.entry.actors.vol, rt.Dir, slog.New(slog.DiscardHandler),
				func(*record.Obligations) []record.Record { return deliveries(results) })
		}
		if settled, err := record.Settled(rt.Dir); err != nil || settled {
			return err
		}
		rt.Send(message.Promise{Since: time.Now(), Report: rt.Results.Put, Outgoing: message.Outgoing{ID: "answer", Text: "x",
			To: message.Address{Connector: "room", ChannelID: rt.Meta.ID}}})
		return nil
	}
	machines, rooms := []*machine{}, []*slowRoom{newSlowRoom(), newSlowRoom()}
	for i := range rooms {
		machines = append(machines, newMachine(t, url, t.TempDir(), start))
		must(t, machines[i].connectors.set([]Connector{rooms[i]}))
	}
	var ids []string
	for i := range 6 { // of each two one falls to the other machine
		ids = append(ids, owingIn(t, machines[0].house, fmt.Sprint(i)).ID)
	}
	for _, id := range ids {
		machines[0].wake(id)
	}
	for range ids {
		<-rooms[0].tries
	}
	for _, id := range ids {
		waitFor(t, "the agent rests", func() bool { return machines[0].rests(id) })
		if e, ok := machines[0].awake(id); !ok || !(ownership{e}).is() {
			t.Errorf("agent %s was given up with an answer on its way", id)
		}
	}
	for range ids {
		rooms[0].let <- nil
	}
	for _, id := range ids {
		waitFor(t, "the agent is given up", func() bool {
			_, ok := machines[0].awake(id)
			return !ok && machines[0].node.Owner(id) == ""
		})
		if settled, err := record.Settled(machines[0].folder(id)); err != nil || !settled {
			t.Errorf("the answer would be sent again: settled %v, %v", settled, err)
		}
	}
	if len(rooms[1].tries) > 0 {
		t.Errorf("the other machine tries %d of the same answers", len(rooms[1].tries))
	}
}
