package config

import (
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"go.yaml.in/yaml/v3"

	"daycare/engine/finding"
	"daycare/engine/lan"
)

// check finds what is wrong between settings that are right one by one.
func (r *reader) check(c *Config, doc *yaml.Node, connectorTypes []string) {
	r.uniqueIDs(doc, "providers")
	r.uniqueIDs(doc, "connectors")
	r.checkProviders(c, doc)
	r.checkConnectors(c, doc, connectorTypes)
	r.checkModels(c, doc)
	r.checkControl(c, member(doc, "control"))
	r.checkHosts(member(member(member(doc, "permissions"), "defaults"), "hosts"))
}

// checkHosts warns of hosts that the right to hosts on the Internet does not open.
func (r *reader) checkHosts(list *yaml.Node) {
	if list == nil || list.Kind != yaml.SequenceNode {
		return
	}
	for i, n := range list.Content {
		host := resolve(n).Value
		if !lan.Plainly(host) {
			continue
		}
		r.add(n, finding.Warning, "settings-unused",
			fmt.Sprintf("permissions.defaults.hosts[%d]: %q is not on the Internet, so this opens nothing", i, host),
			"name it with its port in permissions.defaults.lan")
	}
}

// place is where a key of a mapping stands, or the mapping if the key came by a
// merge.
func place(n *yaml.Node, key string) *yaml.Node {
	if m := member(n, key); m != nil {
		return m
	}
	return n
}

// uniqueIDs reports entries of a list whose id was there before.
func (r *reader) uniqueIDs(parent *yaml.Node, key string) {
	seen := map[string]int{}
	for i, n := range entries(parent, key, 1<<20) {
		id := member(n, "id")
		if id == nil || id.Value == "" {
			continue
		}
		// Ids are the names of folders too, and those of some disks ignore case.
		name := strings.ToLower(id.Value)
		if line := seen[name]; line != 0 {
			r.bad(id, "settings-duplicate-id", fmt.Sprintf("%s[%d].id:", key, i),
				fmt.Sprintf("found %q a second time, first on line %d", id.Value, line))
			continue
		}
		seen[name] = id.Line
	}
}

func (r *reader) checkProviders(c *Config, doc *yaml.Node) {
	for i, n := range entries(doc, "providers", len(c.Providers)) {
		if p := c.Providers[i]; p.Model == "" && p.Type != "" && member(n, "model") == nil {
			r.bad(n, "settings-missing", fmt.Sprintf("providers[%d].model", i), "is missing: there is no default for this service")
		}
	}
}

func (r *reader) checkConnectors(c *Config, doc *yaml.Node, types []string) {
	for i, n := range entries(doc, "connectors", len(c.Connectors)) {
		k := c.Connectors[i]
		if k.ID == "api" {
			r.bad(place(n, "id"), "settings-bad-value", fmt.Sprintf("connectors[%d].id:", i),
				`found "api", allowed: any other; this one is the control API's`)
		}
		for _, owner := range k.Owners {
			if !slices.ContainsFunc(k.Allow, func(id string) bool { return strings.EqualFold(id, owner) }) {
				r.add(place(n, "owners"), finding.Error, "settings-bad-value",
					fmt.Sprintf("connectors[%d].owners: %q is not in allow, so nothing of theirs is read", i, owner),
					"add the id to allow of this connector, or take it out of owners")
			}
		}
		if k.Type == "" || len(types) == 0 || slices.Contains(types, k.Type) {
			continue
		}
		remedy := ""
		if near := nearest(k.Type, types); near != "" {
			remedy = fmt.Sprintf("did you mean %q?", near)
		}
		r.add(place(n, "type"), finding.Error, "settings-bad-value",
			fmt.Sprintf("connectors[%d].type: found %q, allowed: %s", i, k.Type, strings.Join(types, ", ")), remedy)
	}
}

// checkModels warns of overrides that nothing uses.
func (r *reader) checkModels(c *Config, doc *yaml.Node) {
	if len(c.Providers) == 0 {
		return
	}
	for i, n := range entries(doc, "models", len(c.Models)) {
		id := c.Models[i].Provider
		if id == "" || slices.ContainsFunc(c.Providers, func(p Provider) bool { return p.ID == id }) {
			continue
		}
		r.add(place(n, "provider"), finding.Warning, "settings-unused",
			fmt.Sprintf("models[%d].provider: found %q, and no provider has that id", i, id), "use an id of the list providers")
	}
}

// checkControl keeps the API from being opened to more than is guarded.
func (r *reader) checkControl(c *Config, n *yaml.Node) {
	at := place(n, "listen")
	if at == nil {
		at = &yaml.Node{} // it is all from the environment
	}
	if (c.Control.TLSCert == "") != (c.Control.TLSKey == "") {
		r.bad(at, "settings-missing", "control:", "found one of tlsCert and tlsKey, allowed: both or neither")
		return
	}
	if c.Control.Listen == "" {
		return
	}
	if c.Control.Token.IsZero() {
		r.add(at, finding.Error, "settings-missing", "control.listen needs a token", "set one with: daycare auth set control")
	}
	if host, _, err := net.SplitHostPort(c.Control.Listen); err == nil && !loopback(host) && c.Control.TLSCert == "" {
		r.add(at, finding.Error, "settings-missing",
			fmt.Sprintf("control.listen: %q is not a loopback address and needs tlsCert and tlsKey", host),
			"listen on 127.0.0.1, or name a certificate and its key")
	}
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// Decode reads a connector's own options into a pointer to a struct with the
// tags of this package (json for the key; check, allow, min and max for what is
// allowed). Fields that are not in the file keep their value. The connector
// does not start with findings of severity Error.
func (k Connector) Decode(into any) []finding.Finding {
	if k.Raw == nil {
		return nil
	}
	r := &reader{file: k.file}
	for _, f := range fields(connectorType) {
		r.alien = append(r.alien, f.key)
	}
	values, ok := r.read(k.Raw, reflect.TypeOf(into).Elem(), "", "")
	for i := range r.found {
		r.found[i].Reason = "connector " + k.ID + ": " + r.found[i].Reason
	}
	if !ok || finding.Join(r.found) != nil {
		return r.found
	}
	conf := &mapstructure.DecoderConfig{Result: into}
	decoding(conf)
	d, err := mapstructure.NewDecoder(conf)
	if err == nil {
		err = d.Decode(values)
	}
	if err != nil {
		r.bad(k.Raw, "settings-wrong-type", "connector "+k.ID+":", err.Error())
	}
	return r.found
}
