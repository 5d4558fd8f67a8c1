package daemon

import (
	"daycare/engine/record"
)

// room is how many tokens of context an agent has room for with a model: its window,
// or what the settings allow at most.
func (r *conf) room(choice record.Model) int {
	limit := r.settings.Current().Agents.EmergencyContextLimit
	if w := r.models.Load().Window(choice); w > 0 {
		return min(limit, w)
	}
	return limit
}
