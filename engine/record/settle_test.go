package record

import (
	"bytes"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// Before a changed history is read it must be at rest, be there, and have something in it;
// an editor gets 20 looks' time for that, a file that stays away 5, a folder that is gone none.
func TestSettleWaitsForTheEditor(t *testing.T) {
	const quiet = 100 * time.Millisecond
	write := func(t *testing.T, h *History, n int) {
		if err := os.WriteFile(h.path(), bytes.Repeat([]byte("x"), n), 0o600); err != nil {
			t.Error(err)
		}
	}
	for name, tt := range map[string]struct {
		edit func(t *testing.T, h *History) // beside it
		want int                            // looks
	}{
		"it stands still": {func(*testing.T, *History) {}, 1},
		"it comes back": {func(t *testing.T, h *History) {
			os.Remove(h.path())
			time.Sleep(2 * quiet)
			write(t, h, 1)
		}, 3},
		"it is empty first": {func(t *testing.T, h *History) {
			write(t, h, 0)
			time.Sleep(2 * quiet)
			write(t, h, 1)
		}, 3},
		"it stays away":      {func(t *testing.T, h *History) { os.Remove(h.path()) }, 5},
		"the folder is gone": {func(t *testing.T, h *History) { os.RemoveAll(h.dir) }, 0},
		"it is written in pieces": {func(t *testing.T, h *History) {
			for i := range 4 {
				write(t, h, i+1)
				time.Sleep(quiet)
			}
		}, 4},
		"it is written all the time": {func(t *testing.T, h *History) {
			for i := range 30 {
				write(t, h, i+1)
				time.Sleep(quiet)
			}
		}, 20},
	} {
		t.Run(name, func(t *testing.T) {
			h := begun(t)
			h.limits.quiet = quiet
			synctest.Test(t, func(t *testing.T) {
				done := make(chan struct{})
				go func() { defer close(done); tt.edit(t, h) }()
				synctest.Wait()
				time.Sleep(quiet / 2) // between two steps of the editor
				begin := time.Now()
				h.settle()
				if got := int(time.Since(begin) / quiet); got != tt.want {
					t.Errorf("it looked %d times, want %d", got, tt.want)
				}
				<-done
			})
		})
	}
}
