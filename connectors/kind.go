package connectors

import (
	"context"
	"log/slog"
	"reflect"
	"slices"

	"daycare/connectors/chat"
	"daycare/engine/finding"
	"daycare/engine/form"
	"daycare/engine/message"
)

// A Kind is one platform, as the list of plug-ins has it.
type Kind struct {
	Type string // the type that settings name
	New  func(Making) (Connector, error)
	// Check reports what is wrong with settings that decode reads, without making anything:
	// findings with their place, and what the options say of themselves, a line each.
	Check func(decode func(options any) []finding.Finding) ([]finding.Finding, error)
	// Setup is what daycare connectors add needs; nil: the settings are written by hand.
	Setup   *Setup
	options reflect.Type // its settings, with the tags of engine/form
}

// A Setup is what a connector is set up with, beside the settings that its options ask for.
type Setup struct {
	Secrets []Secret
	// Person asks who may write, where users know how the platform names them; "": whoever
	// writes first is asked whether that is them.
	Person string
}

// A Secret is what a connector proves itself with.
type Secret struct {
	Name          string // "" for the first; the end of its id, and what flags call it
	What          string // for users: "bot token of @BotFather"
	Env           string // the setting that names the environment variable it is in
	With, Without string // a setting that it is needed with, or without; "": always
}

// ID is the id under which a connector's secret is kept.
func (s Secret) ID(connector string) string {
	if s.Name == "" {
		return connector
	}
	return connector + "-" + s.Name
}

// Needed reports whether settings with these keys need the secret.
func (s Secret) Needed(has func(key string) bool) bool {
	return (s.With == "" || has(s.With)) && (s.Without == "" || !has(s.Without))
}

// Listens reports whether a text is HOST:PORT to listen on, such as 127.0.0.1:8787; port 0 takes a
// free one.
func Listens(text string) bool { return form.Is("listen", text) }

// HostPort reports whether a text is HOST:PORT of one host, such as irc.libera.chat:6697.
func HostPort(text string) bool { return form.Is("port", text) }

// Web reports whether a text is an http:// or https:// address.
func Web(text string) bool { return form.Is("url", text) }

// An Option is a setting of a kind that users are asked for.
type Option struct {
	Key, Question string
	Optional      bool
}

// Options are the settings that have to be asked for: those whose field has a tag ask, or for
// those that may be left out, offer.
func (k Kind) Options() (all []Option) {
	for _, f := range k.Fields() {
		question, must := f.Tag.Lookup("ask")
		offer, may := f.Tag.Lookup("offer")
		if must || may {
			all = append(all, Option{f.Key, question + offer, may})
		}
	}

	return all
}

// Fields are all settings of the kind.
func (k Kind) Fields() []form.Field { return form.Fields(k.options) }

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
func Of[O any](name string, setup *Setup, create func(O, Making) (Connector, error)) Kind {
	return Kind{Type: name, Setup: setup, options: reflect.TypeFor[O](), Check: check[O], New: func(m Making) (Connector, error) {
		var options O
		if err := m.Decode(&options); err != nil {
			return nil, err
		}
		return create(options, m)
	}}
}

func check[O any](decode func(options any) []finding.Finding) ([]finding.Finding, error) {
	var options O
	found := decode(&options)
	if v, ok := any(options).(interface{ Validate() error }); ok && finding.Join(found) == nil {
		return found, v.Validate()
	}

	return found, nil
}

// Types returns the types of kinds.
func Types(kinds []Kind) []string {
	types := make([]string, len(kinds))
	for i, k := range kinds {
		types[i] = k.Type
	}

	return types
}

// Find returns the kind of a type.
func Find(kinds []Kind, name string) (Kind, bool) {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Type == name })
	if i < 0 {
		return Kind{}, false
	}

	return kinds[i], true
}
