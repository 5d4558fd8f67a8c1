package config

import (
	"fmt"
	"net/url"

	"daycare/engine/finding"
	"daycare/engine/lan"
)

// A Cluster has other machines work on the same agents. Without servers this machine works
// alone.
type Cluster struct {
	Servers  []string `json:"servers"`                           // of NATS with JetStream: nats://HOST:PORT or tls://HOST:PORT
	Name     string   `json:"name"`                              // of this machine; "": its host name
	Replicas int      `json:"replicas" min:"1" max:"5"`          // servers that keep each message, where the cluster is new
	OwnDisk  string   `json:"ownDisk" allow:"auto|always|never"` // whether what is acknowledged must be on the disk of this machine
	User     string   `json:"user"`                              // of NATS; "": none
	TLSCA    string   `json:"tlsCA"`                             // PEM file of who signs the servers' certificates
	TLSCert  string   `json:"tlsCert"`                           // PEM file of this machine's own; "": none
	TLSKey   string   `json:"tlsKey"`

	Password Secret `json:"-"` // DAYCARE_SECRET_CLUSTER or auth.json
}

// On reports whether there are other machines.
func (c Cluster) On() bool { return len(c.Servers) > 0 }

// A Defect of a Cluster says what is wrong with one of its settings.
type Defect struct{ Key, Reason, Remedy string }

// Check returns what keeps a machine from joining. Whoever can write to the log of an agent is
// that agent: so beyond loopback there are credentials and TLS.
func (c Cluster) Check() *Defect {
	for i, address := range c.Servers {
		at := entry("cluster.servers", i)
		u, err := url.Parse(address)
		if err != nil || u.Hostname() == "" || u.Scheme != "nats" && u.Scheme != "tls" {
			return &Defect{at, fmt.Sprintf("%s: found %q, allowed: nats://HOST:PORT or tls://HOST:PORT", at, address), ""}
		}
		if u.User != nil {
			return &Defect{at, at + " has a login in it", "set cluster.user, and the password with: daycare auth set cluster"}
		}
		if lan.Loopback(u.Hostname()) {
			continue
		}
		if u.Scheme != "tls" {
			return &Defect{at, fmt.Sprintf("%s: %s is not on this machine and needs TLS", at, u.Host), "write tls://" + u.Host}
		}
		if c.TLSCert == "" && (c.User == "" || c.Password.IsZero()) {
			return &Defect{at, fmt.Sprintf("%s: %s is not on this machine and needs credentials", at, u.Host),
				"set cluster.user, and the password with: daycare auth set cluster"}
		}
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return &Defect{"cluster.tlsCert", "cluster: found one of tlsCert and tlsKey, allowed: both or neither", ""}
	}

	return nil
}

func (r *reader) checkCluster(c *Config) {
	if d := c.Cluster.Check(); d != nil {
		r.Tell(finding.Error, "bad-value", d.Key, d.Reason, d.Remedy)
	}
}
