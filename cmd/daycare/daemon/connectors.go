package daemon

import (
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"reflect"
	"sync"

	"daycare/cmd/daycare/plugins"
	"daycare/connectors/a2a"
	"daycare/connectors/chat"
	"daycare/engine"
	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/finding"
)

// connectorSet is the connectors of the settings, each remade when its settings or its
// secrets are no longer those that it was made of.
type connectorSet struct {
	current func() *config.Config
	host    chat.Host
	log     *slog.Logger

	mu    sync.Mutex
	built []configured
}

// configured is one connector and what it was made of.
type configured struct {
	id       string
	settings any
	secrets  *plugins.Vault
	conn     engine.Connector // nil: it could not be made
	err      error            // why; with conn: why the newer settings do not count
}

func newConnectorSet(current func() *config.Config, host chat.Host, log *slog.Logger) *connectorSet {
	return &connectorSet{current: current, host: host, log: log}
}

// build makes what the active settings ask for and lists all that can run. One that
// cannot be made (its secret is missing) does not run, and a warning says why; the
// others do. Where the settings became wrong and the secrets are as they were, the
// connector continues as before.
func (p *connectorSet) build() (all []engine.Connector, found []finding.Finding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := map[string]configured{}
	for _, k := range p.built {
		before[k.id] = k
	}

	p.built = nil
	for _, s := range p.current().Connectors {
		k := p.buildOne(s, before[s.ID])
		if k.err != nil {
			file, line, column := s.Place()
			found = append(found, finding.Finding{ID: "settings-connector", Severity: finding.Warning, File: file,
				Line: line, Column: column, Reason: k.err.Error()})
		}
		if k.conn != nil {
			all = append(all, k.conn)
		}

		p.built = append(p.built, k)
	}

	return all, found
}

func (p *connectorSet) buildOne(s config.Connector, old configured) configured {
	k := configured{id: s.ID, settings: plain(s), secrets: plugins.NewVault(p.current)}
	if old.conn != nil && reflect.DeepEqual(k.settings, old.settings) && old.secrets.Good() {
		old.err = nil
		return old
	}
	if k.conn, k.err = plugins.NewConnector(k.secrets, s, p.host, p.log); k.err == nil {
		return k
	}

	k.conn = nil // not an interface of a nil pointer
	if old.conn != nil && old.secrets.Good() {
		old.err = fmt.Errorf("%w\nit keeps running with its previous settings", k.err)
		return old
	}

	return k
}

// translator is the connector that serves the clients of another API; nil: none is set up.
func (p *connectorSet) translator() control.Translator { return connectorOf[control.Translator](p) }

// connectorOf is the first connector that is a T; nil: none is set up.
func connectorOf[T any](p *connectorSet) (found T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.built {
		if t, ok := k.conn.(T); ok {
			return t
		}
	}

	return found
}

// besideA2A serves clients of A2A beside the API, while a connector for them is set up.
func (p *connectorSet) besideA2A(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var door *a2a.Connector
		if a2a.Serves(req.URL.Path) {
			door = connectorOf[*a2a.Connector](p)
		}
		if door == nil {
			api.ServeHTTP(w, req)
			return
		}
		caller := control.CallerOf(req.Context())
		name := caller.Name
		caller.Via, caller.Local = door.ID(), false
		door.Serve(w, req, a2a.Peer{Name: name, API: control.NewClient(control.LocalAs(api, caller))})
	})
}

// problem says why a connector does not run, or not as the settings say; "": it does.
func (p *connectorSet) problem(id string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.built {
		if k.id == id && k.err != nil {
			return k.err.Error()
		}
	}

	return ""
}

// plain is what a connector is set to, without where in the file that stands.
func plain(c config.Connector) any {
	var value any
	if c.Raw == nil || c.Raw.Decode(&value) != nil {
		return c.ID
	}

	return value
}

// connect puts the connectors of the active settings.
func (r reloader) connect() []finding.Finding {
	all, found := r.connectors.build()
	if err := r.system.Connect(all); err != nil { // two of one id; the settings' check allows none
		found = append(found, finding.Finding{ID: "settings-connectors", Severity: finding.Error,
			File: filepath.Join(r.at.Data, config.Name), Reason: err.Error()})
	}

	return found
}
