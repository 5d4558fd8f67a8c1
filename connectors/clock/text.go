package clock

import (
	"fmt"
	"strings"
	"time"

	"daycare/engine/schedule"
)

// maxMemory bounds how much of MEMORY.md a message carries, in bytes.
const maxMemory = 8 << 10

// text is what the agent reads.
func text(f schedule.Firing) string {
	var b strings.Builder
	if f.Kind == schedule.Heartbeat {
		b.WriteString("Heartbeat. Look at each point below. If nothing needs the user's attention, answer HEARTBEAT_OK and nothing else. " +
			"Else tell the user with send_agent_message, in a few words.\n\n")
		b.WriteString(f.Prompt)
		section(&b, "Your last answer", f.Memory)
		return b.String()
	}

	fmt.Fprintf(&b, "Scheduled task %q (%s), due %s", f.Name, f.Slug, f.Slot.In(zone(f)).Format("Monday 2006-01-02 15:04 MST"))
	if f.Why != "" {
		b.WriteString("; " + f.Why)
	}
	b.WriteString(".\n\n" + f.Prompt)
	section(&b, "Memory of this task", f.Memory)
	section(&b, "Gate output", f.Gate)
	if f.Agent == "" {
		b.WriteString("\n\nYour answer here is kept, not sent: what the user shall know, say with send_agent_message. " +
			"What the next run shall know, write with cron_write_memory.")
	}

	return b.String()
}

func section(b *strings.Builder, title, body string) {
	if body = strings.TrimSpace(body); body == "" {
		return
	}
	if len(body) > maxMemory && title != "Gate output" {
		body = strings.ToValidUTF8(body[:maxMemory], "") + "\n[cut]"
	}
	b.WriteString("\n\n[" + title + "]\n" + body)
}

func zone(f schedule.Firing) *time.Location {
	if f.Zone == nil {
		return time.UTC
	}
	return f.Zone
}
