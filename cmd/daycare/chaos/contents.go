package chaos

import (
	"maps"
	"os"
	"slices"
	"strings"

	"daycare/cmd/daycare/chaos/platforms"
)

// hooksConnector is the connector of all webhooks.
const hooksConnector = "hooks"

// checkTold: a message stands in inbox and history as it was offered: its words, who said it,
// where the answer goes, its files; and it is its own agent that has it.
func checkTold(violate complaint, v view) {
	said := v.byKey()
	for _, a := range v.agents {
		for _, l := range slices.Concat(a.inbox, a.history) {
			if l.Type != "user_message" && l.Type != "message" || l.Origin != "" {
				continue
			}
			if s, ours := said[l.key()]; ours {
				asOffered(violate, a, l, s)
			} else if strings.HasPrefix(l.Type, "user") && l.Route != nil && l.Route.Connector == hooksConnector && !l.before {
				violate("wrong contents: nobody said %.60q", l.Text)
			}
		}
	}
}

func asOffered(violate complaint, a *folder, l line, s saying) {
	if len(s.texts) > 0 && !slices.Contains(s.texts, l.Text) {
		violate("wrong contents: %s stands as %.80q in %s, and was offered as %.80q", s.key, l.Text, l.Type, s.texts[0])
	}
	if s.sender != l.Context.Sender {
		violate("wrong sender: %s is from %q in %s, and was said by %q", s.key, l.Context.Sender, l.Type, s.sender)
	}
	if s.hook != "" && !slices.Contains(platforms.Names, s.hook) {
		if r := l.Route; r == nil || r.Connector != hooksConnector || r.Channel != s.hook {
			violate("wrong chat: %s was said in %s, and its answer goes to %+v", s.key, s.hook, r)
		}
		if a.of.Type == "user" && a.of.Channel != s.hook {
			violate("wrong agent: %s was said in %s, and the agent of %s/%s has it", s.key, s.hook, a.of.Connector, a.of.Channel)
		}
	}
	if s.texts != nil {
		attached(violate, a, l, s)
	}
}

// attached: a message has the files that came with it, each with its content.
func attached(violate complaint, a *folder, l line, s saying) {
	got := map[string]string{}
	for _, f := range l.Files {
		data, err := os.ReadFile(f.at(a.dir))
		if err != nil {
			data = []byte(err.Error())
		}
		got[f.Name] = string(data)
	}

	if !maps.Equal(got, s.files) {
		violate("wrong contents: %s has the files %.100q in %s, and was offered with %.100q", s.key, got, l.Type, s.files)
	}
}

// named: what a line speaks of is there.
func (c *checker) named(v view) {
	for _, a := range v.agents {
		for _, l := range append(a.inbox, a.history...) {
			for _, path := range l.names(a.dir) {
				if info, err := os.Stat(path); err != nil || info.Size() == 0 {
					c.play.result.violate("missing: %s, of which a %s speaks", path, l.Type)
				}
			}
		}
	}
}
