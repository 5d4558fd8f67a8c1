package movein

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/cmd/daycare/term"
	"daycare/engine/finding"
	"daycare/engine/schedule"
	"daycare/engine/workspace"
)

// Tasks and heartbeats of another workspace are here as they were there, but for what runs commands; one that says
// less gets what it needs. They are on where both say so.
func TestTasksOfAnotherWorkspace(t *testing.T) {
	from := newWorkspace(t)
	home := filepath.Join(from, workspace.Home)
	write(t, filepath.Join(home, "cron/tea/TASK.md"), "---\nname: Tea time\ndescription: for four\nschedule: \"0 16 * * *\"\n"+
		"timezone: Asia/Tokyo\nwatch: [tea/*.md]\ngate: ./ready\n---\nBoil.\n")
	write(t, filepath.Join(home, "cron/plain/TASK.md"), "---\nschedule: \"0 9 * * *\"\nenabled: false\n---\nWake.\n")
	write(t, filepath.Join(home, "heartbeat/water.md"), "---\ntitle: Water\ngate: ./dry\n---\nWater them.\n")
	write(t, filepath.Join(home, "heartbeat/plain.md"), "Look around.\n")
	for _, enable := range []bool{false, true} {
		root := newWorkspace(t)
		table, said, err := imported(t, root, "daycare", from, options{yes: true, enable: enable})
		if err != nil || strings.Count(table+said, "add them by hand") != 2 {
			t.Fatalf("%v\n%s%s", err, table, said)
		}
		for slug, want := range map[string]string{
			"tea-time": fmt.Sprint("Tea time|for four|Asia/Tokyo|[tea/*.md]|Boil.|", enable),
			"plain":    "plain|||[]|Wake.|false",
		} {
			rel := filepath.Join(workspace.Home, "cron", slug, "TASK.md")
			data, err := os.ReadFile(filepath.Join(root, rel))
			if err != nil {
				t.Fatal(err)
			}
			got, found := schedule.DecodeTask(rel, slug, data, time.Local)
			text := fmt.Sprintf("%s|%s|%s|%v|%s|%v", got.Name, got.Description, got.Timezone, got.Watch,
				strings.TrimSpace(got.Prompt), got.Enabled)
			if text != want || got.ID == "" || got.Gate != nil || finding.Join(found) != nil {
				t.Errorf("%s is %s (id %q), %v; want %s", slug, text, got.ID, found, want)
			}
		}
		for slug, title := range map[string]string{"water": "Water", "plain": "plain"} {
			data, err := os.ReadFile(filepath.Join(root, workspace.Home, "heartbeat", slug+".md"))
			p, found := schedule.DecodePrompt(slug+".md", slug, data)
			if err != nil || finding.Join(found) != nil || p.Title != title || p.Enabled != enable || p.Gate != nil {
				t.Errorf("the heartbeat %s is %+v, %v, %v", slug, p, found, err)
			}
		}
	}
}

// The command takes its flags: --yes asks nothing, --enable has tasks run that ran there.
func TestTheCommandImports(t *testing.T) {
	for _, enable := range []bool{false, true} {
		root := newWorkspace(t)
		var out, talk bytes.Buffer
		c := &term.App{Streams: term.Streams{In: strings.NewReader(""), Out: &out, Err: &talk, NoInput: true}, Workspace: root}
		cmd := Import(c)
		cmd.SetArgs([]string{"openclaw", sample("openclaw"), "--yes", fmt.Sprint("--enable=", enable)})
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatalf("%v\n%s%s", err, out.String(), talk.String())
		}
		tasks, err := filepath.Glob(filepath.Join(root, workspace.Home, "cron", "*", "TASK.md"))
		on := false
		for _, path := range tasks {
			data, rerr := os.ReadFile(path)
			err = errors.Join(err, rerr)
			on = on || bytes.Contains(data, []byte("enabled: true"))
		}
		if err != nil || len(tasks) == 0 || on != enable {
			t.Errorf("of %d tasks one is on: %v, want %v; %v", len(tasks), on, enable, err)
		}
	}
}

// With --json an import prints its items, before and after, and nothing else.
func TestAnImportInJSON(t *testing.T) {
	root := newWorkspace(t)
	for _, o := range []options{{dry: true}, {yes: true}} {
		var out, talk bytes.Buffer
		c := &term.App{Streams: term.Streams{In: strings.NewReader(""), Out: &out, Err: &talk, NoInput: true, JSON: true}, Workspace: root}
		if err := run(context.Background(), c, kinds["openclaw"], sample("openclaw"), o); err != nil {
			t.Fatal(err)
		}
		var printed result
		if err := json.Unmarshal(out.Bytes(), &printed); err != nil || len(printed.Items) < 10 {
			t.Errorf("%+v printed %d items, %v:\n%s", o, len(printed.Items), err, out.String())
		}
	}
}

// What could not be imported is named, with its reason, and the command fails.
func TestItemsThatCouldNotBeImported(t *testing.T) {
	var out, talk bytes.Buffer
	c := &term.App{Streams: term.Streams{In: strings.NewReader(""), Out: &out, Err: &talk}}
	err := finish(c, []Row{{What: "skill", From: "tea", State: stateTaken},
		{What: "skill", From: "cake", State: stateFailed, Why: "disk full"}})
	var problem *term.Problem
	if !errors.As(err, &problem) || !strings.Contains(err.Error(), "1 item could not be imported") ||
		!strings.Contains(talk.String(), "cake: disk full") || strings.Contains(talk.String(), "tea:") || out.Len() == 0 {
		t.Errorf("%v\n%s%s", err, out.String(), talk.String())
	}
	if err := finish(c, []Row{{What: "skill", From: "tea", State: stateTaken}}); err != nil {
		t.Error(err)
	}
}
