package daemon

import (
	"log/slog"
	"path/filepath"
	"slices"

	"daycare/engine/address"
)

// conversations know which attachments, in .daycare/files, an agent may read.
type conversations struct {
	root   string // .daycare
	people *people
	log    *slog.Logger
}

func conversationsOf(r *Daemon) conversations { return conversations{r.at.Data, &r.people, r.log} }

// has reports whether an attachment, by its name in .daycare/files, belongs to the
// conversation of an agent, or of one that it is a sub-agent of: it works on what those
// were sent.
func (c conversations) has(agent, name string) bool {
	return slices.Contains(c.names(agent), name)
}

// mostShown is how many attachments, the newest, a command can read.
const mostShown = 500

// paths are the paths of those that an agent's commands can read.
func (c conversations) paths(agent string) (paths []string) {
	names := c.names(agent)
	for _, name := range names[:min(len(names), mostShown)] {
		paths = append(paths, filepath.Join(c.root, "files", name))
	}

	return paths
}

// names are the names of the attachments that an agent may read.
func (c conversations) names(agent string) (all []string) {
	for seen := map[string]bool{}; agent != "" && !seen[agent]; {
		seen[agent] = true
		names, err := c.people.attached.Names(filepath.Join(c.root, "agents", agent))
		if err != nil {
			c.log.Warn("cannot look up the attachments of an agent", "agent", agent, "err", err)
		}

		all = append(all, names...)
		meta, ok := c.people.index.Get(agent)
		if !ok || meta.Descriptor.Type != address.Subagent {
			break
		}

		agent = meta.Descriptor.ParentAgentID
	}

	return all
}
