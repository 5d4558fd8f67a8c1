package peers

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"daycare/engine/address"
	"daycare/engine/cluster"
	"daycare/engine/cluster/clustertest"
	"daycare/engine/config"
	"daycare/engine/disk"
	"daycare/engine/workspace"
)

// at loads a workspace and joins the cluster on a server.
func at(t *testing.T, root, server string) *Machines {
	t.Helper()
	return hearing(t, root, server, nil)
}

// hearing is at of a machine that hears of limits that were raised.
func hearing(t *testing.T, root, server string, raised func()) *Machines {
	t.Helper()
	p := Place{Workspace: workspace.At(root), Raised: raised, Log: slog.New(slog.DiscardHandler)}
	if err := os.MkdirAll(p.Workspace.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	p.Volume = disk.NewVolume(p.Workspace.Data)
	var err error
	if p.Index, _, err = address.Load(p.Volume, p.Workspace.Data, p.Log); err != nil {
		t.Fatal(err)
	}
	m, err := Join(t.Context(), p, config.Cluster{Servers: []string{server}, Name: filepath.Base(root)}, nil)
	if err != nil {
		t.Fatal(err)
	}

	return m
}

// leave ends a machine.
func leave(t *testing.T, m *Machines) {
	t.Helper()
	m.Close()
	if err := m.Index.Close(); err != nil {
		t.Error(err)
	}
}

// own makes a machine the owner of an agent, once the one that died with it is known to be gone.
func own(t *testing.T, m *Machines, agent address.Meta) {
	t.Helper()
	err := m.node.Acquire(agent.ID)
	for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); err = m.node.Acquire(agent.ID) {
		time.Sleep(20 * time.Millisecond)
	}
	if err == nil {
		err = m.node.Announce(agent, false)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// An agent that was removed while a machine was off does not come back with that machine, whether
// it had given the agent up or died with it; a folder that someone put there is a new agent.
func TestRemovedWhileAMachineWasOff(t *testing.T) {
	for _, died := range []bool{false, true} {
		t.Run(fmt.Sprint("died: ", died), func(t *testing.T) { removedMeanwhile(t, died) })
	}
}

func removedMeanwhile(t *testing.T, died bool) {
	server := clustertest.Serve(t, clustertest.Store(t), 0).ClientURL()
	roots := []string{t.TempDir(), t.TempDir()}
	a := at(t, roots[0], server)
	made, err := a.Index.Create(address.Descriptor{Type: address.User, Connector: "x", ChannelID: "one"}, []byte("{}\n"))
	if err != nil {
		t.Fatal(err)
	}
	own(t, a, made)
	a.node.Release(made.ID, false)
	b := at(t, roots[1], server)
	own(t, b, made) // and so it has a folder there, too
	if !died {
		b.node.Release(made.ID, false)
	}
	leave(t, b)

	own(t, a, made)
	trash, err := a.Index.Remove(made.ID)
	if err == nil {
		err = a.node.Retire(made.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	b = at(t, roots[1], server)
	defer leave(t, b)
	folder := filepath.Join(b.Workspace.Data, "agents", made.ID)
	if _, ok := b.Index.Get(made.ID); ok || disk.Exists(folder) || len(b.fresh) > 0 {
		t.Errorf("the removed agent is back: known %v, folder %v, to be introduced %q", ok, disk.Exists(folder), b.fresh)
	}

	leave(t, a)
	if err := os.Rename(trash, filepath.Join(a.Workspace.Data, "agents", made.ID)); err != nil {
		t.Fatal(err)
	}
	a = at(t, roots[0], server)
	defer leave(t, a)
	if !slices.Contains(a.fresh, made.ID) {
		t.Error("an agent that was moved back from the trash is not brought to the other machines")
	}
}

// A workspace that joined a cluster is never worked on without it, whatever its file says.
func TestMembership(t *testing.T) {
	home := t.TempDir()
	if servers, err := Membership(home); err != nil || servers != nil {
		t.Errorf("a workspace without the file: %q, %v", servers, err)
	}
	for _, text := range []string{"", "{}", `{"servers":[]}`, "\x00\x00", "[]"} {
		if err := os.WriteFile(File(home), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if servers, err := Membership(home); err == nil {
			t.Errorf("%q: %q, and no error", text, servers)
		}
		if _, err := Join(context.Background(), Place{Workspace: workspace.OfData(home)}, config.Cluster{}, nil); err == nil {
			t.Errorf("%q: the workspace is worked on alone", text)
		}
	}
	m := &Machines{Place: Place{Workspace: workspace.OfData(home), Volume: disk.NewVolume(home)}}
	if err := m.remember([]string{"nats://127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	if servers, err := Membership(home); err != nil || !slices.Equal(servers, []string{"nats://127.0.0.1:1"}) {
		t.Errorf("after a join: %q, %v", servers, err)
	}
}

// A difference between machines is described in words; what is not known of one is not a difference.
func TestDiffers(t *testing.T) {
	own := cluster.Machine{About: cluster.About{Program: "2", Settings: map[string]string{"agents": "a", "tools": "b"}}}
	for _, test := range []struct {
		other cluster.Machine
		want  string
	}{
		{own, ""},
		{cluster.Machine{}, "version unknown"},
		{cluster.Machine{About: own.About, Skew: -time.Hour}, "a clock that is 1h0m0s off that of the servers"},
		{cluster.Machine{About: cluster.About{Program: "1", Settings: map[string]string{"agents": "x", "mcp": "c", "tools": "b"}}},
			"version 1; other settings of agents, mcp"},
	} {
		if got := differs(own, test.other); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}
