package disk

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
)

// Whoever appends while a sync waits for its turn is covered by it: many who wait for one
// file share it.
func TestBarriersAreJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openLog(t, filepath.Join(t.TempDir(), "log"))
		const writers, rounds = 32, 20
		appendDurably(t, l, "{the first, which makes the name durable too}\n")
		before, _ := l.vol.Stats()

		for round := range rounds {
			for range maxBarriers {
				l.vol.enter() // other files take all the turns
			}
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() { appendDurably(t, l, fmt.Sprintf("{%d %d}\n", w, round)) })
			}
			synctest.Wait() // all of them wait
			for range maxBarriers {
				l.vol.leave()
			}
			wg.Wait()
		}

		after, _ := l.vol.Stats()
		t.Logf("%d syncs for %d barriers", after-before, rounds*writers)
		if after-before != rounds {
			t.Errorf("%d syncs for %d times %d who wait together, want one each time", after-before, rounds, writers)
		}
	})
}

// Whoever comes to a barrier at whatever moment is covered when it returns.
func TestEveryBarrierIsCovered(t *testing.T) {
	l := openLog(t, filepath.Join(t.TempDir(), "log"))
	var wg sync.WaitGroup
	for w := range 32 {
		wg.Go(func() {
			for i := range 20 {
				appendDurably(t, l, fmt.Sprintf("{%d %d}\n", w, i))
			}
		})
	}
	wg.Wait()
	n, _ := l.vol.Stats()
	t.Logf("%d syncs for %d barriers", n, 32*20)
}

// appendDurably appends a line and waits until it is durable.
func appendDurably(t *testing.T, l *Log, line string) {
	if _, err := l.Append([]byte(line)); err != nil {
		t.Error(err)
		return
	}
	size := l.Size()
	if err := l.Barrier(); err != nil {
		t.Error(err)
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	if l.synced < size {
		t.Errorf("a barrier returned with %d of %d bytes durable", l.synced, size)
	}
}

// A log that becomes shorter while users wait for it leaves nobody waiting.
func TestBarrierAcrossReplaceAndReload(t *testing.T) {
	l := openLog(t, filepath.Join(t.TempDir(), "log"))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := l.Append([]byte("{a line of some length}\n")); err != nil {
					t.Error(err)
					return
				}
				if err := l.Barrier(); err != nil {
					t.Error(err)
				}
			}
		})
	}

	for range 4 {
		if err := l.Replace([]byte("{short}\n"), ""); err != nil {
			t.Error(err)
		}
		if _, err := reloaded(l); err != nil {
			t.Error(err)
		}
	}

	close(stop)
	wg.Wait()
}

func BenchmarkAppendBarrier(b *testing.B) {
	line := append(make([]byte, 299), '\n')
	for i := range line[:299] {
		line[i] = 'x'
	}

	for _, files := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) {
			dir := b.TempDir()
			v := NewVolume(dir)
			var wg sync.WaitGroup
			b.ReportAllocs()

			for n := range files {
				l, _, err := v.OpenLog(filepath.Join(dir, fmt.Sprint(n)), LogOptions{Name: "inbox"})
				if err != nil {
					b.Fatal(err)
				}
				defer l.Close()
				wg.Go(func() {
					for range (b.N + files - 1) / files {
						if _, err := l.Append(line); err != nil {
							b.Error(err)
						}
						if err := l.Barrier(); err != nil {
							b.Error(err)
						}
					}
				})
			}

			wg.Wait()
		})
	}
}

// BenchmarkJoinedBarrier is 64 writers on one file.
func BenchmarkJoinedBarrier(b *testing.B) {
	l := openLog(b, filepath.Join(b.TempDir(), "log"))
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range (b.N + 63) / 64 {
				if _, err := l.Append([]byte("{a line}\n")); err != nil {
					b.Error(err)
				}
				if err := l.Barrier(); err != nil {
					b.Error(err)
				}
			}
		})
	}

	wg.Wait()
	n, _ := l.vol.Stats()
	b.ReportMetric(float64(b.N)/float64(max(n, 1)), "barriers/sync")
}
