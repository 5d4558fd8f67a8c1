package control

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"daycare/engine/event"
)

// healthz says that the process answers. It looks at nothing else, so that a
// slow disk does not get a working daemon killed.
func (a *api) healthz(w http.ResponseWriter, _ *http.Request, _ nothing) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, "ok")
}

// metrics is the status in the text format of Prometheus.
func (a *api) metrics(w http.ResponseWriter, r *http.Request, _ nothing) {
	s, err := a.Daemon.Status(r.Context())
	if err != nil {
		a.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	fmt.Fprint(w, exposition(s))
	if m, ok := a.Daemon.(Meter); ok {
		m.WriteMetrics(w)
	}
}

// A Meter is a Daemon that also counts what it did. It writes in the text format
// of Prometheus.
type Meter interface{ WriteMetrics(w io.Writer) }

func exposition(s event.Status) string {
	var b strings.Builder
	gauge := func(name, help string, v float64) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s gauge\n%s %g\n", name, help, name, name, v)
	}
	fmt.Fprintf(&b, "# HELP daycare_info Version of the daemon.\n# TYPE daycare_info gauge\ndaycare_info{version=%q} 1\n", s.Version)
	gauge("daycare_uptime_seconds", "Time since the start.", float64(s.UptimeMS)/1000)
	gauge("daycare_agents", "Agents that are known.", float64(s.Agents))
	gauge("daycare_agents_awake", "Agents in memory.", float64(s.Awake))
	gauge("daycare_inbox_items", "Items waiting in all inboxes.", float64(s.Queued))
	gauge("daycare_permission_requests", "Requests waiting for an answer.", float64(s.Asks))
	gauge("daycare_disk_full", "1 while the disk is full.", truth(s.DiskFull))
	services(&b, "daycare_connector_up", "1 while a connector runs.", s.Connectors)
	services(&b, "daycare_provider_up", "1 while a provider works.", s.Providers)
	return b.String()
}

func services(b *strings.Builder, name, help string, list []event.Service) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name)
	for _, s := range list {
		fmt.Fprintf(b, "%s{id=%q,type=%q} %g\n", name, s.ID, s.Type, truth(s.State == "running"))
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
