package cron

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/engine/finding"
	"daycare/engine/schedule"
	"daycare/tools"
)

// hermit knows nobody's clocks but those that are its own.
type hermit struct{ allowed }

func (hermit) Knows(string, string) bool { return false }

// An agent sees and changes the task that it works for, and those that speak to it; a task
// of another agent it may see, but not change.
func TestWhoseATaskIs(t *testing.T) {
	const own, stranger = "tttttttttttttttttttttttt", "bbbbbbbbbbbbbbbbbbbbbbbb"
	for _, tt := range []struct {
		rights Rights
		agent  string
		sees   string
		change map[string]bool
	}{
		{hermit{}, own, "own", map[string]bool{"own": true, "mine": false, "theirs": false}},
		{hermit{}, caller, "mine", map[string]bool{"own": false, "mine": true, "theirs": false}},
		{hermit{}, stranger, "theirs", map[string]bool{"own": false, "mine": false, "theirs": true}},
		{allowed{}, caller, "mine own theirs", map[string]bool{"own": true, "mine": true, "theirs": false}},
		{strict{missing: []string{"@web"}}, own, "mine own theirs", map[string]bool{"own": true, "mine": false, "theirs": false}},
	} {
		_, set := setupFor(t, tt.rights)
		do := func(name, args string) tools.Result {
			tool, _, _ := set.Get(name)
			res, err := tool.Run(t.Context(), tools.Call{ID: name, Arguments: json.RawMessage(args), Agent: tt.agent,
				Progress: func(string) {}})
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
		var sees []string
		for line := range strings.Lines(do("cron_list", `{}`).Text) {
			slug, _, _ := strings.Cut(line, " (")
			sees = append(sees, slug)
		}
		if got := strings.Join(sees, " "); got != tt.sees {
			t.Errorf("%T: %s sees %s, want %s", tt.rights, tt.agent, got, tt.sees)
		}
		for slug, may := range tt.change {
			res := do("cron_update", `{"task":"`+slug+`","name":"x"}`)
			if (res.Status != tools.Failed) != may {
				t.Errorf("%T: %s changes %s: %q %s", tt.rights, tt.agent, slug, res.Status, res.Text)
			}
			seen := strings.Contains(tt.sees, slug)
			if !may && strings.Contains(res.Text, "not found") == seen &&
				!strings.Contains(res.Text, "cron_list and heartbeat_list name them") == !seen {
				t.Errorf("%T: %s is told of %s: %s", tt.rights, tt.agent, slug, res.Text)
			}
		}
	}
}

// A user reads when a task is due, to the second only where that matters.
func TestWhenATaskIsDue(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	when, err := schedule.NewSchedule(schedule.Timing{Every: "2h"}, berlin)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC)
	for want, e := range map[string]schedule.Entry{
		"; switched off":               {Next: []time.Time{at}},
		"; no run is to come":          {Task: schedule.Task{Enabled: true}},
		"; next: Fri 2026-11-20 18:00": {Task: schedule.Task{Enabled: true}, Next: []time.Time{at}},
		"; next: Fri 2026-11-20 18:00:07, Fri 2026-11-20 18:01": {Task: schedule.Task{Enabled: true},
			Next: []time.Time{at.Add(7 * time.Second), at.Add(time.Minute)}},
	} {
		e.When = when
		if got := about(e); got != when.String()+want {
			t.Errorf("it says %q, want %q", got, when.String()+want)
		}
	}
}

// A user reads how the newest run ended, and why.
func TestHowTheNewestRunEnded(t *testing.T) {
	at := time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC)
	for want, r := range map[string]*schedule.Run{
		"never ran":                                  nil,
		"running since 2026-11-20 17:00 UTC":         {At: at},
		"ran 2026-11-20 17:00 UTC":                   {At: at, Outcome: schedule.Ran},
		"skipped 2026-11-20 17:00 UTC (a gate said)": {At: at, Outcome: schedule.Skipped, Reason: "a gate said"},
	} {
		if got := last(r); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}

// What went wrong is said in words that help: where the names are, or what is wrong in a file.
func TestWhatWentWrongIsSaid(t *testing.T) {
	for want, err := range map[string]error{
		"no: x; cron_list and heartbeat_list name them": fmt.Errorf("no: %w", notFound{}),
		"the schedule is odd": fmt.Errorf("update: %w",
			finding.Finding{Reason: "the schedule is odd", File: "f"}),
		"disk full": errors.New("disk full"),
	} {
		if got := reason(err); got != want {
			t.Errorf("%v is said as %q, want %q", err, got, want)
		}
	}
}

type notFound struct{}

func (notFound) Error() string        { return "x" }
func (notFound) Is(target error) bool { return target == schedule.ErrNotFound }

// The heartbeat says what it looks at, what of it is switched off, and when it looks next.
func TestWhatIsListedOfTheHeartbeat(t *testing.T) {
	for name, tt := range map[string]struct {
		prompts map[string]string
		want    string
	}{
		"one": {map[string]string{"disk": "Is it full?\n"}, "disk: disk\nnext: 2026-11-20 18:00 UTC; last: never ran"},
		"one is off": {map[string]string{"disk": "x\n", "mail": "---\nenabled: false\n---\ny\n"},
			"disk: disk\nmail: mail (switched off)\nnext: 2026-11-20 18:00 UTC; last: never ran"},
		"all are off": {map[string]string{"mail": "---\nenabled: false\n---\ny\n"},
			"mail: mail (switched off)\nIt is switched off; last: never ran"},
		"there is none": {nil, "The heartbeat has nothing to look at."},
	} {
		root, set := setup(t)
		if err := os.Remove(filepath.Join(root, "heartbeat/disk.md")); err != nil {
			t.Fatal(err)
		}
		for slug, text := range tt.prompts {
			if err := os.WriteFile(filepath.Join(root, "heartbeat", slug+".md"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := call(t, set, "c", "heartbeat_list", `{}`).Text; got != tt.want {
			t.Errorf("%s: listed is\n%s\nwant\n%s", name, got, tt.want)
		}
	}
}

// Arguments of other types change nothing.
func TestArgumentsOfOtherTypes(t *testing.T) {
	for name := range changes {
		root, set := setup(t)
		before := files(t, root)
		tool, _, _ := set.Get(name)
		res, err := tool.Run(t.Context(), tools.Call{ID: "c", Arguments: json.RawMessage(`["task"]`), Agent: caller})
		if err != nil || res.Status != tools.Failed || !strings.HasPrefix(res.Text, name+": the arguments do not fit: ") {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
		if after := files(t, root); after != before {
			t.Errorf("%s has changed\n%s\nto\n%s", name, before, after)
		}
	}
}

// A new time is read in the zone that the call names, else in that of the task.
func TestANewTimeIsReadInTheZoneOfTheTask(t *testing.T) {
	for args, want := range map[string]string{
		`{"task":"there","when":"every day at 7"}`:                            "07:00 (Asia/Tokyo)",
		`{"task":"there","when":"every day at 7","timezone":"Europe/Berlin"}`: "07:00 (Europe/Berlin)",
		`{"task":"own","when":"every day at 7"}`:                              "07:00 (UTC)",
	} {
		_, set := setup(t)
		call(t, set, "c1", "add_cron", `{"name":"there","when":"every day at 9","prompt":"x","timezone":"Asia/Tokyo"}`)
		if res := call(t, set, "c2", "cron_update", args); !strings.Contains(res.Text, want+";") {
			t.Errorf("%s: %q, want %q", args, res.Text, want)
		}
	}
}

// A task without a memory has nothing yet, and one that is run says where to look.
func TestWhatIsSaidOfATask(t *testing.T) {
	_, set := setup(t)
	for _, tt := range []struct{ name, args, want string }{
		{"cron_read_memory", `{"task":"own"}`, "There is nothing yet."},
		{"cron_run", `{"task":"own"}`, "Task own runs now; cron_list tells how it ended."},
		{"heartbeat_run", `{}`, "The heartbeat runs now; heartbeat_list tells how it ended."},
		{"heartbeat_add", `{"title":"Mail","prompt":"Any mail?"}`, "The heartbeat looks at mail."},
		{"heartbeat_remove", `{"name":"mail"}`, "mail is in the trash."},
		{"cron_read_task", `{"task":"own"}`, "---\ntaskId: tttttttttttttttttttttttt\nschedule: \"@daily\"   # at night\n---\nLook.\n"},
		{"cron_delete_task", `{"task":"own"}`, "Task own is in the trash."},
	} {
		if res := call(t, set, "c"+tt.name, tt.name, tt.args); res.Text != tt.want || res.Status == tools.Failed {
			t.Errorf("%s: %q %q, want %q", tt.name, res.Status, res.Text, tt.want)
		}
	}
}
