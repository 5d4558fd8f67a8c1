package control

import (
	"fmt"
	"strings"

	"daycare/engine/event"
)

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
