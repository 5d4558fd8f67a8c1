package inbox_test

import (
	"testing"
	"time"

	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// A platform offers a message again: it must be the same one whatever happened to the
// clock since it was accepted, and a key that is used again after its week is new.
func TestWrongClockNeverForgetsAKey(t *testing.T) {
	right := time.Date(2026, 11, 20, 18, 22, 0, 0, time.UTC)
	wrong := time.Date(2001, 1, 1, 0, 0, 9, 0, time.UTC)
	for name, tt := range map[string]struct{ accepted, between, again time.Time }{
		"accepted before the clock was set":             {wrong, wrong, right},
		"accepted ahead of the clock":                   {right.AddDate(74, 0, 0), right, right.Add(time.Hour)},
		"opened and rotated under a clock far ahead":    {right, right.AddDate(74, 0, 0), right.Add(time.Hour)},
		"opened and rotated before the clock was set":   {right, wrong, right.Add(time.Hour)},
		"offered again before the clock was set":        {right, right, wrong},
		"offered again under a clock that is far ahead": {right, right, right.AddDate(74, 0, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			dir, c := t.TempDir(), &clock{tt.accepted}
			var f *inbox.File
			reopen := func(now time.Time) {
				t.Helper()
				if f != nil {
					f.Close()
				}
				c.now = now
				var err error
				if f, _, err = inbox.Open(disk.NewVolume(dir), dir, inbox.NewQuota(0), c.read); err != nil {
					t.Fatal(err)
				}
			}
			offer := func(wantDuplicate bool) {
				t.Helper()
				r, err := f.Accept(t.Context(), inbox.Item{Kind: message.Text, Text: "x", Dedupe: "telegram:1"})
				if err != nil || r.Duplicate != wantDuplicate {
					t.Errorf("at %v: %+v, %v; want a duplicate: %v", c.now, r, err, wantDuplicate)
				}
			}
			reopen(tt.accepted)
			offer(false)
			c.now = tt.again
			offer(true)
			reopen(tt.between)
			pass(t, f, dir)
			c.now = tt.again
			offer(true)
			reopen(tt.again)
			offer(true)
			f.Close()
		})
	}
}
