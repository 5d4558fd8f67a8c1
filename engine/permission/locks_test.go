package permission

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// stuck puts a pipe in the place of a request's file: whoever reads it waits, as for a
// disk that does not answer, until release.
func stuck(t *testing.T, q *Queue, p Pending) (release func()) {
	t.Helper()
	path := q.path(p.Token)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	return sync.OnceFunc(func() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			_, err = f.Write(content)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Error(err)
		}
	})
}

func TestNobodyWaitsForTheFilesOfOthers(t *testing.T) {
	for name, slow := range map[string]func(*Queue, Pending) error{
		"looking for answers": func(q *Queue, _ Pending) error { q.Answered(); return nil },
		"settling":            func(q *Queue, p Pending) error { _, err := q.Settle(p.Token, Once, "telegram:1", noon); return err },
	} {
		t.Run(name, func(t *testing.T) {
			q := open(t, t.TempDir())
			p := ask(t, q, request)
			release := stuck(t, q, p)
			ended, others := make(chan error, 1), make(chan error, 1)
			go func() { ended <- slow(q, p) }()
			time.Sleep(20 * time.Millisecond) // it is in the middle of it
			go func() {
				other := request
				other.Workdir = "/elsewhere"
				made, _, err := q.Ask(agent, owner, other)
				if err == nil {
					_, err = q.Settle(made.Token, Deny, "telegram:1", noon)
				}
				q.List()
				q.Find(agent, made.SHA256)
				others <- err
			}()
			select {
			case err := <-others:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(10 * time.Second):
				t.Error("others wait for the file of one request")
			}
			release()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
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
			if _, err := os.Stat(q.path(p.Token)); err != nil {
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
		t.Errorf("%d requests, %d fresh, settled %d times, %d lines of the log, %v; want one each", len(tokens), fresh, settled, len(log), err)
	}
}
