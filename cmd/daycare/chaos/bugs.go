package chaos

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// A Bug is a defect that can be switched on in a binary built with the tag
// seededbugs, and the promise that it breaks.
type Bug struct {
	Name, Breaks string
	// shows is how the violations begin that show it, separated by |. Others may come of
	// it, or of something else, and show nothing.
	shows string
}

// Bugs are all of them.
var Bugs = []Bug{
	{"nosync", "a barrier is one: nothing is synced", "lost: |unrecorded: |missing: "},
	{"ackearly", "accepted means durable: it is said before the barrier", "lost: "},
	{"nofoldersync", "a name lasts: folders are not synced",
		"lost: |missing: |the user could not|stuck: |unfinished: |import|the conversation|there are "},
	{"nofilesync", "a file that is replaced has its content before it has its name",
		"lost: |missing: |it ended|stuck: |wrong |forgotten right: |after doctor |the bot|daycare |models.json|the user " +
			"could not|the files cannot|late: "},
	{"blindrecovery", "what is read at a start is synced before it is acted on",
		"unrecorded: |lost: |duplicated: |repeated: |answered again: "},
	{"nostart", "a side effect is recorded before it happens: its start is not", "unrecorded: call "},
	{"sendfirst", "an answer is recorded before it leaves: it leaves first", "unrecorded: answer "},
	{"finishfirst", "a dropped message is removed when its item is durable: it is removed before", "lost: "},
	{"torntail", "a half line costs no other line: the next is written behind it", "half line|lost: "},

	{"rerun", "a call that may have had its effect does not run again: it does", "repeated: "},
	{"twice", "an item that history closes is not done again: it is", "duplicated: |closed 2"},
	{"nodedupe", "what is delivered again is the same item: it is another", "duplicated: "},
	{"keysforgotten", "a rotation keeps what is needed to know a redelivery: it forgets it", "duplicated: "},
	{"shortmemory", "a redelivery after days is known: it is accepted again", "duplicated: "},
	{"sendtwice", "an answer that arrived does not come again: it does", "answered again: "},
	{"deliverylate", "a delivery is recorded at once: after the call under way", "answered again: "},
	{"lifo", "items are taken in the order in which they came: newest first", "reordered: "},
	{"newestanswer", "answers come in their order: the newest of those that wait is next", "reordered: answer "},

	{"wrongtext", "the agent gets what was said: a letter is missing", "wrong contents: "},
	{"nofiles", "the agent gets what was attached: it gets nothing", "wrong contents: "},
	{"wrongsender", "the agent learns who speaks: it is the one who spoke before", "wrong sender: "},
	{"wrongagent", "a message goes to its agent: it goes to that of the message before", "wrong agent: "},
	{"wrongchat", "an answer goes to the chat that asked: it goes to that of the answer before", "wrong chat: "},
	{"cutanswer", "people get the whole answer: they get half of it", "wrong contents: |the bot's answers"},
	{"swapresults", "a call has its own result: two of them are exchanged", "wrong contents: "},
	{"editlost", "what a person changed stands: it is dropped in silence", "the text that a person put"},

	{"lostcallok", "a call that a death cut is not said to have worked: it is", "never came: "},
	{"skipcall", "a call that is said to have worked has worked: it was left out", "never came: |stuck: "},
	{"taskskipped", "what is due runs: it is noted as done", "cron/once came 0|heartbeat came 0|stuck: "},
	{"noreport", "a parent hears from its child: it does not", "never came: "},
	{"nodelivery", "a delivery is recorded: the first one is not", "stuck: |late: "},

	{"oncetwice", "what was allowed once is done once: it may be done again", "without permission: |stuck: "},
	{"alwayslost", "what was allowed for always is kept: it is not", "forgotten right: |stuck: "},
	{"denyignored", "what was denied is not done: it is", "without permission: "},
	{"revokelost", "what was taken back is not done: it is", "without permission: |right not taken back: |stuck: "},

	{"wakelost", "an agent with work is woken: not the first time", "stuck: |late: "},
	{"latewake", "an agent without work begins at once: after seven seconds", "late: |stuck: "},
	{"slowstop", "the process ends soon after SIGTERM: after fifteen seconds", "late: it did not end"},
	{"onelane", "a chat that is slow holds nobody up: all wait for it", "late: of "},
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
	Breaks  string `json:"breaks"`
}

func (r *Report) printBugs(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SEEDED BUG\tWHAT IT BREAKS\tCAUGHT BY\tCASES\tSEEN AS")
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
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%.90s\n", c.Bug, c.Breaks, by, c.Cases, c.Saw)
	}

	if err := t.Flush(); err != nil {
		return err
	}
	caught := len(slices.DeleteFunc(slices.Clone(r.Bugs), func(c Caught) bool { return c.By == "" }))
	_, err := fmt.Fprintf(w, "\n%d of %d caught, after %d cases; time: %.0f s, %.0f s of processor\n", caught,
		len(r.Bugs), cases, r.Seconds, r.Processor)
	if left := len(Bugs) - len(r.Bugs); left > 0 && err == nil {
		_, err = fmt.Fprintf(w, "left out: %d of the seeded bugs; without --bug all are hunted\n", left)
	}

	return err
}
