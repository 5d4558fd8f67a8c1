package folders

import (
	"path/filepath"
	"strings"

	"daycare/engine/address"
	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/permission"
	"daycare/engine/workspace"
)

// Elsewhere finds out whether the rights of an agent, which is in a workspace
// under that id, name a place outside of it as the one where it works: older versions
// wrote whole paths, and a workspace that was moved or copied kept them. from is the
// folder that was the workspace then; "": the agent works here. sure: that folder is gone,
// or has the agent that this one is a copy of; else a user may have meant it so.
func Elsewhere(at workspace.Place, id string, d address.Descriptor, rights permission.Set) (from string, sure bool) {
	dir := rights.WorkingDir
	if dir == "" || permission.Beneath(beneath.Real(at.Dir), beneath.Real(dir)) {
		return "", false
	}
	from, _, _ = strings.Cut(dir, string(filepath.Separator)+workspace.Home+string(filepath.Separator))
	if part := filepath.Clean(d.WorkspaceDir); d.WorkspaceDir != "" {
		from = strings.TrimSuffix(from, string(filepath.Separator)+part)
	}

	return from, !disk.Exists(from) || disk.Exists(filepath.Join(workspace.At(from).Data, "agents", id))
}
