package inbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// BenchmarkAccept is one sender for each of so many mailboxes, and 64 for one.
func BenchmarkAccept(b *testing.B) {
	for _, tt := range []struct{ boxes, senders int }{{1, 1}, {8, 8}, {64, 64}, {1000, 1000}, {1, 64}} {
		b.Run(fmt.Sprintf("mailboxes=%d/senders=%d", tt.boxes, tt.senders), func(b *testing.B) {
			root := b.TempDir()
			vol := disk.NewVolume(root)
			boxes := make([]*inbox.File, tt.boxes)
			for i := range boxes {
				dir := filepath.Join(root, fmt.Sprint(i))
				if err := os.Mkdir(dir, 0o700); err != nil {
					b.Fatal(err)
				}
				f, _, err := inbox.Open(vol, dir, inbox.NewQuota(0), time.Now)
				if err != nil {
					b.Fatal(err)
				}
				defer f.Close()
				boxes[i] = f
				accept(b, f, "warm up: the first barrier also syncs the folder", "")
			}

			text := strings.Repeat("A message of a usual length. ", 8)
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for s := range tt.senders {
				wg.Go(func() {
					for n := range (b.N + tt.senders - 1) / tt.senders {
						accept(b, boxes[s%tt.boxes], text, fmt.Sprint(s, ":", n))
					}
				})
			}

			wg.Wait()
		})
	}
}

func accept(b *testing.B, f *inbox.File, text, key string) {
	r, err := f.Accept(b.Context(), inbox.Item{Kind: message.Text, Text: text, Dedupe: key})
	if err == nil {
		err = f.Done(r.Item)
	}
	if err != nil {
		b.Error(err)
	}
}

func BenchmarkOpen(b *testing.B) {
	dir, data, _ := sample(b, 300<<10)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		f, _ := open(b, dir)
		f.Close()
	}
}

func BenchmarkSettled(b *testing.B) {
	dir, _, _ := sample(b, 64<<10)
	for b.Loop() {
		if _, err := inbox.Settled(dir); err != nil {
			b.Fatal(err)
		}
	}
}
