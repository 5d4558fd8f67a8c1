package disk

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
)

// Many who wait for one file share syncs, and each is covered.
func TestBarriersAreJoined(t *testing.T) {
	l := openLog(t, filepath.Join(t.TempDir(), "log"))
	const writers, each = 32, 20
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if _, err := l.Append(fmt.Appendf(nil, "{%d %d}\n", w, i)); err != nil {
					t.Error(err)
					return
				}
				size := l.Size()
				if err := l.Barrier(); err != nil {
					t.Error(err)
				}
				l.mu.Lock()
				if l.synced < size {
					t.Errorf("a barrier returned with %d of %d bytes durable", l.synced, size)
				}
				l.mu.Unlock()
			}
		})
	}
	wg.Wait()
	n, _ := l.vol.Stats()
	if n > writers*each/4 {
		t.Errorf("%d syncs for %d barriers: they are not shared", n, writers*each)
	}
	t.Logf("%d syncs for %d barriers", n, writers*each)
}

// A log that becomes shorter while people wait for it leaves nobody waiting.
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
		if _, _, err := l.Reload(); err != nil {
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
