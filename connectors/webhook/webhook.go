package webhook

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"text/template"
	"time"

	"daycare/connectors"
	"daycare/connectors/ingress"
	"daycare/engine/message"
)

// Limits of the listener. What strangers can hold before their signature is checked,
// connectors/ingress bounds.
const (
	maxBody        = 1 << 20 // bytes
	maxRequests    = 64      // at once that are signed
	drainBytes     = 16 << 20
	drainTime      = 2 * time.Second
	webhookUserID  = "webhook"
	retryFull      = 5 * time.Second  // an inbox is full: a turn takes seconds
	retryNoStorage = 30 * time.Second // the disk is full: a user has to act
)

// A Connector serves the hooks of one listen address.
type Connector struct {
	id     string
	listen string
	hooks  map[string]*hook
	decoy  *hook                    // stands for hooks that are not there, so that they take as long to refuse
	secret func(name string) string // read at every request: a changed secret counts at once
	log    *slog.Logger
	caller *http.Client
	used   used
	once   func(ctx context.Context, key, value string) (first string, err error) // on all machines; nil: there is one
	busy   chan struct{}                                                          // one token for each signed request in progress

	ingress ingress.Listener
}

// A hook is a Hook with its template parsed.
type hook struct {
	Hook
	template *template.Template
}

// Kind is how settings make a connector.
var Kind = connectors.Of("webhook", nil, func(o Options, m connectors.Making) (connectors.Connector, error) {
	c, err := New(o, m.Named, m.Log)
	if err != nil {
		return nil, err
	}
	c.once = m.Host.Once
	return c, nil
})

// New makes the connector that o describes. secret gives the value found under a
// name; "": missing; every hook must have one.
func New(o Options, secret func(name string) string, log *slog.Logger) (*Connector, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("webhook %q: %w", o.ID, err)
	}
	random := rand.Text()
	c := &Connector{
		id:     o.ID,
		listen: o.Listen,
		hooks:  make(map[string]*hook, len(o.Hooks)),
		decoy:  &hook{},
		log:    log.With("connector", o.ID),
		caller: newCaller(),
		busy:   make(chan struct{}, maxRequests),
	}
	c.ingress.Name, c.ingress.Log = "webhooks", c.log
	c.secret = func(name string) string {
		if name == "" { // the decoy's; settings do not allow it
			return random
		}
		return secret(name)
	}

	for _, h := range o.Hooks {
		t, err := parseTemplate(h.Template)
		if err != nil {
			return nil, fmt.Errorf("webhook %q: hook %q: %w", o.ID, h.ID, err)
		}
		c.hooks[h.ID] = &hook{Hook: h, template: t}
	}

	if err := c.secrets(); err != nil {
		return nil, err
	}

	return c, nil
}

// ID is the connector's id in settings.
func (c *Connector) ID() string { return c.id }

// Address is where the connector listens, HOST:PORT; "" while it does not.
func (c *Connector) Address() string { return c.ingress.Address() }

// Run serves until ctx ends. Requests that are in progress then get a few seconds
// to be answered.
func (c *Connector) Run(ctx context.Context, deliver message.Deliver) error {
	return c.ingress.Serve(ctx, c.listen, func(w http.ResponseWriter, r *http.Request) { c.serve(w, r, deliver) }, nil)
}

// secrets makes sure that every hook has a secret that can be used.
func (c *Connector) secrets() error {
	var missing []error
	for _, h := range c.hooks {
		if len(standardKey(c.secret(h.SecretEnv))) == 0 {
			missing = append(missing, fmt.Errorf("hook %q has no usable secret under %s\nset one with: daycare auth set %s",
				h.ID, h.SecretEnv, h.SecretEnv))
		}
	}

	if len(missing) > 0 {
		return fmt.Errorf("webhook %q does not start: %w", c.id, errors.Join(missing...))
	}

	return nil
}
