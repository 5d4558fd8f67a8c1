package machines

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Options say what to play.
type Options struct {
	Binary   string // a daycare with a NATS server
	Dir      string // where the worlds live; "": a temporary folder
	Length   Length
	Way      string // "": all
	Bugs     bool   // show that each seeded bug is caught, instead
	Bug      string // only this one
	Upgrade  string // another daycare, an older one, with which machines start; they get this one while users talk. "": all ways to die
	Progress func(done, of int, what string)
	Log      io.Writer // what failed as it happens
}

// A Length is how much is played.
type Length int

// Lengths.
const (
	Default Length = iota
	Short          // a sample, for every change
	Full           // for a release
)

// A harness plays worlds.
type harness struct {
	Options

	mu     sync.Mutex
	report *Report
	done   int
	of     int
}

// first is the program that machines start with.
func (h *harness) first() string { return cmp.Or(h.Upgrade, h.Binary) }

// Run plays everything that o asks for. An error means that the harness itself could not work;
// what the machines did wrong is in the report.
func Run(ctx context.Context, o Options) (*Report, error) {
	h := &harness{Options: o, report: &Report{}}
	if h.Progress == nil {
		h.Progress = func(int, int, string) {}
	}
	dir, err := os.MkdirTemp(o.Dir, "daycare-machines-")
	if err != nil {
		return nil, fmt.Errorf("make the folder of the machines: %w", err)
	}
	h.Dir = dir
	began := time.Now()
	if o.Bugs {
		err = h.bugs(ctx)
	} else {
		err = h.all(ctx)
	}
	h.report.Seconds = time.Since(began).Seconds()
	if err == nil && h.report.OK() {
		return h.report, os.RemoveAll(dir)
	}
	h.report.Dir = dir

	return h.report, err
}

// all plays each way to die: in worlds beside each other, as all wait for leases more than they compute.
func (h *harness) all(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type place struct{ servers, beside int }
	plans := map[place][]way{}
	for _, w := range h.ways() {
		if h.Way == "" || h.Way == w.name {
			at := place{w.servers, w.beside}
			plans[at] = append(plans[at], w)
			h.of++
		}
	}
	if h.of == 0 {
		return fmt.Errorf("there is no way to die %q", h.Way)
	}

	var playing sync.WaitGroup
	errs := make(chan error, len(plans))
	for at, plan := range plans {
		playing.Go(func() {
			if err := h.play(ctx, fmt.Sprintf("servers-%d-%d", at.servers, at.beside), at.servers, plan); err != nil {
				errs <- err
				cancel()
			}
		})
	}
	playing.Wait()
	close(errs)

	return <-errs
}

// play plays ways to die in one world.
func (h *harness) play(ctx context.Context, name string, servers int, plan []way) error {
	w, err := h.newWorld(name, servers, "")
	if err != nil {
		return err
	}
	defer w.end()
	for i, one := range plan {
		row, err := w.suffer(ctx, one, i)
		h.mu.Lock()
		h.report.Rows = append(h.report.Rows, row)
		h.done++
		h.Progress(h.done, h.of, one.name)
		h.mu.Unlock()
		if err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
	}

	return nil
}
