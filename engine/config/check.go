package config

import (
	"fmt"
	"maps"
	"net"
	"reflect"
	"slices"
	"strings"

	"daycare/engine/finding"
	"daycare/engine/form"
	"daycare/engine/lan"
)

// check finds what is wrong between settings that are right one by one.
func (r *reader) check(c *Config, kinds []ConnectorKind) {
	uniqueIDs(r, "providers", c.Providers, func(p Provider) string { return p.ID })
	uniqueIDs(r, "connectors", c.Connectors, func(k Connector) string { return k.ID })
	r.checkProviders(c)
	r.checkConnectors(c, kinds)
	r.checkLinks(c)
	r.checkSpeech(c)
	r.checkModels(c)
	r.checkRouting(c)
	r.checkControl(c)
	r.checkWeb(c)
	r.checkCluster(c)
	r.checkMCP(c)
	uniqueIDs(r, "a2a.remotes", c.A2A.Remotes, func(a A2ARemote) string { return a.ID })
	r.checkHosts(c.Permissions.Defaults.Hosts)
	r.checkHooks(c.Hooks)
}

// checkHosts warns of hosts that the right to hosts on the Internet does not open.
func (r *reader) checkHosts(hosts []string) {
	for i, host := range hosts {
		if at := entry("permissions.defaults.hosts", i); lan.Plainly(host) {
			r.Tell(finding.Warning, "unused", at, fmt.Sprintf("%s: %q is not on the Internet, so this has no effect", at, host),
				"name it with its port in permissions.defaults.lan")
		}
	}
}

// uniqueIDs reports entries of a list whose id was there before.
func uniqueIDs[T any](r *reader, list string, all []T, id func(T) string) {
	seen := map[string]int{}
	for i, e := range all {
		at := entry(list, i, "id")
		// Ids are the names of folders too, and those of some disks ignore case.
		name := strings.ToLower(id(e))
		if line := seen[name]; name != "" && line != 0 {
			r.Tell(finding.Error, "duplicate-id", at, fmt.Sprintf("%s: found %q a second time, first on line %d", at, id(e), line), "")
			continue
		}
		seen[name] = r.Node(at).Line
	}
}

func (r *reader) checkProviders(c *Config) {
	for i, p := range c.Providers {
		if at := entry("providers", i, "model"); p.Model == "" && p.Type != "" && !r.Has(at) {
			r.Tell(finding.Error, "missing", at, at+" is missing: this service has no default", "")
		}
	}
}

// reservedIDs are the ids of daycare's own connectors. Messages from the terminal and from
// editors are the owner's.
var reservedIDs = map[string]string{"api": "the control API", "mcp": "MCP clients", "terminal": "the terminal",
	"web": "the page", "acp": "editors (daycare acp)"}

// shared are the types of connectors whose clients come through the control API.
var shared = []string{"openai", "a2a"}

func (r *reader) checkConnectors(c *Config, kinds []ConnectorKind) {
	for i, k := range c.Connectors {
		at := func(key string) string { return entry("connectors", i, key) }
		if what, reserved := reservedIDs[k.ID]; reserved {
			r.Bad(at("id"), `: found %q, which is reserved for %s; use another id`, k.ID, what)
		}
		if k.Pairing && k.Type == "webhook" {
			r.Tell(finding.Warning, "unused", at("pairing"), at("pairing")+": a webhook has secrets instead of users", "take it out")
		}
		if k.Pairing && slices.Contains(shared, k.Type) {
			r.Tell(finding.Warning, "unused", at("pairing"), at("pairing")+": clients have tokens instead of users", "take it out")
		}
		if slices.Contains(shared, k.Type) && slices.ContainsFunc(c.Connectors[:i], func(o Connector) bool { return o.Type == k.Type }) {
			r.Bad(at("type"), ": only one connector can be of type %s, because all clients use the same paths; remove one", k.Type)
		}
		for _, owner := range k.Owners {
			if !slices.ContainsFunc(k.Allow, func(id string) bool { return strings.EqualFold(id, owner) }) {
				r.Tell(finding.Error, "bad-value", at("owners"),
					fmt.Sprintf("%s: %q is not in allow, so their messages are refused", at("owners"), owner),
					"add the id to allow of this connector, or remove it from owners")
			}
		}
		if k.Type != "" && len(kinds) > 0 {
			r.checkConnector(i, k, kinds)
		}
	}
}

// checkConnector adds what a connector's own settings are warned of. Errors in them are for
// whoever makes it: they keep only that connector from running.
func (r *reader) checkConnector(i int, k Connector, kinds []ConnectorKind) {
	var types []string
	for _, kind := range kinds {
		if kind.Type == k.Type {
			r.Found = append(r.Found, slices.DeleteFunc(kind.Check(k), func(f finding.Finding) bool {
				return f.Severity == finding.Error
			})...)
			return
		}
		types = append(types, kind.Type)
	}

	at, remedy := entry("connectors", i, "type"), ""
	if near := form.Nearest(k.Type, types); near != "" {
		remedy = fmt.Sprintf("did you mean %q?", near)
	}
	r.Tell(finding.Error, "bad-value", at, fmt.Sprintf("%s: found %q, allowed: %s", at, k.Type, strings.Join(types, ", ")), remedy)
}

// checkModels warns of overrides that nothing uses.
func (r *reader) checkModels(c *Config) {
	for i, m := range c.Models {
		id, at := m.Provider, entry("models", i, "provider")
		if id == "" || len(c.Providers) == 0 || slices.ContainsFunc(c.Providers, func(p Provider) bool { return p.ID == id }) {
			continue
		}
		r.Tell(finding.Warning, "unused", at, fmt.Sprintf("%s: no provider has the id %q", at, id),
			"use an id from the list providers")
	}
}

// checkRouting reports routes to a provider that there is not. Whether a provider has the model
// is known where the catalogue is.
func (r *reader) checkRouting(c *Config) {
	if len(c.Providers) == 0 {
		return // the environment says which there are
	}
	routes := c.Routing.Routes()
	for _, key := range slices.Sorted(maps.Keys(routes)) {
		to := routes[key]
		id, _, _ := strings.Cut(to, "/")
		var names []string
		known := false
		for _, p := range c.Providers {
			names = append(names, p.ID, p.Model)
			known = known || p.ID == id || p.Model == to
		}
		if known {
			continue
		}
		remedy := "write PROVIDER or PROVIDER/MODEL, with a PROVIDER of the list providers"
		if near := form.Nearest(id, names); near != "" {
			remedy = fmt.Sprintf("did you mean %q?", near)
		}
		r.Tell(finding.Error, "bad-value", "routing."+key,
			fmt.Sprintf("routing.%s: found %q, and no provider has that id or model", key, to), remedy)
	}
}

// checkControl keeps the API from being opened to more than is guarded.
func (r *reader) checkControl(c *Config) {
	const at = "control.listen"
	if (c.Control.TLSCert == "") != (c.Control.TLSKey == "") {
		r.Tell(finding.Error, "missing", at, "control: found one of tlsCert and tlsKey, allowed: both or neither", "")
		return
	}
	if c.Control.Listen == "" {
		return
	}
	if c.Control.Token.IsZero() {
		r.Tell(finding.Error, "missing", at, "control.listen needs a token", "set one with: daycare auth set control")
	}
	if host, _, err := net.SplitHostPort(c.Control.Listen); err == nil && !lan.Loopback(host) && c.Control.TLSCert == "" {
		r.Tell(finding.Error, "missing", at,
			fmt.Sprintf("control.listen: %q is not a loopback address and needs tlsCert and tlsKey", host),
			"listen on 127.0.0.1, or name a certificate and its key")
	}
}

// checkWeb keeps the page from being opened to more than is guarded.
func (r *reader) checkWeb(c *Config) {
	if host, _, err := net.SplitHostPort(c.Web.Listen); err == nil && !lan.Loopback(host) && c.Control.TLSCert == "" {
		r.Tell(finding.Error, "missing", "web.listen",
			fmt.Sprintf("web.listen: %q is not a loopback address and needs control.tlsCert and control.tlsKey", host),
			"listen on 127.0.0.1, or name a certificate and its key")
	}
	for i, name := range c.Web.Hosts {
		if name == "" || strings.ContainsAny(name, "/@* ") {
			r.Tell(finding.Error, "bad-value", fmt.Sprintf("web.hosts[%d]", i),
				fmt.Sprintf("web.hosts: found %q, allowed: a name such as box.example.org, or with a port", name), "")
		}
	}
}

// Decode reads a connector's own options into a pointer to a struct with the tags of engine/form.
// Fields that are not in the file keep their value. With findings of severity Error the connector
// does not start.
func (k Connector) Decode(into any) []finding.Finding {
	f := kind.Node(k.file, k.Raw)
	var shared []string
	for _, field := range form.Fields(reflect.TypeFor[Connector]()) {
		shared = append(shared, field.Key)
	}
	f.Read(into, shared...)
	for i := range f.Found {
		f.Found[i].Reason = "connector " + k.ID + ": " + f.Found[i].Reason
	}

	return f.Found
}

// A ConnectorKind is a type of connectors, with the function that checks the settings of one.
type ConnectorKind struct {
	Type  string
	Check func(Connector) []finding.Finding
}

// Invalid returns the findings for an error about the connector's own settings: one per line, each
// of which may begin with a key.
func (k Connector) Invalid(err error) (found []finding.Finding) {
	if err == nil || k.Raw == nil {
		return nil
	}
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSuffix(line, "\n")
		at, key := k.Raw, line[:max(strings.IndexAny(line, ":[. "), 0)]
		for i := 0; i+1 < len(k.Raw.Content); i += 2 {
			if k.Raw.Content[i].Value == key {
				at = k.Raw.Content[i+1]
			}
		}
		found = append(found, finding.Finding{ID: kind.ID + "-bad-value", Severity: finding.Error, File: k.file,
			Line: at.Line, Column: at.Column, Reason: "connector " + k.ID + ": " + line})
	}

	return found
}
