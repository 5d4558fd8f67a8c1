package crash

import (
	"testing"
	"time"
)

// While it is held no step begins; one that has begun is waited for.
func TestHold(t *testing.T) {
	begun, finish, done := make(chan struct{}), make(chan struct{}), make(chan string, 3)
	go func() {
		_ = Do("probe.dirsync", func() error { close(begun); <-finish; return nil })
		done <- "first"
	}()
	<-begun
	held := make(chan func())
	go func() { held <- Hold() }()

	select {
	case <-held:
		t.Fatal("it is held while a step is under way")
	case <-time.After(20 * time.Millisecond):
	}
	close(finish)
	release := <-held
	<-done
	go func() {
		_, _ = Write("inbox.write", []byte("x"), func(p []byte) (int, error) { done <- "second"; return len(p), nil })
	}()

	select {
	case what := <-done:
		t.Fatalf("the %s step was done while steps were held", what)
	case <-time.After(20 * time.Millisecond):
	}
	release()
	release()
	if what := <-done; what != "second" {
		t.Errorf("%s was done", what)
	}
}
