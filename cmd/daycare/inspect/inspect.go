package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"daycare/cmd/daycare/commands"
	"daycare/cmd/daycare/doctor"
	"daycare/cmd/daycare/plugins"
	"daycare/cmd/daycare/setup"
	"daycare/cmd/daycare/term"
	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/finding"
	"daycare/engine/workspace"
)

// An Inspector looks at a workspace.
type Inspector workspace.Place

var _ control.Inspector = Inspector{}

// Trace is daycare why.
func (n Inspector) Trace(ctx context.Context, id string) (json.RawMessage, error) {
	story, err := commands.Story(ctx, n.Data, id)
	return encoded(story, err)
}

// Examine is daycare doctor.
func (n Inspector) Examine(context.Context) (control.Checkup, error) {
	return doctor.Examine(workspace.Place(n))
}

// Treat is daycare doctor --fix.
func (n Inspector) Treat(ctx context.Context, ids []string) (control.Checkup, error) {
	return doctor.Treat(ctx, workspace.Place(n), ids, func(ctx context.Context) error {
		client := control.Redial(n.Data)
		defer client.Close()
		_, err := client.Reload(ctx)
		return err
	})
}

// Validate is daycare validate, for a text that is not saved.
func (n Inspector) Validate(_ context.Context, name string, text []byte) ([]finding.Finding, error) {
	found, err := doctor.CheckText(n.Data, name, text)
	return found, asInvalid("name", err)
}

// Schema is daycare schema.
func (n Inspector) Schema(name string) (json.RawMessage, error) {
	data, err := doctor.SchemaText(name)
	return data, asInvalid("name", err)
}

// Size is a part of daycare agents show.
func (n Inspector) Size(ctx context.Context, id string) (json.RawMessage, error) {
	client := control.Redial(n.Data)
	defer client.Close()
	size, err := commands.SizeOf(ctx, client, n.Data, id)
	return encoded(size, err)
}

// TestConnector is daycare connectors test.
func (n Inspector) TestConnector(ctx context.Context, id string) (json.RawMessage, error) {
	trial, err := setup.TestConnector(ctx, n.app(), id)
	return encoded(trial, asInvalid("name", err))
}

// TestProvider is daycare providers test.
func (n Inspector) TestProvider(ctx context.Context, id string) (json.RawMessage, error) {
	trial, err := setup.TestProvider(ctx, n.app(), id)
	return encoded(trial, asInvalid("name", err))
}

// app is a command line of the workspace at which nobody is.
func (n Inspector) app() *term.App {
	return &term.App{Streams: term.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}, Workspace: n.Dir, Data: n.Data}
}

// Log is daycare logs.
func (n Inspector) Log(ctx context.Context, q control.LogQuery, line func(raw []byte) error) error {
	conf, _, err := config.Load(n.Data, os.LookupEnv, plugins.ConnectorChecks...)
	if err != nil {
		conf = config.Default()
	}

	return asInvalid("agent", commands.ReadLog(ctx, n.Data, conf, q, line))
}

// encoded is an answer as JSON.
func encoded(v any, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}

	return data, nil
}

// asInvalid makes a problem with what was typed one with a field of a request.
func asInvalid(field string, err error) error {
	if p, ok := errors.AsType[*term.Problem](err); ok {
		return &control.Invalid{Field: field, Reason: p.Error(), Hint: p.Do}
	}
	return err
}
