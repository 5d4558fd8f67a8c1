package permission

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// A decision that waits for the disk keeps nobody from the other requests.
func TestNobodyWaitsForTheDecisionOnAnotherRequest(t *testing.T) {
	q := open(t, t.TempDir())
	p := ask(t, q, request)
	q.store.logging.Lock()
	settled, others := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := q.Settle(p.Token, Once, "telegram:1", noon)
		settled <- err
	}()

	time.Sleep(20 * time.Millisecond) // it is in the middle of it
	go func() {
		other := request
		other.Workdir = "/elsewhere"
		made, fresh, err := q.Ask(agent, owner, other)
		if err == nil && !fresh {
			err = errors.New("another request is taken for the same")
		}
		q.Find(agent, made.SHA256)
		if answers, _ := q.Answered(); err == nil && len(q.List()) != 2 || len(answers) > 0 {
			err = fmt.Errorf("answers %+v, requests %+v; want no answer and two requests", answers, q.List())
		}
		others <- err
	}()

	select {
	case err := <-others:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("others wait for the decision on one request")
	}

	q.store.logging.Unlock()
	if err := <-settled; err != nil {
		t.Error(err)
	}
}

// What is asked, or settled, by several at once is asked and settled once.
func TestTheSameAtOnceIsDoneOnce(t *testing.T) {
	root := t.TempDir()
	q := open(t, root)
	var wg sync.WaitGroup
	var mu sync.Mutex
	tokens, fresh, settled := map[string]bool{}, 0, 0
	for range 20 {
		wg.Go(func() {
			p, first, err := q.Ask(agent, owner, request)
			if err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(q.store.path(p.Token)); err != nil {
				t.Errorf("told of a request that is not written: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			if tokens[p.Token] = true; first {
				fresh++
			}
		})
	}

	wg.Wait()
	for range 20 {
		wg.Go(func() {
			for token := range tokens {
				_, err := q.Settle(token, Once, "telegram:1", noon)
				mu.Lock()
				if err == nil {
					settled++
				} else if !errors.Is(err, ErrUnknown) {
					t.Error(err)
				}
				mu.Unlock()
			}
		})

		wg.Go(func() {
			if answers, _ := q.Answered(); len(answers) > 0 {
				t.Errorf("a file that settling removes is taken for an answer: %+v", answers)
			}
		})
	}

	wg.Wait()
	log, err := Log(root)
	if len(tokens) != 1 || fresh != 1 || settled != 1 || err != nil || len(log) != 1 {
		t.Errorf("%d requests, %d fresh, settled %d times, %d lines of the log, %v; want one each", len(tokens), fresh,
			settled, len(log), err)
	}
}
