package crashtest

import (
	"fmt"
	"os"
	"runtime/debug"
	"syscall"
	"testing"

	"daycare/engine/crash"
)

// FewDescriptors runs an operation while the process can open no file, then one, then two, until the operation
// reports no error. It fails the test if holds then finds that the operation was not done. begin prepares the
// operation. It is for tests that do not run beside others.
func FewDescriptors(t *testing.T, begin func(t *testing.T) (op, holds func() error)) {
	t.Helper()
	// Without the garbage collector a file that is not closed where a step fails stays open, and is in the way.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for k, done := 0, false; !done; k++ {
		t.Run(fmt.Sprintf("%d descriptors", k), func(t *testing.T) {
			op, holds := begin(t)
			full := leave(t, k)
			err := op()
			full()
			if done = err == nil; !done {
				if k > mostDescriptors {
					t.Fatalf("it fails with any number of descriptors: %v", err)
				}
				return
			}
			if err := holds(); err != nil {
				t.Errorf("it reports no error, and %v", err)
			} else if k == 0 {
				t.Error("the operation opens no file")
			}
		})
		done = done || t.Failed()
	}
}

// mostDescriptors is more than any operation needs at once.
const mostDescriptors = 40

// fillers are more files than there may be numbers free between those of others.
const fillers = 100

// leave lets the process open k more files at once until full is called.
func leave(t *testing.T, k int) (full func()) {
	t.Helper()
	crash.Alone(t)
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	var held []*os.File
	for range fillers {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, f)
	}
	few := was
	setLimit(&few.Cur, held[fillers-1].Fd()+1+uintptr(k))
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}

	return func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
			t.Fatal(err)
		}
		for _, f := range held {
			f.Close()
		}
	}
}

// setLimit exists because limits are signed on FreeBSD and unsigned elsewhere.
func setLimit[N int64 | uint64](limit *N, to uintptr) { *limit = N(to) }
