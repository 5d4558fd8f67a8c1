package daemon

import (
	"slices"
	"strings"

	"daycare/engine"
	"daycare/engine/address"
	"daycare/engine/config"
	"daycare/engine/message"
	"daycare/engine/permission"
)

const (
	// openAI is the type of the connector whose users are callers of the API.
	openAI = "openai"
	// controlSecret is the caller who has the secret of control.listen, which allows everything.
	controlSecret = "api"
)

// An authority knows who may decide what.
type authority struct{ *Daemon }

// owners are the users of a connector who answer approvals, as the settings are now, and
// what the others may allow their own agents.
func (r authority) owners(connector string) ([]string, permission.Set) {
	c, ok := r.settings.Current().Connector(connector)
	if !ok {
		return nil, permission.Set{}
	}
	ceiling, err := permission.Ceiling(c.Ceiling)
	if err != nil { // such a connector does not start, or continues with what it had
		r.log.Warn("a connector's permission ceiling is ignored", "connector", connector, "err", err)
	}

	return ownerIDs(c), ceiling
}

// ownerIDs are the ids of a connector's owners as it names users.
func ownerIDs(c config.Connector) []string {
	ids := slices.Clone(c.OwnerIDs())
	if c.Type == "email" || c.Type == "xmpp" { // whose addresses are the same in capitals
		for i, id := range ids {
			ids[i] = strings.ToLower(id)
		}
	}

	return ids
}

// owns reports whether the user of a user's agent is an owner: whoever sits at the
// machine, and the owners of connectors.
func (r authority) owns(d address.Descriptor) bool {
	if d.Type != address.User {
		return false
	}
	if engine.Here(d.Connector) {
		return true
	}
	ids, _ := r.owners(d.Connector)
	if c, ok := r.settings.Current().Connector(d.Connector); ok && c.Type == openAI && d.UserID == controlSecret {
		return true
	}

	return d.UserID != "" && slices.Contains(ids, d.UserID)
}

// foreign says whose message it is that does not speak for the owner; "" if it does. A mail
// is anybody's: its sender is easily forged, and it quotes others.
func (r authority) foreign(from message.Address, sender string) string {
	c, ok := r.settings.Current().Connector(from.Connector)
	who := strings.TrimSpace(sender + " " + from.UserID)
	switch {
	case !ok || c.Type == "webhook" || c.Type == openAI: // they say so themselves
		return ""
	case c.Type == "email":
		return "a mail from " + who
	}

	if ids, _ := r.owners(from.Connector); slices.Contains(ids, from.UserID) {
		return ""
	}

	return "a message of the guest " + who
}
