package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// lineSize is the size of an appended line: that of a typical record, and no
// power of two, so that lines lie across pages as real ones do.
const lineSize = 700

// A Result is what a disk did.
type Result struct {
	Files   int
	Appends int
	Took    time.Duration
	P50     time.Duration // of one append with its flush
	P99     time.Duration
}

// Rate is appends per second, over all files.
func (r Result) Rate() float64 {
	if r.Took <= 0 {
		return 0
	}
	return float64(r.Appends) / r.Took.Seconds()
}

// Rows are the figures of a Result.
func (r Result) Rows() []Row {
	at := fmt.Sprintf("%d files", r.Files)
	return []Row{
		{Name: "disk: durable appends", Value: r.Rate(), Unit: "1/s", Note: at},
		{Name: "disk: durable append, median", Value: ms(r.P50), Unit: "ms", Note: at},
		{Name: "disk: durable append, 99th percentile", Value: ms(r.P99), Unit: "ms", Note: at},
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Disk measures the limit that everything is compared with: so many goroutines,
// each with a file of its own in dir, append a line and flush it, again and again
// for about d. It uses the system's calls and nothing of daycare. The files are
// removed afterwards.
func Disk(ctx context.Context, dir string, files int, d time.Duration) (Result, error) {
	if files < 1 {
		return Result{}, fmt.Errorf("measure disk: %d files, need at least 1", files)
	}
	work, err := os.MkdirTemp(dir, "bench-disk-")
	if err != nil {
		return Result{}, fmt.Errorf("measure disk: %w", err)
	}
	defer os.RemoveAll(work)

	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	times := make([][]time.Duration, files)
	errs := make([]error, files)
	start := time.Now()
	var wg sync.WaitGroup
	for i := range files {
		wg.Go(func() {
			times[i], errs[i] = appendLoop(ctx, filepath.Join(work, fmt.Sprint(i, ".jsonl")))
		})
	}

	wg.Wait()
	took := time.Since(start)
	if err := errors.Join(errs...); err != nil {
		return Result{}, fmt.Errorf("measure disk: %w", err)
	}

	return summarise(times, took), nil
}

// appendLoop appends and flushes until ctx ends, at least once.
func appendLoop(ctx context.Context, path string) (times []time.Duration, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	line := append(bytes.Repeat([]byte("x"), lineSize-1), '\n')
	for {
		start := time.Now()
		if _, err := f.Write(line); err != nil {
			return nil, err
		}
		if err := datasync(f); err != nil {
			return nil, fmt.Errorf("flush %s: %w", path, err)
		}

		times = append(times, time.Since(start))
		if ctx.Err() != nil {
			return times, nil
		}
	}
}

func summarise(times [][]time.Duration, took time.Duration) Result {
	all := slices.Concat(times...)
	slices.Sort(all)
	return Result{
		Files: len(times), Appends: len(all), Took: took,
		P50: all[len(all)/2], P99: all[len(all)*99/100],
	}
}
