package daemon

import (
	"errors"
	"fmt"
	"testing"

	"daycare/engine"
	"daycare/engine/control"
	agentfolders "daycare/engine/folders"
)

func TestErrorsOfTheEngineHaveNamesInTheAPI(t *testing.T) {
	for err, want := range map[error]error{
		&engine.LimitError{Setting: "agents.maxChildren"}:        control.ErrAgentLimit,
		&engine.LimitError{Setting: "agents.maxRunningChildren"}: control.ErrAgentLimit,
		engine.ErrBusy:              control.ErrBusy,
		engine.ErrProtected:         control.ErrProtected,
		agentfolders.ErrTaken:       control.ErrTaken,
		agentfolders.ErrNoTrash:     control.ErrNoTrash,
		agentfolders.ErrNotEditable: control.ErrNotEditable,
	} {
		if got := inWords(fmt.Errorf("make agent: %w", err)); !errors.Is(got, want) {
			t.Errorf("%v becomes %v, want %v", err, got, want)
		}
	}
}
