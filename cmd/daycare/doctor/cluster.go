package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"daycare/cmd/daycare/peers"
	"daycare/engine/control"
	"daycare/engine/finding"
)

// serverWait is how long a server of the cluster may take to accept a connection.
const serverWait = 2 * time.Second

// checkCluster looks at what this machine needs of its cluster: which servers there are, whether they can be
// reached, and what other machines went on with.
func checkCluster(d *doctor) error {
	c := d.conf.Cluster
	if !c.On() {
		var err error
		if c.Servers, err = peers.Membership(d.at.Data); err != nil {
			reason, remedy, _ := strings.Cut(err.Error(), "\n")
			d.report(finding.Error, "cluster-file", peers.File(d.at.Data), 0, reason+": the daemon does not start", remedy)
		}
		if defect := c.Check(); defect != nil { // those of the settings were reported with their place
			d.report(finding.Error, "cluster-access", peers.File(d.at.Data), 0, defect.Reason, defect.Remedy)
		}
	}

	away, err := os.ReadDir(filepath.Join(d.at.Data, "away"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range away {
		d.report(finding.Info, "cluster-away", filepath.Join(d.at.Data, "away", e.Name()), 0,
			"another machine took over this agent while this machine had something that was not in the cluster yet",
			"Check whether it contains your edits, then remove the folder.")
	}
	d.reachServers(c.Servers)
	if len(c.Servers) > 0 && d.held {
		d.compareMachines()
	}

	return nil
}

// compareMachines reports what other machines have otherwise than this one, though all should have the same. A daemon
// that does not answer is reported elsewhere.
func (d *doctor) compareMachines() {
	client, err := control.Dial(d.at.Data)
	if err != nil {
		return
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*serverWait)
	defer cancel()
	s, err := client.Status(ctx)
	if err != nil {
		return
	}
	for _, m := range s.Machines {
		if m.LastError != "" {
			d.report(finding.Error, "cluster-failing", "", 0, m.LastError, "Until then no message is accepted: see docs/cluster.md.")
		}
		if m.Differs == "" {
			continue
		}
		d.report(finding.Warning, "cluster-differs", "", 0, fmt.Sprintf("%s %s of the cluster has %s", m.Type, m.ID, m.Differs),
			"Give all machines the same settings.yaml, the same version and the right time: an agent can run on any of them.")
	}
}

// reachServers reports the servers of the cluster that accept no connection.
func (d *doctor) reachServers(servers []string) {
	errs := make([]error, len(servers))
	var wait sync.WaitGroup
	for i, server := range servers {
		wait.Go(func() { errs[i] = reach(server) })
	}
	wait.Wait()

	failed := 0
	for _, err := range errs {
		if err != nil {
			failed++
		}
	}
	for i, err := range errs {
		switch {
		case err == nil:
		case 2*failed >= len(errs):
			d.report(finding.Error, "cluster-unreachable", "", 0, fmt.Sprintf("%s of the cluster cannot be reached: %v; without most of "+
				"the servers no message is accepted", servers[i], err), "Start it, with: daycare cluster server; or check the network.")
		default:
			d.report(finding.Warning, "cluster-server", "", 0, fmt.Sprintf("%s of the cluster cannot be reached: %v", servers[i], err),
				"Start it: without one more of the servers no message is accepted.")
		}
	}
}

// reach connects to a server of NATS, and says nothing to it.
func reach(server string) error {
	u, err := url.Parse(server)
	if err != nil {
		return err
	}
	port := u.Port()
	if port == "" {
		port = "4222"
	}
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(u.Hostname(), port), serverWait)
	if err != nil {
		return err
	}

	return conn.Close()
}
