package plugins

import (
	"fmt"
	"log/slog"
	"maps"
	"strings"

	"daycare/agents/providers"
	"daycare/agents/providers/anthropic"
	"daycare/agents/providers/gemini"
	"daycare/agents/providers/openai"
	"daycare/agents/providers/responses"
	"daycare/agents/providers/scripted"
	"daycare/connectors"
	"daycare/connectors/a2a"
	"daycare/connectors/chat"
	"daycare/connectors/discord"
	"daycare/connectors/email"
	"daycare/connectors/irc"
	"daycare/connectors/matrix"
	"daycare/connectors/mattermost"
	compatible "daycare/connectors/openai"
	"daycare/connectors/signal"
	"daycare/connectors/slack"
	"daycare/connectors/telegram"
	"daycare/connectors/webhook"
	"daycare/connectors/whatsapp"
	"daycare/connectors/xmpp"
	"daycare/engine"
	"daycare/engine/config"
	"daycare/engine/finding"
	"daycare/engine/permission"
	ws "daycare/engine/workspace"
)

// connectorKinds are the platforms that settings may name.
var connectorKinds = []connectors.Kind{a2a.Kind, discord.Kind, email.Kind, irc.Kind, matrix.Kind, mattermost.Kind, compatible.Kind,
	signal.Kind, slack.Kind, telegram.Kind, webhook.Kind, whatsapp.Kind, xmpp.Kind}

// ConnectorTypes are their types.
var ConnectorTypes = connectors.Types(connectorKinds)

// ConnectorChecks are the types with what checks their settings.
var ConnectorChecks = connectorChecks()

func connectorChecks() (all []config.ConnectorKind) {
	for _, k := range connectorKinds {
		all = append(all, config.ConnectorKind{Type: k.Type, Check: func(c config.Connector) []finding.Finding {
			found, invalid := k.Check(c.Decode)
			return append(found, c.Invalid(invalid)...)
		}})
	}

	return all
}

// ConnectorKind returns the platform of a type.
func ConnectorKind(name string) (connectors.Kind, bool) { return connectors.Find(connectorKinds, name) }

// NewConnector makes one connector of its settings. Its own secrets come from the
// vault.
func NewConnector(secrets *Vault, s config.Connector, host chat.Host, log *slog.Logger) (engine.Connector, error) {
	if _, err := permission.Ceiling(s.Ceiling); err != nil {
		return nil, fmt.Errorf("connector %q: %w", s.ID, err)
	}
	if k, ok := ConnectorKind(s.Type); ok {
		return k.New(connectors.Making{Decode: func(o any) error { return finding.Join(s.Decode(o)) },
			Secret: secrets.Of, Named: secrets.Now, Host: host, Log: log})
	}

	return nil, fmt.Errorf("connector %q: unknown type %q, want one of %s", s.ID, s.Type, strings.Join(ConnectorTypes, ", "))
}

// NewProvider makes one model provider of its settings; key is asked at every
// request. Paths in them are those of the workspace.
func NewProvider(at ws.Place, p config.Provider, key func() string) (providers.Provider, error) {
	switch p.Type {
	case "anthropic":
		return anthropic.New(anthropic.Options{ID: p.ID, BaseURL: p.BaseURL, Model: p.Model, Key: key,
			KeyEnv: p.KeyEnv(), Headers: p.Headers, Options: p.Options})
	case "openai":
		return newOpenAI(p, key)
	case "gemini":
		return gemini.New(gemini.Options{ID: p.ID, BaseURL: p.BaseURL, Model: p.Model, Key: key, KeyEnv: p.KeyEnv(),
			Headers: p.Headers, Options: p.Options})
	case "scripted":
		script, _ := p.Options["script"].(string)
		return scripted.New(scripted.Options{ID: p.ID, Model: p.Model, Path: at.Resolve(script)})
	}

	return nil, fmt.Errorf("provider %q: type %q is not in this build", p.ID, p.Type)
}

// newOpenAI chooses between the two formats that OpenAI has: Responses at its own
// address, Chat Completions, which everybody speaks, elsewhere. The option wire
// says otherwise.
func newOpenAI(p config.Provider, key func() string) (providers.Provider, error) {
	options := maps.Clone(p.Options)
	delete(options, "wire")
	wire, ok := p.Options["wire"].(string)
	if p.Options["wire"] == nil {
		if wire, ok = "chat", true; responses.Own(p.BaseURL) {
			wire = "responses"
		}
	}

	switch {
	case ok && wire == "responses":
		return responses.New(responses.Options{ID: p.ID, BaseURL: p.BaseURL, Model: p.Model, Key: key,
			KeyEnv: p.KeyEnv(), Headers: p.Headers, Options: options})
	case ok && wire == "chat":
		return openai.New(openai.Options{ID: p.ID, BaseURL: p.BaseURL, Model: p.Model, Key: key, KeyEnv: p.KeyEnv(),
			Headers: p.Headers, Options: options})
	}

	return nil, fmt.Errorf("provider %q: options: wire is %v\nwrite chat (Chat Completions) or responses (OpenAI's Responses)",
		p.ID, p.Options["wire"])
}
