package agents

import (
	"fmt"
	"runtime/debug"
)

// apart runs f on a goroutine of its own, waits for it, and returns what it returns: the stack that f needs ends with that
// goroutine, while the one of the caller would stay so large. A panic of f is one of the caller.
func apart(f func() (over bool, err error)) (over bool, err error) {
	type result struct {
		over    bool
		err     error
		crashed string
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if v := recover(); v != nil {
				r.crashed = fmt.Sprintf("%v\n%s", v, debug.Stack())
			}
			done <- r
		}()
		r.over, r.err = f()
	}()

	r := <-done
	if r.crashed != "" {
		panic(r.crashed)
	}

	return r.over, r.err
}
