package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/engine/cluster"
	"daycare/engine/cluster/clustertest"
	"daycare/engine/disk"
	"daycare/engine/folders"
)

// clustered is the name of the test in which each house is a machine of a cluster.
const clustered = "TestOnACluster"

// What is promised of ends and starts holds on a replicated volume, too, and what the servers have
// when a house has ended is what is in its folders.
func TestOnACluster(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"nothing is lost between sleep and delivery": TestNothingIsLostBetweenSleepAndDelivery,
		"what waits is found":                        TestWhatWaitsIsFoundAtTheNextStart,
		"how far history had come":                   TestAnItemNotesHowFarHistoryHadCome,
		"foreground":                                 TestForegroundIsFoundOnDisk,
		"ended agents stay ended":                    TestAnEndedAgentStaysEnded,
		"ended agents are not in memory":             TestAgentsThatEndedAreNotInMemory,
		"a broken state":                             TestABrokenStateDoesNotReviveAnAgent,
		"agents have ended":                          TestAgentsHaveEndedWhenTheSystemHas,
		"undelivered answers":                        TestAtTheEndUndeliveredAnswersAreKept,
		"nothing is sent after the end":              TestNothingIsSentAfterTheEnd,
		"results during the shutdown":                TestResultsDuringTheShutdownAreRecorded,
		"dropped messages are kept":                  TestADroppedMessageIsKeptUntilItIsDelivered,
		"dropped messages keep their order":          TestLettersUnderSeveralNamesKeepTheirOrder,
		"an agent that could not be woken":           TestAnAgentThatCouldNotBeWokenIsTriedAgain,
	} {
		t.Run(name, test)
	}
}

// servers have the address of the server of each part of TestOnACluster.
var servers sync.Map

// replicate makes a house in a part of TestOnACluster a machine of a cluster. left is called when the
// house has ended, and compares what is in root with what the servers have.
func replicate(t *testing.T, root string, o *Options) (left func() error) {
	t.Helper()
	if !strings.HasPrefix(t.Name(), clustered+"/") {
		return func() error { return nil }
	}
	url, ok := servers.Load(t.Name())
	if !ok {
		url = clustertest.Serve(t, clustertest.Store(t), 0).ClientURL()
		servers.Store(t.Name(), url)
		t.Cleanup(func() { servers.Delete(t.Name()) })
	}
	c := cluster.Config{Servers: []string{url.(string)}, Name: "one", Root: root, Volume: disk.NewVolume(root), Covers: folders.Replicated,
		Log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	node, err := cluster.Join(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	o.Volume, o.Peers = c.Volume, node

	return func() error {
		node.Close()
		c.Root = t.TempDir()
		c.Volume = disk.NewVolume(c.Root)
		if _, err := cluster.Export(context.Background(), c); err != nil {
			return fmt.Errorf("read what the servers have: %w", err)
		}
		return errors.Join(within(root, c.Root), within(c.Root, root))
	}
}

// within compares the replicated files of the agents below one folder with those below another.
func within(one, other string) error {
	at := filepath.Join(one, "agents")
	return filepath.WalkDir(at, func(path string, d fs.DirEntry, err error) error {
		rel, rerr := filepath.Rel(at, path)
		if err = errors.Join(err, rerr); err != nil || !d.Type().IsRegular() {
			return err
		}
		_, name, ok := strings.Cut(filepath.ToSlash(rel), "/")
		if !ok || !folders.Replicated(name) {
			return nil
		}
		mine, err := os.ReadFile(path)
		theirs, oerr := os.ReadFile(filepath.Join(other, "agents", rel))
		if err = errors.Join(err, oerr); err == nil && !bytes.Equal(mine, theirs) {
			err = fmt.Errorf("%s is %q in %s\nand %q in %s", rel, mine, one, theirs, other)
		}

		return err
	})
}
