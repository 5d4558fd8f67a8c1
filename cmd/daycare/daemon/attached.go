package daemon

import (
	"path/filepath"
	"slices"

	"daycare/engine/address"
)

// attachedTo reports whether an attachment, by its name in .daycare/files, belongs to the
// conversation of an agent, or of one that it is a sub-agent of: it works on what those
// were sent.
func (r workbench) attachedTo(agent, name string) bool {
	return slices.Contains(r.conversations(agent), name)
}

// mostShown is how many attachments, the newest, a command can read.
const mostShown = 500

// attachments are the paths of those that an agent's commands can read.
func (r workbench) attachments(agent string) (paths []string) {
	names := r.conversations(agent)
	for _, name := range names[:min(len(names), mostShown)] {
		paths = append(paths, filepath.Join(r.root, "files", name))
	}
	return paths
}

// conversations are the names of the attachments that an agent may read.
func (r workbench) conversations(agent string) (all []string) {
	for seen := map[string]bool{}; agent != "" && !seen[agent]; {
		seen[agent] = true
		names, err := r.attached.Names(filepath.Join(r.root, "agents", agent))
		if err != nil {
			r.log.Warn("cannot look up the attachments of an agent", "agent", agent, "err", err)
		}

		all = append(all, names...)
		meta, ok := r.index.Get(agent)
		if !ok || meta.Descriptor.Type != address.Subagent {
			break
		}

		agent = meta.Descriptor.ParentAgentID
	}

	return all
}
