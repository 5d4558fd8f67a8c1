package connectors

import (
	"context"
	"log/slog"

	"daycare/connectors/chat"
	"daycare/engine/message"
)

// A Kind is one platform, as the list of plug-ins has it.
type Kind struct {
	Type string // the type that settings name
	New  func(Making) (Connector, error)
}

// A Connector is what engine.Connector says.
type Connector interface {
	ID() string
	Run(ctx context.Context, deliver message.Deliver) error
	Send(ctx context.Context, out message.Outgoing) (remoteID string, err error)
}

// Making is what a connector is made of.
type Making struct {
	Decode func(options any) error          // reads its settings
	Secret func(variable, id string) string // of the variable, or where that is "" of the id
	Named  func(name string) string         // the secret under a name, as it is now
	Host   chat.Host
	Log    *slog.Logger
}

// Of returns the kind whose settings are an O.
func Of[O any](name string, create func(O, Making) (Connector, error)) Kind {
	return Kind{name, func(m Making) (Connector, error) {
		var options O
		if err := m.Decode(&options); err != nil {
			return nil, err
		}
		return create(options, m)
	}}
}

// Types returns the types of kinds.
func Types(kinds []Kind) []string {
	types := make([]string, len(kinds))
	for i, k := range kinds {
		types[i] = k.Type
	}
	return types
}
