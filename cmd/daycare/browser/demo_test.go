//go:build !race

package browser

import (
	"fmt"
	"strings"
	"time"
)

// A view is a view of the page: where it is, what the Tab key leads to in it, and the keys that
// are pressed before it is looked at.
type view struct {
	name, path string
	reach      []string
	keys       []string
}

var views = []view{
	{name: "home", path: "/", reach: []string{"Find or do", "Filter agents", "New agent", "Review"}},
	{name: "agent", path: "/agents/0", reach: []string{"Message to 0/", "Fork", "Model"}},
	{name: "approvals", path: "/approvals", reach: []string{"reviewer", "Once", "Deny"}, keys: []string{"j"}},
	{name: "clocks", path: "/clocks", reach: []string{"Add a task", "Run Queue watch", "Queue watch is enabled"}},
	{name: "files", path: "/files/0/state.json", reach: []string{"settings.yaml", "Text of state.json"}},
	{name: "history", path: "/files/0/history.jsonl", reach: []string{"Select record", "Edit record"}},
	{name: "costs", path: "/costs?since=14d", reach: []string{"14 days", "By model"}},
	{name: "health", path: "/health", reach: []string{"Check again", "Test scripted", "warn"}},
	{name: "settings", path: "/settings", reach: []string{"agents", "Text of settings.yaml"}},
	{name: "skills", path: "/skills", reach: []string{"Filter skills"}},
	{name: "tools", path: "/tools", reach: []string{"Filter tools"}},
	{name: "trash", path: "/trash", reach: []string{"Restore"}},
}

// demoScript is a few agents with something to show: tools, an edit, a question, a failure.
const demoScript = `
rules:
  - { contains: "login fail", round: 1, reply: [ { thinking: "The update touched sessions, so look at the tests.", calls: [
      { name: read, arguments: { path: "auth/login_test.go" } }, { name: read, arguments: { path: "auth/nothing.go" } } ],
      usage: { input: 14200, output: 212 } } ] }
  - { tool_result: read, reply: [ { text: "I will look at the code first.", calls: [
      { name: edit, arguments: { path: "auth/login.go", old: "if s == nil {", new: "if s == nil || s.Expired() {" } } ],
      usage: { input: 15100, output: 340 } } ] }
  - { tool_result: edit, reply: [ { text: "The session was checked for ` + "`nil`" + ` only. After the update it survives ` +
	`a restart, so it can be there and expired:\n\n` +
	"```go\\nif s == nil || s.Expired() {\\n```" + `\n\nWith the second check the test passes.", usage: { input: 16000, output: 618 } } ] }
  - { contains: "push", round: 1, reply: [ { calls: [ { name: request_permission, arguments: { permission: "@exec:git push",
      reason: "The fix is reviewed and the tests pass. I push the branch so that the build can run." } } ],
      usage: { input: 9000, output: 90 } } ] }
  - { tool_result: request_permission, reply: [ { text: "I wait for your answer.", usage: { input: 9100, output: 20 } } ] }
  - { contains: "broken", reply: [ { fault: { kind: rejected, message: "the model refused the request" } } ] }
  - { reply: [ { text: "Noted: {{.Text}}", usage: { input: 4200, output: 60 } } ] }
`

const demoSettings = `models:
  - { id: scripted, price: { input: 3, output: 15 } }
budget: { perDay: { usd: 8 } }
`

// furnish writes what the demonstration has before the daemon starts.
func (w *workspace) furnish() {
	w.t.Helper()
	w.write("auth/login.go", "package auth\n\nfunc (h *Handler) login(w, r) {\n\ts := h.sessions.Get(r)\n\tif s == nil {\n"+
		"\t\treturn h.redirect(w, r, \"/login\")\n\t}\n}\n")
	w.write("auth/login_test.go", "package auth\n\nfunc TestLogin(t *testing.T) {}\n")
	w.write(".daycare/SOUL.md", "You are careful and brief.\n")
	w.write(".daycare/skills/release-notes/SKILL.md", "---\nname: release-notes\n"+
		"description: \"How release notes are written here: one line a change, users first.\"\n---\nRead CHANGELOG.md.\n")

	// None is due in the next minutes: what a run adds to the page is not in its pictures. Minute 0 is in other words.
	now := time.Now().UTC()
	morning := 8
	if now.Hour() == morning {
		morning++
	}
	w.task("queue-watch", "Queue watch", fmt.Sprintf("%d-59/20 * * * *", max(1, (now.Minute()+19)%20)),
		"Summarise what is waiting in the queue.",
		[]string{"ran", "skipped", "ran", "skipped", "missed", "ran", "skipped", "failed", "ran", "ran"}, 20)
	w.task("morning-review", "Morning review", fmt.Sprintf("30 %d * * 1-5", morning), "Review what was merged yesterday.",
		[]string{"ran"}, 240)
	w.task("index", "Index", fmt.Sprintf("%d */2 * * *", max(1, (now.Minute()+50)%60)), "Bring the index up to date.",
		[]string{"ran", "failed", "ran", "ran"}, 120)
}

// task writes a task and a ledger whose newest run was `minutes` ago, each one before it as long before.
func (w *workspace) task(slug, name, schedule, prompt string, outcomes []string, minutes int) {
	w.t.Helper()
	w.write(".daycare/cron/"+slug+"/TASK.md",
		fmt.Sprintf("---\nname: %s\nschedule: %q\ntimezone: UTC\nenabled: true\n---\n%s\n", name, schedule, prompt))
	var ledger strings.Builder
	reasons := map[string]string{"skipped": "gate: exit code 1", "failed": "503, 3 attempts",
		"missed": "a newer one ran instead (catch-up: one)"}
	now := time.Now().UTC().Truncate(time.Duration(minutes) * time.Minute)
	for i, outcome := range outcomes {
		slot := now.Add(-time.Duration(len(outcomes)-i) * time.Duration(minutes) * time.Minute)
		fmt.Fprintf(&ledger, `{"slot":%q,"at":%q,"outcome":%q,"reason":%q,"ms":2800}`+"\n", slot.Format(time.RFC3339),
			slot.Add(3*time.Second).Format("2006-01-02T15:04:05.000Z"), outcome, reasons[outcome])
	}
	w.write(".daycare/cron/"+slug+"/runs.jsonl", ledger.String())
}

// live has agents do something, and returns when all of it is shown.
func (w *workspace) live() {
	w.t.Helper()
	main := w.agent("fix the login bug")
	w.say(main, "Why does the login fail after the update?")
	reviewer := w.agent("reviewer")
	w.say(reviewer, "please push the branch")
	failing := w.agent("release notes")
	w.say(failing, "this is broken")
	idle := w.agent("migration of the customer database from the old host to the new one, step 3 of 7")
	w.say(idle, "Step 3 is done.")
	w.state(main, "idle")
	w.state(idle, "idle")
	w.until("the question is asked", func() bool {
		var open struct{ Permissions []any }
		w.api("GET", "/v1/permissions", nil, &open)
		return len(open.Permissions) > 0
	})
	gone := w.agent("an old try")
	w.api("DELETE", "/v1/agents/"+gone, nil, nil)
}
