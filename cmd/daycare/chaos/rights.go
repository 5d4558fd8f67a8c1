package chaos

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// What is checked of rights: what a user allowed once happens once, what they denied or
// took back does not happen, and what they allowed for always is written down.

// decided is a copy of the decisions that were made.
func (w *world) decided() []decision {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]decision, len(w.decisions))
	for i, d := range w.decisions {
		all[i] = *d
	}

	return all
}

// checkUsedRights: between two decisions no more happened than those before allow.
func checkUsedRights(violate complaint, v view) {
	if len(v.decisions) == 0 {
		return
	}
	total := 0
	for _, e := range v.effects {
		if e.key == approvedKey {
			total++
		}
	}

	allowed, always := 0, false
	for i, d := range v.decisions {
		if i == 0 && d.before > 0 {
			violate("without permission: %d calls had their effect before anybody was asked", d.before)
		}
		switch d.what {
		case "once":
			allowed++
		case "always":
			always = true
		case revoked:
			allowed, always = 0, false
		}

		until := total
		if i+1 < len(v.decisions) {
			until = v.decisions[i+1].before
		}
		used := until - d.before
		if used > allowed && !always {
			violate("without permission: %d calls had their effect after a person said %q, want at most %d", used, d.what, allowed)
		}

		allowed -= min(used, allowed)
	}
}

// checkKeptRights: an "always" that was not taken back is in state.json, one that was is not.
func checkKeptRights(violate complaint, v view) {
	back := len(v.decisions)
	for i, d := range v.decisions {
		if d.what == revoked {
			back = i
		}
	}

	for i, d := range v.decisions {
		if d.what != "always" || !d.accepted {
			continue
		}
		kept := false
		for _, a := range v.agents {
			granted, err := a.granted(d.token)
			if err != nil {
				violate("the rights of %s cannot be read: %v", filepath.Base(a.dir), err)
			}
			kept = kept || granted
		}

		switch {
		case i > back && !kept, back == len(v.decisions) && !kept:
			violate("forgotten right: request %s was allowed for always, and no state.json says so", d.token)
		case i < back && back < len(v.decisions) && kept:
			violate("right not taken back: what request %s allowed was revoked, and state.json still has it", d.token)
		}
	}
}

// granted reports whether state.json has a right that the answer to a request gave.
func (a *folder) granted(token string) (bool, error) {
	data, err := os.ReadFile(filepath.Join(a.dir, "state.json"))
	if err != nil {
		return false, err
	}
	var state struct {
		Permissions struct {
			Grants []struct {
				Token string `json:"token"`
			} `json:"grants"`
		} `json:"permissions"`
	}
	if err := json.Unmarshal(data, &state); err != nil {
		return false, err
	}

	for _, g := range state.Permissions.Grants {
		if g.Token == token {
			return true, nil
		}
	}

	return false, nil
}
