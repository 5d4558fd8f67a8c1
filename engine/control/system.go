package control

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/finding"
)

// system serves the daemon as a whole.
type system struct {
	api    *api
	daemon Daemon
}

func systemRows(a *api, s system) []row {
	return []row{
		stream(a, health, healthz),
		stream(a, metric, s.metrics),
		on(a, status, s.status),
		on(a, settings, s.config),
		on(a, reload, s.reload),
		on(a, shutDown, s.shutdown),
		on(a, tools, s.tools),
	}
}

func (s system) status(ctx context.Context, _ nothing) (event.Status, error) {
	v, err := s.daemon.Status(ctx)
	if callerOf(ctx).Rights.Restricted() { // the rest is about all agents
		v = event.Status{Running: v.Running, Version: v.Version, UptimeMS: v.UptimeMS}
	}
	v.Connectors, v.Providers = some(v.Connectors), some(v.Providers)

	return v, err
}

func (s system) config(ctx context.Context, _ nothing) (json.RawMessage, error) {
	v, err := s.daemon.Config(ctx)
	if err != nil {
		return nil, err
	}

	return json.Marshal(v)
}

func (s system) tools(ctx context.Context, _ nothing) (toolsBody, error) {
	v, err := s.daemon.Tools(ctx)
	return toolsBody{some(v)}, err
}

func (s system) reload(ctx context.Context, _ nothing) (reloadBody, error) {
	found, err := s.daemon.Reload(ctx)
	if err != nil {
		return reloadBody{}, err
	}
	if bad := finding.Join(found); bad != nil {
		e := refuse(fault.InvalidConfig, "", "%s", bad)
		e.Findings = found
		return reloadBody{}, e
	}

	return reloadBody{some(found)}, nil
}

func (s system) shutdown(ctx context.Context, _ nothing) (empty, error) {
	return empty{}, s.daemon.Shutdown(ctx)
}

// healthz says that the process answers. It looks at nothing else, so that a
// slow disk does not get a working daemon killed.
func healthz(w http.ResponseWriter, _ *http.Request, _ nothing) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, "ok")
}

// metrics is the status in the text format of Prometheus.
func (s system) metrics(w http.ResponseWriter, r *http.Request, _ nothing) {
	status, err := s.daemon.Status(r.Context())
	if err != nil {
		s.api.fail(w, r, err)
		return
	}

	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	fmt.Fprint(w, exposition(status))
	if m, ok := s.daemon.(Meter); ok {
		m.WriteMetrics(w)
	}
}

// A Meter is a Daemon with metrics, in the text format of Prometheus.
type Meter interface{ WriteMetrics(w io.Writer) }

func exposition(s event.Status) string {
	var b strings.Builder
	gauge := func(name, help string, v float64) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s gauge\n%s %g\n", name, help, name, name, v)
	}
	fmt.Fprintf(&b, "# HELP daycare_info Version of the daemon.\n# TYPE daycare_info gauge\ndaycare_info{version=%q} 1\n", s.Version)
	gauge("daycare_uptime_seconds", "Uptime.", float64(s.UptimeMS)/1000)
	gauge("daycare_agents", "Known agents.", float64(s.Agents))
	gauge("daycare_agents_awake", "Agents in memory.", float64(s.Awake))
	gauge("daycare_inbox_items", "Queued items in all inboxes.", float64(s.Queued))
	gauge("daycare_permission_requests", "Pending approvals.", float64(s.Asks))
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
