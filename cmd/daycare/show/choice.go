package show

import (
	"fmt"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
)

// Choice says which model an agent uses.
func Choice(agent string, choice control.Choice, changed bool) string {
	model, provider := term.Clean(choice.Model), term.Clean(choice.Provider)
	switch {
	case choice.Problem != "":
		return agent + " cannot answer: " + term.Clean(choice.Problem)
	case changed:
		return fmt.Sprintf("%s uses %s of %s from its next turn on", agent, model, provider)
	case choice.Chosen:
		return fmt.Sprintf("%s uses %s of %s", agent, model, provider)
	}

	return fmt.Sprintf("%s uses %s of %s, as the settings say", agent, model, provider)
}
