package chaos

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// A Bug is a defect that can be switched on in a binary built with the tag
// seededbugs, and what it does wrong.
type Bug struct {
	Name, Does string
	// shows is how the violations begin that show it, separated by |. Others may come of
	// it, or of something else, and show nothing.
	shows string
}

// Bugs are all of them.
var Bugs = []Bug{
	{"nosync", "barriers return without syncing anything", "lost: |unrecorded: |missing: "},
	{"ackearly", "messages are acknowledged before they are durable", "lost: "},
	{"nofoldersync", "folders are not synced, so new files can vanish",
		"lost: |missing: |the user could not|stuck: |unfinished: |import|the conversation|there are "},
	{"nofilesync", "a replaced file gets its name before its content is synced",
		"lost: |missing: |it ended|stuck: |wrong |forgotten right: |after doctor |the bot|daycare |models.json|the user " +
			"could not|the files cannot|late: "},
	{"blindrecovery", "a start acts on what it read without syncing it first",
		"unrecorded: |lost: |duplicated: |repeated: |answered again: "},
	{"nostart", "the start of a side effect is not recorded", "unrecorded: call "},
	{"sendfirst", "an answer is sent before it is recorded", "unrecorded: answer "},
	{"finishfirst", "a dropped message is removed before its item is durable", "lost: "},
	{"torntail", "a line is appended to one that was cut off", "half line|lost: "},

	{"rerun", "a call that may have had its effect runs again", "repeated: "},
	{"twice", "an item that is done is processed again", "duplicated: |closed 2"},
	{"nodedupe", "a redelivered message becomes a second item", "duplicated: "},
	{"keysforgotten", "a rotation forgets the keys that identify redeliveries", "duplicated: "},
	{"shortmemory", "a message that is redelivered days later becomes a second item", "duplicated: "},
	{"sendtwice", "an answer that arrived is sent again", "answered again: "},
	{"deliverylate", "a delivery is recorded only after the call in progress", "answered again: |late: answer "},
	{"lifo", "items are processed newest first", "reordered: "},
	{"newestanswer", "the newest of the waiting answers is sent first", "reordered: answer "},

	{"wrongtext", "a message loses a letter", "wrong contents: "},
	{"nofiles", "attachments are lost", "wrong contents: "},
	{"wrongsender", "a message names the sender of the previous one", "wrong sender: "},
	{"wrongagent", "a message goes to the agent of the previous one", "wrong agent: "},
	{"wrongchat", "an answer goes to the chat of the previous one", "wrong chat: "},
	{"cutanswer", "only half of an answer is sent", "wrong contents: |the bot's answers"},
	{"swapresults", "the results of two calls are exchanged", "wrong contents: "},
	{"editlost", "a user's edit is silently discarded", "the text that a person put"},

	{"lostcallok", "a call that a crash interrupted is reported as successful", "never came: "},
	{"skipcall", "a call is reported as successful without having run", "never came: |stuck: "},
	{"taskskipped", "a task that is due is recorded as done without having run", "cron/once came 0|heartbeat came 0|stuck: "},
	{"noreport", "the report of a background agent does not reach its parent", "never came: "},
	{"nodelivery", "the first delivery is not recorded", "stuck: |late: "},

	{"oncetwice", "a permission that was granted once can be used twice", "without permission: |stuck: "},
	{"alwayslost", "a permission that was granted for always is forgotten", "forgotten right: |stuck: "},
	{"denyignored", "a call that was denied runs anyway", "without permission: "},
	{"revokelost", "a revoked permission still counts", "without permission: |right not taken back: |stuck: "},

	{"wakelost", "an agent with work is not woken the first time", "stuck: |late: "},
	{"latewake", "an idle agent starts half a minute late", "late: |stuck: "},
	{"slowstop", "the process ends a minute after SIGTERM", "late: it did not end"},
	{"onelane", "one slow chat holds up all others", "late: of "},
}

// soonest are ways to die, or scenarios, that show a bug before a round of kills does. A short
// hunt begins with their cases; a longer one does not know what to look for.
var soonest = map[string]string{
	"nosync": "power cut", "ackearly": "power cut", "nofoldersync": "power cut", "nofilesync": "power cut",
	"sendfirst": "power cut", "blindrecovery": "kill, then power", "lostcallok": "kill, then power",
	"keysforgotten": "peace", "shortmemory": "peace",
	"newestanswer": "neighbours", "onelane": "neighbours", "deliverylate": "labour",
	"oncetwice": "once", "alwayslost": "always", "revokelost": "revoke",
}

// shownBy reports whether a violation shows the bug.
func (b Bug) shownBy(violation string) bool {
	return slices.ContainsFunc(strings.Split(b.shows, "|"), func(s string) bool { return strings.HasPrefix(violation, s) })
}

// Caught says how a seeded bug was found; By is empty if it was not.
type Caught struct {
	Bug   string `json:"bug"`
	By    string `json:"by"`   // the way to die
	Case  string `json:"case"` // that showed it
	Saw   string `json:"saw"`
	Cases int    `json:"cases"` // played before it was found, and it
	// Stopped: the run was ended before the bug was found or all cases were played.
	Stopped bool   `json:"stopped,omitempty"`
	Does    string `json:"breaks"` // what it does wrong
}

func (r *Report) printBugs(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SEEDED BUG\tWHAT IT DOES\tCAUGHT BY\tCASES\tSEEN AS")
	cases := 0
	for _, c := range r.Bugs {
		by := c.By
		switch {
		case c.Stopped:
			by = "STOPPED"
		case by == "":
			by = "NOT CAUGHT"
		}
		cases += c.Cases
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%.90s\n", c.Bug, c.Does, by, c.Cases, c.Saw)
	}

	if err := t.Flush(); err != nil {
		return err
	}
	caught := len(slices.DeleteFunc(slices.Clone(r.Bugs), func(c Caught) bool { return c.By == "" }))
	fmt.Fprintf(w, "\n%d of %d caught, after %d cases; time: %.0f s, %.0f s of processor\n", caught,
		len(r.Bugs), cases, r.Seconds, r.Processor)
	if left := len(Bugs) - len(r.Bugs); left > 0 {
		fmt.Fprintf(w, "left out: %d of the seeded bugs; without --bug all are hunted\n", left)
	}

	return r.printFailures(w) // of scenarios that are played without a bug, before the hunts
}
