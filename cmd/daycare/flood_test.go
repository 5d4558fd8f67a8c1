//go:build !race

package main

import (
	"os/exec"
	"testing"
	"time"

	"daycare/cmd/daycare/bench"
)

// A small flood of a real daemon, and a short soak: nothing is lost, nothing left
// over. daycare bench flood and soak are the same in their full size.
func TestSmallFlood(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a daemon a minute")
	}
	t.Parallel() // it mostly waits for the agents to leave memory
	binary, err := exec.LookPath("daycare")
	if err != nil {
		t.Fatal(err)
	}

	f := bench.Flood{Dir: t.TempDir(), Binary: binary, Senders: 40, Each: 20, ToolBytes: 50_000_000,
		Progress: func(what string) { t.Log(what) }}
	rows, err := f.Run(t.Context())
	if err != nil {
		t.Errorf("%v\n%+v", err, rows)
	}
	if len(rows) < 10 {
		t.Errorf("%d rows only: %+v", len(rows), rows)
	}
}

func TestShortSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a daemon a minute")
	}
	t.Parallel() // it mostly waits for the agents to leave memory
	binary, err := exec.LookPath("daycare")
	if err != nil {
		t.Fatal(err)
	}

	s := bench.Soak{Dir: t.TempDir(), Binary: binary, For: 4 * time.Second, Agents: 16, Progress: func(what string) { t.Log(what) }}
	rows, _, err := s.Run(t.Context())
	if err != nil {
		t.Errorf("%v\n%+v", err, rows)
	}
}
