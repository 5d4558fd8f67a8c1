package show

import (
	"fmt"

	"daycare/engine/control"
)

// Choice says which model an agent uses.
func Choice(agent string, choice control.Choice, changed bool) string {
	switch {
	case choice.Problem != "":
		return agent + " cannot answer: " + choice.Problem
	case changed:
		return fmt.Sprintf("%s uses %s of %s from its next turn on", agent, choice.Model, choice.Provider)
	case choice.Chosen:
		return fmt.Sprintf("%s uses %s of %s", agent, choice.Model, choice.Provider)
	}

	return fmt.Sprintf("%s uses %s of %s, as the settings say", agent, choice.Model, choice.Provider)
}
