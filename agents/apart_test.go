package agents

import (
	"errors"
	"strings"
	"testing"
)

// What runs apart returns what it returned, and its panic is one of who waits for it: the engine has an agent that
// panicked tried again.
func TestApart(t *testing.T) {
	failed := errors.New("failed")
	if over, err := apart(func() (bool, error) { return true, failed }); !over || err != failed {
		t.Errorf("apart = %v, %v", over, err)
	}

	defer func() {
		text, _ := recover().(string)
		if !strings.HasPrefix(text, "broken\n") || !strings.Contains(text, "TestApart") {
			t.Errorf("the panic says %q, want its value and where it was", text)
		}
	}()
	_, _ = apart(func() (bool, error) { panic("broken") })
	t.Error("a panic was lost")
}
