package control

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/finding"
)

// system serves the daemon as a whole.
type system struct {
	api    *api
	daemon Daemon
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
