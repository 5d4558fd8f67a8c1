package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"time"

	"daycare/cmd/daycare/plugins"
	"daycare/connectors/chat"
	"daycare/engine"
	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/pairing"
)

// admission grants access to users whom an owner approves, on connectors with pairing: true.
type admission struct{ *Daemon }

// Ask gives a stranger a code, unless they have one; false: their connector has no pairing.
func (r admission) Ask(_ context.Context, s chat.Stranger) (chat.Reply, bool) {
	c, ok := r.settings.Current().Connector(s.From.Connector)
	if !ok || !c.Pairing {
		return chat.Reply{}, false
	}
	code, err := r.pairings.Ask(s.From, s.Name)
	if err != nil {
		r.log.Error("cannot save a pairing request", "connector", s.From.Connector, "user", s.From.UserID, "err", err)
	}

	return chat.Reply{Code: code}, true
}

// Admit grants access to a stranger, or rejects them: an owner answered in a chat. The
// settings are reloaded later, because that ends the connector of this chat.
func (r admission) Admit(_ context.Context, connector, code string, reject bool, by string) (string, error) {
	request, err := r.pairings.Find(code)
	if err == nil && request.From.Connector != connector {
		err = pairing.ErrUnknown
	}
	if err == nil {
		_, err = r.decide(request, reject, by)
	}

	return request.Name, err
}

// Pairings lists the pending requests.
func (r admission) Pairings(context.Context) ([]control.Pairing, error) {
	requests, err := r.pairings.List()
	var list []control.Pairing
	for _, request := range requests {
		list = append(list, asPairing(request))
	}

	return list, err
}

func asPairing(r pairing.Request) control.Pairing {
	return control.Pairing{Code: r.Code, Connector: r.From.Connector, UserID: r.From.UserID, Name: r.Name, At: r.At.Time,
		ExpiresAt: r.Expires()}
}

// Pair answers a request and applies it to the connector at once.
func (r admission) Pair(ctx context.Context, code string, reject bool, by string) (control.Paired, error) {
	request, err := r.pairings.Find(code)
	if err != nil {
		return control.Paired{}, err
	}
	owner, err := r.decide(request, reject, by)
	if err == nil {
		reloader{r.Daemon}.reload(ctx)
	}

	return control.Paired{Pairing: asPairing(request), Owner: owner}, err
}

// decide answers a request. The settings are changed before the request is closed, so that
// an interrupted answer can be repeated.
func (r admission) decide(request pairing.Request, reject bool, by string) (owner bool, err error) {
	r.deciding.Lock()
	defer r.deciding.Unlock()
	decision := pairing.Rejected
	if reject && request.Decision == pairing.Approved {
		return false, errors.New("the user already has access; to revoke it, remove their id from allow in settings.yaml")
	}
	if !reject {
		decision = pairing.Approved
		if owner, err = r.allow(request); err != nil {
			return false, fmt.Errorf("grant access to %s: %w", strconv.Quote(request.From.UserID), err)
		}
	}
	if request.Decision == decision {
		return owner, nil
	}
	if err := r.pairings.Decide(request, decision); err != nil {
		return false, err
	}

	r.log.Info("pairing request answered", "connector", request.From.Connector, "user", request.From.UserID,
		"decision", decision, "by", by)
	if !reject {
		select {
		case r.admitted <- request:
		default: // they will notice when they write
		}
	}

	return owner, nil
}

// allow adds a user to the allow list of their connector, and reports whether that makes
// them its owner.
func (r admission) allow(request pairing.Request) (owner bool, err error) {
	id, user := request.From.Connector, request.From.UserID
	before, err := config.Text(r.at.Data)
	if err != nil {
		return false, err
	}

	conf, _, err := config.LoadText(r.at.Data, before, os.LookupEnv, plugins.ConnectorChecks...)
	if err != nil {
		return false, err
	}

	k, ok := conf.Connector(id)
	switch {
	case !ok:
		return false, fmt.Errorf("the settings no longer have the connector %q", id)
	case slices.Contains(k.Allow, user):
		return slices.Contains(ownerIDs(k), user), nil
	}

	after, err := config.Append(before, strconv.Quote(user), "connectors", id, "allow")
	if err != nil {
		return false, err
	}
	if conf, _, err = config.LoadText(r.at.Data, after, os.LookupEnv, plugins.ConnectorChecks...); err != nil {
		return false, err
	}

	k, _ = conf.Connector(id)
	vault := plugins.NewVault(func() *config.Config { return conf })
	if _, err := plugins.NewConnector(vault, k, chat.Host{}, slog.New(slog.DiscardHandler)); err != nil {
		return false, err // an id that the connector rejects must not stop it
	}

	return slices.Contains(ownerIDs(k), user), config.Replace(r.vol, r.at.Data, after, before)
}

// welcomeTime limits notifying a user who was given access.
const welcomeTime = 20 * time.Second

// welcome reloads the settings and notifies users who were given access, until ctx ends.
func (r admission) welcome(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case request := <-r.admitted:
			reloader{r.Daemon}.reload(ctx)
			r.notify(ctx, request)
		}
	}
}

func (r admission) notify(ctx context.Context, request pairing.Request) {
	p, ok := r.connectors.find(request.From.Connector).(chat.Platform)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, welcomeTime)
	defer cancel()
	if err := p.Say(ctx, request.From, "", "You now have access. Write to me, and I will answer."); err != nil {
		r.log.Warn("cannot notify a user who was given access", "connector", request.From.Connector, "err", err)
	}
}

// find returns the running connector with an id, or nil.
func (p *connectorSet) find(id string) engine.Connector {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.built {
		if k.id == id {
			return k.conn
		}
	}

	return nil
}
