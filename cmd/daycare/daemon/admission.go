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

// admission lets in people whom an owner approves, where a connector has pairing: true.
type admission struct{ *Daemon }

// Ask gives a stranger a code, unless they have one; false: their connector has no pairing.
func (r admission) Ask(_ context.Context, s chat.Stranger) (chat.Reply, bool) {
	c, ok := r.settings.Current().Connector(s.From.Connector)
	if !ok || !c.Pairing {
		return chat.Reply{}, false
	}
	code, err := r.pairings.Ask(s.From, s.Name)
	if err != nil {
		r.log.Error("a request to be let in was not kept", "connector", s.From.Connector, "user", s.From.UserID, "err", err)
	}
	return chat.Reply{Code: code}, true
}

// Admit lets in, or rejects, a stranger of a connector: an owner answered in a chat. The
// settings are read again afterwards, because that ends the connector in which it was said.
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

// Pairings lists the requests that wait.
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

// Pair answers a request, and has the connector know it at once.
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

// decide answers a request. Who is approved is in the settings before the request is closed,
// so that an answer that was cut short can be given again.
func (r admission) decide(request pairing.Request, reject bool, by string) (owner bool, err error) {
	r.deciding.Lock()
	defer r.deciding.Unlock()
	decision := pairing.Rejected
	if reject && request.Decision == pairing.Approved {
		return false, errors.New("they were let in already; take their id out of allow in settings.yaml")
	}
	if !reject {
		decision = pairing.Approved
		if owner, err = r.allow(request); err != nil {
			return false, fmt.Errorf("let %s in: %w", strconv.Quote(request.From.UserID), err)
		}
	}
	if request.Decision == decision {
		return owner, nil
	}
	if err := r.pairings.Decide(request, decision); err != nil {
		return false, err
	}
	r.log.Info("a stranger's request was answered", "connector", request.From.Connector, "user", request.From.UserID,
		"decision", decision, "by", by)
	if !reject {
		select {
		case r.admitted <- request:
		default: // they find out by writing
		}
	}
	return owner, nil
}

// allow adds somebody to the allow list of their connector, and says whether that makes them
// its owner.
func (r admission) allow(request pairing.Request) (owner bool, err error) {
	id, user := request.From.Connector, request.From.UserID
	before, err := config.Text(r.root)
	if err != nil {
		return false, err
	}
	conf, _, err := config.LoadText(r.root, before, os.LookupEnv, plugins.ConnectorTypes...)
	if err != nil {
		return false, err
	}
	k, ok := conf.Connector(id)
	switch {
	case !ok:
		return false, fmt.Errorf("the settings have no connector %q any more", id)
	case slices.Contains(k.Allow, user):
		return slices.Contains(ownerIDs(k), user), nil
	}
	after, err := config.Append(before, strconv.Quote(user), "connectors", id, "allow")
	if err != nil {
		return false, err
	}
	if conf, _, err = config.LoadText(r.root, after, os.LookupEnv, plugins.ConnectorTypes...); err != nil {
		return false, err
	}
	k, _ = conf.Connector(id)
	vault := plugins.NewVault(func() *config.Config { return conf })
	if _, err := plugins.NewConnector(vault, k, chat.Host{}, slog.New(slog.DiscardHandler)); err != nil {
		return false, err // an id that it does not accept must not end the connector
	}
	return slices.Contains(ownerIDs(k), user), config.Replace(r.vol, r.root, after, before)
}

// welcomeTime bounds what telling somebody that they are let in may take.
const welcomeTime = 20 * time.Second

// welcome has the settings apply, and tells people who were let in, until ctx ends.
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
	if err := p.Say(ctx, request.From, "", "You are let in: write to me, and I answer."); err != nil {
		r.log.Warn("somebody who was let in was not told", "connector", request.From.Connector, "err", err)
	}
}

// find is the connector that runs under an id; nil if none does.
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
