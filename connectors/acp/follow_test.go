package acp

import (
	"errors"
	"testing"
)

// A connection that ends while a prompt begins leaves the prompt with a follower: the one that is there continues, or the
// prompt gets one of its own.
func TestAPromptThatBeginsAsTheConnectionEndsIsFollowed(t *testing.T) {
	for range 200 {
		s := &session{ready: make(chan struct{})}
		began := make(chan bool)
		go func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.prompt = &prompt{done: make(chan struct{})}
			began <- s.ready != nil // then it relies on the follower that is there
		}()
		ended := make(chan bool, 1)
		go func() { ended <- follower{s}.unfollowed() }()
		if relies, gone := <-began, <-ended; relies == gone {
			t.Fatalf("the prompt relies on the follower: %v, which has gone: %v", relies, gone)
		}
	}

	s := &session{ready: make(chan struct{}), prompt: &prompt{done: make(chan struct{})}}
	if s.fail(errors.New("gone")); s.ready != nil || s.prompt.err == nil {
		t.Errorf("after a failure ready is %v, and the prompt ended with %v", s.ready, s.prompt.err)
	}
}
