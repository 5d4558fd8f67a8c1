package config

import (
	"fmt"
	"slices"
	"strings"

	"daycare/engine/finding"
)

// Talk is how users and agents talk over a connector.
type Talk struct {
	Groups   string `json:"groups" allow:"|mention|always"`     // which messages of groups are for the agent; "": mention
	AgentPer string `json:"agentPer" allow:"|user|chat|thread"` // in groups; "": user
	Language string `json:"language" allow:"|en|de|zh|es"`      // of daycare's own texts; "": en
	Quiet    string `json:"quiet" check:"hours"`                // when only answers are sent, such as "22:00-07:00"; "": never
	Stream   bool   `json:"stream"`                             // answers are shown while they are written
	// Reactions says what a reaction is; "": note.
	Reactions string `json:"reactions" allow:"|note|answer"`
	Speak     string `json:"speak" allow:"|never|voice|always"` // which answers are spoken, too; "": never
}

// A Link says which users of several connectors are one person, who has one agent.
type Link struct {
	Agent string   `json:"agent" check:"required"` // its id, handle or name
	Users []string `json:"users"`                  // CONNECTOR:USER
}

// Links are all links.
type Links []Link

// Of returns the agent that the private messages of a user go to, as the settings name it.
func (all Links) Of(connector, user string) (agent string, ok bool) {
	for _, l := range all {
		if slices.Contains(l.Users, connector+":"+user) {
			return l.Agent, true
		}
	}

	return "", false
}

// checkLinks reports links to connectors that there are not, and users who are in two links or
// cannot message an agent.
func (r *reader) checkLinks(c *Config) {
	seen := map[string]bool{}
	for i, l := range c.Links {
		for j, user := range l.Users {
			at := entry("links", i, fmt.Sprintf("users[%d]", j))
			connector, id, _ := strings.Cut(user, ":")
			k, known := c.Connector(connector)
			switch {
			case id == "":
				r.Bad(at, `: found %q, allowed: CONNECTOR:USER such as "telegram:5550001"`, user)
			case !known:
				r.Bad(at, ": found %q, but no connector has the id %s", user, connector)
			case k.AgentID != "":
				r.Bad(at, ": found %q, but all messages of %s go to its agentId; remove one of them", user, connector)
			case seen[user]:
				r.Bad(at, ": found %q, which is in another link; a person has one agent", user)
			case !slices.Contains(k.Allow, id):
				r.Tell(finding.Warning, "unused", at, fmt.Sprintf("%s: %s is not in allow of %s", at, id, connector),
					"add the id to allow of the connector; until then their messages are refused")
			}
			seen[user] = true
		}
	}
}
