package watch

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A script is a queue that refuses places, and whose changes a test says.
type script struct {
	refuses     error
	some, moved bool
	added       int
	closed      int
}

func (s *script) add(Place) error {
	s.added++
	return s.refuses
}

func (s *script) changes() (some, moved bool) {
	some, moved = s.some, s.moved
	s.some, s.moved = false, false
	return some, moved
}

func (s *script) close() { s.closed++ }

// Without a Quiet nothing is known to be still.
func TestNoQuiet(t *testing.T) {
	var q *Quiet
	defer q.Close()
	if q.Still(q.Mark(), Place{Dir: "/a"}) || q.Still(NewQuiet().Mark(), Place{Dir: "/a"}) {
		t.Error("it is still")
	}
}

// A place that cannot be watched is never still; after Rescan it is tried again, and not before. After a
// move every place is watched anew.
func TestAPlaceIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{refuses: errors.New("no watches left")}
		on := ""
		q := &Quiet{open: func() (queue, error) { return s, nil }, remote: func(string) string { return on }, armed: map[string]armed{}}
		place := Place{Dir: "/a"}
		want := func(what string, still bool, added int) {
			t.Helper()
			if got := q.Still(q.Mark(), place); got != still || s.added != added {
				t.Errorf("%s: still %v after %d tries, want %v after %d", what, got, s.added, still, added)
			}
		}
		want("it cannot be watched", false, 1)
		want("at once", false, 1)
		s.refuses = nil
		time.Sleep(Rescan - time.Second)
		want("before its time", false, 1)
		time.Sleep(2 * time.Second)
		want("it can be watched now", false, 2)
		want("nothing happened", true, 2)

		before := q.Mark()
		s.some = true
		if q.Still(before, place) {
			t.Error("it is still after a change")
		}
		want("after the change", true, 2)
		s.some = true
		want("after a change that was before the mark", true, 2)
		s.moved = true
		want("after a move", false, 3)
		want("and then", true, 3)
		on = "NFS"
		if q.Still(q.Mark(), Place{Dir: "/b"}) {
			t.Error("what other machines may change unseen is taken for still")
		}
		if s.closed != 1 {
			t.Errorf("%d queues were closed after a move, want the one that watched the old folders", s.closed)
		}
		if q.Close(); s.closed != 2 {
			t.Error("the end leaves a queue open")
		}
	})
}
