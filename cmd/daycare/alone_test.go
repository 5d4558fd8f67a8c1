package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"daycare/engine/control"
	"daycare/engine/lazyregexp"
)

// What the client of a cluster may take of the start of a program that uses none.
const (
	clientInitBytes  = 80 << 10
	clientInitAllocs = 800
)

// initLine is what the runtime says of the initialisation of a package.
var initLine = lazyregexp.New(`(?m)^init (\S+) @.*, (\d+) bytes, (\d+) allocs$`)

// A daemon that is in no cluster has no goroutine of one, and its start takes next to nothing for what a cluster needs.
func TestADaemonAloneHasNothingOfACluster(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	home := filepath.Join(work, ".daycare")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Args = []string{"daycare", "--workspace", work, "--no-input", "start"}
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1", "GOTRACEBACK=all", "XDG_STATE_HOME="+os.DevNull)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		c, err := control.Dial(home)
		if err == nil {
			s, serr := c.Status(ctx)
			c.Close()
			if err = serr; err == nil && s.Running {
				break
			}
		}
		if ctx.Err() != nil {
			_ = cmd.Process.Kill()
			t.Fatalf("the daemon does not answer: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the signal ends it with an error

	client := regexp.MustCompile(`^github\.com/nats-io/(nuid|nkeys|nats%2ego|nats\.go/)|^github\.com/synadia-io/|^daycare/engine/cluster`)
	bytes, allocs := 0, 0
	for _, m := range initLine.FindAllStringSubmatch(said.String(), -1) {
		if client.MatchString(m[1]) {
			var b, a int
			if _, err := fmt.Sscan(m[2]+" "+m[3], &b, &a); err != nil {
				t.Fatal(err)
			}
			bytes, allocs = bytes+b, allocs+a
		}
	}
	if allocs == 0 || bytes > clientInitBytes || allocs > clientInitAllocs {
		t.Errorf("the client of a cluster takes %d bytes in %d allocations, want at most %d in %d", bytes, allocs, clientInitBytes,
			clientInitAllocs)
	}
	stacks := said.String()
	if n := strings.Count(stacks, "\ngoroutine "); n < 5 {
		t.Fatalf("%d goroutines in the dump", n)
	}
	for _, of := range []string{"daycare/engine/cluster.", "github.com/nats-io/"} {
		if i := strings.Index(stacks[strings.Index(stacks, "\ngoroutine "):], of); i >= 0 {
			t.Errorf("a goroutine is in %s", of)
		}
	}
}
