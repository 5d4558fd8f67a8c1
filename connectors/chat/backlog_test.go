package chat

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"daycare/engine/message"
)

// A shelf is a platform that a backlog asks: positions by channel.
type shelf struct {
	kept   map[string]map[string][]byte
	all    map[string][]int64
	taken  []string
	refuse error
	fails  int // of the next fetches
}

func (s *shelf) Load(connector, name string) ([]byte, error) {
	return s.kept[connector][name], s.missing(connector, name)
}

func (s *shelf) missing(connector, name string) error {
	if s.kept[connector][name] == nil {
		return errNotThere
	}
	return nil
}

var errNotThere = fmt.Errorf("it is %w", fs.ErrNotExist)

func (s *shelf) Save(connector, name string, data []byte) error {
	s.kept[connector] = map[string][]byte{name: data}
	return nil
}

func (s *shelf) backlog(now int64) *Backlog[string] {
	return NewBacklog(Source[string]{Connector: "c", Keeper: s, Now: now, Then: now - 1000, Margin: 10,
		Take: func(_ context.Context, _ message.Deliver, a Arrival[string]) error {
			if s.refuse == nil {
				s.taken = append(s.taken, fmt.Sprintf("%s%d%s", a.Channel, a.At, a.What))
			}
			return s.refuse
		},
		Fetch: func(_ context.Context, channel string, after int64) (page []Arrival[string], more bool, err error) {
			if s.fails > 0 {
				s.fails--
				return nil, false, errors.New("broken")
			}
			if channel == "closed" {
				return nil, true, ErrNoChannel
			}
			for _, at := range s.all[channel] {
				if at > after && len(page) < 3 {
					page = append(page, Arrival[string]{Channel: channel, At: at})
				}
			}
			return page, len(page) == 3, nil
		}}, time.Second, slog.New(slog.DiscardHandler))
}

// for a while a backlog runs.
func (s *shelf) run(t *testing.T, b *Backlog[string], during time.Duration) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); b.Run(ctx, nil) }()
	time.Sleep(during)
	cancel()
	<-ended
}

// What came while nobody listened is fetched by the next process, each once and in its order,
// also where fetching fails at first. What was taken is not fetched again.
func TestABacklogFetchesWhatWasMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{kept: map[string]map[string][]byte{}, all: map[string][]int64{"a": {90, 101, 102, 103, 104, 105}, "b": {103}}}
		b := s.backlog(100)
		b.Known(true)
		b.Put(Arrival[string]{Channel: "a", At: 101})
		b.Put(Arrival[string]{Channel: "a", What: "note"})
		b.Put(Arrival[string]{Channel: "a", At: 90, What: "old"})
		s.run(t, b, time.Minute)
		if want := []string{"a101", "a0note"}; !slices.Equal(s.taken, want) {
			t.Fatalf("taken are %q, want %q", s.taken, want)
		}

		s.taken, s.fails = nil, 3
		b = s.backlog(500)
		b.Missed("a", 105)
		b.Missed("b", 0)
		b.Missed("c", 90)
		b.Missed("closed", 0)
		s.run(t, b, time.Minute)
		slices.Sort(s.taken)
		if want := []string{"a102", "a103", "a104", "a105", "b103"}; !slices.Equal(s.taken, want) {
			t.Errorf("taken are %q, want %q", s.taken, want)
		}
		if !b.Taken("a", 105) || b.Taken("a", 106) || b.Taken("b", 104) {
			t.Errorf("taken are a %v b %v", b.marks.after("a"), b.marks.after("b"))
		}
	})
}

// What arrives before it is known what was missed comes after that.
func TestABacklogWaitsForWhatWasMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{kept: map[string]map[string][]byte{}, all: map[string][]int64{"a": {101, 102, 103}}}
		b := s.backlog(100)
		if len(s.kept) != 0 {
			t.Error("a backlog that was only made has saved something")
		}
		b.Put(Arrival[string]{Channel: "a", At: 103})
		s.run(t, b, time.Minute)
		if want := []string{"a101", "a102", "a103"}; !slices.Equal(s.taken, want) {
			t.Errorf("taken are %q, want %q", s.taken, want)
		}
	})
}

// The floor rises only over what was taken in all channels, and while all of them are known.
func TestMarks(t *testing.T) {
	s := &shelf{kept: map[string]map[string][]byte{}}
	m := marks{connector: "c", keeper: s, margin: 10}
	if err := m.load(100, 50); err != nil || m.Floor != 100 {
		t.Fatalf("%+v, %v", m, err)
	}
	m.pass("a", 200)
	if err := m.save(nil); err != nil || m.Floor != 100 || m.after("a") != 200 {
		t.Errorf("not all channels are known, and the floor is %d (%v)", m.Floor, err)
	}
	m.held = false
	if err := m.save([]string{"b"}); err != nil || m.Floor != 100 {
		t.Errorf("b is behind, and the floor is %d (%v)", m.Floor, err)
	}
	if err := m.save(nil); err != nil || m.Floor != 190 || len(m.Channel) != 1 {
		t.Errorf("the floor is %d, marks %v (%v)", m.Floor, m.Channel, err)
	}
	m.pass("b", 300)
	if err := m.save(nil); err != nil || m.Floor != 290 || len(m.Channel) != 1 || m.after("a") != 290 {
		t.Errorf("the floor is %d, marks %v (%v)", m.Floor, m.Channel, err)
	}

	again := marks{connector: "c", keeper: s}
	if err := again.load(500, 50); err != nil || again.Floor != 290 || again.after("b") != 300 {
		t.Errorf("read are %+v, %v", again, err)
	}
	s.kept["c"][marksFile] = []byte("{")
	if err := again.load(500, 50); err == nil || again.Floor != 50 {
		t.Errorf("broken marks: %+v, %v", again, err)
	}
}

// A message that is refused is tried until it is taken, before those behind it, also by the
// next Run.
func TestABacklogKeepsItsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{kept: map[string]map[string][]byte{}, all: map[string][]int64{}}
		b := s.backlog(0)
		b.Known(true)
		s.refuse = errors.New("full")
		for i := range int64(maxArrived + 100) {
			s.all["a"] = append(s.all["a"], i+1)
			b.Put(Arrival[string]{Channel: "a", At: i + 1})
		}
		b.Put(Arrival[string]{Channel: "b", At: 5})
		if len(b.arrived) > 2 {
			t.Errorf("%d wait, want those of the channel that is fetched gone", len(b.arrived))
		}
		s.run(t, b, time.Minute)
		s.refuse = nil
		s.all["b"] = []int64{5}
		s.run(t, b, time.Minute)
		var got []string
		for _, name := range s.taken {
			if name != "b5" {
				got = append(got, name)
			}
		}
		for i, name := range got {
			if name != fmt.Sprint("a", i+1) {
				t.Fatalf("%s came as number %d", name, i)
			}
		}
		if len(got) != maxArrived+100 || len(s.taken) != len(got)+1 {
			t.Errorf("%d were taken, want %d", len(s.taken), maxArrived+101)
		}
	})
}

// Messages of a channel may come out of their order: one that comes after a newer one that was taken
// is taken, too, once; one that was taken, or is as old as what a process before took, is not.
func TestABacklogTakesWhatComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{kept: map[string]map[string][]byte{}, all: map[string][]int64{"a": {101, 102, 103, 104, 105}}}
		b := s.backlog(100)
		b.Known(true)
		put := func(all ...int64) {
			for _, at := range all {
				b.Put(Arrival[string]{Channel: "a", At: at})
			}
			s.run(t, b, time.Minute)
		}
		put(101, 103)
		put(102, 101, 103, 100)
		put(102)
		b.Put(Arrival[string]{Channel: "a", At: 105})
		s.run(t, b, time.Minute)
		b.Put(Arrival[string]{Channel: "a", At: 104})
		b.Missed("a", 0) // what is fetched comes behind it, and leaves it
		s.run(t, b, time.Minute)
		if want := []string{"a101", "a103", "a102", "a105", "a104"}; !slices.Equal(s.taken, want) {
			t.Errorf("taken are %q, want %q", s.taken, want)
		}

		s.taken = nil
		b = s.backlog(500)
		b.Known(true)
		put(103)
		if len(s.taken) > 0 {
			t.Errorf("the next process takes %q", s.taken)
		}
	})

	m := marks{margin: 1000}
	if err := m.load(5, 0); err != nil {
		t.Fatal(err)
	}
	for n := range int64(maxLive + 1) {
		m.pass("a", 10+2*n)
	}
	for at, want := range map[int64]bool{5: false, 9: false, 10: false, 11: true, 12: false, 13: true} {
		if got := m.late("a", at); got != want || m.late("b", at) {
			t.Errorf("a message at %d is late: %v, want %v", at, got, want)
		}
	}
	if n := len(m.live["a"].taken); n != maxLive {
		t.Errorf("%d positions are remembered, want %d", n, maxLive)
	}
}
