package doctor

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"daycare/engine/freeport"
)

// What keeps a machine from its cluster is found without the daemon, and what another machine went on with.
func TestDoctorLooksAtTheCluster(t *testing.T) {
	w := newWard(t)
	clusterFindings := func() (list []string) {
		for _, f := range w.found(w.examine()) {
			if strings.HasPrefix(f, "cluster-") {
				id, _, _ := strings.Cut(f, " ")
				list = append(list, id)
			}
		}
		return list
	}
	join := func(servers ...string) {
		t.Helper()
		text := `{"servers":["` + strings.Join(servers, `","`) + `"]}`
		if err := os.WriteFile(filepath.Join(w.root, "cluster.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	up, down := fmt.Sprint("nats://", listener.Addr()), "nats://"+freeport.Take(t)

	for _, test := range []struct {
		servers, want []string
	}{
		{[]string{up}, nil},
		{[]string{up, up, down}, []string{"cluster-server"}},
		{[]string{up, down}, []string{"cluster-unreachable"}},
		{[]string{down}, []string{"cluster-unreachable"}},
		{[]string{"nats://192.0.2.1:x"}, []string{"cluster-access", "cluster-unreachable"}},
		{[]string{""}, []string{"cluster-access", "cluster-unreachable"}},
	} {
		join(test.servers...)
		if got := clusterFindings(); !slices.Equal(got, test.want) {
			t.Errorf("servers %q: %q, want %q", test.servers, got, test.want)
		}
	}

	if err := os.MkdirAll(filepath.Join(w.root, "away", "one"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.root, "cluster.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := clusterFindings(), []string{"cluster-away", "cluster-file"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// In a cluster, histories have calls that another machine made and counts: they are not missing here.
func TestCallsOfOtherMachinesAreNotMissing(t *testing.T) {
	w := newWard(t)
	w.orphans()
	missing := func() bool {
		return slices.ContainsFunc(w.found(w.examine()), func(f string) bool { return strings.HasPrefix(f, "usage-missing") })
	}
	if !missing() {
		t.Error("alone, a call that is in a history only is not missing")
	}
	w.raw("cluster.json", `{"servers":["nats://`+freeport.Take(t)+`"]}`, 0o600)
	if missing() {
		t.Error("in a cluster, a call in a history is missing")
	}
}
