//go:build !race

package browser

import (
	"encoding/json"
	"strings"
	"testing"
)

// Clocks show what the ledger has, with reasons; a task runs now, is switched off and added
// from the page.
func TestClocks(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, talkScript, "")
	w.task("queue-watch", "Queue watch", "17 4 29 2 *", "Summarise the queue.", []string{"ran", "skipped", "missed", "failed"}, 60)
	w.start()
	p := w.visit("/clocks/queue-watch")
	p.sees("Ledger of Queue watch")
	p.looks("clocks")

	var ledger struct {
		Runs []struct{ Outcome, Reason string }
	}
	w.api("GET", "/v1/cron/queue-watch/runs?limit=50", nil, &ledger)
	type shown struct{ Outcome, Reason string }
	rows := eval[[]shown](p, `[...document.querySelectorAll("main tbody tr")].reverse()
		.map(r => ({ Outcome: r.cells[2].innerText, Reason: r.cells[4].innerText }))`)
	if len(rows) != len(ledger.Runs) {
		t.Fatalf("the page lists %d runs, the ledger has %d", len(rows), len(ledger.Runs))
	}
	for i, r := range ledger.Runs {
		if rows[i].Outcome != r.Outcome || rows[i].Reason != r.Reason {
			t.Errorf("run %d is shown as %+v, want %+v", i, rows[i], r)
		}
	}
	if marks := eval[int](p, `document.querySelectorAll("main .lane:not(.legend) title").length`); marks < 3 {
		t.Errorf("the lane has %d marks, want those of the last hours", marks)
	}

	p.click("button", "Run Queue watch")
	p.wait(`[...document.querySelectorAll("main tbody tr")].some(r => r.cells[4].innerText.startsWith("hand") &&
		r.cells[2].innerText === "ran")`, "the run by hand is in the ledger")
	if n := strings.Count(w.read(".daycare/cron/queue-watch/runs.jsonl"), `"via":"hand"`); n == 0 {
		t.Error("the ledger has no run by hand")
	}

	p.click("checkbox", "Queue watch is enabled")
	p.told("Queue watch is disabled")
	var task struct{ Enabled bool }
	w.api("GET", "/v1/cron/queue-watch", nil, &task)
	if task.Enabled {
		t.Error("the task is still enabled")
	}

	p.click("button", "Add a task")
	p.fill("textbox", "When", "friday at 9")
	p.fill("textbox", "Prompt", "Say hello.")
	p.expect("422|400")
	p.click("button", "Add")
	p.wait("document.querySelector('dialog [role=alert]').textContent.length > 10", "what is wrong with the time is said")
	p.fill("textbox", "When", "every friday at 9")
	p.click("button", "Add")
	p.wait("location.pathname === '/clocks/say-hello'", "the new task is chosen")
	p.sees("Ledger of Say hello")
}

// Costs on the page are those of daycare cost.
func TestCosts(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, demoScript, demoSettings)
	w.furnish()
	w.start()
	w.live()
	p := w.visit("/costs?by=agent&since=7d")
	p.looks("costs")
	var bill struct {
		Rows []struct {
			Key   string
			Calls int
		}
		Total struct{ Cost float64 }
	}
	if err := json.Unmarshal([]byte(w.run("cost", "--json")), &bill); err != nil {
		t.Fatal(err)
	}
	rows := eval[map[string]string](p, `Object.fromEntries([...document.querySelectorAll("main tbody tr")]
		.map(r => [r.cells[0].innerText.split(" ")[0], r.cells[1].innerText]))`)
	if len(rows) != len(bill.Rows) {
		t.Errorf("the page has %d rows, daycare cost %d", len(rows), len(bill.Rows))
	}
	for _, r := range bill.Rows {
		if calls, _ := json.Marshal(r.Calls); rows[r.Key] != string(calls) {
			t.Errorf("%s made %d calls, the page says %q", r.Key, r.Calls, rows[r.Key])
		}
	}
	p.click("link", "By model")
	p.wait("location.search.includes('by=model')", "the choice is in the address")
	p.sees("scripted")
}
