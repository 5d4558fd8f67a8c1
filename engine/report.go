package engine

import (
	"fmt"
	"strings"

	"daycare/engine/address"
	"daycare/engine/message"
)

// reportText is what a parent reads of the end of its child's turn.
func reportText(child address.Meta, out message.Outgoing) string {
	d, text := child.Descriptor, strings.TrimSpace(out.Text)
	if text == "" {
		text = "(no text)"
	}
	outcome := "completed"
	if out.Report.Failed {
		outcome = "failed"
	}

	switch {
	case d.Label != "":
		return fmt.Sprintf("[Subagent '%s' %s]\nTask: %s\nResult: %s\n\nSummarise this naturally for the user, in your own words. "+
			"If nothing needs to be said, answer exactly NO_MESSAGE.", d.Label, outcome, d.Task, text)
	case out.Report.Failed:
		return fmt.Sprintf("Background agent %s (id: %s) failed: %s", child.Name, child.ID, text)
	}

	return text
}
