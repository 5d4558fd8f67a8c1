package daemon

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"daycare/engine/address"
)

// Files is a workspace that is read from its files, whether a daemon runs or not.
type Files struct{ parts *Daemon }

// OpenFiles opens a workspace for reading. If its settings are broken, warn is told
// and the defaults apply.
func OpenFiles(ctx context.Context, root string, warn func(format string, args ...any)) (*Files, error) {
	r, err := openFiles(ctx, root, warn)
	if err != nil {
		return nil, err
	}
	return &Files{r}, nil
}

// Close closes what is open. Errors are logged.
func (f *Files) Close() { f.parts.close() }

// Agents lists all agents.
func (f *Files) Agents() []address.Meta { return f.parts.index.All() }

// Dir is the folder of an agent.
func (f *Files) Dir(agent string) string { return filepath.Join(f.parts.root, "agents", agent) }

// Export writes an agent as a tar.
func (f *Files) Export(ctx context.Context, id string, w io.Writer) error {
	return f.parts.system.Export(ctx, id, w)
}

// Resolve returns the id of the agent that ref names.
func (f *Files) Resolve(ref string) (string, error) {
	id, err := (&backend{System: f.parts.system, parts: f.parts}).Resolve(ref)
	if err != nil {
		return "", fmt.Errorf("find agent %s: %w", ref, err)
	}
	return id, nil
}
