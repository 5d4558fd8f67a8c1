package chaos

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A look that took long, as at a long history on a busy machine, puts off the next one. Where nothing
// is left to do by then, nothing had to happen in between.
func TestWhatALifeShows(t *testing.T) {
	const open, done = `{"type":"message","id":"i1"}` + "\n", `{"type":"done","ids":["i1"]}` + "\n"
	for name, tt := range map[string]struct {
		inbox  string
		deaths int
		said   bool
		want   []sight
	}{
		"done":                    {open + done, 0, true, []sight{goesOn, settled}},
		"done after a death":      {open + done, 1, true, []sight{goesOn, greeting, goesOn}},
		"open":                    {open, 0, true, []sight{goesOn, nothingHappens}},
		"open after a death":      {open, 1, true, []sight{goesOn, nothingHappens}},
		"something is to be said": {open + done, 0, false, []sight{goesOn, goesOn, nothingHappens}},
	} {
		t.Run(name, func(t *testing.T) {
			agent := filepath.Join(t.TempDir(), "agents", "a1")
			if err := os.MkdirAll(agent, 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(agent, "inbox.jsonl"), tt.inbox)
			c := Case{Scenario: &Scenario{Name: "test"}}
			p := &play{Case: c, h: &harness{stalls: &stallClock{}}, result: &Result{Totals: Totals{Deaths: tt.deaths}},
				process:      process{follow: newFollower(filepath.Dir(filepath.Dir(agent)), nil)},
				conversation: conversation{user: newUser(&world{}, "", "", ""), said: make(chan struct{})}}
			if tt.said {
				close(p.said)
			}

			w, now := newWatch(p), time.Now()
			for i, want := range tt.want {
				if got := w.look(now); got != want {
					t.Fatalf("look %d shows %d, want %d", i+1, got, want)
				}
				if want == greeting {
					p.greeted = p.troubles()
				}
				now = now.Add(nothingFor + time.Second)
			}
		})
	}
}
